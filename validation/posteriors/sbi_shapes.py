"""The shape of x that a posterior of sbi was trained on, and x brought into it or refused."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# Where posteriors hold what was trained, and what that calls the shape of x; the last two know the
# likelihood of one trial, of which a posterior takes any number.
_OF_THETA_GIVEN_X = ("posterior_estimator", "vector_field_estimator", "score_estimator")
_OF_TRIALS = (("likelihood_estimator", "input_shape"), ("ratio_estimator", "x_shape"))


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
