"""Every baseline by the same questions: right, counted, seeded, silent; and what each refuses."""

from __future__ import annotations

import math
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from abi import baselines, metrics
from abi.baselines.approximate.data_distance import DataDistance
from abi.baselines.guest import guest
from abi.baselines.inputs import canonical, features, with_density
from abi.baselines.neural import likelihood_estimation, truncation
from abi.baselines.reals import RealPrior
from abi.encoders.layout import Layout
from abi.generators.push_forward.wgan import WGANSettings
from abi.generators.support import Support, allowed
from simulators import (
    MG1,
    CustomTask,
    GaussianLinear,
    MultimodalGaussian,
    from_function,
    sample_prior,
)
from simulators.random import torch_generator

TASK = GaussianLinear(2, 1.0, 1.0)  # posterior N(x / 2, 1 / 2)
X_O = torch.tensor([0.8, -0.6])
FITS: dict[str, Any] = {
    "snpe, 1 round": (baselines.snpe, {"num_rounds": 1}, 500),
    "snpe, 2 rounds": (baselines.snpe, {"num_rounds": 2}, 500),
    "snpe, 2 rounds, atomic": (baselines.snpe, {"num_rounds": 2, "proposal": "atomic"}, 200),
    "snpe, 2 networks": (
        baselines.snpe,
        {"num_rounds": 2, "num_networks": 2, "proposal": "truncated"},
        400,
    ),
    "snle, 1 round": (baselines.snle, {"num_rounds": 1}, 200),
    "snle, 2 rounds": (baselines.snle, {"num_rounds": 2}, 200),
    "smc_abc": (baselines.smc_abc, {"num_particles": 300}, 6_000),
    "wabc": (baselines.wabc, {"num_particles": 300, "view": "curve"}, 6_000),
    "rejection_abc": (baselines.rejection_abc, {"accept_fraction": 0.02}, 20_000),
    "abc_ss": (baselines.abc_ss, {"accept_fraction": 0.05}, 6_000),
    "wgan_gp": (baselines.wgan_gp, {}, 3_000),
}
WITH_FIELDS = ("fmpe", "npse") if version("sbi") >= "0.25" else ()
FITS |= {name: (getattr(baselines, name), {}, 1_000) for name in WITH_FIELDS}
# Slice sampling is slow, and two rounds of SNLE go through all that one does.
TRIED = [name for name in FITS if name != "snle, 1 round"]
# So do two of SNPE through its first, and 15 seconds of training.
RECOVERED = [name for name in TRIED if name != "snpe, 1 round"]
CHAINS = {"num_chains": 20, "warmup_steps": 2, "thin": 2}
SHORT = WGANSettings(hidden=(64, 64), num_steps=250, learning_rate=3e-3)
BRIEF = WGANSettings(hidden=(16,), num_steps=10)


class Counting:
    """A simulator that counts its rows by itself."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, theta: Tensor) -> Tensor:
        self.rows += len(theta)
        return theta + torch.randn(theta.shape)


def of_many(simulator: Counting) -> CustomTask:
    """A simulator that says its form, and is not called to find it out."""
    return from_function(simulator, TASK.prior, batched=True)


def fit(
    name: str,
    num_simulations: int,
    simulator: Any = TASK,
    prior: Any = TASK.prior,
    max_epochs: int | None = None,
) -> Any:
    method, keywords, _ = FITS[name]
    if method is baselines.snle:
        keywords = keywords | CHAINS
    if method is baselines.wgan_gp:
        keywords = keywords | {"settings": BRIEF if max_epochs else SHORT}
    elif "abc" not in name:
        keywords = keywords | {"max_epochs": max_epochs}
    return method(prior, simulator, X_O, num_simulations=num_simulations, seed=3, **keywords)


@pytest.mark.parametrize("name", RECOVERED)
def test_a_conjugate_posterior_is_recovered_roughly(name: str) -> None:
    """Tolerances of a fit on a few hundred pairs; ABC is wider by its tolerance."""
    draws = fit(name, FITS[name][2]).sample((400,))
    assert draws.shape == (400, 2)
    assert (draws.mean(dim=0) - X_O / 2).abs().max() < 0.35
    ratio = draws.std(dim=0) * math.sqrt(2.0)
    assert ratio.min() > 0.65
    assert ratio.max() < 1.5


@pytest.mark.parametrize("name", TRIED)
def test_calls_are_counted_within_the_budget_and_seeds_decide(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(truncation, "_DRAWS", 1_000)
    monkeypatch.setattr(likelihood_estimation, "_CANDIDATES", 1_000)
    budget = 121 if "abc" not in name else 1_001
    simulator = Counting()
    first = fit(name, budget, of_many(simulator), max_epochs=3)
    assert first.num_simulations == simulator.rows <= budget
    assert simulator.rows >= budget - 1  # two rounds share an odd budget
    draws = first.sample((30,), seed=1)
    again = fit(name, budget, of_many(Counting()), max_epochs=3)
    assert torch.equal(draws, again.sample((30,), seed=1))
    assert not torch.equal(draws, first.sample((30,), seed=2))
    assert not draws.requires_grad
    assert first.cpu_seconds > 0
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


class Distribution:
    """Declares a density, as distributions of torch do, and has none."""

    def sample(self, shape: Any) -> Tensor:
        return torch.randn(*shape, 2)

    def log_prob(self, theta: Tensor) -> Tensor:
        raise NotImplementedError


def sampler(num_samples: int) -> Tensor:
    return torch.randn(num_samples, 2)


def test_what_only_samples_the_prior_needs_no_density() -> None:
    for name in ("snpe, 1 round", "rejection_abc", "abc_ss", "wgan_gp", *WITH_FIELDS):
        posterior = fit(name, 150, prior=sampler, max_epochs=3)
        assert posterior.sample((20,)).shape == (20, 2)


@pytest.mark.parametrize(
    "name", ["snpe, 2 rounds", "snle, 1 round", "snle, 2 rounds", "smc_abc", "wabc"]
)
def test_what_needs_a_density_says_so_before_it_simulates(name: str) -> None:
    simulator = Counting()
    for prior in (sampler, Distribution()):
        with pytest.raises(ValueError, match="`prior` must have log_prob") as error:
            fit(name, 150, simulator, prior)
        assert "\n" not in str(error.value)
    assert simulator.rows == 0


@pytest.mark.parametrize("name", ["snpe, 1 round", "abc_ss", "wgan_gp", *WITH_FIELDS[:1]])
def test_an_amortised_fit_answers_at_another_observation(name: str) -> None:
    amortised = fit(name, 300)
    other = torch.tensor([-2.0, 2.0])
    draws = amortised.sample((500,), x=other)
    assert torch.equal(draws, amortised.at(other).sample((500,)))
    assert draws[:, 0].mean() < 0.0 < draws[:, 1].mean()
    with pytest.raises(ValueError, match="`x` must hold 2 values"):
        amortised.at(torch.zeros(3))


def test_a_fit_for_one_observation_refuses_others() -> None:
    single = fit("rejection_abc", 100)
    assert single.at(X_O[None]).x_o.shape == (2,)
    with pytest.raises(ValueError, match="`x` must be the observation of the fit"):
        single.at(torch.tensor([-2.0, 2.0]))


@pytest.mark.parametrize("kind", ["width", "truncated"])
@pytest.mark.parametrize(
    ("method", "keywords"),
    [
        (baselines.snpe, {"max_epochs": 3, "num_networks": 2}),
        (baselines.wgan_gp, {"settings": BRIEF}),
        *((getattr(baselines, name), {"max_epochs": 3}) for name in WITH_FIELDS),
    ],
)
def test_draws_stay_within_the_prior(method: Any, keywords: Any, kind: Any) -> None:
    """Of the truncated prior, theta_2 > theta_1 within the box, only the density tells."""
    task = MG1(num_customers=5, prior_kind=kind)
    x_o = task(torch.tensor([[0.1, 0.2, 0.3]]), 1)[0]
    posterior = method(task.prior, task, x_o, num_simulations=120, **keywords)
    assert allowed(task.prior, Support.of(task.prior, 3), posterior.sample((500,))).all()


@pytest.mark.parametrize(
    ("method", "keywords"),
    [
        (baselines.snpe, {"max_epochs": 1}),
        (baselines.wgan_gp, {"settings": BRIEF}),
        (baselines.abc_ss, {}),
    ],
)
def test_a_learned_encoder_starts_from_the_seed(method: Any, keywords: Any) -> None:
    """The guard of the global streams says the rest: its weights come from nowhere else."""
    first, again = (
        method(TASK.prior, TASK, X_O, num_simulations=100, encoder="deep_set", **keywords)
        for _ in range(2)
    )
    assert torch.equal(first.sample((10,)), again.sample((10,)))
    assert torch.equal(first.sample((10,), x=-X_O), again.sample((10,), x=-X_O))


def test_summaries_learn_the_posterior_mean_and_leave_their_half_of_the_budget() -> None:
    """The least mean squared error of theta given x, in prior variances, is 1/2."""
    posterior = fit("abc_ss", 6_000)
    assert posterior.details["training_simulations"] == 3_000
    assert posterior.details["accepted"] == 150
    assert posterior.details["validation_loss"] == pytest.approx(0.5, abs=0.1)


def test_the_two_halves_of_abc_ss_share_no_pair() -> None:
    seen: list[Tensor] = []

    def simulator(theta: Tensor) -> Tensor:
        seen.append(theta)
        return theta + torch.randn(theta.shape)

    task = from_function(simulator, TASK.prior, batched=True)
    draws = fit("abc_ss", 400, task).sample((200,))
    trained, compared = torch.cat(seen).split(200)
    assert not (draws[:, None] == trained).all(dim=2).any()
    assert (draws[:, None] == compared).all(dim=2).any(dim=1).all()


def test_sorted_inputs_forget_the_order_of_items() -> None:
    task = MultimodalGaussian()
    x = task(sample_prior(task.prior, 50, 0), 0)
    shuffled = x.reshape(50, 4, 2)[:, [2, 0, 3, 1]].reshape(50, 8)
    seen, module = features("sorted", x, Layout(2))
    assert isinstance(module, nn.Identity)
    assert seen(x).shape == (50, 16)
    assert torch.equal(seen(x), seen(shuffled))
    whole = with_density("sorted", x, Layout(2))
    assert whole(x).shape == (50, 8)
    assert torch.equal(whole(x), whole(shuffled))
    assert with_density("moments", x, Layout(2))(x).shape == (50, 5)
    with pytest.raises(ValueError, match="whose features have no density"):
        with_density("moments+sorted", x, Layout(2))


def test_the_canonical_order_keeps_each_item_whole() -> None:
    x = torch.tensor([[3.0, 30.0, 1.0, 10.0, 2.0, 20.0]])
    assert canonical(x, Layout(2)).tolist() == [[1.0, 10.0, 2.0, 20.0, 3.0, 30.0]]


@pytest.mark.parametrize("method", [baselines.rejection_abc, baselines.smc_abc])
@pytest.mark.parametrize("encoder", ["deep_set", "pooled"])
def test_a_distance_refuses_an_encoder_that_nothing_would_teach(method: Any, encoder: str) -> None:
    with pytest.raises(ValueError, match=f"`encoder` of a distance .* got '{encoder}'"):
        method(TASK.prior, TASK, X_O, num_simulations=200, encoder=encoder)


@pytest.mark.moves_global_rng  # building a layer draws its weights
def test_a_module_is_trained_as_a_copy_by_snpe_and_refused_by_snle() -> None:
    module = nn.Linear(2, 3, bias=False)
    with torch.no_grad():
        weights = torch.arange(6.0).reshape(3, 2) / 6
        module.weight.copy_(weights)
    posterior = baselines.snpe(TASK.prior, TASK, X_O, num_simulations=150, encoder=module, seed=1)
    assert posterior.sample((20,)).shape == (20, 2)
    assert torch.equal(module.weight, weights)
    with pytest.raises(ValueError, match="got a module"):
        baselines.snle(TASK.prior, TASK, X_O, num_simulations=150, encoder=module)
    with pytest.raises(ValueError, match="'pooled'"):
        baselines.snpe(TASK.prior, TASK, X_O, num_simulations=150, encoder="pooled")


def test_a_uniform_prior_becomes_a_standard_normal() -> None:
    task = MG1()
    prior = RealPrior(task.prior, Support.of(task.prior, 3))
    z = torch.randn(50, 3, generator=torch_generator(0))
    expected = -0.5 * (z**2).sum(dim=1) - 1.5 * math.log(2 * math.pi)
    assert torch.allclose(prior.log_prob(z), expected, atol=1e-4)


def test_failed_simulations_are_paid_for_and_left_out() -> None:
    def half(theta: Tensor) -> Tensor:
        x = theta + torch.randn(theta.shape)
        x[theta[:, 0] > 0] = torch.nan
        return x

    for name in ("rejection_abc", "smc_abc", "abc_ss"):
        posterior = fit(name, 1_000, half)
        assert posterior.num_simulations == 1_000
        assert (posterior.sample((100,))[:, 0] <= 0).all()


@pytest.mark.parametrize(
    ("method", "keywords", "words"),
    [
        (baselines.snpe, {"num_rounds": 0}, "`num_rounds` .* got 0"),
        (baselines.snpe, {"num_simulations": 1e3}, "`num_simulations` .* got 1000.0, a float"),
        (baselines.snpe, {"max_epochs": 0}, "`max_epochs` .* got 0"),
        (baselines.snpe, {"num_networks": 0}, "`num_networks` .* got 0"),
        (baselines.snpe, {"num_networks": 2, "num_rounds": 2}, "must be 1 for atomic proposals"),
        (baselines.fmpe, {"num_simulations": 49}, "at least 50.*got 49"),
        (baselines.snle, {"flow": "realnvp"}, "`flow` must be one of maf, nsf; got 'realnvp'"),
        (baselines.snle, {"thin": 0}, "`thin` .* got 0"),
        (baselines.smc_abc, {"num_simulations": 1e3}, "`num_simulations` .* got 1000.0, a float"),
        (baselines.rejection_abc, {"num_simulations": "many"}, "`num_simulations` .* a str"),
        (baselines.abc_ss, {"num_simulations": 1e3}, "`num_simulations` .* got 1000.0, a float"),
        (baselines.snle, {"num_rounds": 3, "num_simulations": 140}, "at least 150 for 3 rounds"),
        (baselines.snpe, {"proposal": "prior"}, "'prior'"),
        (baselines.rejection_abc, {"accept_fraction": 0.0}, "got 0.0"),
        (baselines.abc_ss, {"accept_fraction": 1.5}, "got 1.5"),
        (baselines.abc_ss, {"num_simulations": 99}, "at least 100.*got 99"),
        (baselines.wgan_gp, {"num_simulations": 49}, "at least 50.*got 49"),
        (baselines.wabc, {"order": 0.5}, "got 0.5"),
        (baselines.wabc, {"view": "loop"}, "loop"),
        (baselines.wabc, {"view": "delay", "lag": 0}, "at least 1; got 0"),
        (baselines.wabc, {"view": "delay", "lag": 2}, "less than the 2 values .* got 2"),
    ],
)
def test_arguments_out_of_range_are_named(method: Any, keywords: Any, words: str) -> None:
    def simulate(theta: torch.Tensor) -> torch.Tensor:
        raise AssertionError("arguments are checked before the first simulation")

    with pytest.raises(ValueError, match=words):
        method(TASK.prior, from_function(simulate, TASK.prior, batched=True), X_O, **keywords)


def test_data_sets_are_compared_as_laws_of_their_items() -> None:
    x_o = torch.tensor([[1.0, 2.0, 4.0]])
    x = torch.tensor([[4.0, 1.0, 2.0], [2.0, 3.0, 5.0], [torch.nan, 0.0, 0.0]])
    assert DataDistance()(x_o, x).tolist() == [0.0, 1.0, math.inf]
    # In time, the first row differs; with a heavy time every value answers to its own.
    curve = DataDistance(order=2.0, view="curve", curve_weight=100.0)(x_o, x)
    assert curve[0] == pytest.approx(math.sqrt((9 + 1 + 4) / 3), rel=1e-4)
    # Delays (4, 1), (1, 2) against (1, 2), (2, 4).
    delay = DataDistance(view="delay")(x_o, x[:1])
    assert delay[0] == pytest.approx(math.hypot(2.0, 3.0) / 2, rel=1e-4)


@pytest.mark.parametrize("order", [1, 2])
def test_the_distance_between_data_sets_is_that_of_optimal_transport(order: int) -> None:
    task = MultimodalGaussian()
    x = task(sample_prior(task.prior, 6, 0), 0)
    found = DataDistance(Layout(2), float(order))(x[:1], x[1:])
    target = x[0].reshape(4, 2)
    expected = [metrics.wasserstein(row.reshape(4, 2), target, order=order) for row in x[1:]]
    assert found.tolist() == pytest.approx(expected, rel=1e-4)


def test_an_sbi_too_old_for_vector_fields_is_told_of_before_a_simulation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with guest(0):
        from sbi import neural_nets

    monkeypatch.delattr(neural_nets, "posterior_flow_nn", raising=False)
    simulator = Counting()
    with pytest.raises(ImportError, match="`npse` needs sbi 0\\.25 or newer"):
        baselines.npse(TASK.prior, of_many(simulator), X_O)
    assert simulator.rows == 0
