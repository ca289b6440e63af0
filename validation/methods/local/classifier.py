r"""L-C2ST: is q right at this observation? A classifier trained once answers for every x_o.

A classifier d(theta, x) learns to tell ``(theta^q_n, x_n)``, class 0, from ``(theta_n, x_n)``,
class 1, on the joint pairs. At x_o, where no true draw exists, q's draws alone show how far it is
from chance:

    t(x_o) = 1/N_v sum_v ( d(theta^q_v, x_o) - 1/2 )^2,   theta^q_v ~ q(. | x_o).

The null distribution retrains the classifier with the labels exchanged. Differs from the paper:
labels are swapped within each pair that shares an x, where the paper permutes them over all rows.
Under q = p the two draws at one x are exchangeable and rows are not, and measured levels follow:
0.045 to 0.058 for swaps, 0.01 for permutations at the nominal 0.05. All networks start from the
same weights, where the paper starts each from its own: the statistic is then one function of the
labels, no noise of initial weights hides the difference, and the test stays exact (at N = 300 and
q 1.6 times too wide, power 0.16 against 0.03). The paper's null is ``labels="pooled"`` with
``start="own"``.
Features are standardised.

For a flow, ``theta = T(z; x)`` with z ~ N(0, I), the same is tested in the base space (L-C2ST-NF):
class 0 is ``(Z, x_n)``, class 1 ``(T^-1(theta_n; x_n), x_n)``, and under the null both are normal
whatever q is, so one set of null networks serves every flow on the same x (:mod:`.base_space`).

All null networks and the observed one are trained together, see :mod:`.classifiers`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from simulators.arguments import choice
from simulators.random import torch_generator
from simulators.summary import summary

from ...posteriors.draws import LEAST_PAIRS, Given, check_counts, checked_draws, drawn, given
from ...posteriors.pairs.arrays import as_numbers
from ...results.local_result import local_result
from ...results.result import ValidationResult
from ...scores.classifiers import Classifiers, Training, fit_classifiers
from ...seeds import part_seed
from ..two_sample import swapped_labels
from .base_space import (
    FlowNull,
    fit_base_networks,
    fit_flow_null,
    paper_training,
    training_folds,
    training_rows,
)

Labels = Literal["pairs", "pooled"]
Start = Literal["shared", "own"]


@dataclass(frozen=True, eq=False)
class LC2ST:
    """A trained L-C2ST; :meth:`test` answers for any observation without training again."""

    pairs: Given
    """The pairs and q."""
    folds: tuple[Classifiers, ...]
    """Networks, one batch a fold: trained on the pairs and, for the p-value, on shuffled labels."""
    num_ensemble: int
    """Networks averaged into one classifier."""
    seed: int
    """Of everything random."""
    null: FlowNull | None = None
    """Networks for the p-value, where they were trained before."""

    __repr__ = summary

    def test(
        self, x_o: Tensor, *, num_samples: int = 1_000, theta_o: Tensor | None = None
    ) -> ValidationResult:
        """Is q the posterior at x_o? At several x_o, with p-values adjusted for their number.

        The adjustment is by the largest standardised statistic (max-T, Westfall & Young 1993).

        Args:
            x_o: one observation, in the shape that x has them, or several.
            num_samples: N_v, draws of q at each x_o.
            theta_o: draws of q at x_o that were made before, (N_v, d) or (N_v, m, d).

        Returns:
            Of one x_o: t and its p-value. Of several: the largest standardised statistic and the
            smallest adjusted p-value. ``details``: ``statistics``, ``p_values`` and
            ``p_values_adjusted`` (m,), what the pictures need (``theta_o``, ``probabilities``,
            ``pp``), and x_o.

        Raises:
            ValueError: if x_o or ``theta_o`` has another shape, or it or q's draws are not finite,
                or x_o is far outside of all x.
        """
        check_counts(num_samples=num_samples)
        return self.test_rows(self.pairs.observations(x_o), num_samples, theta_o)

    def test_rows(
        self, rows: Tensor, num_samples: int, theta_o: Tensor | None = None
    ) -> ValidationResult:
        """:meth:`test` at checked observations, flat rows (m, p)."""
        draws = self._draws(rows, num_samples, theta_o)
        columns = [self._probabilities(draws[:, i], rows[i]) for i in range(len(rows))]
        name = "lc2st" if self.null is None else "lc2st_nf"
        found = local_result(name, columns, draws, rows, self.seed)
        return replace(found, details={**found.details, "num_train": len(self.pairs.x)})

    def _draws(self, x_o: Tensor, num_samples: int, theta_o: Tensor | None) -> Tensor:
        """Draws at which the classifiers are read, (N_v, m, d)."""
        width = self.pairs.theta.shape[1]
        if self.null is not None:
            shape = (num_samples, 1, width)
            generator = torch_generator(part_seed(self.seed, 10))
            return torch.randn(shape, generator=generator).expand(-1, len(x_o), -1)
        if theta_o is None:
            return draws_at(self.pairs, x_o, num_samples, self.seed)
        theta_o = as_numbers(theta_o, "theta_o").float()
        there = theta_o[:, None] if theta_o.ndim == 2 else theta_o
        if there.ndim != 3 or there.shape[1] != len(x_o) or not len(there):
            raise ValueError(
                f"`theta_o` must hold draws at each of the {len(x_o)} observations, shape "
                f"(num_samples, {len(x_o)}, {width}); got {tuple(theta_o.shape)}."
            )
        return checked_draws(there, width)

    def _probabilities(self, theta: Tensor, x_o: Tensor) -> Tensor:
        """Probability of class 1, (folds, 1 + num_nulls, N_v), the observed networks first."""
        features = torch.cat([theta, x_o.expand(len(theta), -1)], dim=1)
        folds = []
        for k, fold in enumerate(self.folds):
            values = fold.probabilities(features)
            if self.null is not None:
                values = torch.cat([values, self.null.folds[k].probabilities(features)])
            folds.append(values.unflatten(0, (-1, self.num_ensemble)).mean(dim=1))
        return torch.stack(folds)


def check_settings(
    labels: str, start: str, num_nulls: int, num_folds: int, num_ensemble: int
) -> None:
    """Refuse settings of :func:`fit_lc2st`, before q is drawn from."""
    check_counts(num_nulls=num_nulls, num_folds=num_folds, num_ensemble=num_ensemble)
    choice("pairs", "pooled")(labels, "labels")
    choice("shared", "own")(start, "start")


def draws_at(pairs: Given, x_o: Tensor, num_samples: int, seed: int) -> Tensor:
    """Draws of q at x_o (m, p) that L-C2ST reads its classifiers at, (N_v, m, d)."""
    return drawn(pairs.q, num_samples, x_o, pairs.theta.shape[1], part_seed(seed, 10))


def fit_lc2st(
    q: Any,
    theta: Tensor,
    x: Tensor,
    *,
    num_nulls: int = 100,
    flow: bool = False,
    flow_null: FlowNull | None = None,
    labels: Labels = "pairs",
    start: Start = "shared",
    num_folds: int = 1,
    num_ensemble: int = 1,
    training: Training | None = None,
    seed: int = 0,
) -> LC2ST:
    """Train L-C2ST once; its :meth:`LC2ST.test` then tests q at any number of observations.

    It trains on all pairs, or on 5,000 at random where there are more.

    Other Parameters:
        num_nulls: N_H, classifiers trained on shuffled labels, for the p-value.
        flow: test in the base space of a flow (L-C2ST-NF). q must be a flow of sbi or zuko. The
            flow itself is tested, not an sbi posterior that cuts it off at the prior's bounds.
        flow_null: networks of :func:`fit_flow_null` for the same x, to be used again.
        labels: how labels are shuffled: within ``"pairs"`` of the same x, or over all rows,
            ``"pooled"``, as in the paper, which is conservative.
        start: initial weights of the networks: one ``"shared"`` set, or each its ``"own"``, as in
            the paper.
        num_folds: with more than 1, the pairs are cut into so many parts, and the statistic is
            averaged over classifiers that leave one part out.
        num_ensemble: networks averaged into one classifier.
        training: of the networks. When omitted, as in the paper: two layers of 10 d units (at most
            200), Adam, stopping early by the accuracy with patience 50.
        seed: of everything random. With ``flow_null`` its own seed is used, as all networks must be
            trained alike.

    Raises:
        ValueError: if an argument is not as described, pairs or draws are not finite, or ``flow``
            is asked of a posterior whose inverse is not known.

    Source: Linhart, Gramfort & Rodrigues (2023), "L-C2ST: local diagnostics for posterior
    approximations in simulation-based inference", Algorithms 1 to 4.

    q is the posterior under test, as :func:`~validation.as_posterior` takes it; theta (N, d) and x
    (N, p) are pairs from prior and simulator that q was not trained on.
    """
    check_settings(labels, start, num_nulls, num_folds, num_ensemble)
    pairs = given(q, theta, x, LEAST_PAIRS)
    rows = training_rows(len(pairs.x))
    pairs = replace(pairs, theta=pairs.theta[rows], x=pairs.x[rows])
    if flow:
        z = _base_draws(pairs)  # before the null trains: q may be no flow
        null = flow_null or fit_flow_null(
            pairs.x, pairs.theta.shape[1], num_nulls=num_nulls, num_folds=num_folds,
            num_ensemble=num_ensemble, training=training, seed=seed,
        )  # fmt: skip
        return _fit_flow(pairs, z, null)
    draws = pairs.draws(1, part_seed(seed, 0))
    theta, x = draws.theta, draws.x
    training = training or paper_training(theta.shape[1])
    features = torch.cat([torch.cat([t, x], dim=1) for t in (draws.samples[0], theta)])
    # Folds share rows: a null with labels of its own in each would vary less than the observed.
    swapped = swapped_labels(len(x), num_nulls, part_seed(seed, 1, 0))
    if labels == "pooled":
        swapped = _pooled(swapped, part_seed(seed, 1, 0))
    folds = []
    for k, rows in enumerate(training_folds(len(x), num_folds, seed)):
        both = torch.cat([rows, len(x) + rows])
        folds.append(
            fit_classifiers(
                features[both],
                swapped[:, both].repeat_interleave(num_ensemble, dim=0),
                groups=torch.arange(len(rows)).repeat(2),
                training=training,
                num_inits=num_ensemble if start == "shared" else num_ensemble * len(swapped),
                seed=part_seed(seed, 2, k),
            )
        )
    return LC2ST(pairs, tuple(folds), num_ensemble, seed)


def _base_draws(pairs: Given) -> Tensor:
    """The pairs' theta in the base of the flow, (N, d)."""
    if not hasattr(pairs.q, "to_base"):
        raise ValueError("`flow` needs a posterior with to_base(theta, x), such as a zuko flow.")
    z: Tensor = pairs.q.to_base(pairs.theta, pairs.x)
    return checked_draws(z[None], pairs.theta.shape[1])[0]


def _fit_flow(pairs: Given, z: Tensor, null: FlowNull) -> LC2ST:
    """Train the observed networks just as the null's were: same start, same minibatches."""
    x, width = pairs.x, pairs.theta.shape[1]
    if not torch.equal(null.x, x) or null.theta_dim != width:
        raise ValueError(
            f"`flow_null` must have been trained on the same observations; it has shape "
            f"{tuple(null.x.shape)} and theta of dimension {null.theta_dim}, now "
            f"{tuple(x.shape)} and {width}. Train it with fit_flow_null(x, theta_dim)."
        )
    noise = torch.randn(z.shape, generator=torch_generator(part_seed(null.seed, 5)))
    folds = [
        fit_base_networks(torch.cat([noise[rows], z[rows]])[None], null, rows, k)
        for k, rows in enumerate(training_folds(len(x), len(null.folds), null.seed))
    ]
    return LC2ST(pairs, tuple(folds), null.num_ensemble, null.seed, null)


def _pooled(labels: Tensor, seed: int) -> Tensor:
    """Row 0 as it is, the labels of the others permuted over all rows."""
    generator = torch_generator(part_seed(seed, 0))
    order = torch.rand(labels[1:].shape, generator=generator).argsort(dim=1)
    return torch.cat([labels[:1], labels[0][order]])
