r"""The tree: a posterior on thin branches, and an estimate that lies a little beside them.

Two trees of Gaussian components grow from the origin, A to the upper right and B to the lower left:
seven levels, each branch eight components along its length and two children at its end, shorter and
thinner with every level. x ~ N(0, 1), and theta given x is tree A where x >= 0 and tree B below:

    p = sum_k w_k N(mu_k, Sigma_k + sigma^2 I),   q: (1 + a) sigma in sigma's place,   sigma = 0.01,
    Sigma_k = size^2 (d d' + thick^2 (I - d d')),   d the direction of the branch.

Differs from the paper: the random lengths and angles are our own draws, for its own are in code
under another licence. Its main text adds noise of deviation a sigma, its appendix says (1 + a)
sigma; the appendix is followed, which is the larger of the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from simulators.random import as_seed, child_seed, torch_generator

from .task import Failure

_SIGMA = 0.01
_DEPTH = 7
_ROWS_AT_ONCE = 2_000
_STRENGTHS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)


@dataclass(frozen=True, eq=False)
class Branches:
    """The components of one tree."""

    weights: Tensor
    """Summing to 1, (k,)."""
    means: Tensor
    """(k, 2)."""
    directions: Tensor
    """Unit vectors along the branch, (k, 2)."""
    deviations: Tensor
    """Along and across the branch, (k, 2)."""


@dataclass(frozen=True, eq=False)
class TreeLaw:
    """One tree where x >= 0 and the other below, blurred by ``sigma``."""

    trees: tuple[Branches, Branches]
    sigma: float

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, 2) given x (n, 1)."""
        drawn = [
            _draw(tree, self.sigma, (num_samples, len(x)), child_seed(seed, k))
            for k, tree in enumerate(self.trees)
        ]
        return torch.where((x[:, :1] >= 0)[None], drawn[0], drawn[1])

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Normalised log density, theta (K, n, 2), x (n, 1) -> (K, n)."""
        values = torch.empty(theta.shape[:2])
        for tree, rows in zip(self.trees, (x[:, 0] >= 0, x[:, 0] < 0), strict=True):
            values[:, rows] = _log_density(tree, self.sigma, theta[:, rows]).float()
        return values


def tree(seed: int = 2) -> Failure:
    """A posterior on a tree of thin branches, which are drawn with ``seed``.

    Raises:
        ValueError: if the seed is negative.

    Source: Chen, Bansal & Scott (2025), Section 1 (Figure 1) and Appendix C.1.
    """
    rng = np.random.default_rng(as_seed(seed))
    trees = (_grow(math.pi / 4, rng), _grow(5 * math.pi / 4, rng))
    return Failure(
        "tree" if seed == 2 else f"tree_seed_{seed}",
        _STRENGTHS,
        lambda a: (TreeLaw(trees, _SIGMA), TreeLaw(trees, (1 + a) * _SIGMA)),
        lambda n, seed: torch.randn(n, 1, generator=torch_generator(seed)),
        "Chen, Bansal & Scott (2025), Figure 1",
    )


def _grow(angle: float, rng: np.random.Generator) -> Branches:
    """Branches of one tree, level by level; each is (start, angle)."""
    parts: list[tuple[float, list[float], list[float], list[float]]] = []
    level = [(np.zeros(2), angle)]
    for depth in range(_DEPTH):
        children = []
        for start, heading in level:
            direction = np.array([math.cos(heading), math.sin(heading)])
            length = 0.4 * 0.8**depth * rng.uniform(0.7, 1.3)
            along = 0.08 * length
            across = 0.012 * 0.6**depth
            for share in np.linspace(0.07, 0.93, 8):
                mean = start + share * length * direction
                parts.append(
                    (length * 0.5**depth, mean.tolist(), direction.tolist(), [along, across])
                )
            for side in (1, -1):
                turn = side * 0.7**depth * rng.uniform(0.7, 1.3)
                children.append((start + length * direction, heading + turn))
        level = children
    weights, means, directions, deviations = (
        torch.tensor(part) for part in zip(*parts, strict=True)
    )
    return Branches(weights / weights.sum(), means, directions, deviations)


def _draw(tree: Branches, sigma: float, shape: tuple[int, int], seed: int) -> Tensor:
    generator = torch_generator(seed)
    cumulative = tree.weights.cumsum(0)
    picked = torch.searchsorted(cumulative, torch.rand(shape, generator=generator))
    picked = picked.clamp_max(len(cumulative) - 1)
    z = torch.randn(*shape, 2, generator=generator) * tree.deviations[picked]
    direction = tree.directions[picked]
    normal = torch.stack([-direction[..., 1], direction[..., 0]], dim=-1)
    noise = sigma * torch.randn(*shape, 2, generator=generator)
    return tree.means[picked] + z[..., :1] * direction + z[..., 1:] * normal + noise


def _log_density(tree: Branches, sigma: float, theta: Tensor) -> Tensor:
    """Log density of the blurred mixture, theta (K, n, 2): (K, n).

    Every component's quadratic form is a row of coefficients of (a^2, ab, b^2, a, b, 1), so that
    all of them are one product of matrices.
    """
    axes = torch.stack([tree.directions, tree.directions.flip(-1) * torch.tensor([-1.0, 1.0])], 1)
    axes, means = axes.double(), tree.means.double()
    variances = tree.deviations.double().square() + sigma**2
    precision = (axes.transpose(1, 2) / variances[:, None, :]) @ axes
    pulled = (precision @ means[..., None])[..., 0]
    coefficients = torch.stack(
        [
            precision[:, 0, 0],
            2 * precision[:, 0, 1],
            precision[:, 1, 1],
            -2 * pulled[:, 0],
            -2 * pulled[:, 1],
            (means * pulled).sum(dim=1),
        ]
    )
    weights = tree.weights.double().log() - 0.5 * variances.log().sum(dim=1)
    parts = []
    for rows in theta.reshape(-1, 2).double().split(_ROWS_AT_ONCE):
        a, b = rows.T
        powers = torch.stack([a * a, a * b, b * b, a, b, torch.ones_like(a)], dim=1)
        parts.append(torch.logsumexp(weights - 0.5 * (powers @ coefficients), dim=1))
    return torch.cat(parts).reshape(theta.shape[:-1]) - math.log(2 * math.pi)
