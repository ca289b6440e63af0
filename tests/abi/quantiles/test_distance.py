"""The MSW distance is a metric, agrees with POT and with closed forms, and obeys Theorem 3.2."""

from __future__ import annotations

import math

import numpy as np
import ot
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from abi import QuantileTable, msw_distance
from abi.quantiles.distance import draw_directions, quantile_levels
from simulators.random import torch_generator


def gaussian(n: int, d: int, seed: int, shift: float = 0.0, scale: float = 1.0) -> Tensor:
    return shift + scale * torch.randn(n, d, generator=torch_generator(seed), dtype=torch.float64)


samples = st.builds(
    gaussian,
    n=st.integers(1, 40),
    d=st.just(3),
    seed=st.integers(0, 10**6),
    shift=st.floats(-3, 3),
    scale=st.floats(0.0, 3),
)
orders = st.sampled_from([1.0, 1.5, 2.0, 4.0])
mixings = st.sampled_from([0.1, 0.5, 1.0])
trims = st.sampled_from([0.0, 0.05, 0.3])


@settings(max_examples=60, deadline=None)
@given(samples, samples, samples, orders, mixings, trims)
def test_msw_is_a_metric(
    a: Tensor, b: Tensor, c: Tensor, order: float, mixing: float, trim: float
) -> None:
    def distance(first: Tensor, second: Tensor) -> float:
        return float(
            msw_distance(first, second, order=order, mixing=mixing, trim=trim, num_slices=5)
        )

    assert distance(a, a) == pytest.approx(0.0, abs=1e-12)
    assert distance(a, b) >= 0.0
    assert distance(a, b) == pytest.approx(distance(b, a), abs=1e-12)
    assert distance(a, c) <= distance(a, b) + distance(b, c) + 1e-9


@settings(max_examples=30, deadline=None)
@given(samples, st.integers(2, 4), st.floats(1e-3, 1.0))
def test_zero_distance_means_the_same_law(a: Tensor, copies: int, shift: float) -> None:
    assert float(msw_distance(a, a.repeat(copies, 1))) == pytest.approx(0.0, abs=1e-12)
    moved = a.clone()
    moved[0, 1] += shift
    assert float(msw_distance(a, moved)) > 0.0


@settings(max_examples=30, deadline=None)
@given(samples, st.floats(0.1, 10.0), st.floats(-5.0, 5.0), orders)
def test_scaling_scales_and_a_common_shift_changes_nothing(
    a: Tensor, factor: float, shift: float, order: float
) -> None:
    b = gaussian(17, 3, seed=5)
    plain = float(msw_distance(a, b, order=order))
    moved = float(msw_distance(factor * a + shift, factor * b + shift, order=order))
    assert moved == pytest.approx(factor * plain, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("order", [1.0, 2.0])
@pytest.mark.parametrize(("n", "m"), [(50, 50), (50, 33), (7, 40)])
def test_terms_agree_with_pot_on_the_same_projections(order: float, n: int, m: int) -> None:
    a, b = gaussian(n, 4, 0), gaussian(m, 4, 1, shift=0.5, scale=2.0)
    directions = draw_directions(4, 20, torch_generator(2)).double()
    slices = directions[:20]
    # POT's sliced distance drops the directions' order and takes the p-th root of the mean.
    sliced = ot.sliced.sliced_wasserstein_distance(
        a.numpy(), b.numpy(), p=order, projections=slices.T.numpy()
    )
    marginal = np.mean(
        [
            ot.wasserstein_1d(a[:, j].numpy(), b[:, j].numpy(), p=order) ** (1 / order)
            for j in range(4)
        ]
    )
    ours = msw_distance(a, b, order=order, mixing=0.3, directions=directions)
    assert float(ours) == pytest.approx(0.3 * marginal + 0.7 * float(sliced), rel=1e-5)


@pytest.mark.parametrize("trim", [0.0, 0.1])
@pytest.mark.parametrize("order", [1.0, 2.0])
def test_tables_of_two_gaussians_give_the_analytic_distance(order: float, trim: float) -> None:
    """W_p between N(0, 1) and N(m, s^2) along an axis integrates |m + (s - 1) z_tau|^p."""
    normal = torch.distributions.Normal(torch.tensor(0.0).double(), torch.tensor(1.0).double())
    levels = quantile_levels(20_000, max(trim, 1e-4)).double()
    z = normal.icdf(levels)
    directions = torch.eye(2).double()
    a = QuantileTable(torch.stack([z, z]), directions, levels)
    b = QuantileTable(torch.stack([z + 1.0, 2.0 * z]), directions, levels)
    shift = 1.0
    if order == 1.0:
        # int_0^c z phi over the kept mass, twice: 2 (phi(0) - phi(z_c)) / (1 - 2 delta).
        density = torch.exp(normal.log_prob(z[-1]))
        spread = 2.0 * (1.0 / math.sqrt(2.0 * math.pi) - float(density))
    else:
        # Second moment of the normal cut at +-c: 1 - 2 c phi(c) / (1 - 2 delta).
        mass = 1.0 - 2.0 * float(levels[0])
        spread = mass - 2.0 * float(z[-1] * torch.exp(normal.log_prob(z[-1])))
    spread /= 1.0 - 2.0 * float(levels[0])
    expected = 0.5 * (shift + spread ** (1.0 / order))
    ours = float(msw_distance(a, b, order=order, mixing=1.0))
    assert ours == pytest.approx(expected, rel=1e-4)


def sphere_moment(d: int, order: float) -> float:
    """int |phi_1|^p dsigma on the unit sphere of R^d, which is d^-1 int ||phi||_p^p dsigma."""
    gamma = math.lgamma
    log_moment = gamma((order + 1) / 2) + gamma(d / 2) - gamma(0.5) - gamma((order + d) / 2)
    return math.exp(log_moment)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), orders, st.sampled_from([0.2, 0.5, 0.9]), st.booleans())
def test_theorem_3_2_bounds_msw_by_the_wasserstein_distance(
    seed: int, order: float, mixing: float, translate: bool
) -> None:
    """MSW_p <= C_{d,p,lambda} W_p; a translation makes the sliced part an equality."""
    a = gaussian(30, 3, seed)
    b = a + gaussian(1, 3, seed + 1) if translate else gaussian(30, 3, seed + 1, 0.3, 1.7)
    cost = torch.cdist(a, b) ** order
    wasserstein = float(ot.emd2([], [], cost.numpy())) ** (1.0 / order)
    constant = mixing + (1.0 - mixing) * sphere_moment(3, order) ** (1.0 / order)
    ours = float(msw_distance(a, b, order=order, mixing=mixing, num_slices=4000))
    # 4000 directions stand for the sphere: the p-th moment is known to within 3 standard errors.
    assert ours <= 1.05 * constant * wasserstein
    assert constant < 1.0


def test_one_dimension_has_the_marginal_term_alone() -> None:
    a, b = gaussian(20, 1, 0), gaussian(30, 1, 1)
    expected = ot.wasserstein_1d(a[:, 0].numpy(), b[:, 0].numpy(), p=1)
    assert float(msw_distance(a, b, mixing=0.1)) == pytest.approx(float(expected))


def test_trimming_ignores_outliers() -> None:
    a = gaussian(1000, 2, 0)
    spoiled = a.clone()
    spoiled[:5] = 1e6
    assert float(msw_distance(a, spoiled)) > 1e3
    assert float(msw_distance(a, spoiled, trim=0.05)) < 0.1


def test_tables_are_compared_row_by_row() -> None:
    levels, directions = quantile_levels(10, 0.05), draw_directions(2, 3, torch_generator(0))
    tables = [
        QuantileTable.from_samples(gaussian(500, 2, seed).float(), directions, levels)
        for seed in range(3)
    ]
    batch = QuantileTable(torch.stack([table.values for table in tables]), directions, levels)
    together = msw_distance(batch, tables[0])
    assert together.shape == (3,)
    for row, table in zip(together, tables, strict=True):
        assert float(row) == pytest.approx(float(msw_distance(table, tables[0])), abs=1e-6)


def test_a_table_holds_the_order_statistics() -> None:
    samples = torch.arange(1.0, 11.0)[:, None]
    table = QuantileTable.from_samples(samples, torch.eye(1), torch.tensor([0.1, 0.5, 0.95]))
    assert table.values.tolist() == [[1.0, 5.0, 10.0]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": 0.5}, "`order` must be at least 1 and finite; got 0.5"),
        ({"mixing": 0.0}, r"`mixing` must be in \(0, 1\]"),
        ({"trim": 0.5}, "`trim` must lie in"),
    ],
)
def test_constants_out_of_range_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        msw_distance(gaussian(3, 2, 0), gaussian(3, 2, 1), **changes)


def test_unlike_arguments_are_refused() -> None:
    a = gaussian(3, 2, 0)
    levels = quantile_levels(4, 0.1)
    table = QuantileTable.from_samples(a, torch.eye(2).double(), levels)
    with pytest.raises(ValueError, match="same dimension; got 2 and 3"):
        msw_distance(a, gaussian(3, 3, 0))
    with pytest.raises(ValueError, match="NaN"):
        msw_distance(a, a * torch.nan)
    with pytest.raises(TypeError, match="both be samples or both be tables"):
        msw_distance(a, table)
    other = QuantileTable.from_samples(a, torch.eye(2).double(), quantile_levels(5, 0.1))
    with pytest.raises(ValueError, match="same directions and levels"):
        msw_distance(table, other)
