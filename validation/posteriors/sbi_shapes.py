"""What an estimator of sbi was trained on: the shape of x, and the scales of both its sides.

x is brought into that shape or refused. The scales, by which sbi standardises what an estimator
draws and what it is given, tell one of the likelihood where x has as many values as theta.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# Where posteriors hold what was trained, and what that calls the shape of x; the last two know the
# likelihood of one trial, of which a posterior takes any number.
_OF_THETA_GIVEN_X = ("posterior_estimator", "vector_field_estimator", "score_estimator")
_OF_TRIALS = (("likelihood_estimator", "input_shape"), ("ratio_estimator", "x_shape"))

# By class, what z-scores hold: of nflows and zuko, -mean / sd and 1 / sd; of mixtures, mean and sd.
_OF_DRAWS = {
    "PointwiseAffineTransform": ("_shift", "_scale"),
    "UnconditionalTransform": ("loc", "scale"),
    "MixtureDensityEstimator": ("_transform_shift", "_transform_scale"),
}
_OF_CONDITIONS = {"Standardize": ("_mean", "_std")}
_LEAST_ROWS = 20  # that tell a mean and an sd


def trained_shape(posterior: Any) -> tuple[torch.Size | None, bool]:
    """The shape of an x, where it is known, and whether x may be trials of that shape."""
    for holder in _OF_THETA_GIVEN_X:
        shape = getattr(getattr(posterior, holder, None), "condition_shape", None)
        if shape is not None:
            return torch.Size(shape), False
    potential = getattr(posterior, "potential_fn", None)
    for holder, entry in _OF_TRIALS:
        shape = getattr(getattr(potential, holder, None), entry, None)
        if shape is not None:
            return torch.Size(shape), True
    return None, False


def as_conditions(x: Tensor, shape: torch.Size | None, name: str, hint: str = "") -> Tensor:
    """Return x (n, ...) as (n, *shape), flat observations unfolded.

    Raises:
        ValueError: if an observation has another number of values than those trained on.
    """
    if shape is None or x.shape[1:] == shape:
        return x
    if x.shape[1:].numel() != torch.Size(shape).numel():
        raise ValueError(
            f"`q` ({name}) was trained to condition on x of shape (n, "
            f"{', '.join(map(str, shape))}); got {tuple(x.shape)}.{hint}"
        )
    return x.reshape(len(x), *shape)


def refuse_likelihood(estimator: Any, theta: Tensor, x: Tensor) -> None:
    """Refuse an estimator whose draws are scaled as x, and its conditions as theta.

    Where one of the two scales is not known, or they are much the same, nothing is said. An
    estimator of the posterior is not refused on pairs of the law it was trained on: x would have to
    be at most 1 from theta's scale, that at most 1 from x's, and x then more than 3 from its own.

    Args:
        estimator: of sbi.
        theta: (n, d).
        x: (n, p).

    Raises:
        ValueError: if x and theta lie where it was trained the other way round, and only there.
    """
    drawn, given = _scales(estimator, _OF_DRAWS), _scales(estimator, _OF_CONDITIONS)
    if drawn is None or given is None or theta.shape != x.shape or len(x) < _LEAST_ROWS:
        return
    fits = _off(x, drawn) < 1 and _off(theta, given) < 1
    if fits and max(_off(theta, drawn), _off(x, given)) > 3:
        raise ValueError(
            f"`q` (sbi {type(estimator).__name__}) was trained to draw values such as `x` given "
            "values such as `theta`: an estimator of the likelihood (NLE) is no posterior, pass "
            "what the trainer's build_posterior() gives; or theta and x are swapped."
        )


def _scales(estimator: Any, where: dict[str, tuple[str, str]]) -> tuple[Tensor, Tensor] | None:
    """Mean (d,) and sd (d,) of the first standardisation in the estimator."""
    for module in estimator.modules() if isinstance(estimator, torch.nn.Module) else ():
        kind = type(module).__name__
        place, scale = (getattr(module, name, None) for name in where.get(kind, ("", "")))
        if isinstance(place, Tensor) and isinstance(scale, Tensor):
            place, scale = (value.detach().cpu().float() for value in (place, scale))
            inverse = kind.endswith("Transform")
            return (-place / scale, 1 / scale) if inverse else (place, scale)
    return None


def _off(values: Tensor, scales: tuple[Tensor, Tensor]) -> float:
    """How far values (n, d) lie from the scales, in the column where it is most."""
    mean, sd = scales
    if values.shape[1:] != mean.shape or mean.shape != sd.shape:
        return torch.inf
    away = (values.mean(dim=0) - mean).abs() / sd
    # An sd is off by 1 at a factor of 1.6, and by 3 at one of 4.
    return float(torch.cat([away, 1.5 * (values.std(dim=0) / sd).log2().abs()]).max())
