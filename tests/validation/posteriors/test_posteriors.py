"""Everybody's posterior comes in, in one layout, and what is ambiguous is refused."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest
import torch
from scipy import stats
from torch.distributions import Independent, MultivariateNormal, Normal, Uniform

from simulators import GaussianLinear, sample_joint
from simulators.random import isolated_rng
from validation import PerObservation, as_posterior, fit_lc2st, sbc, validate
from validation.seeds import part_seed

X = torch.randn(7, 2, generator=torch.Generator().manual_seed(0))


def _normal(num_samples: int, x: torch.Tensor) -> torch.Tensor:
    return x + torch.randn(num_samples, len(x), 3)[..., :2]


class _Module(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Independent:
        return Independent(Normal(x, 1.0), 1)


class _OneObservation:
    """The shape of a posterior that knows one x_o."""

    def sample(self, shape: tuple[int, ...], x: torch.Tensor | None = None) -> torch.Tensor:
        return torch.zeros(*shape, 2) + (0.0 if x is None else x)


class _NoSeed:
    """Our layout, drawing from the global stream."""

    def sample(self, num_samples: int, x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn(num_samples, *x.shape)


def _zuko() -> object:
    zuko = pytest.importorskip("zuko")
    with torch.random.fork_rng():
        return zuko.flows.NSF(2, 2, hidden_features=(8,))


STORED = torch.randn(11, 7, 2, generator=torch.Generator().manual_seed(1))
POSTERIORS = {
    "callable of samples": lambda: as_posterior(_normal),
    "callable of a distribution": lambda: as_posterior(lambda x: Normal(x, 1.0)),
    "torch module": lambda: as_posterior(_Module()),
    "sample(num_samples, x)": lambda: as_posterior(_NoSeed()),
    "zuko flow": lambda: as_posterior(_zuko()),
    "sample(shape, x=)": lambda: as_posterior(_OneObservation()),
    "observations first": lambda: as_posterior(
        lambda num, x: x[:, None] + torch.randn(len(x), num, 2), layout="observations_first"
    ),
    "pre-drawn": lambda: as_posterior((X, X, STORED), layout="samples_first"),
    "pre-drawn, observations first": lambda: as_posterior(
        (X, X, STORED.transpose(0, 1)), layout="observations_first"
    ),
    "weighted": lambda: as_posterior(
        (X, X, STORED), layout="samples_first", weights=torch.ones(11, 7)
    ),
    "one fit an observation": lambda: PerObservation(lambda x_o: x_o + torch.randn(50, 2)),
}


@pytest.mark.parametrize("name", POSTERIORS)
@pytest.mark.parametrize("num_samples", [1, 7, 11])
def test_every_posterior_draws_samples_first_and_repeats_itself(
    name: str, num_samples: int
) -> None:
    q = POSTERIORS[name]()
    drawn = q.sample(num_samples, X, 3)
    assert drawn.shape == (num_samples, 7, 2)
    assert torch.equal(drawn, q.sample(num_samples, X, 3))


def test_as_posterior_returns_what_is_a_posterior_already() -> None:
    q = as_posterior(_normal)
    assert as_posterior(q) is q


def test_batches_join_in_order() -> None:
    q = as_posterior(lambda num, x: x.expand(num, *x.shape), batch_size=3)
    assert torch.equal(q.sample(4, X)[2], X)


def test_a_transposed_callable_is_refused_even_when_both_axes_are_equally_long() -> None:
    def transposed(num_samples: int, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(x), num_samples, 2)

    with pytest.raises(ValueError, match=r"layout='observations_first'"):
        as_posterior(transposed).sample(7, X)


@pytest.mark.parametrize(
    ("obj", "keywords", "error", "message"),
    [
        (STORED, {}, TypeError, "array of samples"),
        ((X, X, STORED), {}, ValueError, "`layout` must say"),
        ((X, X, STORED), {"layout": "observations_first"}, ValueError, "got 11 sets"),
        ((X[:, :1], X, STORED), {"layout": "samples_first"}, ValueError, r"\(7, 1\)"),
        (3.0, {}, TypeError, "got float"),
        (lambda a, b, c: None, {}, TypeError, "requires 3 arguments"),
        (_normal, {"weights": X}, ValueError, "pre-drawn"),
        (
            (X, X, STORED),
            {"layout": "samples_first", "weights": -torch.ones(11, 7)},
            ValueError,
            "77 of 77",
        ),
    ],
)
def test_what_is_ambiguous_or_unknown_is_refused_with_the_cure(
    obj: object, keywords: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        as_posterior(obj, **keywords)


def test_draws_without_the_parameter_axis_are_refused() -> None:
    with pytest.raises(ValueError, match=r"samples\[..., None\]"):
        as_posterior(lambda num, x: torch.zeros(num, len(x))).sample(4, X)


def test_stored_samples_follow_their_observations_when_rows_are_reordered() -> None:
    q = as_posterior((X, X, STORED), layout="samples_first")
    order = torch.tensor([3, 0, 6])
    assert torch.equal(q.sample(5, X[order]), STORED[:5, order])


def test_stored_samples_of_repeated_observations_are_not_used_twice() -> None:
    x = torch.zeros(3, 1)
    samples = torch.arange(6.0).reshape(2, 3, 1)
    q = as_posterior((x, x, samples), layout="samples_first")
    assert torch.equal(q.sample(2, x[:2]), samples[:, :2])


def test_stored_samples_refuse_another_observation_and_more_draws_than_they_hold() -> None:
    q = as_posterior((X, X, STORED), layout="samples_first")
    with pytest.raises(ValueError, match="row 0 of `x` is not one of them"):
        q.sample(5, X + 1.0)
    with pytest.raises(ValueError, match=r"holds 11 pre-drawn .* 12 are needed"):
        q.sample(12, X)


def test_weighted_samples_are_drawn_by_their_weights() -> None:
    particles = torch.tensor([0.0, 1.0]).reshape(2, 1, 1)
    q = as_posterior(
        (torch.zeros(1, 1), torch.zeros(1, 1), particles),
        layout="samples_first",
        weights=torch.tensor([[1.0], [3.0]]),
    )
    share = float(q.sample(4_000, torch.zeros(1, 1)).mean())
    # Binomial with p = 0.75 and 4,000 draws: standard error 0.007.
    assert abs(share - 0.75) < 4 * 0.007


def test_a_bar_inside_a_bar_stays_silent() -> None:
    q = as_posterior(_normal, batch_size=2, progress=True)
    fits = PerObservation(lambda x_o: q.sample(5, x_o.expand(5, 2))[:, 0], progress=True)
    assert fits.sample(3, X).shape == (3, 7, 2)


def test_per_observation_passes_each_row_its_own_seed() -> None:
    seeds: list[int] = []

    def fit(x_o: torch.Tensor, seed: int) -> torch.Tensor:
        seeds.append(seed)
        return x_o.expand(20, 2)

    drawn = PerObservation(fit).sample(4, X, 9)
    assert len(set(seeds)) == 7
    assert torch.equal(drawn[0], X)


def test_per_observation_draws_other_noise_at_each_row_of_a_posterior_that_takes_a_seed() -> None:
    """The same noise everywhere moves all ranks together: exact posteriors were rejected for it."""

    class Exact:
        def sample(self, sample_shape: tuple[int, ...], *, seed: int = 0) -> torch.Tensor:
            return torch.randn(*sample_shape, 1, generator=torch.Generator().manual_seed(seed))

    q = PerObservation(lambda x_o: Exact())
    drawn = q.sample(200, X, 9)[..., 0].T  # (7, 200)
    assert float((torch.corrcoef(drawn) - torch.eye(7)).abs().max()) < 0.35  # 5 standard errors
    assert torch.equal(q.sample(200, X, 9)[..., 0].T, drawn)


def test_per_observation_resamples_weighted_fits_and_refuses_short_ones() -> None:
    weights = torch.tensor([0.0, 1.0])
    q = PerObservation(lambda x_o: (torch.tensor([[0.0], [1.0]]), weights))
    assert bool((q.sample(9, X) == 1.0).all())
    with pytest.raises(ValueError, match=r"at least 30 draws.* row 0 gave 20"):
        PerObservation(lambda x_o: torch.zeros(20, 2)).sample(30, X)


def test_the_density_and_the_base_of_a_flow_are_found() -> None:
    q = as_posterior(_zuko())
    theta = torch.zeros(7, 2)
    assert q.log_prob(theta.expand(3, 7, 2), X).shape == (3, 7)
    assert q.to_base(theta, X).shape == (7, 2)
    with pytest.raises(NotImplementedError, match="not a flow"):
        as_posterior(_normal).to_base(theta, X)


def test_a_distribution_over_single_parameters_adds_up_to_the_joint_density() -> None:
    theta = torch.randn(5, 7, 2, generator=torch.Generator().manual_seed(2))
    joint = as_posterior(lambda x: MultivariateNormal(x, torch.eye(2)))
    single = as_posterior(lambda x: Normal(x, 1.0))
    assert torch.allclose(joint.log_prob(theta, X), single.log_prob(theta, X), atol=1e-5)


def test_sbi_ranks_agree_with_ours_on_the_same_draws() -> None:
    with isolated_rng(0):  # importing sbi draws from numpy's global stream
        run_sbc = pytest.importorskip("sbi.diagnostics.sbc")._run_sbc
    task = GaussianLinear(2, 1.0, 1.0)
    theta, x = sample_joint(task, 40, seed=0)
    q = as_posterior(lambda x: Normal(x / 2, 0.5**0.5))
    result = sbc(q, theta, x, num_samples=50, seed=5)
    samples = q.sample(50, x, part_seed(part_seed(5, 0), 0))
    theirs = run_sbc(theta, x, samples, "marginals", show_progress_bar=False)
    assert np.array_equal(result.details["counts"].numpy(), theirs.numpy())


@pytest.fixture(scope="module")
def sbi_npe(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, object]:
    """A barely trained NPE of sbi on two moons' dimensions: posterior and estimator."""
    pytest.importorskip("sbi")
    logs = tmp_path_factory.mktemp("sbi")  # sbi writes its training logs where it runs
    with isolated_rng(0), contextlib.chdir(logs), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sbi.inference import NPE

        prior = Independent(Uniform(-3 * torch.ones(2), 3 * torch.ones(2)), 1)
        theta = prior.sample((100,))
        inference = NPE(prior, density_estimator="maf", show_progress_bars=False)
        inference.append_simulations(theta, theta + 0.3 * torch.randn(100, 2))
        estimator = inference.train(max_num_epochs=5)
        return inference.build_posterior(estimator), estimator


@pytest.mark.filterwarnings("ignore")
def test_sbi_posteriors_and_estimators_are_sampled_scored_and_inverted(
    sbi_npe: tuple[object, object],
) -> None:
    x = X.clamp(-1, 1)
    for obj in sbi_npe:
        q = as_posterior(obj)
        drawn = q.sample(6, x, 1)
        assert drawn.shape == (6, 7, 2)
        assert torch.equal(drawn, q.sample(6, x, 1))
        density = q.log_prob(drawn, x)
        assert density.shape == (6, 7)
        z = q.to_base(drawn[0], x)
        assert z.shape == (7, 2)
    posterior, estimator = (as_posterior(obj) for obj in sbi_npe)
    # Inside the prior the two densities differ by a constant for each x, here zero.
    inside = drawn.clamp(-2.9, 2.9)
    assert torch.allclose(posterior.log_prob(inside, x), estimator.log_prob(inside, x), atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_a_posterior_of_sbi_is_validated_from_end_to_end(sbi_npe: tuple[object, object]) -> None:
    generator = torch.Generator().manual_seed(3)
    theta = 6 * torch.rand(60, 2, generator=generator) - 3
    x = theta + 0.3 * torch.randn(60, 2, generator=generator)
    report = validate(sbi_npe[0], theta, x, ["sbc", "hpd"], num_samples=50)
    assert report.results[1].details["density"] == "q.log_prob"
    assert fit_lc2st(sbi_npe[1], theta, x, flow=True, num_nulls=3).test(x[0]).p_value > 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["maf", "nsf", "zuko_maf"])
def test_draws_of_a_flow_of_sbi_are_normal_in_its_base_whatever_the_units_of_x(model: str) -> None:
    pytest.importorskip("sbi")
    with isolated_rng(0), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sbi.neural_nets import posterior_nn

        theta = torch.randn(200, 2)
        x = 50.0 + 10.0 * (theta + 0.3 * torch.randn(200, 2))
        flow = posterior_nn(model)(theta, x)
        for parameter in flow.parameters():  # a fresh flow hardly looks at x
            parameter.data += 0.3 * torch.randn_like(parameter)
    q = as_posterior(flow)
    z = q.to_base(q.sample(10, x, 1).reshape(-1, 2), x.repeat(10, 1)).double().numpy()
    for column in z.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4
