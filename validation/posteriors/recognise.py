"""From anybody's posterior to :class:`~validation.posteriors.protocol.Posterior`.

Libraries are recognised by the module their classes come from, so that nothing is imported that
the user has not imported already.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .arviz_draws import is_arviz
from .flow_bases import zuko_to_base
from .protocol import BatchedPosterior, Posterior
from .sbi_posteriors import from_sbi
from .signatures import arguments, comes_from, num_required, seeded
from .stored_samples import Layout, StoredSamples, WeightedSamples, stored_fits, stored_posterior


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
    zuko flow; lampe ``NPE`` or ``FMPE``         ``flow(x).sample((K,))``
    torch module or callable of one argument     ``f(x)``, a distribution, ``.sample((K,))``
    callable of two arguments                    ``f(num_samples, x)``, laid out by ``layout``, and
                                                 given a ``seed`` where it takes one
    ``sample(num_samples, x)``                   as it is
    ``sample((K,), x=...)``, as ABI's posterior  one observation at a time
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
    stored = _pre_drawn(obj, layout, weights, var_names)
    if stored is not None:
        return stored
    if _is_posterior(obj):
        return obj  # type: ignore[no-any-return]
    known = from_sbi(obj, batch_size, progress) or _from_flow(obj, batch_size, progress)
    if known is not None:
        return known
    if hasattr(obj, "sample") and arguments(obj.sample)[:2] == ["num_samples", "x"]:
        density, draw = getattr(obj, "log_prob", None), seeded(obj.sample)
        return BatchedPosterior(draw, type(obj).__name__, density, None, batch_size, progress)
    if hasattr(obj, "sample") and "x" in arguments(obj.sample):
        draw = _one_at_a_time(obj)
        return BatchedPosterior(draw, type(obj).__name__, batch_size=batch_size, progress=progress)
    if callable(obj):
        return _from_callable(obj, layout, batch_size, progress)
    raise TypeError(
        f"`q` must be an sbi posterior or estimator, a zuko or lampe flow, a callable "
        f"x -> distribution or (num_samples, x) -> samples, a tuple (theta, x, q_samples), "
        f"ArviZ data, or PerObservation(fit); got {type(obj).__name__}."
    )


def _pre_drawn(
    obj: Any, layout: Layout | None, weights: Any, var_names: Sequence[str] | None
) -> Posterior | None:
    """Samples that exist already: (theta, x, q_samples), or ArviZ data."""
    fits = obj if isinstance(obj, tuple | list) else [obj]
    if len(fits) and all(map(is_arviz, fits)):
        return stored_fits(fits, var_names)
    if isinstance(obj, tuple | list) and len(obj) == 3:
        theta, x, samples = obj
        stored = stored_posterior(x, samples, layout, weights)
        _check_width(stored, theta)
        return stored
    if weights is not None:
        raise ValueError("`weights` belong to pre-drawn samples: pass (theta, x, q_samples).")
    if isinstance(obj, Tensor | np.ndarray):
        raise TypeError(
            "`q` is an array of samples, which does not say for which observations: pass "
            "as_posterior((theta, x, q_samples), layout='samples_first')."
        )
    return None


def _is_posterior(obj: Any) -> bool:
    """Whether ``sample`` takes (num_samples, x, seed), by place, as our protocol says."""
    if not hasattr(obj, "sample") or arguments(obj.sample)[:3] != ["num_samples", "x", "seed"]:
        return False
    seed = inspect.signature(obj.sample).parameters["seed"]
    return seed.kind is not inspect.Parameter.KEYWORD_ONLY


def _from_flow(obj: Any, batch_size: int, progress: bool) -> BatchedPosterior | None:
    if comes_from(obj, "lampe") and hasattr(obj, "flow"):
        # A zuko flow in NPE; a method x -> distribution in FMPE.
        flow = _from_flow(obj.flow, batch_size, progress)
        return flow or _from_callable(obj.flow, None, batch_size, progress)
    if not comes_from(obj, "zuko"):
        return None
    return BatchedPosterior(
        lambda num, x: obj(x).sample((num,)),
        f"zuko {type(obj).__name__}",
        lambda theta, x: obj(x).log_prob(theta),
        (lambda theta, x: zuko_to_base(obj, theta, x)) if hasattr(obj, "transform") else None,
        batch_size,
        progress,
    )


def _from_callable(
    function: Callable[..., Any], layout: Layout | None, batch_size: int, progress: bool
) -> BatchedPosterior:
    """Tell ``x -> distribution`` from ``(num_samples, x) -> samples`` by the required arguments."""
    target = function.forward if isinstance(function, nn.Module) else function
    required = num_required(target)
    name = getattr(function, "__name__", type(function).__name__)
    if required == 1:
        return BatchedPosterior(
            lambda num, x: _distribution(function, x, name).sample((num,)),
            name,
            lambda theta, x: _log_prob(_distribution(function, x, name), theta),
            batch_size=batch_size,
            progress=progress,
        )
    if required != 2:
        raise TypeError(
            f"`q` ({name}) must take x and return a distribution, or take (num_samples, x) and "
            f"return samples; it requires {required} arguments."
        )
    swap, draw = layout == "observations_first", seeded(function, target)
    return BatchedPosterior(
        lambda num, x: _swapped(draw(num, x)) if swap else draw(num, x),
        name,
        batch_size=batch_size,
        progress=progress,
    )


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


def _one_at_a_time(posterior: Any) -> Callable[[int, Tensor], Tensor]:
    sample = seeded(posterior.sample)

    def draw(num_samples: int, x: Tensor) -> Tensor:
        rows = [torch.as_tensor(sample((num_samples,), x=x_o)) for x_o in x]
        return torch.stack(rows, dim=1)

    return draw


def _swapped(samples: Any) -> Tensor:
    values = torch.as_tensor(samples)
    if values.ndim != 3:
        raise ValueError(f"`q` must return three axes (n, L, d); got {tuple(values.shape)}.")
    return values.transpose(0, 1)


def _check_width(stored: StoredSamples | WeightedSamples, theta: Any) -> None:
    samples = stored.samples if isinstance(stored, StoredSamples) else stored.stored.samples
    shape = tuple(torch.as_tensor(theta).shape)
    if len(shape) != 2 or shape != (samples.shape[1], samples.shape[2]):
        raise ValueError(
            f"`theta` must pair with the pre-drawn samples, shape "
            f"{(samples.shape[1], samples.shape[2])}; got {shape}."
        )
