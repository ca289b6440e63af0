"""Where a density is highest, and how wide it is there: what a fitted proposal starts from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_NUM_STARTS, _NUM_CLIMBS, _STEP = 5_000, 4, 1e-3


def highest_peak(
    log_density: Callable[[Array], Array], dim: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """The highest mode (d,) found from the best of many normal draws, and inverse curvature.

    Args:
        log_density: z (n, d) -> (n,), up to a constant, on the scale of a standard normal prior.
        dim: number of coordinates d.
        generator: the source of the draws.
    """
    from scipy.optimize import minimize

    starts = generator.standard_normal((_NUM_STARTS, dim))
    best = starts[np.argsort(-log_density(starts))[:_NUM_CLIMBS]]

    def depth(z: Any) -> float:
        return -max(float(log_density(z[None])[0]), -1e8)

    climbs = [minimize(depth, z, method="BFGS") for z in best]
    mode = min(climbs, key=lambda climb: climb.fun).x
    # BFGS's own curvature is too rough: rates and the length of a cycle are closely tied.
    steps = _STEP * np.eye(dim)
    sides = [
        log_density((mode + a * steps[:, None] + b * steps[None]).reshape(-1, dim))
        for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))
    ]
    second = (sides[0] - sides[1] - sides[2] + sides[3]).reshape(dim, dim) / (4.0 * _STEP**2)
    return mode, np.asarray(np.linalg.inv(-0.5 * (second + second.T)), dtype=np.float64)
