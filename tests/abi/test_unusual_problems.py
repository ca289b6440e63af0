"""abi.fit on priors, simulators and settings of torch that are legitimate and seldom seen."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import problems
import pytest
import torch
from fits import QUICK, SMALL, X_O, quick_fit
from problems import default_float64
from torch import Tensor, nn
from torch.distributions import (
    Categorical,
    Distribution,
    Independent,
    MixtureSameFamily,
    Normal,
    Uniform,
    constraints,
)

import abi
from abi import baselines
from abi.encoders.choice import build_encoder
from abi.generators.flow import random_shares
from abi.generators.support import Support
from simulators import (
    MG1,
    Cosine,
    GaussianLinear,
    LynxHare,
    MultimodalGaussian,
    from_function,
    sample_joint,
    sample_prior,
    simulate,
)
from simulators.random import child_seed, isolated_rng


class SampledNormal(Distribution):
    """A distribution of torch that can be drawn from, and no more: ``log_prob`` is inherited."""

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__(event_shape=torch.Size([2]), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return torch.randn(*sample_shape, 2)


def one_is_fixed(num_samples: int) -> Tensor:
    theta = problems.prior(num_samples)
    theta[:, 1] = 2.0
    return theta


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "model", [Cosine, MG1, MultimodalGaussian, LynxHare], ids=lambda m: m.__name__
)
def test_every_model_is_fitted_by_the_defaults(model: Any, seed: int) -> None:
    """Brief training apart: the encoders that are raced, regions and verdict are the defaults'.

    x of the cosine model tells nothing of theta in a straight line, and first answers to a queue
    are so sure of themselves that regions may contradict each other.
    """
    task = model()
    x_o = sample_joint(task, 1, seed=seed)[1][0]
    config = abi.ABIConfig(network_training=QUICK, generator_training=QUICK)
    posterior = abi.fit(
        task.prior, task, x_o, num_simulations=400, config=config, seed=seed, progress=False
    )
    assert posterior.num_simulations <= 400
    assert torch.isfinite(posterior.sample((100,))).all()
    assert posterior.verdict.outcome in ("passes", "fails", "cannot tell")


def test_no_call_is_made_beyond_the_budget() -> None:
    """Not even to see how long x is."""
    counting = problems.Counting()
    task = from_function(counting, problems.BOX, batched=True)
    assert quick_fit(simulator=task, num_simulations=400).num_simulations == counting.calls == 400
    counting.calls = 0
    baselines.rejection_abc(problems.BOX, task, X_O, num_simulations=200)
    assert counting.calls == 200


def test_a_function_may_write_into_its_parameters() -> None:
    def scaled(theta: Tensor) -> Tensor:
        theta[:, 0] = 10.0 ** theta[:, 0]
        return problems.simulate(theta)

    task = from_function(scaled, problems.BOX, batched=True)
    theta, _ = sample_joint(task, 50, seed=0)
    assert torch.equal(theta, sample_prior(problems.BOX, 50, child_seed(0, 0)))
    kept = baselines.rejection_abc(problems.BOX, scaled, X_O, num_simulations=200).sample((20,))
    assert bool((kept.abs() <= 2.0).all())


@pytest.mark.parametrize("proposal", ["truncated", "generator"])
def test_a_prior_that_inherits_its_density_is_a_sampler(proposal: str) -> None:
    adjustment = "conditional" if proposal == "truncated" else "quantile"
    config = abi.ABIConfig.from_dict(
        SMALL.to_dict() | {"proposal": proposal, "adjustment": adjustment}
    )
    posterior = quick_fit(prior=SampledNormal(), num_simulations=600, config=config)
    assert bool(torch.isfinite(posterior.sample((20,))).all())


def test_a_mixture_of_boxes_lives_in_their_hull() -> None:
    low, high = torch.tensor([[-2.0, 0.0], [1.0, -1.0]]), torch.tensor([[-1.0, 1.0], [2.0, 3.0]])
    boxes = Independent(Uniform(low, high), 1)
    support = Support.of(MixtureSameFamily(Categorical(torch.ones(2)), boxes), 2)
    assert support.lower.tolist() == [-2.0, -1.0]
    assert support.upper.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("proposal", ["truncated", "generator"])
def test_a_parameter_that_does_not_vary_costs_nothing_else(proposal: str) -> None:
    changes = {"proposal": proposal}
    if proposal == "generator":
        changes |= {"adjustment": "quantile"}
    config = abi.ABIConfig.from_dict(SMALL.to_dict() | changes)
    x_o = torch.tensor([0.5, 2.0, 0.6, 2.1, 0.4, 1.9])
    posterior = quick_fit(prior=one_is_fixed, x_o=x_o, config=config)
    for record in posterior.rounds:
        assert record.network is not None
        assert np.isfinite(record.network.validation_loss)
    draws = posterior.sample((500,))
    assert draws[:, 1].tolist() == pytest.approx([2.0] * 500, abs=1e-3)
    assert float(draws[:, 0].mean()) == pytest.approx(0.5, abs=0.35)


@pytest.mark.parametrize("proposal", ["truncated", "generator"])
@pytest.mark.parametrize("setting", [default_float64, torch.no_grad, torch.inference_mode])
def test_what_the_caller_has_set_in_torch_changes_nothing(setting: Any, proposal: str) -> None:
    changes = {"proposal": proposal}
    if proposal == "generator":
        changes |= {"adjustment": "quantile", "generator": "mixture"}
    config = abi.ABIConfig.from_dict(SMALL.to_dict() | changes)
    draws, densities = [], []
    for context in (nullcontext, setting):
        with context():
            dtype = torch.get_default_dtype()
            posterior = quick_fit(num_simulations=400, config=config)
            assert torch.get_default_dtype() == dtype
            draws.append(posterior.sample((10,)))
            densities.append(posterior.log_prob(draws[-1]))
    assert draws[1].dtype == densities[1].dtype == torch.float32
    assert torch.equal(*draws)
    assert torch.equal(*densities)


def test_whole_numbers_of_any_kind_can_be_kept(tmp_path: Path) -> None:
    fit = quick_fit(seed=np.int64(3), num_simulations=np.int64(400), run_dir=tmp_path / "run")
    fit.save(tmp_path / "fit.safetensors")
    assert abi.load(tmp_path / "fit.safetensors").seed == 3
    with pytest.raises(
        ValueError, match=r"`num_simulations` must be a whole number of .*; got 400\.5"
    ):
        quick_fit(num_simulations=400.5)


def test_an_encoder_may_normalise_batches() -> None:
    with isolated_rng(0):
        module = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))
    # 256 rows a batch: of 571 rows 514 train, and the last two batches would be 256 and 2.
    for calls in (571, 570):
        posterior = quick_fit(encoder=module, num_simulations=calls, num_rounds=1)
        assert posterior.sample((5,)).shape == (5, 2)


def test_a_run_goes_on_with_what_it_began_with(tmp_path: Path) -> None:
    prior, simulator = problems.BOX, problems.simulate
    made = simulate(simulator, sample_prior(prior, 200, 0), seed=1, progress=False)
    with isolated_rng(0):
        module = nn.Linear(6, 2)
    begun: dict[str, dict[str, Any]] = {
        "nothing": {},
        "distance": {"distance": lambda x: (x - X_O).norm(dim=1)},
        "encoder": {"encoder": module},
        "simulations": {"simulations": made},
    }
    other = simulate(simulator, sample_prior(prior, 200, 1), seed=1, progress=False)
    for name, given in begun.items():
        quick_fit(num_simulations=400, run_dir=tmp_path / name, **given)
        for what in ("distance", "encoder", "simulations"):
            changed = given | begun[what]
            if name == what:
                del changed[what]
            why = "give it again" if name == what else "leave it out"
            with pytest.raises(ValueError, match=f"`{what}`: the run began .*{why}"):
                abi.resume(tmp_path / name, prior, simulator, progress=False, **changed)
        resumed = abi.resume(tmp_path / name, prior, simulator, progress=False, **given)
        again = quick_fit(num_simulations=400, **given)
        assert torch.equal(resumed.sample((5,)), again.sample((5,)))
    with pytest.raises(ValueError, match="`simulations`: the run began with other ones"):
        abi.resume(tmp_path / "simulations", prior, simulator, simulations=other, progress=False)


def test_draws_go_with_no_noise_of_their_seed() -> None:
    task = from_function(problems.simulate, Independent(Normal(torch.zeros(2), 1.0), 1), True)
    posterior = quick_fit(prior=task.prior)
    assert len(posterior.model.flows) == 1  # type: ignore[attr-defined]
    draws = posterior.sample((2_000,))
    torch_state = torch.get_rng_state()
    torch.manual_seed(0)
    noise = torch.randn(2_000, 2)
    torch.set_rng_state(torch_state)
    for other in (noise, sample_prior(task.prior, 2_000, seed=0)):
        for j in range(2):
            together = torch.corrcoef(torch.stack([draws[:, j], other[:, j]]))[0, 1]
            assert abs(float(together)) < 0.1


def test_one_draw_may_come_from_any_flow() -> None:
    seen = torch.zeros(3)
    for seed in range(300):
        with isolated_rng(seed):
            shares = torch.tensor(random_shares(1, 3))
        assert int(shares.sum()) == 1
        seen += shares
    assert seen.tolist() == pytest.approx([100.0] * 3, abs=30.0)  # a standard deviation is 8
    with isolated_rng(0):
        assert random_shares(9, 3) == [3, 3, 3]
        assert sorted(random_shares(8, 3)) == [2, 3, 3]


def test_what_cannot_run_leaves_no_folder(tmp_path: Path) -> None:
    for wrong in ({"workers": 0}, {"timeout": -1.0}, {"seed": -1}):
        with pytest.raises(ValueError, match=f"`{next(iter(wrong))}`"):
            quick_fit(run_dir=tmp_path / "run", **wrong)
    assert not (tmp_path / "run").exists()


def test_a_second_round_of_snpe_stays_where_the_prior_is() -> None:
    task = MG1(num_customers=5, prior_kind="truncated")
    seen = []

    def watched(theta: Tensor) -> Tensor:
        seen.append(theta.clone())
        return task(theta, seed=len(seen))

    x_o = task(torch.tensor([[1.0, 2.0, 0.15]]), seed=1)[0]
    own = from_function(watched, task.prior, batched=True)
    fit = baselines.snpe(task.prior, own, x_o, num_simulations=200, num_rounds=2, max_epochs=2)
    assert fit.sample((10,)).shape == (10, 3)
    assert bool((task.prior.log_prob(torch.cat(seen)) > -torch.inf).all())


def test_a_simulator_without_a_finite_x_is_named() -> None:
    for method in (baselines.rejection_abc, baselines.abc_ss, baselines.snpe):
        with pytest.raises(ValueError, match="`simulator` gave no finite x"):
            method(problems.BOX, problems.all_nan, X_O, num_simulations=200)  # type: ignore[operator]


def test_an_amortised_fit_is_not_read_at_nan() -> None:
    fit = baselines.abc_ss(problems.BOX, problems.simulate, X_O, num_simulations=300)
    with pytest.raises(ValueError, match="`x` must be finite"):
        fit.at(X_O * torch.nan)


@pytest.mark.parametrize("seed", [-1, 1 << 64])
def test_a_seed_out_of_range_is_named(seed: int, tmp_path: Path) -> None:
    theta = sample_prior(problems.BOX, 3, seed=0)
    with pytest.raises(ValueError, match=rf"`seed` must .* got {seed}"):
        simulate(problems.simulate, theta, seed=seed, store=tmp_path / "store", progress=False)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_simulations": 40}, "`num_simulations` must be more than the 50 particles"),
        ({"num_particles": 1_000}, "`num_simulations` must be more than the 1000 particles"),
        ({"epsilon_decay": 2.0}, "`epsilon_decay` must be between 0 and 1"),
    ],
)
def test_populations_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        baselines.smc_abc(
            problems.BOX, problems.simulate, X_O, **({"num_simulations": 500} | changes)
        )


@pytest.mark.parametrize(("encoder", "least"), [("both_orders", 2), ("transitions", 3)])
def test_an_encoder_of_items_needs_some(encoder: str, least: int) -> None:
    with isolated_rng(0):
        x = torch.randn(200, least)
        assert torch.isfinite(build_encoder(encoder, x)(x)).all()
    with pytest.raises(ValueError, match=f"`encoder` '{encoder}' needs at least {least} items"):
        build_encoder(encoder, x[:, 1:])


def test_the_default_observation_is_as_long_as_theta() -> None:
    with pytest.raises(ValueError, match="`default_observation` must hold 3 values; got 1"):
        GaussianLinear(3, default_observation=(1.0,))


def test_a_posterior_far_down_a_log_uniform_prior_is_found() -> None:
    from scipy import stats

    def read_twice(k: float) -> np.ndarray:
        return 10.0 * k * np.exp(0.3 * np.random.standard_normal(2))

    x_o = 10.0 * 1e-5 * np.exp([-0.05, 0.05])
    prior = {"k": stats.loguniform(1e-6, 1e2)}  # 1e-5 is a ten-millionth of the way up
    posterior = abi.fit(prior, read_twice, x_o, num_simulations=1_000, progress=False)
    logs = posterior.sample((2_000,), seed=1).log()
    exact = 0.3 / 2**0.5  # the prior is flat in log k, and its lower end three such sds away
    assert abs(float(logs.mean()) - math.log(1e-5)) < 0.3 * exact
    assert float(logs.std()) == pytest.approx(exact, rel=0.3)
