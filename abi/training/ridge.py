"""Linear least squares, shrunk as much as rows left out gain by it.

The strength of the ridge is the one whose predictions of rows left out are the best, where a
stronger one must gain by more than chance; without end it sets the slope to zero.

Source: Golub, Heath & Wahba (1979), "Generalized cross-validation as a method for choosing a good
ridge parameter"; the closed form of the errors of rows left out is that of Allen (1974).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

_STRENGTHS = (1e-5, 1e-3, 1e-2, 1e-1, 1.0, float("inf"))  # of the ridge, in mean variances of s
_SURE = 2.0  # standard errors of a gain
_LEAST_LEFT = 0.05  # of a row's weight in its own prediction, from 1
_JITTER = 1e-8
_ROUNDING = 1e-12  # of a mean square: less variance than that is none


@dataclass(frozen=True, eq=False)
class Line:
    """z = shift + s slope + root u; error (n, d) and log density (n,) of each row, left out.

    ``rest`` is each row's u, as the line and the root of all others would have it.
    """

    shift: Tensor
    slope: Tensor
    root: Tensor
    left: Tensor
    rest: Tensor
    log_density: Tensor

    @classmethod
    def of(cls, shift: Tensor, slope: Tensor, left: Tensor) -> Line:
        """A line and the errors (n, d) of its predictions of rows left out."""
        jitter = torch.diag((left == 0.0).all(dim=0).double() + _JITTER)
        root = torch.linalg.cholesky(left.T @ left / len(left) + jitter)
        rest = torch.linalg.solve_triangular(root, left.T, upper=False).T
        squares = (rest**2).sum(dim=1)
        log_density = -0.5 * squares - root.diagonal().log().sum()
        # By the share of a row in the covariance its length comes out too small.
        rest = rest / (1.0 - squares / len(left)).clamp_min(_LEAST_LEFT).sqrt()[:, None]
        return cls(shift, slope, root, left, rest, log_density)

    def surely_better(self, other: Line) -> bool:
        """Whether rows left out gain by more than chance."""
        return surely_gain(self.log_density - other.log_density)


def surely_gain(gain: Tensor, cost: float = 0.0) -> bool:
    """Whether rows gain (n,) more than a cost each, and than chance."""
    return float(gain.mean()) - cost > _SURE * float(gain.std()) / math.sqrt(len(gain))


def best_line(s: Tensor, z: Tensor) -> Line:
    """The line of z (n, d) in s (n, k), float64, by errors of rows left out."""
    lines = (Line.of(*fit) for fit in _ridges(s, z))
    line = next(lines)
    for other in lines:  # one after another: each holds as much as z, twice
        line = other if other.surely_better(line) else line
    return line


def _ridges(s: Tensor, z: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Shift (d,), slope (k, d), and errors (n, d) of rows left out, of ever stronger ridges."""
    mean, level = s.mean(dim=0), z.mean(dim=0)
    variances, axes = torch.linalg.eigh((s - mean).T @ (s - mean) / len(s))
    scores = (s - mean) @ axes
    shared = scores.T @ (z - level) / len(s)
    typical = float(variances.sum()) / max(s.shape[1], 1)
    varies = typical > _ROUNDING * float((s**2).sum()) / max(s.numel(), 1)
    for strength in _STRENGTHS if varies else _STRENGTHS[-1:]:
        ridge = math.inf if math.isinf(strength) else max(strength * typical, 1e-30)
        shrunk = 1.0 / (variances.clamp_min(0.0) + ridge)
        turned = shrunk[:, None] * shared
        weight = (1.0 + (scores**2 * shrunk).sum(dim=1)) / len(s)  # of a row on its prediction
        left = (z - level - scores @ turned) / (1.0 - weight).clamp_min(_LEAST_LEFT)[:, None]
        slope = axes @ turned
        yield level - mean @ slope, slope, left
