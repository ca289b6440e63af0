"""Truncated proposals: draws of the prior, where a posterior so far has its mass."""

from __future__ import annotations

import pytest
import torch
from scipy import stats
from torch import Tensor
from torch.distributions import Independent, Normal

from abi.baselines.neural.truncation import Truncated
from abi.baselines.reals import RealPrior
from abi.generators.support import Support
from simulators.random import isolated_rng

MEAN, SD = 1.0, 0.2  # of the posterior, which holds all but 1e-4 within 3.89 sds
LOWER, UPPER = MEAN - 3.89 * SD, MEAN + 3.89 * SD


def normal(mean: float, sd: float) -> Independent:
    return Independent(Normal(torch.full((1,), mean), torch.full((1,), sd)), 1)


def cut(prior: Independent, posterior: Independent) -> Truncated:
    """Draws of the posterior come in order, as those of an ensemble: member after member."""

    def in_order(num_samples: int) -> Tensor:
        return posterior.sample((num_samples,)).sort(dim=0).values

    return Truncated(RealPrior(prior, Support.everywhere(1)), in_order, posterior.log_prob)


def test_a_region_that_holds_much_of_the_prior_has_the_priors_draws() -> None:
    truncated = cut(normal(0.0, 1.0), normal(MEAN, SD))
    with isolated_rng(0):
        draws = truncated.sample(2_000)[:, 0].numpy()
    exact = stats.truncnorm(LOWER, UPPER)
    assert truncated.share == pytest.approx(stats.norm.cdf(UPPER) - stats.norm.cdf(LOWER), rel=0.02)
    assert stats.kstest(draws, exact.cdf).pvalue > 1e-3


def test_a_region_far_smaller_than_the_prior_has_draws_like_the_priors() -> None:
    """A prior as wide as this is even there, which the posterior's own draws are not."""
    truncated = cut(normal(0.0, 3_000.0), normal(MEAN, SD))
    with isolated_rng(0):
        draws = truncated.sample(1_000)[:, 0].numpy()
    even = stats.uniform(LOWER, UPPER - LOWER)
    assert LOWER - 0.1 * SD < draws.min() < draws.max() < UPPER + 0.1 * SD
    assert stats.kstest(draws, even.cdf).statistic < 0.08
    assert stats.kstest(draws, stats.norm(MEAN, SD).cdf).statistic > 0.2


def test_a_posterior_outside_the_prior_is_refused() -> None:
    prior = Independent(Normal(torch.zeros(1), torch.full((1,), 1e-3)), 1)
    with isolated_rng(0), pytest.raises(RuntimeError, match="`snpe` put all of 20,480 draws"):
        cut(prior, normal(1e20, 1.0)).sample(10)
