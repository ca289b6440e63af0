r"""The null of L-C2ST for flows: in the base space it is the same for every flow.

Under q = p the base draws ``T^-1(theta_n; x_n)`` are N(0, I) given x_n, as are the fresh Z they are
compared with. So the null networks are trained on two sets of normal draws beside the same x, and
serve any number of flows (Linhart, Gramfort & Rodrigues 2023, Algorithm 4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from simulators.random import torch_generator
from simulators.summary import summary

from ...posteriors.draws import check_counts
from ...posteriors.pairs.arrays import flat_rows
from ...scores.classifiers import Classifiers, Training, feature_scaling, fit_classifiers
from ...seeds import part_seed

MOST_PAIRS = 5_000
"""Pairs that the networks are trained on, so many at random of more: a hundred nulls are, too."""
_MOST_UNITS = 200


@dataclass(frozen=True, eq=False)
class FlowNull:
    """Networks from which L-C2ST-NF has its p-value at the observations ``x``, for any flow q."""

    folds: tuple[Classifiers, ...]
    """One batch of networks a fold: num_nulls times num_ensemble."""
    x: Tensor
    theta_dim: int
    num_nulls: int
    num_ensemble: int
    training: Training
    seed: int

    __repr__ = summary


def fit_flow_null(
    x: Tensor, theta_dim: int, *, num_nulls: int = 100, num_folds: int = 1, num_ensemble: int = 1,
    training: Training | None = None, seed: int = 0,
) -> FlowNull:  # fmt: skip
    """Train the networks from which L-C2ST-NF has its p-value; they serve every flow.

    They learn to tell N(0, I) from N(0, I), which no flow has a part in.

    Args:
        x: the observations of the pairs, (N, p).
        theta_dim: d.
        num_nulls: N_H, how many; this and the rest as in :func:`fit_lc2st`.
        num_folds: number of parts of the pairs.
        num_ensemble: networks averaged into one classifier.
        training: of the networks.
        seed: of everything random.
    """
    check_counts(num_nulls=num_nulls, num_folds=num_folds, num_ensemble=num_ensemble)
    x = flat_rows(x, "x").float()
    x = x[training_rows(len(x))]
    training = training or paper_training(theta_dim)
    # Folds share rows: a null with draws of its own in each would vary less than the observed.
    generator = torch_generator(part_seed(seed, 3))
    z = torch.randn(num_nulls, 2 * len(x), theta_dim, generator=generator)
    shell = FlowNull((), x, theta_dim, num_nulls, num_ensemble, training, seed)
    folds = []
    for k, rows in enumerate(training_folds(len(x), num_folds, seed)):
        both = torch.cat([rows, len(x) + rows])
        folds.append(fit_base_networks(z[:, both], shell, rows, k))
    return replace(shell, folds=tuple(folds))


def fit_base_networks(z: Tensor, null: FlowNull, rows: Tensor, fold: int) -> Classifiers:
    """Networks on base draws z (M, 2 len(rows), d), class 0 first, beside their x."""
    x = null.x[rows].repeat(2, 1)
    shift, scale = feature_scaling(null.x)
    origin = torch.zeros(null.theta_dim)
    features = torch.cat([z, x.expand(len(z), -1, -1)], dim=2)
    labels = torch.cat([torch.zeros(len(rows)), torch.ones(len(rows))])
    return fit_classifiers(
        features.repeat_interleave(null.num_ensemble, dim=0),
        labels.expand(len(z) * null.num_ensemble, -1),
        groups=torch.arange(len(rows)).repeat(2),
        training=null.training,
        num_inits=null.num_ensemble,
        scaling=(torch.cat([origin, shift]), torch.cat([origin + 1, scale])),
        seed=part_seed(null.seed, 2, fold),
    )


def paper_training(theta_dim: int) -> Training:
    """The classifier of the paper (scikit-learn's MLP with the settings of sbibm).

    Differs from the paper: no more than 200 units a layer, for a hundred networks that are wider
    take hours and gigabytes.
    """
    width = min(10 * theta_dim, _MOST_UNITS)
    return Training((width, width), 1e-3, 200, 1_000, 50, 0.1, "accuracy")


def training_rows(count: int) -> Tensor:
    """Of so many pairs those that are trained on, always the same, in their order."""
    if count <= MOST_PAIRS:
        return torch.arange(count)
    return torch.randperm(count, generator=torch_generator(0))[:MOST_PAIRS].sort().values


def training_folds(rows: int, num_folds: int, seed: int) -> list[Tensor]:
    """Training rows of each fold; all rows where there is one."""
    if num_folds == 1:
        return [torch.arange(rows)]
    order = torch.randperm(rows, generator=torch_generator(part_seed(seed, 6)))
    parts = order.tensor_split(num_folds)
    return [torch.cat([p for j, p in enumerate(parts) if j != k]) for k in range(num_folds)]
