"""Plugs of the ecosystem: ArviZ both ways, sbi both ways, and a stored flow as a zuko module."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import problems
import pytest
import torch
import zuko
from fits import SMALL, X_O, quick_fit, usual_fit

import abi
from abi.generators.pool.model import PooledFlows
from abi.posterior import DRAWS_KEY
from abi.verdict.record import Check, Verdict
from simulators import GaussianLinear, GaussianLinearUniform, sample_joint
from simulators.random import child_seed, isolated_rng
from validation import PerObservation, as_posterior, c2st, sbc

with isolated_rng(0):
    xarray = pytest.importorskip("xarray")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


@pytest.fixture(scope="module")
def posterior() -> abi.ABIPosterior:
    return usual_fit()


def _variables(tree: Any, group: str) -> set[str]:
    return set(tree[group].data_vars)


def _idata(draws: np.ndarray, x: np.ndarray) -> Any:
    """What a sampler of another library hands over: draws (chain, draw, 2) and an observation."""
    with isolated_rng(0):
        import arviz
    posterior = {"a": draws[..., 0], "b": draws[..., 1]}
    if int(arviz.__version__.split(".")[0]) < 1:
        return arviz.from_dict(posterior=posterior, observed_data={"x": x})
    return arviz.from_dict({"posterior": posterior, "observed_data": {"x": x}})


def test_a_fit_becomes_arviz_data_with_the_groups_of_the_schema(
    posterior: abi.ABIPosterior,
) -> None:
    tree = posterior.to_arviz(25, prior=problems.BOX, simulator=problems.simulate)
    assert _variables(tree, "posterior") == _variables(tree, "prior") == {"theta_1", "theta_2"}
    assert tree["posterior"]["theta_2"].dims == ("chain", "draw")
    draws = posterior.sample((25,))
    assert np.array_equal(tree["posterior"]["theta_2"].values[0], draws[:, 1].numpy())
    assert np.array_equal(tree["sample_stats"]["lp"].values[0], posterior.log_prob(draws).numpy())
    assert np.array_equal(tree["observed_data"]["x"].values, X_O.numpy())
    assert tree["posterior_predictive"]["x"].shape == (1, 25, 6)
    assert tree["prior_predictive"]["x"].shape == (1, 25, 6)
    # Each look at a parameter has noise of 0.3 about it: the mean over 75 looks is within 4 s.e.
    looks = tree["posterior_predictive"]["x"].values[0].reshape(25, 3, 2).mean(axis=(0, 1))
    assert np.allclose(looks, draws.mean(dim=0).numpy(), atol=4 * 0.3 / math.sqrt(75))


def test_rounds_are_a_group_of_their_own_with_one_value_a_round(
    posterior: abi.ABIPosterior,
) -> None:
    rounds = posterior.to_arviz(5)["rounds"]
    assert rounds["round"].values.tolist() == [1, 2]
    for name in ("tolerance", "accepted", "dropped_fraction", "simulator_calls"):
        expected = [getattr(record, name) for record in posterior.rounds]
        assert rounds[name].values.tolist() == expected
    losses = [record.losses["network"] for record in posterior.rounds]
    assert rounds["network_validation_loss"].values.tolist() == losses


def test_rounds_tell_what_each_says_of_the_answer_before_it(posterior: abi.ABIPosterior) -> None:
    rounds = posterior.to_arviz(5)["rounds"]
    before, moved = posterior.rounds[1].before, posterior.rounds[1].moved
    assert before is not None
    assert moved is not None
    expected = {
        "before_num_pairs": before.num_pairs,
        "before_p_value": before.p_value,
        "before_largest_bias": before.largest_bias,
        "moved": moved.value,
        "moved_by_chance": moved.by_chance,
    }
    for name, value in expected.items():
        first, second = rounds[name].values.tolist()
        assert math.isnan(first)
        assert second == value
    told = {name for name in _variables({"rounds": rounds}, "rounds") if name.startswith("before")}
    assert told == {"before_num_pairs", "before_p_value", "before_largest_bias"}


def test_the_verdict_goes_with_the_draws(posterior: abi.ABIPosterior, tmp_path: Path) -> None:
    kept = posterior.to_arviz(5)["posterior"].attrs
    assert kept["verdict"] == posterior.verdict.headline
    assert kept["verdict_p_value"] == posterior.verdict.p_value
    alone = replace(posterior, rounds=posterior.rounds[:1], verdict=Verdict("fails", "f", Check(0)))
    pytest.importorskip("h5netcdf")
    alone.to_arviz(5).to_netcdf(str(tmp_path / "fit.nc"))
    again = xarray.open_dataset(tmp_path / "fit.nc", group="posterior", engine="h5netcdf")
    assert again.attrs["verdict"] == "f"
    assert math.isnan(again.attrs["verdict_p_value"])
    again.close()


def test_a_round_has_the_held_out_loss_of_each_network_it_trained(
    posterior: abi.ABIPosterior,
) -> None:
    record = posterior.rounds[-1]
    assert record.network is not None
    assert record.generator is not None
    assert record.losses == {
        "network": record.network.validation_loss,
        "generator": record.generator.validation_loss,
    }
    assert replace(record, generator=None).losses.keys() == {"network"}


def test_a_failed_simulation_is_nan_in_its_own_row(posterior: abi.ABIPosterior) -> None:
    middle = float(posterior.sample((500,), seed=0)[:, 0].median())

    def half_nan(theta: torch.Tensor) -> torch.Tensor:
        x = problems.simulate(theta)
        x[theta[:, 0] > middle] = torch.nan
        return x

    tree = posterior.to_arviz(25, simulator=half_nan)
    failed = np.isnan(tree["posterior_predictive"]["x"].values[0]).any(axis=1)
    assert np.array_equal(failed, tree["posterior"]["theta_1"].values[0] > middle)
    assert 0 < failed.sum() < 25


def test_arviz_summarises_and_keeps_a_fit(posterior: abi.ABIPosterior, tmp_path: Path) -> None:
    tree = posterior.to_arviz(400)
    with isolated_rng(0):
        import arviz

        pytest.importorskip("h5netcdf")
        table = arviz.summary(tree)
    # The draws are independent: the effective sample size of 400 is 400, its own error aside.
    assert float(table["ess_bulk"].astype(float).min()) > 200
    tree.to_netcdf(str(tmp_path / "fit.nc"))
    again = xarray.open_dataset(tmp_path / "fit.nc", group="rounds", engine="h5netcdf")
    assert again["tolerance"].shape == (2,)
    again.close()


def test_draws_of_other_samplers_come_in_as_arviz_data() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(6, 3))
    draws = generator.normal(size=(6, 2, 50, 2))
    fits = [_idata(draws[i], x[i]) for i in range(6)]
    q = as_posterior(fits)
    drawn = q.sample(100, torch.from_numpy(x).float())
    assert drawn.shape == (100, 6, 2)
    # All draws of both chains are there, in another order.
    for i in range(6):
        assert np.allclose(
            np.sort(drawn[:, i, 0].numpy()), np.sort(draws[i, :, :, 0].ravel()), atol=1e-6
        )
    some = as_posterior(fits, var_names=["b"]).sample(7, torch.from_numpy(x).float())
    assert some.shape == (7, 6, 1)
    one = as_posterior(fits[2]).sample(100, torch.from_numpy(x[2:3]).float())
    assert np.allclose(one.mean(dim=(0, 1)).numpy(), draws[2].mean(axis=(0, 1)), atol=1e-5)


def test_what_arviz_data_lacks_is_named() -> None:
    data = _idata(np.zeros((1, 5, 2)), np.zeros(3))
    with pytest.raises(ValueError, match=r"\['a', 'b'\]; got \['c'\]"):
        as_posterior(data, var_names=["c"])
    with pytest.raises(ValueError, match=r"group 'observed_data'"):
        as_posterior(data["posterior"])
    with pytest.raises(ValueError, match=r"as many values in every fit; got \[3, 4\]"):
        as_posterior([data, _idata(np.zeros((1, 5, 2)), np.zeros(4))])


def test_one_fit_an_observation_may_return_arviz_data() -> None:
    def fit(x_o: torch.Tensor, seed: int) -> Any:
        noise = torch.randn(2, 60, 2, generator=torch.Generator().manual_seed(seed))
        return _idata((x_o / 2 + 0.5**0.5 * noise).numpy(), x_o.numpy())

    theta, x = sample_joint(GaussianLinear(2, 1.0, 1.0), 40, seed=3)
    assert not sbc(PerObservation(fit), theta, x, num_samples=50).reject(0.001)
    assert as_posterior(PerObservation(fit)).sample(9, x[:4]).shape == (9, 4, 2)


def test_our_arviz_data_comes_back_as_a_posterior(posterior: abi.ABIPosterior) -> None:
    q = as_posterior(posterior.to_arviz(300))
    reference = posterior.sample((300,), seed=9)
    result = c2st(q, reference, X_O[None].expand(300, -1), x_o=X_O, reference=reference)
    assert not result.reject(0.001)


CONFIGS = {
    "flow": replace(SMALL, adjustment="none"),
    "conditional flow": SMALL,
    "several flows": replace(SMALL, num_flows=3),
    "mixture": replace(SMALL, adjustment="none", generator="mixture"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_stored_posterior_is_a_zuko_flow_with_the_same_draws_and_density(
    name: str, tmp_path: Path
) -> None:
    quick_fit(config=CONFIGS[name]).save(tmp_path / "posterior.safetensors")
    posterior = abi.load(tmp_path / "posterior.safetensors")
    flow = posterior.to_zuko()
    assert isinstance(flow, zuko.lazy.LazyDistribution)
    with isolated_rng(child_seed(5, DRAWS_KEY)), torch.no_grad():
        drawn = flow().sample((200,))
    torch.testing.assert_close(drawn, posterior.sample((200,), seed=5))
    outside = torch.tensor([[2.5, 0.0], [0.0, -2.5]])
    points = torch.cat([drawn, outside])
    with torch.no_grad():
        density = flow().log_prob(points)
    torch.testing.assert_close(density, posterior.log_prob(points), atol=1e-5, rtol=1e-5)
    assert bool((density[-2:] == -torch.inf).all())
    assert flow().event_shape == (2,)


def test_a_posterior_pooled_with_a_likelihood_is_a_zuko_distribution(tmp_path: Path) -> None:
    task, x_o = GaussianLinearUniform(theta_dim=2), torch.tensor([1.1, 0.0])
    posterior = abi.fit(task.prior, task, x_o, num_simulations=1_000, seed=2, progress=False)
    assert isinstance(posterior.model, PooledFlows)
    pool = posterior.to_zuko()()
    with isolated_rng(0):
        drawn = pool.sample((2_000,))
    own = posterior.sample((2_000,))
    torch.testing.assert_close(drawn.mean(dim=0), own.mean(dim=0), atol=0.05, rtol=0.0)
    assert torch.equal(pool.log_prob(drawn), posterior.log_prob(drawn))
    posterior.save(tmp_path / "posterior.safetensors")
    again = abi.load(tmp_path / "posterior.safetensors")
    assert torch.equal(again.sample((50,)), posterior.sample((50,)))
    assert torch.equal(again.log_prob(drawn), posterior.log_prob(drawn))


def test_a_zuko_flow_of_a_fit_trains_without_changing_the_fit(posterior: abi.ABIPosterior) -> None:
    before = posterior.log_prob(torch.zeros(1, 2))
    flow = posterior.to_zuko()
    data = posterior.sample((50,))
    loss = -flow().log_prob(data).mean()
    torch.optim.SGD(flow.parameters(), lr=0.01).zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        for weight in flow.parameters():
            weight.sub_(0.01 * weight.grad)
        assert not torch.equal(flow().log_prob(torch.zeros(1, 2)), before)
    assert torch.equal(posterior.log_prob(torch.zeros(1, 2)), before)


@pytest.mark.filterwarnings("ignore")
def test_sbi_plots_our_posterior_and_simulates_from_it(posterior: abi.ABIPosterior) -> None:
    with isolated_rng(0):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        from sbi.analysis import pairplot
        from sbi.inference import simulate_for_sbi
    with isolated_rng(1):
        _, axes = pairplot(posterior.sample((500,)), labels=list(posterior.parameter_names))
        theta, x = simulate_for_sbi(
            problems.simulate, posterior, 60, simulation_batch_size=60, show_progress_bar=False
        )
    assert axes.shape == (2, 2)
    assert [axis.get_xlabel() for axis in np.diag(axes)] == ["theta_1", "theta_2"]
    assert torch.equal(theta, posterior.sample((60,)))
    assert x.shape == (60, 6)


@pytest.mark.filterwarnings("ignore")
def test_sbi_trains_on_our_proposal(posterior: abi.ABIPosterior, tmp_path: Path) -> None:
    """Its NPE corrects for a proposal that is a distribution, as our zuko flow is."""
    with isolated_rng(0), contextlib.chdir(tmp_path):  # sbi writes its logs where it runs
        from sbi.inference import NPE, simulate_for_sbi

        theta, x = simulate_for_sbi(
            problems.simulate, posterior, 100, simulation_batch_size=100, show_progress_bar=False
        )
        inference = NPE(problems.BOX, density_estimator="maf", show_progress_bars=False)
        inference.append_simulations(theta, x, proposal=posterior.to_zuko()())
        estimator = inference.train(max_num_epochs=2)
        trained = inference.build_posterior(estimator)
    assert as_posterior(trained).sample(5, X_O[None], 1).shape == (5, 1, 2)
