"""Candidates for theta from posteriors that are known: exact ones, and ones wrong on purpose."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Binomial, Distribution, Gumbel, Independent, Normal

from simulators.random import child_seed, isolated_rng, torch_generator
from validation.swaps.candidates import Candidates

THETA_DIM = 3
NAMES = ("theta_1", "theta_2", "theta_3")
NUM_DRAWS = 30


def gaussian(
    num_pairs: int, seed: int, *, bias: tuple[float, ...] | float = 0.0, wide: float = 1.0
) -> Candidates:
    """Theta | x normal, mean and sd functions of x; q lies ``bias`` true sds too high."""
    x = _observations(num_pairs, seed)
    mean, sd = _moments(x)
    shift = torch.as_tensor(bias).expand(THETA_DIM)
    return _drawn(Normal(mean, sd), Normal(mean + shift * sd, wide * sd), x, seed)


def skew(num_pairs: int, seed: int) -> Candidates:
    """Theta | x of Gumbel's law, place and scale functions of x, and q exact."""
    x = _observations(num_pairs, seed)
    law = Gumbel(*_moments(x))
    return _drawn(law, law, x, seed)


def whole_numbers(num_pairs: int, seed: int) -> Candidates:
    """Theta | x among 0, 1, 2, 3, and q exact: most candidates are ties."""
    x = _observations(num_pairs, seed)
    law = Binomial(3, logits=_moments(x)[0])
    return _drawn(law, law, x, seed)


def with_draws(truth: Tensor, draws: Tensor, seed: int = 0) -> Candidates:
    """True theta (N, d) among draws (K, N, d), of x that are all like x_o."""
    pairs, width = truth.shape
    context = torch.randn(pairs, 2 * width, generator=torch_generator(child_seed(seed, 0)))
    return Candidates.of(truth, draws, context, context.norm(dim=1), seed=child_seed(seed, 1))


def _observations(num_pairs: int, seed: int) -> Tensor:
    """x about x_o = 0, (N, d)."""
    return torch.randn(num_pairs, THETA_DIM, generator=torch_generator(child_seed(seed, 0)))


def _moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Means and sds of theta | x, (N, d) each; neither is linear in x."""
    return 0.7 * x + 0.3 * x.roll(1, dims=1).sin(), (0.4 * x).exp()


def _drawn(p: Distribution, q: Distribution, x: Tensor, seed: int) -> Candidates:
    """One theta of p at each x among draws of q, both laws over single parameters, (N, d)."""
    with isolated_rng(child_seed(seed, 1)):
        theta, draws = p.sample(), q.sample((NUM_DRAWS,))
    log_q = Independent(q, 1).log_prob(torch.cat([theta[None], draws]))
    mean, sd = _moments(x)
    said = torch.cat([mean, sd.log()], dim=1)  # both are 0 at x_o
    context = said / said.std(dim=0)
    return Candidates.of(
        theta, draws, context, context.norm(dim=1), log_q, seed=child_seed(seed, 2)
    )
