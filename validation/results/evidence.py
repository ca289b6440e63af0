"""What each test looked at, as plain numbers: enough to draw its pictures again from a file.

A result holds tensors of any size and a trained localizer; a saved report holds these numbers
instead, and pages are drawn from them alone, so that a page made at once and one made from the file
are the same page.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .result import ValidationResult

_NUM_LEVELS = 201
_NUM_DRAWS = 300
_DIGITS = 5


def evidence_of(result: ValidationResult, x: Tensor) -> dict[str, Any]:
    """The picture data of one result, by kind; local pictures are at ``x`` (p,).

    Returns:
        ``ranks``: curves F(u) - u on an even grid of u in [0, 1], the distance and place of the
        largest gap of each; ``pp``: L-C2ST's curves; ``draws``: q's draws at x_o with the predicted
        probability of p; ``ball``: CoLT's localisation; ``coverage``: local coverage curves. A
        result has those that its method knows.
    """
    details = result.details
    found: dict[str, Any] = {}
    if "ranks" in details:
        found["ranks"] = _rank_curves(details["ranks"])
    if "pp" in details:
        found["pp"] = {key: _plain(value) for key, value in details["pp"].items()}
    if "probabilities" in details:
        rows = slice(None, _NUM_DRAWS)
        found["draws"] = {
            "theta": _plain(details["theta_o"][rows, 0]),
            "probability": _plain(details["probabilities"][rows, 0]),
            "x_o": _plain(details["x_o"][0]),
        }
    if "localize" in details:
        found |= _ball(details["localize"], x)
    if "coverage" in details:
        found["coverage"] = {
            "levels": _plain(details["levels"]),
            "curves": _plain(details["coverage"]),
        }
    return found


def _ball(localize: Any, x: Tensor) -> dict[str, Any]:
    """CoLT's localisation at x, where the posterior can be sampled there."""
    try:
        ball = localize(x)
    except (ValueError, NotImplementedError):  # stored samples know their own observations only
        return {}
    rows = slice(None, _NUM_DRAWS)
    return {
        "ball": {
            "theta": _plain(ball.samples[rows]),
            "inside": (ball.distances[rows] <= ball.radius).tolist(),
            "point": _plain(ball.point),
            "q_mass": ball.q_mass,
            "p_mass": ball.p_mass,
        }
    }


def _rank_curves(ranks: Tensor) -> dict[str, Any]:
    """Distribution functions of ranks (n,) or (n, d) minus the diagonal, and their largest gaps."""
    columns = ranks if ranks.ndim == 2 else ranks[:, None]
    grid = np.linspace(0, 1, _NUM_LEVELS)
    curves, gaps, places = [], [], []
    for column in columns.T:
        ordered = np.sort(column.double().numpy())
        n = len(ordered)
        curves.append(np.searchsorted(ordered, grid, side="right") / n - grid)
        steps = np.arange(n)
        jumps = np.stack([(steps + 1) / n - ordered, steps / n - ordered])
        furthest = np.abs(jumps).argmax()
        gaps.append(jumps.ravel()[furthest])
        places.append(ordered[furthest % n])
    return {
        "num_ranks": len(columns),
        "curves": _plain(np.stack(curves)),
        "gaps": _plain(np.array(gaps)),
        "places": _plain(np.array(places)),
    }


def _plain(values: Any) -> Any:
    """Nested lists of floats in five significant digits."""
    array = torch.as_tensor(values).double().numpy()
    return [
        _plain(row) if array.ndim > 1 else float(f"{row:.{_DIGITS}g}") if np.isfinite(row) else None
        for row in array
    ]
