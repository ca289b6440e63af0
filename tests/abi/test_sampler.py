"""abi.fit: the warm-up of Appendix C.1, budgets, seeds, workers, resuming, and bad input."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import problems
import pytest
import torch
from fits import BY_GENERATOR, QUICK, SMALL, TRAINED, X_O, quick_fit
from torch import Tensor

import abi
from abi.config import Encoder
from abi.files.origin import from_origin, origin_of
from abi.plan import Plan
from abi.rounds.regions import leaning
from simulators import MG1, GaussianLinear, Simulations, from_function, sample_prior, simulate


def test_appendix_c1_reaches_the_exact_posterior_and_does_not_drift() -> None:
    """theta ~ N(0, 20), x ~ N(theta, 1), x_o = 6.24: posterior N(5.94, 0.95), nine rounds."""
    task = GaussianLinear.warmup()
    tolerances = (2.0, 0.7, 0.3, 0.01, 0.005, 0.003, 0.001, 0.001, 0.001)
    config = abi.ABIConfig.paper(
        tolerances=tolerances,
        pairs_per_round=5_000,
        max_retries=1_000_000,
        generator="mixture",
        max_components=1,
    )
    posterior = abi.fit(
        task.prior,
        task,
        task.observation,
        num_simulations=9 * 5_000 * 1_000_000,
        num_rounds=9,
        config=config,
        distance=lambda x: (x[:, 0] - 6.24).abs(),
        progress=False,
    )
    mean, variance = task.posterior_moments(task.observation)
    assert float(mean) == pytest.approx(5.94, abs=0.005)
    assert variance == pytest.approx(0.95, abs=0.005)
    draws = posterior.sample((50_000,))
    # Moments are matched anew in each round, so the errors of all rounds add up as variances.
    kept = [record.accepted for record in posterior.rounds]
    drift = sum(1.0 / count for count in kept)
    assert float(draws.mean()) == pytest.approx(float(mean), abs=4 * math.sqrt(variance * drift))
    assert float(draws.var()) == pytest.approx(variance, abs=4 * variance * math.sqrt(2 * drift))
    assert all(record.dropped_fraction < 0.002 for record in posterior.rounds)
    assert [record.tolerance for record in posterior.rounds] == list(tolerances)


def test_a_small_retry_budget_collapses_the_warm_up_and_is_reported() -> None:
    """With R = 1 a round is plain rejection: the data are counted twice, thrice, ..."""
    task = GaussianLinear.warmup()
    config = abi.ABIConfig.paper(
        tolerances=(2.0, 0.5, 0.5, 0.5), max_retries=1, generator="mixture", max_components=1
    )
    posterior = abi.fit(
        task.prior,
        task,
        task.observation,
        num_simulations=40_000,
        num_rounds=4,
        config=config,
        distance=lambda x: (x[:, 0] - 6.24).abs(),
        progress=False,
    )
    assert float(posterior.sample((10_000,)).var()) < 0.6  # exact: 0.95
    assert all(record.dropped_fraction > 0.5 for record in posterior.rounds[2:])


@pytest.mark.parametrize(
    ("config", "encoder"),
    [
        (SMALL, "auto"),
        (replace(SMALL, adjustment="quantile"), "flat"),
        (replace(SMALL, adjustment="quantile", generator="mixture"), "flat"),
        (BY_GENERATOR["flow"], "flat"),
        (BY_GENERATOR["potnet"], "flat"),
        (BY_GENERATOR["wgan"], "flat"),
    ],
    ids=["conditional", "quantile", "mixture", "generator", "potnet", "wgan"],
)
def test_a_fit_comes_near_the_posterior(config: abi.ABIConfig, encoder: Encoder) -> None:
    usual = abi.ABIConfig()
    config = replace(
        config,
        encoder=encoder,
        network_training=replace(usual.network_training, num_steps=400),
        generator_training=replace(usual.generator_training, num_steps=400),
    )
    posterior = quick_fit(num_simulations=4_000, config=config)
    draws = posterior.sample((5_000,))
    # Three looks with sd 0.3 under a flat prior: N(mean of the looks, 0.3^2 / 3).
    torch.testing.assert_close(draws.mean(dim=0), torch.tensor([0.5, -0.5]), atol=0.12, rtol=0.0)
    torch.testing.assert_close(
        draws.std(dim=0), torch.full((2,), 0.3 / 3**0.5), atol=0.09, rtol=0.0
    )


def test_the_papers_algorithm_runs_as_published() -> None:
    config = replace(
        abi.ABIConfig.paper(pairs_per_round=500, max_retries=5, accept_fraction=0.3),
        network_training=QUICK,
        generator_training=QUICK,
    )
    posterior = quick_fit(num_simulations=4_000, config=config)
    first, second = posterior.rounds
    assert first.proposed == second.proposed == 500  # N theta a round, whatever they cost
    assert first.pairs == first.simulator_calls == 500
    assert second.pairs == round(500 * (1 - second.dropped_fraction))  # no earlier pairs join
    assert first.accepted == 150  # alpha N
    assert second.tolerance <= first.tolerance  # decreasing by construction
    assert first.encoder == second.encoder == "flat"


@pytest.mark.parametrize("growth", [1.0, 1.5, 3.0])
def test_the_rounds_share_the_whole_budget_in_growing_parts(growth: float) -> None:
    plan = Plan(10_007, 4, 0, replace(SMALL, growth=growth))
    shares = [plan.calls(number) for number in (1, 2, 3, 4)]
    assert sum(shares) == 10_007
    for earlier, later in pairwise(shares):
        assert later == pytest.approx(growth * earlier, abs=1 + growth)
    assert sum(plan.calls(number, first=2) for number in (2, 3, 4)) == 10_007


@pytest.mark.parametrize("num_simulations", [401, 1_234])
@pytest.mark.parametrize("num_rounds", [1, 3])
def test_the_budget_counts_every_call(num_simulations: int, num_rounds: int) -> None:
    counting = problems.Counting()
    posterior = quick_fit(
        simulator=from_function(counting, problems.BOX, batched=True),
        num_simulations=num_simulations,
        num_rounds=num_rounds,
    )
    assert counting.calls == posterior.num_simulations <= num_simulations
    in_rounds = sum(record.simulator_calls for record in posterior.rounds)
    assert in_rounds + posterior.verdict.num_calls == counting.calls


def test_the_same_seed_gives_the_same_draws_whatever_the_workers() -> None:
    first, second, other = (
        quick_fit(num_simulations=800, seed=seed, workers=workers).sample((100,))
        for seed, workers in ((3, 1), (3, 2), (4, 1))
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


@pytest.mark.moves_global_rng
def test_the_global_random_state_does_not_matter() -> None:
    torch.manual_seed(1)
    np.random.seed(1)
    first = quick_fit(num_simulations=400).sample((10,))
    torch.manual_seed(2)
    np.random.seed(2)
    assert torch.equal(first, quick_fit(num_simulations=400).sample((10,)))


def test_a_resumed_fit_is_the_uninterrupted_fit(tmp_path: Path) -> None:
    whole = quick_fit(num_rounds=3, run_dir=tmp_path / "whole")
    cut = tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt):
        quick_fit(simulator=problems.interrupted_after(cut, 2), num_rounds=3, run_dir=cut)
    assert problems.rounds_done(cut) == 2
    resumed = abi.resume(cut, problems.BOX, problems.simulate, progress=False)
    assert torch.equal(resumed.sample((100,)), whole.sample((100,)))
    assert [r.tolerance for r in resumed.rounds] == [r.tolerance for r in whole.rounds]


def test_a_fit_that_left_a_region_resumes_as_it_would_have_gone_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaning, "_LEANS", -1.0)  # every region is leaned on
    asked = {"num_simulations": 1_500, "num_rounds": 3, "config": TRAINED}
    whole = quick_fit(run_dir=tmp_path / "whole", **asked)
    first, second, third = whole.rounds
    assert first.narrowed is not None
    assert second.narrowed is not None
    assert third.pairs > third.proposed  # earlier pairs serve on
    cut = tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt):
        quick_fit(simulator=problems.interrupted_after(cut, 2), run_dir=cut, **asked)
    resumed = abi.resume(cut, problems.BOX, problems.simulate, progress=False)
    assert torch.equal(resumed.sample((100,)), whole.sample((100,)))
    assert resumed.rounds[-1].pairs == third.pairs
    assert whole.state is not None
    assert resumed.state is not None
    assert whole.state.past is not None
    assert resumed.state.past is not None
    for once, again in zip(whole.state.past, resumed.state.past, strict=True):
        assert torch.equal(once, again)
    simulated = sum(record.simulator_calls - record.failures for record in whole.rounds)
    assert third.pairs + len(whole.state.past[0]) == simulated  # no pair of any round is lost


def test_a_run_of_importable_parts_resumes_by_its_folder_alone(tmp_path: Path) -> None:
    task = MG1(num_customers=10)
    fit = abi.fit(
        task.prior, task, task.observation, num_simulations=300, num_rounds=1,
        config=replace(SMALL, encoder="flat"), run_dir=tmp_path, progress=False,
    )  # fmt: skip
    again = abi.resume(tmp_path, progress=False)
    assert torch.equal(again.sample((10,)), fit.sample((10,)))
    quick_fit(num_simulations=200, num_rounds=1, run_dir=tmp_path / "box")
    with pytest.raises(ValueError, match=r"`prior` of this run .* pass it again"):
        abi.resume(tmp_path / "box", progress=False)


def test_a_folder_that_holds_a_run_is_not_overwritten(tmp_path: Path) -> None:
    quick_fit(num_simulations=400, run_dir=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileExistsError, match="already holds a run"):
        quick_fit(run_dir=tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    with pytest.raises(ValueError, match="holds no run"):
        abi.resume(tmp_path / "nothing")


def test_a_prior_without_a_density_is_enough() -> None:
    posterior = quick_fit(prior=problems.prior)
    assert posterior.sample((10,)).shape == (10, 2)


def test_failing_simulations_are_counted_not_fatal() -> None:
    posterior = quick_fit(simulator=problems.half_nan, x_o=X_O - 1.0)
    assert posterior.rounds[0].failures > 100
    failed = posterior.verdict.failures + sum(record.failures for record in posterior.rounds)
    assert f" calls, {failed:,} of them failed; " in repr(posterior)
    assert posterior.num_simulations <= 1_200


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_o": torch.zeros(5)}, "`x_o` must have as many values as a simulation; got 5 values"),
        ({"x_o": torch.tensor([0.0, torch.inf])}, "`x_o` must be finite, .*; 1 of its 2 values"),
        ({"x_o": torch.zeros(2, 6)}, r"`x_o` must be one observation"),
        ({"prior": torch.rand}, r"`prior` must give draws of shape \(n, d\)"),
        ({"prior": lambda n: torch.rand(n + 1, 2)}, r"`prior` must give draws of shape \(n, d\)"),
        (
            {"simulator": problems.one_row_short},
            "`x_o` must have as many values as a simulation; got 6 values and simulations of 1",
        ),
        ({"simulator": problems.constant, "x_o": torch.ones(4)}, "`simulator` returned the same x"),
        ({"simulator": problems.all_nan}, "`simulator` failed for"),
        ({"num_simulations": 150}, "`num_simulations` must be at least 200 for 2 rounds"),
        ({"num_rounds": 0}, "`num_rounds` must be a whole number of at least 1"),
        ({"seed": -1}, "`seed` must be a whole number of at least 0"),
        (
            {"config": replace(SMALL, tolerances=(1.0,))},
            r"`tolerances` must give one value a round",
        ),
        ({"parameter_names": ["a"]}, "`parameter_names` must name the 2 parameters"),
        (
            {"config": replace(SMALL, adjustment="none", generator="potnet")},
            "`generator` must have a density .* got 'potnet'",
        ),
        (
            {"config": replace(SMALL, adjustment="quantile", generator="wgan")},
            "`generator` must have a density .* got 'wgan'",
        ),
        (
            {"config": replace(SMALL, generator="mixture")},
            "`generator` 'mixture' would not be used",
        ),
        (
            {
                "config": replace(SMALL, generator="potnet", proposal="generator"),
                "num_rounds": 1,
            },
            "`generator` 'potnet' would not be used",
        ),
    ],
)
def test_bad_input_is_refused_by_name(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick_fit(**changes)


@pytest.mark.parametrize(("name", "value"), [("prior", 3), ("simulator", "MG1")])
def test_things_of_the_wrong_kind_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"`{name}` must"):
        quick_fit(**{name: value})


def test_a_wrong_observation_is_found_before_the_budget_is_spent() -> None:
    counting = problems.Counting()
    with pytest.raises(ValueError, match="`x_o`"):
        quick_fit(simulator=counting, x_o=torch.zeros(5))
    assert counting.calls <= 32


@pytest.mark.parametrize(
    ("name", "value"),
    [("order", 0.0), ("mixing", 2.0), ("trim", 0.5), ("kappa", 0.0), ("max_retries", 0),
     ("accept_fraction", 0.0), ("num_levels", 0), ("generator", "gan"), ("tolerances", (1.0, 2.0))],
)  # fmt: skip
def test_constants_out_of_range_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        abi.ABIConfig(**{name: value})  # type: ignore[arg-type]


def test_one_parameter_needs_no_slices() -> None:
    task = GaussianLinear(1, 1.0, 1.0)
    posterior = abi.fit(
        task.prior, task, torch.tensor([1.0]), num_simulations=2_000, config=SMALL, progress=False
    )
    draws = posterior.sample((2_000,))
    assert float(draws.mean()) == pytest.approx(0.5, abs=0.25)


def test_custom_tasks_fit_one_row_at_a_time() -> None:
    task = from_function(
        lambda theta: theta.repeat(3) + 0.3 * torch.randn(6),
        problems.BOX,
        parameter_names=["a", "b"],
    )
    posterior = quick_fit(prior=task.prior, simulator=task, num_simulations=400)
    assert posterior.parameter_names == ("a", "b")


def test_a_killed_round_keeps_its_slow_simulations(tmp_path: Path) -> None:
    """Calls that take long are stored as they come: only what was in flight is made again."""
    calls: list[int] = []

    def slow(theta: Tensor) -> Tensor:
        calls.append(len(theta))
        if sum(calls) > limit:
            raise KeyboardInterrupt
        time.sleep(0.004 * len(theta))
        return problems.simulate(theta)

    limit = 10**9
    whole = quick_fit(simulator=slow, num_rounds=1, num_simulations=800)
    calls.clear()
    limit = 600
    with pytest.raises(KeyboardInterrupt):
        quick_fit(simulator=slow, num_rounds=1, num_simulations=800, run_dir=tmp_path)
    calls.clear()
    limit = 10**9
    resumed = abi.resume(tmp_path, problems.BOX, slow, progress=False)
    assert sum(calls) < 500  # 800 without the store
    assert torch.equal(resumed.sample((50,)), whole.sample((50,)))
    assert not (tmp_path / "simulations").exists()


def test_simulations_made_before_are_the_first_round_and_cost_nothing() -> None:
    theta = sample_prior(problems.BOX, 600, seed=5)
    made = simulate(problems.simulate, theta, seed=6)
    posterior = quick_fit(simulations=made, num_simulations=1_200)
    first, second = posterior.rounds
    assert (first.simulator_calls, first.pairs) == (0, 600)
    # The budget is left to the rounds that simulate, and to the check.
    assert second.simulator_calls + posterior.verdict.num_calls == 1_200
    with pytest.raises(ValueError, match="`simulations` must hold 2 parameters"):
        quick_fit(simulations=Simulations(theta[:, :1], made.x, made.index, (), 0))
    with pytest.raises(ValueError, match="`x_o` must have as many values"):
        quick_fit(simulations=Simulations(theta, made.x[:, :3], made.index, (), 0))


def test_a_run_of_a_model_of_ours_names_the_package_and_finds_it_wherever_it_moved() -> None:
    task = GaussianLinear(3, 1.0, 2.0)
    origin = origin_of(task.prior, task)
    assert origin["simulator"]["path"] == "simulators:GaussianLinear"
    for path in ("simulators:GaussianLinear", "simulators.gaussian_linear:GaussianLinear"):
        origin["simulator"]["path"] = path
        assert from_origin(origin, None, None)[1] == task
