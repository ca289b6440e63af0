"""The draws that a test works on: checked joint pairs, and q's draws at the same x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simulators.arguments import FRACTION
from simulators.random import as_count, torch_generator

from ..seeds import part_seed
from .protocol import Posterior, as_matrix, as_rows, check_samples
from .recognise import as_posterior

LEAST_PAIRS = 20  # of a test that trains on a part of them


@dataclass(frozen=True, eq=False)
class JointDraws:
    """Pairs ``(theta_i, x_i) ~ p`` and K draws from ``q(. | x_i)`` for each.

    theta is (N, d), x (N, p), samples (K, N, d).
    """

    theta: Tensor
    x: Tensor
    samples: Tensor

    def rows(self, index: Tensor) -> JointDraws:
        """The pairs at ``index`` (m,), with their draws."""
        return JointDraws(self.theta[index], self.x[index], self.samples[:, index])


def joint_draws(
    q: Any, theta: Any, x: Any, num_samples: int, seed: int, minimum: int = 2
) -> JointDraws:
    """Check the pairs, of which a test needs ``minimum``, and draw from q at every x, once.

    Raises:
        ValueError: if the pairs are too few, do not match, or hold NaN; if q draws NaN or draws
            of another dimension.
    """
    num_samples = as_count(num_samples, "num_samples", 1)
    theta, x = checked_pairs(theta, x, minimum)
    samples = drawn(as_posterior(q), num_samples, x, theta.shape[1], part_seed(seed, 0))
    return JointDraws(theta, x, samples)


def drawn(q: Posterior, num_samples: int, x: Tensor, theta_dim: int, seed: int) -> Tensor:
    """Draws of q at x (n, p), whoever wrote it: (num_samples, n, d), float32 and finite.

    Raises:
        ValueError: if they are not that.
    """
    samples = q.sample(num_samples, x, seed)
    samples = check_samples(samples, num_samples, len(x), type(q).__name__)
    return checked_draws(samples, theta_dim)


def checked_pairs(theta: Any, x: Any, minimum: int) -> tuple[Tensor, Tensor]:
    """Return theta (N, d) and x (N, p) as finite float32 matrices that pair row by row."""
    _check_resolution(theta, "theta")
    _check_resolution(x, "x")
    theta, x = as_matrix(theta, "theta"), as_matrix(x, "x")
    if len(theta) != len(x):
        raise ValueError(
            f"`theta` and `x` must pair row by row; got {len(theta)} and {len(x)} rows. Drop the "
            "unmatched rows or draw both with simulators.sample_joint."
        )
    for name, values in (("theta", theta), ("x", x)):
        bad = (~torch.isfinite(values)).any(dim=1)
        if bad.any():
            first = int(bad.nonzero()[0, 0])
            raise ValueError(
                f"`{name}` must be finite; {int(bad.sum())} of {len(values)} rows hold NaN or "
                f"infinity, the first is row {first}. Drop these rows from theta and x alike."
            )
    if len(theta) < minimum:
        raise ValueError(
            f"`theta` and `x` must hold at least {minimum} pairs for this test; got {len(theta)}."
            " Draw more with simulators.sample_joint."
        )
    return theta, x


def _check_resolution(values: Any, name: str) -> None:
    """Refuse columns whose values float32 does not tell apart: ties hide what is wrong.

    Raises:
        ValueError: if a column's spread is less than a hundred steps of float32 at its place.
    """
    rows = values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))
    if rows.dtype != torch.float64 or rows.ndim != 2 or len(rows) < 2:
        return
    spread, place = rows.std(dim=0), rows.abs().amax(dim=0)
    coarse = (spread > 0) & (spread < 100 * torch.finfo(torch.float32).eps * place)
    if coarse.any():
        j = int(coarse.nonzero()[0, 0])
        raise ValueError(
            f"`{name}`: column {j} varies by {float(spread[j]):.2g} around {float(place[j]):.8g}, "
            "which float32 cannot tell apart; subtract a constant from it"
            + (", and the same from q's draws." if name == "theta" else " before q sees it.")
        )


def checked_observations(x_o: Any, x_dim: int) -> Tensor:
    """Return one observation (p,) or several (m, p) as a finite float32 matrix (m, p)."""
    rows = as_rows(x_o, "x_o")
    bad = int((~torch.isfinite(rows)).sum())
    if rows.shape[1] != x_dim or not len(rows) or bad:
        raise ValueError(
            f"`x_o` must hold {x_dim} finite values an observation; got shape "
            f"{tuple(torch.as_tensor(x_o).shape)}, {bad} not finite."
        )
    return rows


def checked_draws(samples: Tensor, theta_dim: int) -> Tensor:
    """Return q's draws (K, n, d), or say that they are not finite or of another dimension."""
    if samples.shape[-1] != theta_dim:
        raise ValueError(
            f"`q` must draw parameters of dimension {theta_dim}, as `theta` has; its draws have "
            f"{samples.shape[-1]}."
        )
    bad = (~torch.isfinite(samples)).any(dim=-1)
    if bad.any():
        rows = int(bad.any(dim=0).sum())
        raise ValueError(
            f"`q` must draw finite parameters; {int(bad.sum())} of {bad.numel()} draws, at {rows} "
            "of the observations, hold NaN or infinity. A posterior that fails there is not p."
        )
    return samples


def check_counts(**counts: int) -> None:
    """Refuse what is no whole number of at least 1, by its name."""
    for name, count in counts.items():
        as_count(count, name, 1)


def split_rows(
    rows: int, fraction: float, seed: int, name: str = "train_fraction"
) -> tuple[Tensor, Tensor]:
    """Cut ``rows`` indices at random in two: (training, held out), both sorted.

    Raises:
        ValueError: if the fraction leaves a part without the 2 rows it needs.
    """
    FRACTION(fraction, name)
    order = torch.randperm(rows, generator=torch_generator(seed))
    cut = round(fraction * rows)
    if min(cut, rows - cut) < 2:
        raise ValueError(
            f"`{name}` = {fraction} of {rows} pairs leaves {min(cut, rows - cut)} in one part; "
            "each needs at least 2. Draw more pairs with simulators.sample_joint."
        )
    return order[:cut].sort().values, order[cut:].sort().values
