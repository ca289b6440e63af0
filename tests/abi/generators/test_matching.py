"""Draws carried to where their weights say that the answer lies, against known normal laws."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal

from abi.generators.pool import matching
from abi.generators.pool.matching import lost, matched
from abi.generators.pool.model import chosen
from simulators.random import torch_generator

DRAWN = Normal(0.0, 1.0)
FAR = MultivariateNormal(torch.tensor([2.5, -2.0]), torch.tensor([[0.5, 0.3], [0.3, 0.4]]))
NEAR = MultivariateNormal(torch.tensor([0.1, 0.0]), 0.9 * torch.eye(2))
LAWS = FAR, NEAR


def target(z: Tensor, at: Tensor) -> Tensor:
    """Log densities of the laws ``at``, less a constant that draws do not know, (k, m)."""
    laws = [LAWS[k].log_prob(z[:, place]) for place, k in enumerate(at.tolist())]
    return torch.stack(laws, dim=1) - 7.0


def draws(count: int) -> tuple[Tensor, Tensor, Tensor]:
    z = torch.randn(count, 2, 2, generator=torch_generator(0))
    own = DRAWN.log_prob(z).sum(dim=2)
    return z, own, target(z, torch.arange(2)) - own


def test_of_a_law_far_off_little_is_lost_and_the_draws_are_its_own() -> None:
    z, own, log_weights = draws(20_000)
    found, weights = matched(z, own, log_weights, target)
    assert lost(log_weights, 4)[0] > 0.9 > 0.01 > lost(weights, 4)[0]
    index = chosen(weights, 5_000, seed=1)
    kept = found.gather(0, index[..., None].expand(-1, -1, 2))[:, 0]
    torch.testing.assert_close(kept.mean(dim=0), FAR.mean, atol=0.04, rtol=0.0)
    torch.testing.assert_close(kept.T.cov(), FAR.covariance_matrix, atol=0.04, rtol=0.0)


def test_weights_are_the_law_s_over_the_density_that_the_draws_then_have() -> None:
    """So that their mean is the law's constant, e^-7."""
    z, own, log_weights = draws(20_000)
    _, weights = matched(z, own, log_weights, target)
    constant = weights.logsumexp(dim=0) - torch.tensor(20_000.0).log()
    torch.testing.assert_close(constant, torch.full((2,), -7.0), atol=0.03, rtol=0.0)


def test_draws_of_which_little_is_lost_stay_where_they_are() -> None:
    z, own, log_weights = draws(2_000)
    found, weights = matched(z, own, log_weights, target)
    assert torch.equal(found[:, 1], z[:, 1])
    assert torch.equal(weights[:, 1], log_weights[:, 1])


def test_few_draws_of_a_law_one_sd_off_are_nearly_its_own() -> None:
    """400 draws at each of 300 x: where they stay, means of the hundred taken are .29 off."""
    z = torch.randn(400, 300, 2, generator=torch_generator(2))
    own = DRAWN.log_prob(z).sum(dim=2)

    def shifted(z: Tensor, at: Tensor) -> Tensor:
        return Normal(1.0, 1.0).log_prob(z[:, : len(at)]).sum(dim=2)

    found, weights = matched(z, own, shifted(z, torch.arange(300)) - own, shifted)
    kept = found.gather(0, chosen(weights, 100, seed=3)[..., None].expand(-1, -1, 2))
    assert abs(float(kept.mean()) - 1.0) < 0.03
    assert abs(float(kept.var()) - 1.0) < 0.04


def test_draws_that_have_no_covariance_stay_where_they_are() -> None:
    z, own, log_weights = draws(2_000)
    z[0, 0], log_weights[0, 0] = torch.inf, -torch.inf

    def sought(z: Tensor, at: Tensor) -> Tensor:
        assert not z.isnan().any()
        return target(z.nan_to_num(posinf=1e3), at)

    found, weights = matched(z, own, log_weights, sought)
    assert torch.equal(found, z)
    assert torch.equal(weights, log_weights)


def test_it_does_not_matter_how_many_x_are_looked_at_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    z, own, log_weights = draws(2_000)
    whole = matched(z, own, log_weights, target)
    monkeypatch.setattr(matching, "_TOGETHER", 1)
    for a, b in zip(matched(z, own, log_weights, target), whole, strict=True):
        torch.testing.assert_close(a, b)


def test_what_is_lost_is_the_weight_beyond_certainty() -> None:
    """One in four is taken of 8 draws: of a draw with half the weight, none; of .7, .2."""
    even, heavy = torch.full((8,), 0.5 / 7), torch.full((8,), 0.3 / 7)
    even[0], heavy[0] = 0.5, 0.7
    value = lost(torch.stack([even, heavy], dim=1).log(), 4)
    torch.testing.assert_close(value, torch.tensor([0.0, 0.2]).double(), atol=1e-6, rtol=0.0)
