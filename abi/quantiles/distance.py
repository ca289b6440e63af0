"""The marginally-augmented sliced Wasserstein (MSW) distance.

With directions Phi = {phi_1 .. phi_K} (uniform on the sphere) and the d axes e_j,

    W_{p,delta}^p(mu, nu) = 1/(1 - 2 delta) * int_delta^{1-delta} |F_mu^-1 - F_nu^-1|^p dtau  (2.1)
    MSW = lambda mean_j W_{p,delta}(mu_j, nu_j)
          + (1 - lambda) ( mean_k W_{p,delta}^p(phi_k mu, phi_k nu) )^(1/p)                   (2.2)

In one dimension, and where only marginals matter, the sliced term is dropped and the marginal
term stands alone (Remarks 2.1 and 2.4). Between two samples the integral is exact, because the
quantile functions are steps; between two tables of quantiles it is the trapezoid rule (2.5).

Source: Lu & Wong (2025), Section 2.1.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from simulators.arguments import SHARE, as_tensor, at_least
from simulators.random import as_count, torch_generator
from simulators.summary import summary


@dataclass(frozen=True, eq=False)
class QuantileTable:
    """Quantiles of one distribution or several, in K random directions and along the d axes.

    Attributes:
        values: quantiles, (..., K + d, H + 1), increasing along the last axis.
        directions: unit vectors, (K + d, d); the last d are the axes.
        levels: levels of the quantiles, (H + 1,), evenly spaced from delta to 1 - delta.
    """

    values: Tensor
    directions: Tensor
    levels: Tensor

    __repr__ = summary

    @classmethod
    def from_samples(cls, samples: Tensor, directions: Tensor, levels: Tensor) -> QuantileTable:
        """The empirical quantiles, inf{t : F(t) >= tau}, of samples (n, d)."""
        projected = (samples @ directions.T).T.sort(dim=1).values
        # The shift keeps tau = i / n, which float32 misses by 1e-7, at the i-th order statistic.
        position = torch.ceil(levels.double() * len(samples) * (1.0 - 1e-6)).long() - 1
        return cls(projected[:, position.clamp(0, len(samples) - 1)], directions, levels)


def draw_directions(theta_dim: int, num_slices: int, generator: torch.Generator) -> Tensor:
    """K uniform unit vectors followed by the d axes, (K + d, d); only the axis when d = 1."""
    num_slices = as_count(num_slices, "num_slices", 0)
    axes = torch.eye(theta_dim)
    if theta_dim == 1 or num_slices == 0:
        return axes
    slices = torch.randn(num_slices, theta_dim, generator=generator)
    return torch.cat([slices / slices.norm(dim=1, keepdim=True), axes])


def quantile_levels(num_levels: int, trim: float) -> Tensor:
    """tau_h = delta + h (1 - 2 delta) / H for h = 0..H, (H + 1,)."""
    _check_trim(trim)
    num_levels = as_count(num_levels, "num_levels", 1)
    return torch.linspace(trim, 1.0 - trim, num_levels + 1)


def msw_distance(
    a: Tensor | QuantileTable,
    b: Tensor | QuantileTable,
    *,
    order: float = 1.0,
    mixing: float = 0.5,
    trim: float = 0.0,
    num_slices: int = 50,
    directions: Tensor | None = None,
    seed: int = 0,
) -> Tensor:
    """The MSW distance between two samples, or between two tables of quantiles.

    It compares the two distributions in one dimension at a time, along every axis and along some
    random directions, by Wasserstein distances with trimmed tails; :mod:`abi.quantiles.distance`
    has the formula. Between samples each of these is exact. Between tables it is the trapezoid rule
    on their levels, which already leave the tails out.

    Args:
        a: samples (n, d), or a table with values (..., K + d, H + 1).
        b: samples (m, d), or a table with the same directions and levels.
        order: p >= 1; with p = 1 the distance is an integral probability metric (Theorem 3.1).
        mixing: lambda in (0, 1], the weight of the axes; with 1 only they count.
        trim: delta in [0, 1/2), the mass cut from each tail (samples only).
        num_slices: K, the number of random directions (samples only).
        directions: (K + d, d), with the d axes last, instead of random ones (samples only).
        seed: of the random directions.

    Returns:
        The distance in the units of theta: a scalar, or one for each leading index of the tables.

    Raises:
        TypeError: if samples are no numbers, or only one argument is a table.
        ValueError: if samples differ in dimension, tables in directions or levels, directions do
            not end with the axes, or a constant is out of range.

    Source: Lu & Wong (2025), eqs. (2.2) and (2.4).

    >>> a = torch.tensor([[0.0], [1.0]])
    >>> msw_distance(a, a + 2.0)
    tensor(2.)
    """
    _check_constants(order, mixing)
    if isinstance(a, QuantileTable) and isinstance(b, QuantileTable):
        _check_same_grid(a, b)
        costs = _table_costs(a.values, b.values, order)
        return _combine(costs, a.directions.shape[1], order, mixing)
    if isinstance(a, QuantileTable) or isinstance(b, QuantileTable):
        raise TypeError("`a` and `b` must both be samples or both be tables of quantiles.")
    _check_trim(trim)
    a, b = _as_samples(a, "a"), _as_samples(b, "b")
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"`a` and `b` must have the same dimension; got {a.shape[1]} and {b.shape[1]}."
        )
    if directions is None:
        directions = draw_directions(a.shape[1], num_slices, torch_generator(seed))
    # In double: far from 0, projections in float32 round by more than the samples differ.
    across = _as_directions(directions, a.shape[1]).T
    costs = _sample_costs(a.double() @ across, b.double() @ across, order, trim)
    return _combine(costs, a.shape[1], order, mixing).to(torch.promote_types(a.dtype, b.dtype))


def _combine(costs: Tensor, theta_dim: int, order: float, mixing: float) -> Tensor:
    """Eq. (2.4) from the p-th powers of the distances along slices, then axes: (..., K + d)."""
    num_slices = costs.shape[-1] - theta_dim
    marginal = (costs[..., num_slices:] ** (1.0 / order)).mean(dim=-1)
    if num_slices == 0 or mixing == 1.0:
        return marginal
    sliced = costs[..., :num_slices].mean(dim=-1) ** (1.0 / order)
    return mixing * marginal + (1.0 - mixing) * sliced


def _table_costs(a: Tensor, b: Tensor, order: float) -> Tensor:
    """The trapezoid rule I_H of eq. (2.5); its step is 1/H after division by 1 - 2 delta."""
    return torch.trapezoid((a - b).abs() ** order, dim=-1) / (a.shape[-1] - 1)


def _sample_costs(a: Tensor, b: Tensor, order: float, trim: float) -> Tensor:
    """W_{p,delta}^p between the columns of a (n, K') and b (m, K'): (K',), exact.

    Both quantile functions are constant between the merged jumps i/n and j/m.
    """
    n, m = len(a), len(b)
    jumps_a = torch.arange(1, n, dtype=torch.float64) / n
    jumps_b = torch.arange(1, m, dtype=torch.float64) / m
    ends = torch.tensor([trim, 1.0 - trim], dtype=torch.float64)
    grid = torch.cat([ends, jumps_a, jumps_b]).clamp(trim, 1.0 - trim).sort().values
    width, middle = grid.diff(), 0.5 * (grid[1:] + grid[:-1])
    step_a = (middle * n).long().clamp(max=n - 1)
    step_b = (middle * m).long().clamp(max=m - 1)
    gap = a.sort(dim=0).values[step_a] - b.sort(dim=0).values[step_b]
    return (width[:, None] * gap.abs() ** order).sum(dim=0) / (1.0 - 2.0 * trim)


def _as_directions(directions: Any, theta_dim: int) -> Tensor:
    """Directions (K + d, d) in double, once it is certain that the last d are the axes."""
    rows: Tensor = torch.as_tensor(directions).detach().to("cpu", torch.float64)
    if rows.ndim != 2 or rows.shape[1] != theta_dim or len(rows) < theta_dim:
        raise ValueError(
            f"`directions` must have shape (K + {theta_dim}, {theta_dim}); got {tuple(rows.shape)}."
        )
    if not torch.isfinite(rows).all():
        raise ValueError("`directions` holds NaN or Inf; give unit vectors, then the axes.")
    if not torch.equal(rows[-theta_dim:], torch.eye(theta_dim, dtype=torch.float64)):
        raise ValueError(
            f"`directions` must end with the {theta_dim} axes; append torch.eye({theta_dim})."
        )
    return rows


def _as_samples(samples: Any, name: str) -> Tensor:
    values = as_tensor(samples, name)
    values = values if values.is_floating_point() else values.double()
    if values.ndim != 2 or len(values) == 0:
        one = f" For one parameter write {name}[:, None]." if values.ndim == 1 else ""
        raise ValueError(
            f"`{name}` must be samples (n, d), n >= 1; got {tuple(values.shape)}.{one}"
        )
    if not torch.isfinite(values).all():
        raise ValueError(f"`{name}` holds NaN or Inf; drop those rows first.")
    return values


def _check_constants(order: float, mixing: float) -> None:
    at_least(1.0)(order, "order")
    SHARE(mixing, "mixing")


def _check_trim(trim: float) -> None:
    if not 0.0 <= trim < 0.5:
        raise ValueError(f"`trim` must lie in [0, 1/2); got {trim}.")


def _check_same_grid(a: QuantileTable, b: QuantileTable) -> None:
    same_directions = a.directions.shape == b.directions.shape and torch.equal(
        a.directions, b.directions
    )
    if not same_directions or not torch.equal(a.levels, b.levels):
        raise ValueError("`a` and `b` must be tables on the same directions and levels.")
