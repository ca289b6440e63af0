r"""Exact conditionals p(theta | x), and q that are wrong around x_o by a known amount.

Three laws of five parameters: *gaussian*, correlated, with a mean and a scale that depend on x, as
a conjugate posterior has; *skew*, its exponential in two of the parameters and a gamma law in one;
*modes*, two modes of which the lesser holds a fifth. Each is theta = m(x) + s(x) e with e of one
law, so that draws are exact and errors can be put into e.

A failure changes q's e: sds times a factor, of all or of one; the mean of one parameter moved by so
many of its sds; the lesser mode dropped; the correlation removed; tails cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.random import child_seed, torch_generator
from validation.swaps.candidates import Candidates

THETA_DIM = 5
NUM_DRAWS = 50
_CORRELATION = 0.4
_CUT = 1.8  # sds, of each parameter
_LESSER = 0.2

Noise = Callable[[tuple[int, ...], torch.Generator], Tensor]
"""(shape, generator) -> e, (*shape, 5)."""


def _gaussian(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    e: Tensor = torch.randn(*shape, THETA_DIM, generator=generator) @ _factor(_CORRELATION).T
    return e


def _skew(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    e = _gaussian(shape, generator)
    gamma = (1.0 - torch.rand(*shape, 2, generator=generator)).log().sum(dim=-1).neg()
    e[..., 0], e[..., 1] = e[..., 0].exp() - 1.0, (0.5 * e[..., 1]).exp() - 1.0
    e[..., 2] = 0.7 * e[..., 2] + 0.5 * (gamma - 2.0)
    return e


def _modes(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    e = _gaussian(shape, generator)
    lesser = torch.rand(*shape, generator=generator) < _LESSER
    e[..., 0] = 0.5 * e[..., 0] + torch.where(lesser, -2.0, 2.0)
    return e


def _factor(correlation: float) -> Tensor:
    same = torch.full((THETA_DIM, THETA_DIM), correlation)
    factor: Tensor = torch.linalg.cholesky(same + (1.0 - correlation) * torch.eye(THETA_DIM))
    return factor


LAWS: Mapping[str, Noise] = {"gaussian": _gaussian, "skew": _skew, "modes": _modes}


@dataclass(frozen=True)
class Wrong:
    """A q that is wrong: the law it is wrong about, and how its noise is made."""

    law: str
    noise: Noise


def _times(factor: float, *, one: bool = False) -> Noise:
    def noise(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        e = _gaussian(shape, generator)
        if one:
            e[..., 0] *= factor
            return e
        return factor * e

    return noise


def _moved(shift: float) -> Noise:
    def noise(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        e = _gaussian(shape, generator)
        e[..., 0] += shift
        return e

    return noise


def _dropped(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    e = _gaussian(shape, generator)
    e[..., 0] = 0.5 * e[..., 0] + 2.0
    return e


def _uncorrelated(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(*shape, THETA_DIM, generator=generator)


def _cut(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    inside = torch.special.erf(torch.tensor(_CUT / 2**0.5))
    u = (2.0 * torch.rand(*shape, THETA_DIM, generator=generator) - 1.0) * inside
    return torch.erfinv(u) * 2**0.5 @ _factor(_CORRELATION).T


FAILURES: Mapping[str, Wrong] = {
    "sds times 1.15": Wrong("gaussian", _times(1.15)),
    "sds times 1.3": Wrong("gaussian", _times(1.3)),
    "sds over 1.3": Wrong("gaussian", _times(1.0 / 1.3)),
    "one sd of five times 1.3": Wrong("gaussian", _times(1.3, one=True)),
    "one mean moved by .2 sd": Wrong("gaussian", _moved(0.2)),
    "one mean moved by .4 sd": Wrong("gaussian", _moved(0.4)),
    "a mode dropped": Wrong("modes", _dropped),
    "the correlation removed": Wrong("gaussian", _uncorrelated),
    "tails cut": Wrong("gaussian", _cut),
}
"""Of q, by name."""


def pairs(
    law: str, q: Noise, num_pairs: int, num_draws: int, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Joint pairs theta (N, 5), x (N, 5), and draws (K, N, 5) of q at the same x."""
    generator = torch_generator(seed)
    x = torch.randn(num_pairs, THETA_DIM, generator=generator)
    place, scale = 0.5 * x, 0.7 * (0.2 * x).exp()
    theta = place + scale * LAWS[law]((num_pairs,), generator)
    return theta, x, place + scale * q((num_draws, num_pairs), generator)


def candidates(law: str, q: Noise, num_pairs: int, seed: int) -> Candidates:
    """The same as a verdict takes them, x_o at 0; q offers no density."""
    theta, x, draws = pairs(law, q, num_pairs, NUM_DRAWS, child_seed(seed, 0))
    context = torch.cat([x, 0.2 * x], dim=1)
    distance = x.norm(dim=1)
    return Candidates.of(theta, draws, context, distance, seed=child_seed(seed, 1))
