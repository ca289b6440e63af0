"""From anybody's posterior to :class:`~validation.posteriors.protocol.Posterior`.

Libraries are recognised by the module their classes come from, so that nothing is imported that
the user has not imported already.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from .arviz_draws import is_arviz
from .flow_bases import zuko_to_base
from .functions import function_posterior, sampler_posterior
from .misuse import refuse_misuse
from .protocol import BatchedPosterior, Posterior
from .sbi_posteriors import sbi_estimator, sbi_posterior
from .signatures import arguments, calls, comes_from, seeded
from .stored_samples import Layout, stored_fits, stored_posterior


def as_posterior(
    obj: Any,
    *,
    layout: Layout | None = None,
    weights: Any = None,
    var_names: Sequence[str] | None = None,
    batch_size: int = 1_000,
    progress: bool = False,
) -> Posterior:
    """Wrap a posterior of any library so that the tests can draw from it.

    ============================================ ==================================================
    ``obj``                                      how it is sampled
    ============================================ ==================================================
    sbi posterior (0.24 and newer)               ``sample_batched((K,), x)``, where that is there
                                                 and means the same as ``sample``; MCMC draws in
                                                 random order
    sbi rejection or importance sampling, MCMC   ``sample((K,), x)``, one observation at a time
    that is not vectorised, NPE-A, NPE-PFN, any
    number of trials of NLE and NRE
    sbi ``VIPosterior``                          trained anew at each x by ``train()`` as it stands
                                                 (seconds an x), on a copy; an amortised one as it
                                                 is
    sbi ensemble                                 each component as above, mixed by its weights
    sbi conditional density estimator            ``sample((K,), x)``; one of NLE has the same class,
                                                 and is told by its shapes alone
    zuko flow; lampe ``NPE`` or ``FMPE``         ``flow(x).sample((K,))``
    torch module or callable of one argument     ``f(x)``, a distribution over all x of torch,
                                                 ``.sample((K,))``, or scipy, ``.rvs``
    callable of two arguments                    ``f(num_samples, x)``, in the order and form that
                                                 the names tell, else as one trial at two x shows;
                                                 laid out by ``layout``, given a ``seed`` where it
                                                 takes one
    object with ``sample`` of two arguments      its ``sample``, likewise
    ``sample_batched((K,), x)``, as ABI's        as it is, where the fit reaches every x
    method ``sample`` or ``sample_batched``      as the posterior that it is of
    BayesFlow 2 workflow                         as a callable: ``lambda num_samples, x, seed:
                                                 w.sample(num_samples=num_samples, conditions={"x":
                                                 x.numpy()}, seed=seed)["theta"]``, and
                                                 ``layout="observations_first"``
    tuple ``(theta, x, q_samples)``              pre-drawn; needs ``layout``, may have ``weights``
    list of ArviZ InferenceData or DataTree      pre-drawn, one fit an observation
    one ArviZ InferenceData or DataTree          pre-drawn, for its own ``observed_data`` alone
    :class:`~validation.PerObservation`          one fit an observation
    ============================================ ==================================================

    x reaches the library in its own shape: (n, p), images (n, 1, 8, 8), or trials (n, 10, 2).

    Args:
        obj: the posterior.
        layout: order of the axes of pre-drawn samples, or of what a callable of two arguments
            returns: ``"samples_first"`` (L, n, d) or ``"observations_first"`` (n, L, d). Callables
            are taken as samples first when omitted; for pre-drawn samples you must say.
        weights: weights of pre-drawn samples, in the same layout without the last axis.
        var_names: parameters of ArviZ data, in the order of theta; all when omitted.
        batch_size: most observations in one call of the library.
        progress: show a progress bar while sampling.

    Raises:
        TypeError: if ``obj`` is none of these. The message says what to pass.
        ValueError: if ``layout`` is missing or does not fit.

    >>> import torch
    >>> q = as_posterior(lambda x: torch.distributions.Normal(x, 1.0))
    >>> q.sample(5, torch.zeros(2, 3)).shape
    torch.Size([5, 2, 3])
    """
    obj = _owner(obj)
    refuse_misuse(obj)
    wrap = next((wrap for looks, wrap in _KINDS if looks(obj)), _refused)
    if weights is not None and wrap not in (_fits, _pre_drawn):
        raise ValueError("`weights` belong to pre-drawn samples: pass (theta, x, q_samples).")
    posterior = wrap(obj, _Asked(layout, weights, var_names))
    if isinstance(posterior, BatchedPosterior) and posterior is not obj:
        return replace(posterior, batch_size=batch_size, progress=progress)
    return posterior


@dataclass(frozen=True, eq=False)
class _Asked:
    """What :func:`as_posterior` was told of samples and their layout."""

    layout: Layout | None
    weights: Any
    var_names: Sequence[str] | None


def _are_fits(obj: Any) -> bool:
    fits = obj if isinstance(obj, tuple | list) else [obj]
    return len(fits) > 0 and all(map(is_arviz, fits))


def _fits(obj: Any, asked: _Asked) -> Posterior:
    return stored_fits(obj if isinstance(obj, tuple | list) else [obj], asked.var_names)


def _pre_drawn(obj: Any, asked: _Asked) -> Posterior:
    theta, x, samples = obj
    return stored_posterior(theta, x, samples, asked.layout, asked.weights)


def _refused(obj: Any, _asked: _Asked) -> Posterior:
    raise TypeError(
        f"`q` must be an sbi posterior or estimator, a zuko or lampe flow, a callable "
        f"x -> distribution or (num_samples, x) -> samples, a tuple (theta, x, q_samples), "
        f"ArviZ data, or PerObservation(fit); got {type(obj).__name__}."
    )


def _sample_arguments(obj: Any) -> list[str]:
    return arguments(obj.sample) if hasattr(obj, "sample") else []


def _follows_protocol(obj: Any) -> bool:
    """Whether ``sample`` takes (num_samples, x, seed), by place, as our protocol says."""
    if _sample_arguments(obj)[:3] != ["num_samples", "x", "seed"]:
        return False
    seed = inspect.signature(obj.sample).parameters["seed"]
    return seed.kind is not inspect.Parameter.KEYWORD_ONLY


def _flow(flow: Any) -> BatchedPosterior:
    """A flow of zuko, whose own classes look at flat x alone."""
    flat = type(flow).__module__.split(".")[0] == "zuko"

    def contexts(x: Tensor) -> Tensor:
        return x.flatten(1) if flat else x

    return BatchedPosterior(
        lambda num, x: flow(contexts(x)).sample((num,)),
        f"zuko {type(flow).__name__}",
        lambda theta, x: flow(contexts(x)).log_prob(theta),
        (lambda theta, x: zuko_to_base(flow, theta, contexts(x)))
        if hasattr(flow, "transform")
        else None,
    )


def _lampe(estimator: Any, _asked: _Asked) -> BatchedPosterior:
    """A zuko flow in NPE; a method x -> distribution in FMPE."""
    flow = estimator.flow
    return _flow(flow) if comes_from(flow, "zuko") else function_posterior(flow, None)


def _sampler(obj: Any, asked: _Asked) -> BatchedPosterior:
    """A method ``sample``, and where it is the protocol's but for the seed, ``log_prob`` too."""
    ours = arguments(obj.sample)[:2] == ["num_samples", "x"]
    density = getattr(obj, "log_prob", None) if ours else None
    return sampler_posterior(obj.sample, type(obj).__name__, asked.layout, density)


def _batched(obj: Any, _asked: _Asked) -> BatchedPosterior:
    """``sample_batched((K,), x)`` and, where there is one, ``log_prob_batched(theta, x)``."""
    sample = seeded(obj.sample_batched)
    return BatchedPosterior(
        lambda num, x: sample((num,), x),
        type(obj).__name__,
        getattr(obj, "log_prob_batched", None),
    )


def _owner(obj: Any) -> Any:
    """The posterior whose method ``sample`` or ``sample_batched`` this is; else the object."""
    named = getattr(obj, "__name__", None) in ("sample", "sample_batched")
    return obj.__self__ if inspect.ismethod(obj) and named else obj


_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any, _Asked], Posterior]], ...] = (
    (lambda obj: Posterior in type(obj).__mro__, lambda obj, _: obj),  # wrapped already
    (_are_fits, _fits),
    (lambda obj: isinstance(obj, tuple | list) and len(obj) == 3, _pre_drawn),
    (_follows_protocol, lambda obj, _: obj),
    (lambda obj: comes_from(obj, "sbi") and hasattr(obj, "sample_batched"),
     lambda obj, _: sbi_posterior(obj)),
    (lambda obj: comes_from(obj, "sbi") and hasattr(obj, "condition_shape"),
     lambda obj, _: sbi_estimator(obj)),
    (lambda obj: comes_from(obj, "lampe") and hasattr(obj, "flow"), _lampe),
    (lambda obj: comes_from(obj, "zuko"), lambda obj, _: _flow(obj)),
    (lambda obj: _sample_arguments(obj)[:2] == ["num_samples", "x"], _sampler),
    (lambda obj: hasattr(obj, "sample_batched"), _batched),
    (lambda obj: hasattr(obj, "sample") and bool(calls(obj.sample)), _sampler),
    (callable, lambda obj, asked: function_posterior(obj, asked.layout)),
)  # fmt: skip
"""(does it look like this?, wrap it so): the first that it looks like counts."""
