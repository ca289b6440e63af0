"""Fits and baselines on units, supports and arguments at the edge of what can be asked."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import problems
import pytest
import torch
from fits import BY_GENERATOR, SMALL, X_O, quick_fit
from problems import default_float64
from torch import Tensor, nn
from torch.distributions import (
    AffineTransform,
    Categorical,
    Distribution,
    Independent,
    MixtureSameFamily,
    Normal,
    Poisson,
    TransformedDistribution,
    Uniform,
)

import abi
from abi import baselines
from abi.baselines.approximate.data_distance import DataDistance
from abi.config import WGANSettings
from abi.encoders.choice import FIXED, build_encoder
from abi.encoders.layout import Layout
from abi.generators.support import Support, has_density, prior_log_prob
from abi.training.loop import TrainingSettings, train
from simulators import GaussianLinear, from_function, sample_joint
from simulators.random import isolated_rng, torch_generator


def series(num_samples: int, length: int, seed: int = 0) -> Tensor:
    return torch.randn(num_samples, length, generator=torch_generator(seed))


def test_a_known_distance_narrows_the_posterior_by_default() -> None:
    task = GaussianLinear.warmup()
    mean, variance = task.posterior_moments(task.observation)
    posterior = abi.fit(
        task.prior,
        task,
        task.observation,
        num_simulations=10_000,
        config=abi.ABIConfig(generator="mixture"),
        distance=lambda x: (x[:, 0] - 6.24).abs(),
        progress=False,
    )
    tolerances = [record.tolerance for record in posterior.rounds]
    assert all(later < 0.7 * sooner for sooner, later in itertools.pairwise(tolerances))
    # The tolerance of the last round widens a little; the prior's deviation is 4.5.
    assert float(posterior.accepted.mean()) == pytest.approx(float(mean), abs=0.3)
    assert float(posterior.accepted.std()) == pytest.approx(variance**0.5, abs=0.35)


@pytest.mark.parametrize("view", ["items", "curve", "delay"])
def test_a_distance_of_data_sets_knows_no_origin(view: Any) -> None:
    layout = Layout(2) if view == "items" else Layout()
    x_o, x = series(1, 60), series(5, 60, seed=1)
    distance = DataDistance(layout, view=view)
    near = distance(x_o, x)
    for offset in (1e2, 1e4):
        # The sum is rounded by 6e-8 of the offset, and both by 6e-4 at most.
        assert torch.allclose(distance(x_o + offset, x + offset), near, atol=2e-3)
        assert float(distance(x_o + offset, x_o + offset)) == 0.0


def test_series_of_one_x_are_told_apart() -> None:
    """Prey and predators are not one bag of numbers."""
    first, second = series(1, 30), 5.0 + series(1, 30, seed=1)
    x_o, swapped = torch.cat([first, second], dim=1), torch.cat([second, first], dim=1)
    for view in ("items", "curve", "delay"):
        distance = DataDistance(Layout(num_series=2), view=view)  # type: ignore[arg-type]
        assert float(distance(x_o, swapped)) > 3.0
        assert float(distance(x_o, x_o)) == 0.0
    assert float(DataDistance()(x_o, swapped)) == 0.0  # what a bag of numbers sees


@pytest.mark.parametrize("encoder", FIXED)
def test_columns_that_all_but_vanish_have_finite_features(encoder: str) -> None:
    time = torch.linspace(0.0, 100.0, 60)
    theta = torch.linspace(0.0, 5.0, 500)[:, None]
    x = torch.exp(-theta * time) * (1.0 + 0.05 * series(500, 60))
    features = build_encoder(encoder, x, Layout())(x)
    assert bool(torch.isfinite(features).all())
    assert float(features.abs().max()) < 1e9


def test_a_network_that_learned_nothing_is_not_taken_for_one() -> None:
    with isolated_rng(0):
        module = nn.Linear(1, 1)
    log = train(
        module,
        lambda rows: rows.mean() * torch.inf,
        (torch.ones(50, 1, requires_grad=True),),
        TrainingSettings(max_epochs=1),
        seed=0,
    )
    with pytest.raises(ValueError, match="the flow found no finite loss"):
        abi.training.loop.check_trained(log, "the flow")


def test_a_density_is_zero_where_torch_would_refuse_to_say() -> None:
    shifted = TransformedDistribution(
        Uniform(torch.zeros(2), torch.ones(2), validate_args=True), [AffineTransform(2.0, 3.0)]
    )
    theta = torch.tensor([[2.5, 2.5], [1.0, 2.5], [6.0, 9.0], [4.9, 2.1]])
    assert prior_log_prob(shifted, theta).isfinite().tolist() == [True, False, False, True]
    boxes = Uniform(torch.tensor([[0.0], [5.0]]), torch.tensor([[1.0], [6.0]]))
    two = MixtureSameFamily(Categorical(torch.ones(2)), Independent(boxes, 1))
    assert has_density(two)
    theta = torch.tensor([[0.5], [3.0], [5.5]])
    assert prior_log_prob(two, theta).isfinite().tolist() == [True, False, True]


@pytest.mark.parametrize("kind", ["mixture", "potnet"])
def test_a_hidden_support_stops_no_fit(kind: str) -> None:
    unit = Uniform(torch.zeros(2), torch.ones(2), validate_args=True)
    prior = TransformedDistribution(unit, [AffineTransform(-2.0, 4.0)])
    config = replace(BY_GENERATOR[kind], adjustment="none")
    posterior = quick_fit(prior=prior, config=config)
    assert bool((posterior.accepted.abs() <= 2.0).all())


def test_torch_checks_what_the_caller_wants_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Distribution, "_validate_args", True)  # whatever has imported zuko before
    quick_fit(num_simulations=400, num_rounds=1).sample((5,))
    baselines.snpe(problems.BOX, problems.simulate, X_O, num_simulations=100, max_epochs=1)
    with pytest.raises(ValueError, match="scale"):
        Normal(0.0, -1.0)


def test_the_end_of_a_half_line_is_no_outlier() -> None:
    far = Support(torch.tensor([1e6]), torch.tensor([torch.inf]))
    z = far.to_real(torch.tensor([[1e6], [1e6 + 1.0]]))
    assert float(z.min()) > -4.0  # float32 tells 1/16 there
    counts = Support.of(Poisson(torch.tensor([3.0])), 1)
    whole = torch.tensor([[0.0], [1.0], [7.0]])
    assert float(counts.to_real(whole).min()) > -1.0
    assert torch.allclose(counts.from_real(counts.to_real(whole)), whole, atol=1e-5)


@pytest.mark.parametrize("method", ["potnet", "abc_ss"])
def test_units_change_nothing(method: str) -> None:
    unit = 1e-12

    def spread(scale: float) -> Tensor:
        prior = Independent(Normal(torch.zeros(2), scale), 1)

        def simulate(theta: Tensor) -> Tensor:
            return theta + 0.3 * scale * torch.randn(theta.shape)

        x_o = scale * torch.tensor([0.5, -0.5])
        if method == "abc_ss":
            posterior: Any = baselines.abc_ss(prior, simulate, x_o, num_simulations=1_000)
        else:
            posterior = quick_fit(
                prior=prior, simulator=simulate, x_o=x_o, config=BY_GENERATOR[method]
            )
        deviations: Tensor = posterior.sample((2_000,)).double().std(dim=0) / scale
        return deviations

    assert spread(unit).tolist() == pytest.approx(spread(1.0).tolist(), rel=0.25)


@pytest.mark.parametrize("method", ["snpe", "wabc", "abc_ss", "wgan_gp", "smc_abc"])
def test_baselines_do_not_mind_a_default_of_double(method: str) -> None:
    few: dict[str, dict[str, Any]] = {
        "snpe": {"max_epochs": 1},
        "wgan_gp": {"settings": WGANSettings(num_steps=5)},
    }
    draws = []
    for double in (False, True):
        torch.set_default_dtype(torch.float64 if double else torch.float32)
        try:
            posterior = baselines.METHODS[method](
                problems.BOX, problems.simulate, X_O, num_simulations=200, **few.get(method, {})
            )
            draws.append(posterior.sample((5,)))
        finally:
            torch.set_default_dtype(torch.float32)
    assert draws[1].dtype == torch.float32
    assert torch.equal(*draws)


def test_a_generator_s_draws_do_not_mind_it_either() -> None:
    posterior = quick_fit(config=BY_GENERATOR["potnet"])
    with default_float64():
        draws = posterior.sample((5,))
    assert torch.equal(draws, posterior.sample((5,)))


def test_an_encoder_may_share_its_weights(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(6, 6)
            self.second = self.first

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.second(torch.relu(self.first(x)))
            return out

    with isolated_rng(0):
        module = Tied()
    given: dict[str, Any] = {"encoder": module, "num_simulations": 400}
    kept = quick_fit(run_dir=tmp_path / "run", **given)
    assert torch.equal(kept.sample((5,)), quick_fit(**given).sample((5,)))


def test_rounds_take_the_pairs_they_are_told_to() -> None:
    config = abi.ABIConfig.from_dict(SMALL.to_dict() | {"pairs_per_round": 150})
    posterior = quick_fit(num_simulations=800, config=config)
    assert [record.proposed for record in posterior.rounds] == [150, 150]


def test_a_support_must_be_one() -> None:
    class Pair:
        support: Any = (0.0, 1.0)

        def sample(self, sample_shape: Any) -> Tensor:
            return torch.rand(*sample_shape, 2)

    with pytest.raises(TypeError, match=r"`prior`: its `support` must be a constraint"):
        quick_fit(prior=Pair())
    Pair.support = torch.distributions.constraints.interval(2.0, 3.0)
    with pytest.raises(ValueError, match="`prior` draws theta outside its own `support`"):
        quick_fit(prior=Pair())
    Pair.support = torch.distributions.constraints.interval(torch.zeros(3), torch.ones(3))
    with pytest.raises(ValueError, match=r"`support` has .* ends for 2 parameters"):
        quick_fit(prior=Pair())


def linear(inputs: int, outputs: int) -> nn.Module:
    with isolated_rng(0):
        return nn.Linear(inputs, outputs)


def two_flat(x: Tensor) -> Tensor:
    return x.flatten()[:2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": {"num_flows": 1}}, "`config` must be an abi.ABIConfig; got dict"),
        (
            {"num_simulations": "500"},
            "`num_simulations` must be a whole number of .*; got '500', a str",
        ),
        ({"num_simulations": None}, "`num_simulations` must be a whole number of .*; got None"),
        ({"seed": None}, "`seed` must be a whole number of at least 0; got None"),
        ({"x_o": "a"}, "`x_o` must be a tensor of numbers; got 'a'"),
        ({"distance": "l2"}, "`distance` must be a function"),
        (
            {"distance": lambda x: x[:, :2]},
            r"`distance` must give one number .* got shape \(2, 2\)",
        ),
        ({"distance": lambda x: x[:, 0] * torch.nan}, "`distance` must give one number .* got NaN"),
        ({"encoder": two_flat}, "`encoder` must be a torch module; got function"),
        ({"encoder": linear(5, 2)}, r"`encoder` must take float32 x of shape \(n, 6\)"),
        ({"encoder": linear(6, 2).double()}, r"`encoder` must take float32 x"),
        ({"encoder": nn.Flatten(0)}, r"`encoder` must give features .* got \(12,\)"),
        ({"simulations": (X_O, X_O)}, "`simulations` must be what simulators.simulate or load"),
    ],
)
def test_what_is_wrong_is_named_before_the_first_call(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    counting = problems.Counting()
    with pytest.raises((TypeError, ValueError), match=message):
        quick_fit(simulator=counting, run_dir=tmp_path / "run", **changes)
    assert counting.calls == 0
    assert not (tmp_path / "run").exists()


def test_constants_that_count_are_whole() -> None:
    assert abi.ABIConfig(num_flows=np.int64(2)).num_flows == 2  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"`num_flows` must be a whole number of at least 1; got 1\.5"
    ):
        abi.ABIConfig(num_flows=1.5)  # type: ignore[arg-type]


def test_a_run_that_never_began_is_begun_anew(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`x_o` must have as many values"):
        quick_fit(x_o=X_O[:5], run_dir=tmp_path / "run")
    posterior = quick_fit(num_simulations=400, run_dir=tmp_path / "run")
    assert torch.equal(posterior.x_o, X_O)
    with pytest.raises(FileExistsError, match="already holds a run"):
        quick_fit(num_simulations=400, run_dir=tmp_path / "run")


def test_names_tell_parameters_apart() -> None:
    with pytest.raises(ValueError, match="`parameter_names` must differ; 'a' appears twice"):
        quick_fit(parameter_names=["a", "a"])
    with pytest.raises(TypeError, match="`parameter_names` must be a list of names"):
        quick_fit(parameter_names="ab")


@pytest.mark.parametrize("wrong", [lambda theta: theta.sum(), lambda theta: torch.zeros(7, 2)])
def test_a_joint_draw_has_a_row_of_x_for_each_theta(wrong: Any) -> None:
    task = from_function(wrong, problems.BOX, batched=True)
    with pytest.raises(ValueError, match=r"`task` must give x of shape \(n, p\)"):
        sample_joint(task, 4, seed=0)
