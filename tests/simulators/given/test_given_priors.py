"""Priors of every form: draws, names, density and support are those of their parts."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from torch.distributions import Beta, Gamma, Independent, Normal, Uniform

from abi.generators.support import Support, has_density
from simulators import sample_prior
from simulators.given.priors import as_sampler, check_drawn_anew, names_of
from simulators.random import isolated_rng

NAMED = {"beta": stats.uniform(0.5, 1.0), "gamma": Gamma(2.0, 1.0), "k": stats.poisson(3.0)}


@pytest.mark.parametrize("prior", [NAMED, list(NAMED.items()), [list(p) for p in NAMED.items()]])
def test_distributions_by_name_are_one_prior(prior: Any) -> None:
    sampler = as_sampler(prior)
    assert names_of(sampler) == ("beta", "gamma", "k")
    theta = sample_prior(prior, 4_000, seed=1)
    assert torch.equal(theta, sample_prior(prior, 4_000, seed=1))
    # Five standard errors: of uniform, gamma and Poisson.
    assert theta.mean(dim=0).tolist() == pytest.approx([1.0, 2.0, 3.0], abs=0.14)
    expected = stats.uniform(0.5, 1.0).logpdf(1.2) + stats.gamma(2.0).logpdf(0.7)
    expected += stats.poisson(3.0).logpmf(2)
    density = sampler.log_prob(torch.tensor([[1.2, 0.7, 2.0]]))  # type: ignore[attr-defined]
    assert float(density) == pytest.approx(expected, abs=1e-5)
    support = Support.of(sampler, 3)
    assert support.lower.tolist() == [0.5, 0.0, -0.5]
    assert support.upper.tolist() == [1.5, torch.inf, torch.inf]


@pytest.mark.parametrize(
    ("prior", "theta_dim", "lower"),
    [
        (stats.norm(), 1, [-torch.inf]),
        (Normal(0.0, 1.0), 1, [-torch.inf]),
        (stats.multivariate_normal([0.0, 1.0]), 2, [-torch.inf] * 2),
        ([stats.expon(), Beta(1.0, 2.0)], 2, [0.0, 0.0]),
        ({"a": Uniform(torch.zeros(2), torch.ones(2)), "b": stats.expon()}, 3, [0.0] * 3),
    ],
)  # fmt: skip
def test_a_distribution_is_a_prior(prior: Any, theta_dim: int, lower: list[float]) -> None:
    theta = sample_prior(prior, 6, seed=2)
    assert theta.shape == (6, theta_dim)
    sampler: Any = as_sampler(prior)
    assert Support.of(sampler, theta_dim).lower.tolist() == lower
    assert has_density(sampler)
    for rows in (theta, theta[:1]):
        assert sampler.log_prob(rows).shape == (len(rows),)


def test_several_parameters_of_one_name_are_numbered() -> None:
    prior = {"a": stats.multivariate_normal([0.0, 1.0]), "b": stats.norm()}
    assert names_of(as_sampler(prior)) == ("a_1", "a_2", "b")


def test_newer_classes_of_scipy_are_priors() -> None:
    if not hasattr(stats, "Normal"):
        pytest.skip("this scipy has none")
    prior = stats.Uniform(a=0.0, b=2.0)
    assert torch.equal(sample_prior(prior, 3, 1), sample_prior(prior, 3, 1))
    support = Support.of(as_sampler(prior), 1)
    assert (support.lower.tolist(), support.upper.tolist()) == ([0.0], [2.0])


def test_priors_of_sbi_and_torch_are_taken_as_they_are() -> None:
    with isolated_rng(0):  # the import and the constructor draw from global streams
        import sbi.utils as sbi

        box = sbi.BoxUniform(torch.zeros(2), torch.ones(2))
        several = sbi.MultipleIndependent([Gamma(torch.ones(1), torch.ones(1)), box])
    for prior in (box, several, Independent(Normal(torch.zeros(2), 1.0), 1)):
        assert as_sampler(prior) is prior
    assert Support.of(several, 3).upper.tolist() == [torch.inf, 1.0, 1.0]


def test_a_function_of_n_may_name_its_columns_and_ask_for_a_generator() -> None:
    def table(n: int, rng: np.random.Generator) -> Any:
        return pd.DataFrame({"a": rng.random(n), "b": rng.normal(size=n)})

    def columns(n: int, seed: int) -> Any:
        return {"a": np.random.default_rng(seed).random(n), "b": np.ones(n)}

    for prior in (table, columns):
        assert names_of(as_sampler(prior)) == ("a", "b")
        theta = sample_prior(prior, 5, seed=3)
        assert torch.equal(theta, sample_prior(prior, 5, seed=3))
        assert not torch.equal(theta, sample_prior(prior, 5, seed=4))
    assert names_of(as_sampler(lambda n: torch.rand(n, 2))) is None


class Seeded:
    """A distribution that draws by a seed of its own, as the posterior of a fit does."""

    parameter_names = ("a", "b")

    def sample(self, sample_shape: tuple[int, ...] = (), *, seed: int = 0) -> torch.Tensor:
        return torch.randn(*sample_shape, 2, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("prior", [Seeded(), {"both": Seeded()}])
def test_a_prior_with_a_seed_of_its_own_is_drawn_from_anew(prior: Any) -> None:
    """Else a fit whose prior is the posterior of another would simulate at the same theta."""
    first, second = sample_prior(prior, 50, seed=1), sample_prior(prior, 50, seed=2)
    assert torch.equal(first, sample_prior(prior, 50, seed=1))
    assert len(torch.cat([first, second]).unique(dim=0)) == 100
    check_drawn_anew(prior, sample_prior(prior, 5, seed=0))


def test_what_a_freshly_seeded_prior_knows_is_its_own() -> None:
    sampler = pickle.loads(pickle.dumps(as_sampler(Seeded())))
    assert names_of(sampler) == ("a", "b")
    assert not hasattr(sampler, "log_prob")
    assert as_sampler(sampler) is sampler


def test_a_prior_that_gives_the_same_draws_each_time_is_refused() -> None:
    def begun_anew(n: int) -> Any:
        return np.random.default_rng(0).normal(size=(n, 2))

    with pytest.raises(ValueError, match=r"^`prior` gives the same draws each time\. Make"):
        check_drawn_anew(begun_anew, sample_prior(begun_anew, 5, seed=0))


def test_a_generator_that_a_prior_holds_is_left_where_it_is() -> None:
    held = np.random.default_rng(0)

    def prior(n: int) -> Any:
        return held.normal(size=(n, 2))

    drawn, state = sample_prior(prior, 5, seed=0), held.bit_generator.state
    check_drawn_anew(prior, drawn)
    assert held.bit_generator.state == state


@pytest.mark.parametrize("prior", [stats.bernoulli(0.01), stats.uniform(1.0, 0.0)])
def test_a_prior_of_few_values_may_give_the_same_draws_by_chance(prior: Any) -> None:
    check_drawn_anew(prior, sample_prior(prior, 5, seed=0))


def test_a_density_that_scipy_has_in_another_shape_is_none() -> None:
    assert not has_density(as_sampler({"share": stats.dirichlet([1.0, 1.0, 1.0])}))


@pytest.mark.parametrize(
    ("prior", "error", "words"),
    [
        ({}, ValueError, "`prior` holds no distribution"),
        ({"a": 3.0}, TypeError, "`prior` 'a' must be a distribution .* got float"),
        ({"a": stats.norm}, TypeError, "`prior` 'a' must be frozen"),
        ({1: stats.norm()}, TypeError, r"`prior` must name parameters by strings; got \[1\]"),
        ([("a", stats.norm()), stats.norm()], TypeError, "`prior` must consist of pairs"),
        ([("a", stats.norm())] * 2, ValueError, "'a' appears twice"),
        ([stats.norm(), 3], TypeError, "`prior` number 2 must be a distribution"),
        ("normal", TypeError, r"`prior` must have sample.* got str"),
    ],
)
def test_what_is_no_prior_is_refused_by_name(
    prior: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        as_sampler(prior)
    assert "\n" not in str(caught.value)
