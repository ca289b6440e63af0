"""Independence Metropolis: independent exact draws where a good proposal is known.

A chain that proposes from q whatever its state, and accepts with the ratio of the weights
w = target / q, forgets its start at a known rate: after k steps its law is within (1 - 1/M)^k of
the target in total variation, M = sup w / E_q w. Many chains run side by side, each giving one
draw, so the draws are independent. M is measured on the proposals, and the number of steps is
twice what brings the bound below 1e-6.

Source: Mengersen & Tweedie (1996), "Rates of convergence of the Hastings and Metropolis
algorithms", Theorem 2.1; Liu (1996), "Metropolized independent sampling".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Proposal = Callable[[np.random.Generator, int], tuple[Array, Array]]

_BIAS = 1e-6
_NUM_PILOT = 20_000
_MAX_STEPS = 20_000


def independence_chains(
    propose: Proposal, num_samples: int, generator: np.random.Generator
) -> Array:
    """Draw (num_samples, d) from the target, one from each of as many chains.

    Args:
        propose: generator, n -> draws (n, d) and log target - log q (n,), up to one constant.
        num_samples: draws wanted.
        generator: the source of randomness.

    Raises:
        ValueError: if the proposal is so poor that the chains would not forget their start.
    """
    steps = _num_steps(propose(generator, _NUM_PILOT)[1])
    state, weight = propose(generator, num_samples)
    for _ in range(steps):
        candidate, proposed = propose(generator, num_samples)
        with np.errstate(invalid="ignore"):  # -inf minus -inf: both impossible, stay
            accept = np.log(generator.uniform(size=num_samples)) < proposed - weight
        state = np.where(accept[:, None], candidate, state)
        weight = np.where(accept, proposed, weight)
    return state


def _num_steps(log_weights: Array) -> int:
    peak = log_weights.max()
    mean = np.exp(log_weights - peak).mean() if np.isfinite(peak) else 0.0
    steps = 2.0 * np.log(_BIAS) / np.log1p(-min(mean, 0.999)) if mean > 0.0 else np.inf
    if steps > _MAX_STEPS:
        raise ValueError(
            "`x_o` has a posterior that the exact sampler cannot cover (one draw in "
            f"{1.0 / max(mean, 1e-300):.3g} would be accepted); check that it can arise from "
            "the model."
        )
    return int(np.ceil(steps))
