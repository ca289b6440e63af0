"""Distances between samples: closed forms, axioms, levels, and errors."""

from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from abi import metrics
from simulators.random import torch_generator


def normal(n: int, d: int = 1, seed: int = 0, mean: float = 0.0, sd: float = 1.0) -> Tensor:
    draws = torch.randn(n, d, generator=torch_generator(seed), dtype=torch.float64)
    return mean + sd * draws


DISTANCES = {
    "w1": metrics.wasserstein,
    "w2": lambda a, b: metrics.wasserstein(a, b, order=2),
    "sliced": metrics.sliced_distance,
    "marginal": metrics.marginal_distance,
}


@pytest.mark.parametrize("order", [1, 2])
def test_a_translation_is_as_far_as_it_moves(order: int) -> None:
    sample, shift = normal(200, 3), torch.tensor([3.0, 0.0, -4.0])
    assert metrics.wasserstein(sample + shift, sample, order=order) == pytest.approx(5.0, abs=1e-9)


def test_w2_between_gaussians_has_its_closed_form() -> None:
    """W2^2 = (m1 - m2)^2 + (s1 - s2)^2 in one dimension; the error of the means rules."""
    n = 2_000
    found = metrics.wasserstein(normal(n, seed=1), normal(n, seed=2, mean=3.0, sd=2.0), order=2)
    assert abs(found - math.sqrt(9.0 + 1.0)) < 4 * math.sqrt((1 + 4) / n)


def test_w2_between_gaussians_with_rotated_covariances_has_its_closed_form() -> None:
    """Bures: tr(A) + tr(B) - 2 tr((A^1/2 B A^1/2)^1/2), = 2 (3 - 1)^2 for A and B with swapped sds
    3 and 1; in two dimensions the empirical bias is of the order sqrt(log n / n) sds."""
    n = 1_500
    a = normal(n, 2, seed=1) * torch.tensor([3.0, 1.0])
    b = normal(n, 2, seed=2) * torch.tensor([1.0, 3.0])
    assert metrics.wasserstein(a, b, order=2) == pytest.approx(math.sqrt(8.0), abs=0.25)


points = st.lists(
    st.tuples(*[st.floats(-5, 5, allow_subnormal=False)] * 2), min_size=2, max_size=6
).map(lambda rows: torch.tensor(rows, dtype=torch.float64))


@pytest.mark.parametrize("name", DISTANCES)
@settings(max_examples=30)
@given(a=points, b=points, c=points)
def test_distances_satisfy_the_axioms(name: str, a: Tensor, b: Tensor, c: Tensor) -> None:
    distance = DISTANCES[name]
    # The square root of W2 turns rounding of 1e-16 into 1e-8.
    small = 1e-6
    assert distance(a, a) < small
    assert distance(a, b) == pytest.approx(distance(b, a), abs=small)
    assert distance(a, c) <= distance(a, b) + distance(b, c) + small


@settings(max_examples=30)
@given(a=points, b=points)
def test_w1_is_at_most_w2_and_slices_are_at_most_the_whole(a: Tensor, b: Tensor) -> None:
    w1 = metrics.wasserstein(a, b)
    assert w1 <= metrics.wasserstein(a, b, order=2) + 1e-6
    assert metrics.sliced_distance(a, b) <= w1 + 1e-6


def test_normalised_w1_does_not_know_units() -> None:
    a, b, unit = normal(100, 2, seed=1), normal(120, 2, seed=2), torch.tensor([1e-3, 50.0])
    expected = metrics.normalised_wasserstein(a, b)
    assert metrics.normalised_wasserstein(a * unit, b * unit) == pytest.approx(expected)


def test_mmd_between_gaussians_has_its_closed_form() -> None:
    """E k(a, b) = s / sqrt(s^2 + v) exp(-m^2 / (2 (s^2 + v))), v the sum of the variances."""
    n, width = 1_500, 1.5

    def mean_kernel(variance: float, shift: float) -> float:
        total = width**2 + variance
        return width / math.sqrt(total) * math.exp(-(shift**2) / (2 * total))

    exact = mean_kernel(2.0, 0.0) + mean_kernel(8.0, 0.0) - 2 * mean_kernel(5.0, 1.0)
    found = metrics.mmd_squared(
        normal(n, seed=1), normal(n, seed=2, mean=1.0, sd=2.0), bandwidth=width
    )
    # The standard error of the leading term is at most 2 sd(k) sqrt(2 / n), sd(k) <= 1/2.
    assert abs(found - exact) < 4 * math.sqrt(2 / n)


def test_mmd_squared_is_unbiased_where_the_samples_agree() -> None:
    values = torch.tensor(
        [
            metrics.mmd_squared(normal(40, seed=2 * k), normal(40, seed=2 * k + 1), bandwidth=1.0)
            for k in range(200)
        ]
    )
    assert values.min() < 0
    assert abs(float(values.mean())) < 4 * float(values.std()) / math.sqrt(len(values))


def test_the_bandwidth_is_the_median_distance_of_the_reference() -> None:
    reference = torch.tensor([[0.0], [1.0], [3.0]])
    assert metrics.median_bandwidth(reference) == pytest.approx(2.0)


@pytest.mark.parametrize("classifier", ["mlp", "rf"])
def test_c2st_is_a_half_for_equal_and_one_for_far_samples(classifier: str) -> None:
    n = 250
    a, b = normal(n, 2, seed=1), normal(n, 2, seed=2)
    near = metrics.c2st(a, b, classifier=classifier)  # type: ignore[arg-type]
    # Folds share training points, which adds to the binomial error: five standard errors.
    assert abs(near - 0.5) < 5 * math.sqrt(0.25 / (2 * n))
    assert metrics.c2st(a + 20.0, b, classifier=classifier) > 0.95  # type: ignore[arg-type]


def test_c2st_nears_the_accuracy_of_the_best_classifier() -> None:
    """Phi(delta / 2) for two normals delta apart: 0.841 for delta = 2."""
    n = 500
    found = metrics.c2st(normal(n, seed=1, mean=2.0), normal(n, seed=2))
    assert abs(found - 0.8413) < 4 * math.sqrt(0.84 * 0.16 / (2 * n))


def test_c2st_is_a_function_of_its_seed_and_knows_no_units() -> None:
    a, b = normal(60, 2, seed=1, mean=0.7), normal(60, 2, seed=2)
    found = [metrics.c2st(a, b, classifier="rf", seed=seed) for seed in (3, 3, 4)]
    assert found[0] == found[1] != found[2]
    scaled = metrics.c2st(a * 1024, b * 1024, classifier="rf", seed=3)
    assert scaled == pytest.approx(found[0], abs=0.02)


def test_moments_are_those_of_the_samples() -> None:
    reference = normal(500, 3, seed=1)
    moved = reference * torch.tensor([1.0, 2.0, 0.5]) + torch.tensor([1.0, 0.0, 0.0])
    sd = reference.std(dim=0)
    bias = metrics.mean_bias(moved, reference)
    assert bias[0] == pytest.approx(float(1.0 / sd[0]))
    assert metrics.sd_ratio(moved, reference).tolist() == pytest.approx([1.0, 2.0, 0.5])
    assert metrics.correlation_error(moved, reference).abs().max() < 1e-9
    turned = reference.clone()
    turned[:, 1] = turned[:, 0]
    expected = 1.0 - torch.corrcoef(reference.T)[0, 1]
    assert metrics.correlation_error(turned, reference)[0] == pytest.approx(float(expected))


def test_a_comparison_of_exact_draws_stays_at_its_floor() -> None:
    found = metrics.compare(normal(120, 2, seed=1), normal(240, 2, seed=2), seed=1)
    assert found.size == 120
    assert {name.rstrip("_12") for name in found.scores} == {
        name.rstrip("12") for name in metrics.METRICS
    }
    for name in ("w1", "w2", "sliced", "msw", "normalised_w1"):
        score = found[name]
        assert 0.5 < score.value / score.floor < 2.0, name
    # Two accuracies of 240 points each, of folds that share points.
    assert abs(found["c2st"].excess) < 5 * math.sqrt(2 * 0.25 / 240)
    json.dumps(found.to_dict())


def test_a_comparison_of_wrong_draws_stands_out_by_the_error() -> None:
    found = metrics.compare(
        normal(400, 1, seed=1, mean=2.0), normal(800, 1, seed=2), metrics=["w1", "mean_bias"]
    )
    assert found["w1"].excess == pytest.approx(2.0, abs=4 * math.sqrt(3 / 400))
    interval = found["mean_bias_1"].interval
    assert interval is not None
    assert interval[0] < 2.0 < interval[1]


def test_a_comparison_is_a_function_of_its_seed() -> None:
    a, b = normal(100, 2, seed=1), normal(200, 2, seed=2)
    names = ["w1", "sliced", "mean_bias"]
    first = metrics.compare(a, b, seed=5, metrics=names)
    assert first == metrics.compare(a, b, seed=5, metrics=names)
    assert first != metrics.compare(a, b, seed=6, metrics=names)


def test_bootstrap_intervals_hold_the_truth_nineteen_times_in_twenty() -> None:
    repeats, held = 100, 0
    for k in range(repeats):
        found = metrics.compare(
            normal(60, seed=2 * k), normal(120, seed=2 * k + 1), seed=k, metrics=["mean_bias"]
        )
        interval = found["mean_bias_1"].interval
        assert interval is not None
        held += interval[0] <= 0.0 <= interval[1]
    # Binomial error of 4 sds around 0.95, and the bootstrap's own of a point or two at 60 draws.
    assert abs(held / repeats - 0.95) < 4 * math.sqrt(0.95 * 0.05 / repeats) + 0.02


@pytest.mark.parametrize(
    ("shift", "sd"), [(0.0, 1.0), (1.0, 1.0), (0.0, 2.0)], ids=["floor", "shift", "wide"]
)
def test_intervals_of_distances_hold_the_average_of_samples_of_that_size(
    shift: float, sd: float
) -> None:
    """The target is the mean over the repeats themselves; at the floor it is not zero."""
    repeats, names = 40, ("w1", "normalised_w1", "w2", "sliced", "msw", "mmd_squared")
    found = [
        metrics.compare(
            normal(60, 2, 2 * k, shift, sd), normal(120, 2, 2 * k + 1),
            seed=k, metrics=names, intervals=True,
        )
        for k in range(repeats)
    ]  # fmt: skip
    for name in names:
        scores = [comparison[name] for comparison in found]
        average = sum(score.value for score in scores) / repeats
        ends = [score.interval for score in scores]
        held = sum(low <= average <= high for low, high in filter(None, ends))
        # Four binomial sds below 0.95: conservative is allowed, and never too wide to say anything.
        assert held / repeats > 0.95 - 4 * math.sqrt(0.95 * 0.05 / repeats)
        spread = torch.tensor([score.value for score in scores]).std()
        widths = [high - low for low, high in filter(None, ends)]
        assert sum(widths) / repeats < 2.5 * 4 * float(spread)


def test_intervals_are_asked_for_and_need_draws() -> None:
    a, b = normal(60, 2, seed=1), normal(120, 2, seed=2)
    assert metrics.compare(a, b, metrics="w1")["w1"].interval is None
    few = metrics.compare(a[:10], b[:20], metrics="w1", intervals=True)
    assert few["w1"].interval is None
    score = metrics.compare(a[:20], b, metrics="c2st", intervals=True)["c2st"]
    assert score.interval is not None
    assert score.interval[0] < score.value < score.interval[1]
    far = metrics.compare(a[:20] + 3.0, b, metrics="c2st", intervals=True)["c2st"]
    assert far.interval is not None
    assert far.interval[1] <= 1.0
    near = metrics.compare(a, a.repeat(2, 1), metrics=["w1", "mmd_squared"], intervals=True)
    assert near["w1"].interval is not None
    assert near["w1"].interval[0] >= 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda a, b: metrics.compare(a, b, metrics=["w3"]), "w3"),
        (lambda a, b: metrics.compare(a, b[:3]), "at least 4 draws"),
        (lambda a, b: metrics.wasserstein(a, b, order=3), "got 3"),
        (lambda a, b: metrics.wasserstein(a[:, :1], b), "1 and 2"),
        (lambda a, b: metrics.wasserstein(a[:, 0], b), r"\(20,\)"),
        (lambda a, b: metrics.wasserstein(a * torch.nan, b), "20 of 20"),
        (lambda a, b: metrics.mmd_squared(a, b, bandwidth=0.0), "got 0.0"),
        (lambda a, b: metrics.c2st(a[:10], b), "10 and 20"),
        (lambda a, b: metrics.c2st(a, b, classifier="svm"), "svm"),
    ],
)
def test_errors_name_what_came(call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=words):
        call(normal(20, 2, seed=1), normal(20, 2, seed=2))


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e9])
def test_wasserstein_distances_follow_the_unit(unit: float) -> None:
    a, b = normal(200, 2, seed=1), normal(150, 2, seed=2, mean=0.5)
    for order in (1, 2):
        expected = metrics.wasserstein(a, b, order=order)
        found = metrics.wasserstein(unit * a, unit * b, order=order) / unit
        assert found == pytest.approx(expected, rel=1e-6)


def test_the_mmd_does_not_depend_on_the_place() -> None:
    a, b = normal(300, 2, seed=1), normal(300, 2, seed=2, mean=0.5)
    near, far = metrics.mmd_squared(a, b), metrics.mmd_squared(a + 1e9, b + 1e9)
    assert far == pytest.approx(near, rel=1e-4)


def test_one_parameter_is_compared_by_all_metrics() -> None:
    comparison = metrics.compare(normal(100, seed=1), normal(200, seed=2))
    assert "w1" in comparison.scores
    assert not any(name.startswith("correlation") for name in comparison.scores)


@pytest.mark.parametrize("count", [7, 333, 1_000])
def test_a_column_that_does_not_vary_keeps_its_unit_in_any_precision(count: int) -> None:
    constant = torch.full((count, 1), 0.1, dtype=torch.float64)
    assert float(metrics.mean_bias(constant + 1e-3, constant)) == pytest.approx(1e-3)
    assert metrics.normalised_wasserstein(constant + 1e-3, constant) == pytest.approx(1e-3)


def test_repeated_draws_have_a_bandwidth() -> None:
    repeated = normal(100, 2, seed=1)[torch.randint(20, (100,), generator=torch_generator(0))]
    mostly = torch.cat([repeated[:1].expand(300, -1), repeated])
    assert metrics.median_bandwidth(mostly) > 0
    assert math.isfinite(metrics.mmd_squared(repeated, mostly))
