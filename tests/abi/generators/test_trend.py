"""What of theta given x is linear and Gaussian, found before a flow is."""

from __future__ import annotations

import math

import pytest
import torch
from fits import small_flow
from torch import Tensor

from abi.encoders.item import InputScaling
from abi.generators import trend as trends
from abi.generators.conditional import ConditionalFlows
from abi.generators.flow_network import FlowSettings, build_flow
from abi.generators.flow_training import Conditioning
from abi.generators.support import Support
from abi.generators.trend import Trend, fit_trend, with_products
from abi.training.loop import TrainingSettings
from simulators import GaussianLinear, sample_joint
from simulators.random import torch_generator


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch_generator(seed))


def test_a_linear_gaussian_law_is_found_within_the_errors_of_least_squares() -> None:
    n, slope = 4_000, torch.tensor([[2.0, 0.0], [-1.0, 0.5], [0.0, 0.0]])
    root = torch.tensor([[0.3, 0.0], [0.2, 0.1]])
    s = normal(n, 3)
    z = torch.tensor([5.0, -1.0]) + s @ slope + normal(n, 2, seed=1) @ root.T
    trend, _ = fit_trend(z, s)
    assert trend.slope is not None
    error = 5.0 * 0.36 / math.sqrt(n)  # five standard errors of the wider parameter
    torch.testing.assert_close(trend.slope, slope, atol=error, rtol=0.0)
    torch.testing.assert_close(trend.center, torch.tensor([5.0, -1.0]), atol=error, rtol=0.0)
    torch.testing.assert_close(trend.root @ trend.root.T, root @ root.T, atol=error, rtol=0.0)


def test_what_is_left_is_white_and_the_trend_is_brought_back() -> None:
    s = normal(500, 2)
    z = 3.0 * s + normal(500, 2, seed=1) @ torch.tensor([[1.0, 0.9], [0.0, 0.1]])
    trend, _ = fit_trend(z, s)
    rest = trend.to_rest(z, s)
    torch.testing.assert_close(rest.T @ rest / 500, torch.eye(2), atol=0.03, rtol=0.0)
    torch.testing.assert_close(trend.from_rest(rest, s), z, atol=1e-4, rtol=0.0)
    torch.testing.assert_close(trend.at(s[0]).from_rest(rest, None)[0], z[0], atol=1e-4, rtol=0.0)


@pytest.mark.parametrize("num_pairs", [100, 1_000])
def test_left_out_a_theta_is_as_far_off_as_others_are(num_pairs: int) -> None:
    """With five parameters and eight features its own trend knows it by .5 nats, or by .05."""
    s, others = normal(num_pairs, 8), normal(5_000, 8, seed=1)
    z, new = normal(num_pairs, 5, seed=2), normal(5_000, 5, seed=3)
    trend, left_out = fit_trend(z + s[:, :1], s)

    def density(rest: Tensor) -> float:
        return -0.5 * float(rest.square().sum(dim=1).mean())

    known = density(trend.to_rest(z + s[:, :1], s))
    told, fresh = density(left_out), density(trend.to_rest(new + others[:, :1], others))
    assert abs(told - fresh) < 0.25 * (known - fresh) + 3.0 / math.sqrt(num_pairs)
    assert known - fresh > 40.0 / num_pairs


def test_squares_and_products_of_features_are_found_where_they_tell() -> None:
    n, s = 2_000, normal(2_000, 3)
    z = torch.stack([s[:, 0] * s[:, 1] + s[:, 2], s[:, 0] ** 2], dim=1) + 0.1 * normal(n, 2, seed=1)
    trend, _ = fit_trend(z, s)
    assert trend.slope is not None
    assert trend.slope.shape == (9, 2)
    error = 5.0 * 0.1 / math.sqrt(n)  # five standard errors
    at = normal(50, 3, seed=2)
    exact = torch.stack([at[:, 0] * at[:, 1] + at[:, 2], at[:, 0] ** 2], dim=1)
    away = (trend.from_rest(torch.zeros(50, 2), at) - exact) / with_products(at).norm(
        dim=1, keepdim=True
    )
    assert float(away.abs().max()) < error
    torch.testing.assert_close(trend.root, 0.1 * torch.eye(2), atol=0.01, rtol=0.0)
    torch.testing.assert_close(trend.from_rest(trend.to_rest(z, s), s), z, atol=1e-5, rtol=0.0)


def test_of_very_many_rows_some_are_looked_at_and_all_are_freed_of_the_trend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A million rows of twenty features have products that take gigabytes."""
    n, s = 4_000, normal(4_000, 3)
    z = (s[:, :1] * s[:, 1:2] + s[:, 2:]) + 0.1 * normal(n, 1, seed=1)
    monkeypatch.setattr(trends, "_NUMBERS", 9 * 1_000)
    trend, _ = fit_trend(z, s)
    rest = trend.to_rest(z, s)
    assert rest.std() == pytest.approx(1.0, abs=5.0 / math.sqrt(2 * 1_000))
    monkeypatch.setattr(trends, "_ROWS", 7)
    torch.testing.assert_close(trend.to_rest(z, s), rest, atol=1e-4, rtol=0.0)
    torch.testing.assert_close(trend.at(s[0]).center, trend.from_rest(0.0 * rest, s)[0])


@pytest.mark.parametrize("seed", range(5))
def test_a_straight_law_stays_straight(seed: int) -> None:
    s = normal(300, 4, seed=seed)
    trend, _ = fit_trend(s[:, :2] + normal(300, 2, seed=seed + 10), s)
    assert trend.slope is not None
    assert len(trend.slope) == 4


@pytest.mark.parametrize("num_features", [0, 40])
def test_features_that_tell_nothing_have_no_slope(num_features: int) -> None:
    """Forty of them beside 200 pairs would widen what is left by a tenth."""
    z = normal(200, 2)
    trend, _ = fit_trend(z, normal(200, num_features, seed=1) if num_features else None)
    if trend.slope is not None:
        assert float(trend.slope.abs().max()) < 0.1
    torch.testing.assert_close(
        trend.root @ trend.root.T, torch.cov(z.T, correction=0), atol=0.15, rtol=0.0
    )


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_features_that_do_not_vary_have_no_slope(value: float) -> None:
    """Those of ridge predictions of theta, where x tells nothing of it in a straight line."""
    trend, _ = fit_trend(normal(200, 2), torch.full((200, 3), value))
    assert trend.slope is not None
    assert not trend.slope.any()
    assert bool(trend.root.isfinite().all())


def test_few_pairs_make_the_rest_wider_as_their_predictions_are() -> None:
    """Least squares on k features leave residuals that are too small by sqrt(1 - k / n)."""
    s, noise = normal(60, 12), normal(60, 1, seed=1)
    trend, _ = fit_trend(s[:, :1] * 50.0 + noise, s)
    assert float(trend.root) > float(noise.std())


def test_a_parameter_that_does_not_vary_has_next_to_no_width() -> None:
    z = torch.cat([normal(300, 1), torch.full((300, 1), 7.0)], dim=1)
    trend, _ = fit_trend(z, normal(300, 2, seed=1))
    drawn = trend.from_rest(normal(100, 2, seed=2), normal(100, 2, seed=3))
    torch.testing.assert_close(drawn[:, 1], torch.full((100,), 7.0), atol=1e-3, rtol=0.0)


@pytest.mark.parametrize("theta_dim", [1, 3])
@pytest.mark.parametrize("context_dim", [0, 2])
def test_a_flow_begins_as_the_identity(theta_dim: int, context_dim: int) -> None:
    flow = build_flow(theta_dim, context_dim, FlowSettings(num_transforms=2, hidden=(16,)), seed=3)
    theta = 1.5 * normal(50, theta_dim)
    given = normal(50, context_dim, seed=1) if context_dim else None
    own = torch.distributions.Independent(torch.distributions.Normal(0.0 * theta, 1.0), 1)
    torch.testing.assert_close(flow(given).log_prob(theta), own.log_prob(theta))


def test_the_posterior_of_ten_linear_parameters_is_found_by_the_trend_alone() -> None:
    """At 2,000 pairs its mean is off by a fifth of a sd where flows alone were by half."""
    task = GaussianLinear()
    theta, x = sample_joint(task, 2_000, seed=0)
    given = Conditioning(InputScaling(x), x, task.observation, "flat")
    training = TrainingSettings(max_epochs=12)
    model = small_flow(theta, Support.everywhere(10), 32, training, given=given)
    q = ConditionalFlows.of(model)
    assert q is not None
    x_o = task(torch.full((1, 10), 0.3), seed=5)
    mean, variance = task.posterior_moments(x_o[0])
    drawn = q.sample(4_000, x_o, seed=1)[:, 0]
    assert float((drawn.mean(dim=0) - mean).abs().max()) < 0.3 * math.sqrt(variance)
    assert float((drawn.var(dim=0) / variance).sqrt().sub(1.0).abs().max()) < 0.15


def test_values_of_x_are_scaled_in_a_straight_line_but_for_the_tails() -> None:
    x = normal(2_000, 1)
    scaling = InputScaling(x)
    z = scaling(torch.linspace(-3.9, 3.9, 40)[:, None])
    torch.testing.assert_close(z.diff(dim=0), z.diff(dim=0)[:1].expand(39, 1))
    far = scaling(torch.tensor([[10.0], [1e6], [-1e6]]))
    assert 3.0 < float(far[0]) < float(far[1]) < 20.0
    assert float(far[1]) == pytest.approx(-float(far[2]), abs=0.1)
    assert bool((scaling(torch.linspace(-50.0, 50.0, 200)[:, None]).diff(dim=0) > 0.0).all())


def test_a_trend_without_slope_is_the_same_at_every_x() -> None:
    trend = Trend(torch.tensor([1.0]), torch.tensor([[2.0]]))
    assert torch.equal(trend.from_rest(torch.ones(3, 1), normal(3, 5)), torch.full((3, 1), 3.0))


def test_positive_values_over_magnitudes_are_seen_as_logarithms() -> None:
    """A millionth and a ten-millionth of the typical value must not look alike."""
    x = torch.stack(
        [
            torch.exp(3.0 * normal(2_000)),
            torch.exp(0.1 * normal(2_000, seed=1)),
            normal(2_000, seed=2).abs() - 1e-3,
            torch.rand(2_000, generator=torch_generator(3)),
        ],
        dim=1,
    )
    scaling = InputScaling(x)
    assert scaling.logged.tolist() == [True, False, False, False]
    seen = scaling(torch.tensor([[1e-6, 1.0, 0.0, 0.5], [1e-7, 1.0, 0.0, 0.5]]))
    assert float(seen[0, 0] - seen[1, 0]) > 0.2
    far = scaling(torch.tensor([[-1.0, 1.0, 0.0, 0.5], [0.0, 1.0, 0.0, 0.5]]))
    assert far.isfinite().all()
    torch.testing.assert_close(scaling(x)[:, 0], InputScaling(x.log())(x.log())[:, 0])
    earlier = {name: value for name, value in scaling.state_dict().items() if name != "logged"}
    scaling.load_state_dict(earlier)
    assert not scaling.logged.any()
