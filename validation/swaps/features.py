r"""What the panel sees of a candidate, however theta is scaled: ranks, frames, and where x is.

Each candidate is described by numbers that treat all C at its x alike. With u_j in (0, 1) the rank
of theta_j among them, P_k Legendre's polynomials and z the candidate in the frame of their core
(:mod:`validation.scores.frames`):

- P_1 .. P_4 of every u_j: is a parameter to one side, too wide, skew, heavy in its tails?
- P_1, P_2 of the ranks of log q and of \|z\|: are all of them too wide together?
- products of normal scores of two parameters: is their dependence wrong?
- cosines and sines of random directions of z: anything else, such as a mode;
- P_1, P_2 of the u_j times what is known of x, less the same at x_o: an error that varies with x.
  At x_o the products vanish, and what is left is the error there (a local linear regression).

Every column has mean 0 and variance 1 over the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.random import child_seed, torch_generator

from ..scores.frames import frame_of
from .candidates import Candidates, among

_ORDERS = 4  # Legendre polynomials of a marginal rank
_MOST_PRODUCTS = 45  # pairs of parameters: all of ten
_DIRECTIONS = 32  # random ones, a cosine and a sine each
_MOST_CONTEXT = 6  # principal components of what is known of x
_LIGHT = 0.5  # columns that vary with x: there are many, and each says little


@dataclass(frozen=True, eq=False)
class Seen:
    r"""The candidates as the tests see them.

    Attributes:
        ranks: u_j of every parameter, (C, N, d).
        white: z, (C, N, d).
        density: ranks of log q, (C, N); of -\|z\| where q has none.
        columns: all of the above features, (C, N, D).
        num_local: columns before those that vary with x.
    """

    ranks: Tensor
    white: Tensor
    density: Tensor
    columns: Tensor
    num_local: int


def seen(candidates: Candidates, seed: int) -> Seen:
    """Work the features of all candidates out, once for all swaps."""
    theta = candidates.theta
    ranks = candidates.ranks
    white = frame_of(theta).whitened(theta).clamp(-30.0, 30.0)
    reach = white.norm(dim=2)
    density = among(candidates.log_q if candidates.log_q is not None else -reach)
    scores = torch.special.ndtri(ranks.double()).float()
    marginal = legendre(ranks, _ORDERS)  # (C, N, d, k)
    whole = torch.cat([legendre(density, 2), legendre(among(reach), 2)], dim=2)
    parts = [
        marginal.flatten(2),
        whole,
        _products(scores, seed),
        _waves(white, seed),
    ]
    local = torch.cat([part for part in parts if part.shape[2]], dim=2)
    context = principal(candidates.context, _MOST_CONTEXT)
    low = marginal[..., :2].flatten(2)
    varying = (low[..., None] * context[None, :, None]).flatten(2)
    columns = torch.cat([unit(local), _LIGHT * unit(varying)], dim=2)
    return Seen(ranks, white, density, columns, local.shape[2])


def num_features(width: int) -> int:
    """About so many columns describe a candidate of so many parameters."""
    products = min(_MOST_PRODUCTS, width * (width - 1) // 2)
    varying = _ORDERS // 2 * width * _MOST_CONTEXT
    return _ORDERS * width + 4 + products + 2 * _DIRECTIONS + varying


def legendre(ranks: Tensor, orders: int) -> Tensor:
    """P_1 .. P_k of ranks u on (0, 1), orthonormal under the uniform law, (..., k)."""
    t = 2.0 * ranks - 1.0
    values = [torch.ones_like(t), t]
    for k in range(1, orders):
        values.append(((2 * k + 1) * t * values[-1] - k * values[-2]) / (k + 1))
    return torch.stack([(2 * k + 1) ** 0.5 * values[k] for k in range(1, orders + 1)], dim=-1)


def unit(columns: Tensor) -> Tensor:
    """Columns (C, N, D) less their mean at each x, with mean square 1 over all candidates."""
    centred = columns - columns.mean(dim=0)
    size = centred.square().mean(dim=(0, 1)).sqrt()
    return centred / torch.where(size > 1e-6, size, torch.ones_like(size))


def principal(context: Tensor, most: int) -> Tensor:
    """At most so many principal components of what is known of x, about x_o, (N, k)."""
    if context.shape[1] <= most:
        return context
    centred = context - context.mean(dim=0)
    _, size, axes = torch.linalg.svd(centred.double(), full_matrices=False)
    scale = (size[:most] / max(1, len(context) - 1) ** 0.5).clamp_min(1e-6)
    scores: Tensor = context.double() @ axes[:most].T / scale
    return scores.float()


def _products(scores: Tensor, seed: int) -> Tensor:
    """Products of normal scores of pairs of parameters, (C, N, pairs)."""
    width = scores.shape[2]
    pairs = torch.combinations(torch.arange(width), 2)
    if len(pairs) > _MOST_PRODUCTS:
        generator = torch_generator(child_seed(seed, 0))
        pairs = pairs[torch.randperm(len(pairs), generator=generator)[:_MOST_PRODUCTS]]
    return scores[..., pairs[:, 0]] * scores[..., pairs[:, 1]]


def _waves(white: Tensor, seed: int) -> Tensor:
    """Cosines and sines along random directions, of wavelengths from one core to its far ends."""
    generator = torch_generator(child_seed(seed, 1))
    width = white.shape[2]
    directions = torch.randn(width, _DIRECTIONS, generator=generator) / width**0.5
    speeds = 0.5 * 4.0 ** torch.rand(_DIRECTIONS, generator=generator)
    phase = white @ (directions * speeds)
    return torch.cat([phase.cos(), phase.sin()], dim=2)
