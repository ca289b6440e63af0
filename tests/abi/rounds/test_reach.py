"""A posterior asked at other x than its own: where it answers, with what, and where it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import problems
import pytest
import torch
from fits import BY_GENERATOR, SMALL, X_O, quick_fit
from torch import Tensor

import abi
import validation
from abi.rounds.reach import SHARE_INSIDE
from abi.training.loop import TrainingSettings
from simulators.random import isolated_rng

THOROUGH = replace(
    SMALL,
    network_training=abi.ABIConfig().network_training,
    generator_training=abi.ABIConfig().generator_training,
)
SD = 0.3 / 3**0.5  # of theta given three looks with noise of .3


@pytest.fixture(scope="module")
def amortised() -> abi.ABIPosterior:
    """A fit of one round."""
    return quick_fit(num_rounds=1, num_simulations=2_000, config=THOROUGH)


@pytest.fixture(scope="module")
def narrow() -> abi.ABIPosterior:
    """A fit of two rounds, the second inside the region of the first."""
    return quick_fit(num_rounds=2, num_simulations=5_000, config=THOROUGH)


@pytest.fixture(scope="module")
def pairs() -> tuple[Tensor, Tensor]:
    """Theta of the prior, and simulations."""
    with isolated_rng(3):
        theta = problems.BOX.sample((50,))
        return theta, problems.simulate(theta)


def _answers(posterior: abi.ABIPosterior, x: Tensor) -> bool:
    try:
        posterior.sample((1,), x=x)
    except ValueError:
        return False
    return True


def test_a_fit_of_one_round_answers_at_every_x_of_the_prior(
    amortised: abi.ABIPosterior, pairs: tuple[Tensor, Tensor]
) -> None:
    answered = sum(_answers(amortised, x) for x in pairs[1])
    assert answered >= 0.95 * 50


def test_draws_elsewhere_follow_the_posterior_there(
    amortised: abi.ABIPosterior, pairs: tuple[Tensor, Tensor]
) -> None:
    """N(mean of the looks, SD^2) away from the box's edges, as nearly as so small a network can."""
    means = pairs[1].reshape(50, 3, 2).mean(dim=1)
    inner = (means.abs() < 2.0 - 3.0 * SD).all(dim=1)
    draws = amortised.sample_batched((2_000,), pairs[1][inner])
    torch.testing.assert_close(draws.mean(dim=0), means[inner], atol=0.12, rtol=0.0)
    torch.testing.assert_close(
        draws.std(dim=0), torch.full_like(means[inner], SD), atol=0.09, rtol=0.0
    )
    # One at a time is the same answer: two samples' means differ by 4 sqrt(2 / 2,000) sds at most.
    alone = amortised.sample((2_000,), x=pairs[1][inner][4], seed=1)
    error = 4.0 * (2.0 / 2_000) ** 0.5 * float(alone.std(dim=0).max())
    torch.testing.assert_close(alone.mean(dim=0), draws[:, 4].mean(dim=0), atol=error, rtol=0.0)


def test_the_density_elsewhere_integrates_to_one_and_is_that_of_the_draws(
    amortised: abi.ABIPosterior,
) -> None:
    x = torch.tensor([-0.9, 0.3, -1.1, 0.2, -1.0, 0.1])
    line = torch.linspace(-2.0, 2.0, 201)
    grid, cell = torch.cartesian_prod(line, line), float(line[1] - line[0]) ** 2
    density = amortised.log_prob(grid, x).exp()
    assert float(density.sum() * cell) == pytest.approx(1.0, abs=0.02)
    mean = (density[:, None] * grid).sum(dim=0) * cell
    draws = amortised.sample((20_000,), x=x)
    # Four standard errors of the mean of 20,000 draws, and the grid's own error.
    error = 4.0 * float(draws.std(dim=0).max()) / 20_000**0.5 + 0.01
    torch.testing.assert_close(draws.mean(dim=0), mean, atol=error, rtol=0.0)
    assert bool((amortised.log_prob(torch.tensor([[2.5, 0.0]]), x) == -torch.inf).all())


def test_densities_are_asked_row_by_row_or_all_at_one_x(
    amortised: abi.ABIPosterior, pairs: tuple[Tensor, Tensor]
) -> None:
    theta, x = pairs[0][:6], pairs[1][:6]
    rows = amortised.log_prob(theta, x)
    each = torch.cat([amortised.log_prob(theta[k : k + 1], x[k]) for k in range(6)])
    torch.testing.assert_close(rows, each)
    whole = amortised.log_prob_batched(theta[None].expand(2, -1, -1), x)
    torch.testing.assert_close(whole, rows.expand(2, -1))
    with pytest.raises(ValueError, match=r"one observation, or 4, as theta has rows"):
        amortised.log_prob(theta[:4], x)


def test_batches_have_sbis_shape_and_the_seed_decides_the_draws(
    amortised: abi.ABIPosterior, pairs: tuple[Tensor, Tensor]
) -> None:
    x = pairs[1][:5]
    draws = amortised.sample_batched((7,), x)
    assert draws.shape == (7, 5, 2)
    assert draws.dtype == torch.float32
    assert amortised.sample_batched((3, 4), x).shape == (3, 4, 5, 2)
    assert amortised.sample_batched((3,), x[0]).shape == (3, 1, 2)
    assert torch.equal(amortised.sample_batched((7,), x), draws)
    assert not torch.equal(amortised.sample_batched((7,), x, seed=1), draws)
    assert bool((draws.abs() <= 2.0).all())  # the prior's box
    with pytest.raises(ValueError, match=r"`x` must be one observation; got 5\. sample_batched"):
        amortised.sample((7,), x=x)


@pytest.mark.parametrize("shape", [lambda x: x, lambda x: x[None], lambda x: x.double()])
def test_its_own_x_is_the_fits_own_answer(
    amortised: abi.ABIPosterior, narrow: abi.ABIPosterior, shape: Callable[[Tensor], Tensor]
) -> None:
    for posterior in (amortised, narrow):
        assert torch.equal(posterior.sample((20,), x=shape(X_O)), posterior.sample((20,)))
        theta = posterior.accepted[:20]
        assert torch.equal(posterior.log_prob(theta, shape(X_O)), posterior.log_prob(theta))


def test_a_fit_of_several_rounds_answers_near_and_refuses_far(narrow: abi.ABIPosterior) -> None:
    near = X_O + 0.02
    draws = narrow.sample((2_000,), x=near)
    torch.testing.assert_close(
        draws.mean(dim=0), near.reshape(3, 2).mean(dim=0), atol=0.12, rtol=0.0
    )
    plausible = -3.0 * X_O  # data of the prior, of theta that the last round did not simulate
    for ask in (
        lambda: narrow.sample((5,), x=plausible),
        lambda: narrow.log_prob(X_O[None, :2], plausible),
        lambda: narrow.sample_batched((5,), torch.stack([near, plausible])),
    ):
        with pytest.raises(ValueError, match=r"\d% of its draws lie where the fit has") as caught:
            ask()
        assert f"fewer than {SHARE_INSIDE:.0%}" in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"`x` row 1 \(1 of 2 rows\)"):
        narrow.sample_batched((5,), torch.stack([near, plausible]))


def test_an_x_unlike_any_simulation_is_refused_after_one_round_too(
    amortised: abi.ABIPosterior,
) -> None:
    with pytest.raises(ValueError, match=r"`x`: .* times farther from the fit's simulations"):
        amortised.sample((5,), x=X_O + 30.0)


@pytest.mark.parametrize("generator", ["mixture", "potnet"])
def test_a_generator_that_knows_x_o_alone_refuses_others_and_cannot_tell(generator: str) -> None:
    brief = replace(BY_GENERATOR[generator].potnet, training=TrainingSettings(max_epochs=5))
    config = replace(BY_GENERATOR[generator], potnet=brief, min_accepted=50)
    posterior = quick_fit(config=config, num_simulations=600)
    assert torch.equal(posterior.sample((5,), x=X_O), posterior.sample((5,)))
    with pytest.raises(ValueError, match=r"`x` must be the observation of the fit: its generator"):
        posterior.sample((5,), x=X_O + 0.01)
    with pytest.raises(ValueError, match=r"`x` must be the observation of the fit: its generator"):
        posterior.sample_batched((5,), X_O[None])
    with pytest.raises(ValueError, match="`check`: the answer cannot be checked: its generator"):
        posterior.check(50)
    assert posterior.verdict.outcome == "cannot tell"
    assert posterior.verdict.num_calls == 0
    assert posterior.pairs is None


def test_a_fit_by_a_known_distance_refuses_other_x_and_cannot_tell() -> None:
    posterior = quick_fit(distance=lambda x: (x - X_O).norm(dim=1), num_simulations=600)
    with pytest.raises(ValueError, match="`x` must be the observation of the fit: its distance is"):
        posterior.sample((5,), x=X_O + 0.01)
    assert posterior.verdict.headline.startswith("cannot tell: its distance is to the posterior")
    assert posterior.pairs is None


def test_flows_of_x_that_proposed_for_themselves_refuse_other_x() -> None:
    """Their pairs have the proposal's theta, not the prior's."""
    config = replace(SMALL, proposal="generator")
    posterior = quick_fit(config=config, num_simulations=600)
    for words in ("`x` must be the observation of the fit: its generator", "proposal='truncated'"):
        with pytest.raises(ValueError, match=words):
            posterior.sample((5,), x=X_O + 0.01)
    assert posterior.verdict.outcome == "cannot tell"


def test_tests_of_validation_take_a_fit_of_one_round_as_it_is(
    amortised: abi.ABIPosterior, pairs: tuple[Tensor, Tensor]
) -> None:
    theta, x = pairs
    reached = torch.tensor([_answers(amortised, row) for row in x])  # depends on x alone
    result = validation.sbc(amortised, theta[reached], x[reached], num_samples=100)
    assert not result.reject(0.001)
    # The same pairs in another order belong to each other no more.
    result = validation.sbc(amortised, theta[reached].flip(0), x[reached], num_samples=100)
    assert result.reject(0.001)
    q = validation.as_posterior(amortised)
    assert q.sample(30, x[reached][:4], 1).shape == (30, 4, 2)
    draws = q.sample(3, x[reached][:4], 1)
    expected = amortised.log_prob_batched(draws, x[reached][:4])
    torch.testing.assert_close(q.log_prob(draws, x[reached][:4]), expected)  # type: ignore[attr-defined]


def test_tests_of_validation_are_told_which_x_a_fit_does_not_reach(
    narrow: abi.ABIPosterior, pairs: tuple[Tensor, Tensor]
) -> None:
    with pytest.raises(ValueError, match=r"`x` row \d+ \(\d+ of 50 rows\): the fit around x_o"):
        validation.sbc(narrow, *pairs, num_samples=100)
    q, theta, x = narrow.check_pairs(100)
    assert 0.0 < validation.sbc(q, theta, x, num_samples=100).p_value <= 1.0
