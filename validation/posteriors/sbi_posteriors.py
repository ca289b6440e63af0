"""Posteriors, ensembles and density estimators of sbi, as batched posteriors.

An ensemble is the mixture ``sum_c w_c q_c(theta | x)``. sbi's own draws of it take one component
for all x and come component by component, so that the first K of them, which a test may look at,
are one component's. Here each draw at each x has a component of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .flow_bases import sbi_to_base
from .protocol import BatchedPosterior, check_samples
from .signatures import arguments

Draw = Callable[[int, Tensor], Any]
Density = Callable[[Tensor, Tensor], Any]

# Draws within the prior at each x that tell its share of a component's flow, to 7% at worst.
_LEAKAGE_DRAWS = 200


def sbi_posterior(posterior: Any) -> BatchedPosterior:
    """A posterior or an ensemble of them, which has ``sample_batched``."""
    name = f"sbi {type(posterior).__name__}"
    base = sbi_to_base(getattr(posterior, "posterior_estimator", None))
    return BatchedPosterior(_draw(posterior, name), name, _log_prob(posterior), base)


def sbi_estimator(estimator: Any) -> BatchedPosterior:
    """A conditional density estimator, which has a ``condition_shape``."""
    return BatchedPosterior(
        lambda num, x: estimator.sample((num,), x.reshape(-1, *estimator.condition_shape)),
        f"sbi {type(estimator).__name__}",
        lambda theta, x: estimator.log_prob(theta, x.reshape(-1, *estimator.condition_shape)),
        sbi_to_base(estimator),
    )


def _is_ensemble(posterior: Any) -> bool:
    return hasattr(posterior, "posteriors") and hasattr(posterior, "weights")


def _draw(posterior: Any, name: str) -> Draw:
    """A function (K, x (n, p)) -> (K, n, d)."""
    if _is_ensemble(posterior):
        draws = [_draw(component, name) for component in posterior.posteriors]
        weights = torch.as_tensor(posterior.weights).detach().cpu()
        return lambda num, x: _mixture_draws(draws, weights, num, x, name)
    quiet = "show_progress_bars" in arguments(posterior.sample_batched)
    keywords = {"show_progress_bars": False} if quiet else {}
    return lambda num, x: _plain_draws(posterior, num, x, keywords)


def _plain_draws(posterior: Any, num_samples: int, x: Tensor, keywords: dict[str, Any]) -> Any:
    """Draws of one posterior, without sbi's note on how it cuts many x into batches."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Capping max_sampling_batch_size")
        return posterior.sample_batched((num_samples,), x, **keywords)


def _mixture_draws(
    draws: list[Draw], weights: Tensor, num_samples: int, x: Tensor, name: str
) -> Tensor:
    """Draws (K, n, d) of which each has a component of its own, by the weights (C,)."""
    drawn = [check_samples(draw(num_samples, x), num_samples, len(x), name) for draw in draws]
    chosen = torch.multinomial(weights, num_samples * len(x), replacement=True)
    chosen = chosen.reshape(1, num_samples, len(x), 1)
    samples = torch.stack(drawn)
    return samples.gather(0, chosen.expand(-1, -1, -1, samples.shape[-1]))[0]


def _log_prob(posterior: Any, normalised: bool = False) -> Density | None:
    """The density of a direct posterior; other kinds of sbi know theirs up to slow constants.

    Args:
        posterior: of sbi.
        normalised: whether to divide by the share of the flow within the prior, which a constant
            for each x makes unnecessary unless densities are added up.
    """
    if _is_ensemble(posterior):
        densities = [_log_prob(component, normalised=True) for component in posterior.posteriors]
        known = [density for density in densities if density is not None]
        weights = torch.as_tensor(posterior.weights).detach().cpu()
        whole = len(known) == len(densities)
        return (lambda theta, x: _mixture_log_prob(known, weights, theta, x)) if whole else None
    if not hasattr(posterior, "log_prob_batched") or not hasattr(posterior, "posterior_estimator"):
        return None
    if "norm_posterior" not in arguments(posterior.log_prob_batched):
        return None
    keywords: dict[str, Any] = {"norm_posterior": normalised}
    if normalised:
        keywords["leakage_correction_params"] = {"num_rejection_samples": _LEAKAGE_DRAWS}
    return lambda theta, x: posterior.log_prob_batched(theta, x, **keywords)


def _mixture_log_prob(
    densities: list[Density], weights: Tensor, theta: Tensor, x: Tensor
) -> Tensor:
    """``log sum_c w_c q_c(theta | x)`` at theta (K, n, d) and x (n, p): (K, n)."""
    values = torch.stack([torch.as_tensor(density(theta, x)).cpu() for density in densities])
    return torch.logsumexp(weights.log().reshape(-1, 1, 1) + values, dim=0)
