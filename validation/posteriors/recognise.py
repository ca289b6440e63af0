"""From anybody's posterior to :class:`~validation.posteriors.protocol.Posterior`.

Libraries are recognised by the module their classes come from, so that nothing is imported that
the user has not imported already.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .arviz_draws import is_arviz
from .flow_bases import zuko_to_base
from .protocol import BatchedPosterior, Posterior
from .sbi_posteriors import sbi_estimator, sbi_posterior
from .signatures import arguments, comes_from, num_required, seeded
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
    """Bring a posterior of any kind into the one form the tests know.

    ============================================ ==================================================
    ``obj``                                      how it is sampled
    ============================================ ==================================================
    sbi posterior (0.24 and newer)               ``sample_batched((K,), x)``
    sbi ensemble                                 so each component, mixed by its weights
    sbi conditional density estimator            ``sample((K,), x)``
    ``sample_batched((K,), x)``, as ABI's        as it is, where the fit reaches every x
    zuko flow; lampe ``NPE`` or ``FMPE``         ``flow(x).sample((K,))``
    torch module or callable of one argument     ``f(x)``, a distribution, ``.sample((K,))``
    callable of two arguments                    ``f(num_samples, x)``, laid out by ``layout``, and
                                                 given a ``seed`` where it takes one
    ``sample(num_samples, x)``                   as it is
    ``sample((K,), x=...)``                      one observation at a time
    tuple ``(theta, x, q_samples)``              pre-drawn; needs ``layout``, may have ``weights``
    list of ArviZ InferenceData or DataTree      pre-drawn, one fit an observation
    one ArviZ InferenceData or DataTree          pre-drawn, for its own ``observed_data`` alone
    :class:`~validation.PerObservation`          one fit an observation
    ============================================ ==================================================

    Args:
        obj: the posterior.
        layout: how pre-drawn samples lie, or what a callable of two arguments returns:
            ``"samples_first"`` (L, n, d) or ``"observations_first"`` (n, L, d). A callable's
            default is samples first; pre-drawn samples have none, for a guess would be silent.
        weights: of pre-drawn samples, in the same layout without the last axis.
        var_names: parameters of ArviZ data, in the order of theta; all when omitted.
        batch_size: most observations in one call of the library.
        progress: whether to show a bar while sampling.

    Raises:
        TypeError: if ``obj`` is none of these, with what is accepted.
        ValueError: if ``layout`` is missing or does not fit.

    >>> import torch
    >>> q = as_posterior(lambda x: torch.distributions.Normal(x, 1.0))
    >>> q.sample(5, torch.zeros(2, 3)).shape
    torch.Size([5, 2, 3])
    """
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


def _array_refused(_obj: Any, _asked: _Asked) -> Posterior:
    raise TypeError(
        "`q` is an array of samples, which does not say for which observations: pass "
        "as_posterior((theta, x, q_samples), layout='samples_first')."
    )


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
    """A flow of zuko."""
    return BatchedPosterior(
        lambda num, x: flow(x).sample((num,)),
        f"zuko {type(flow).__name__}",
        lambda theta, x: flow(x).log_prob(theta),
        (lambda theta, x: zuko_to_base(flow, theta, x)) if hasattr(flow, "transform") else None,
    )


def _lampe(estimator: Any, _asked: _Asked) -> BatchedPosterior:
    """A zuko flow in NPE; a method x -> distribution in FMPE."""
    flow = estimator.flow
    return _flow(flow) if comes_from(flow, "zuko") else _function(flow, None)


def _sampler(obj: Any, _asked: _Asked) -> BatchedPosterior:
    """``sample(num_samples, x)``."""
    return BatchedPosterior(seeded(obj.sample), type(obj).__name__, getattr(obj, "log_prob", None))


def _batched(obj: Any, _asked: _Asked) -> BatchedPosterior:
    """``sample_batched((K,), x)`` and, where there is one, ``log_prob_batched(theta, x)``."""
    sample = seeded(obj.sample_batched)
    return BatchedPosterior(
        lambda num, x: sample((num,), x),
        type(obj).__name__,
        getattr(obj, "log_prob_batched", None),
    )


def _sampler_of_one(obj: Any, _asked: _Asked) -> BatchedPosterior:
    """``sample((K,), x=...)``: one observation at a time."""
    sample = seeded(obj.sample)

    def draw(num_samples: int, x: Tensor) -> Tensor:
        rows = [torch.as_tensor(sample((num_samples,), x=x_o)) for x_o in x]
        return torch.stack(rows, dim=1)

    return BatchedPosterior(draw, type(obj).__name__)


def _function(function: Callable[..., Any], layout: Layout | None) -> BatchedPosterior:
    """Tell ``x -> distribution`` from ``(num_samples, x) -> samples`` by the required arguments."""
    target = function.forward if isinstance(function, nn.Module) else function
    required = num_required(target)
    name = getattr(function, "__name__", type(function).__name__)
    if required == 1:
        return BatchedPosterior(
            lambda num, x: _distribution(function, x, name).sample((num,)),
            name,
            lambda theta, x: _log_prob(_distribution(function, x, name), theta),
        )
    if required != 2:
        raise TypeError(
            f"`q` ({name}) must take x and return a distribution, or take (num_samples, x) and "
            f"return samples; it requires {required} arguments."
        )
    draw = seeded(function, target)
    if layout == "observations_first":
        return BatchedPosterior(lambda num, x: _swapped(draw(num, x)), name)
    return BatchedPosterior(draw, name)


def _distribution(function: Callable[..., Any], x: Tensor, name: str) -> Any:
    distribution = function(x)
    if not hasattr(distribution, "sample"):
        raise TypeError(
            f"`q` ({name}) must return a distribution with .sample(shape) for x (n, p); it "
            f"returned {type(distribution).__name__}. To return samples, take (num_samples, x)."
        )
    return distribution


def _log_prob(distribution: Any, theta: Tensor) -> Tensor:
    """Log density at theta (K, n, d), -inf outside the support, which torch refuses to look at."""
    try:
        inside = distribution.support.check(theta)
    except (AttributeError, NotImplementedError):  # it declares none
        inside = torch.ones((), dtype=torch.bool)
    if inside.all():
        return torch.as_tensor(distribution.log_prob(theta))
    rows = inside if inside.ndim == theta.ndim else inside[..., None]
    values = torch.as_tensor(distribution.log_prob(theta.where(rows, distribution.sample())))
    return values.masked_fill(~inside.reshape(values.shape), -torch.inf)


def _swapped(samples: Any) -> Tensor:
    values = torch.as_tensor(samples)
    if values.ndim != 3:
        raise ValueError(f"`q` must return three axes (n, L, d); got {tuple(values.shape)}.")
    return values.transpose(0, 1)


_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any, _Asked], Posterior]], ...] = (
    (lambda obj: Posterior in type(obj).__mro__, lambda obj, _: obj),  # wrapped already
    (_are_fits, _fits),
    (lambda obj: isinstance(obj, tuple | list) and len(obj) == 3, _pre_drawn),
    (lambda obj: isinstance(obj, Tensor | np.ndarray), _array_refused),
    (_follows_protocol, lambda obj, _: obj),
    (lambda obj: comes_from(obj, "sbi") and hasattr(obj, "sample_batched"),
     lambda obj, _: sbi_posterior(obj)),
    (lambda obj: comes_from(obj, "sbi") and hasattr(obj, "condition_shape"),
     lambda obj, _: sbi_estimator(obj)),
    (lambda obj: comes_from(obj, "lampe") and hasattr(obj, "flow"), _lampe),
    (lambda obj: comes_from(obj, "zuko"), lambda obj, _: _flow(obj)),
    (lambda obj: _sample_arguments(obj)[:2] == ["num_samples", "x"], _sampler),
    (lambda obj: hasattr(obj, "sample_batched"), _batched),
    (lambda obj: "x" in _sample_arguments(obj), _sampler_of_one),
    (callable, lambda obj, asked: _function(obj, asked.layout)),
)  # fmt: skip
"""(does it look like this?, wrap it so): the first that it looks like counts."""
