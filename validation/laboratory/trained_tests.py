"""Tests trained once and used on many batches, as the CoLT and the conformal paper measure power.

Their protocol answers "how often does this trained network reject?", averaged over three seeds. A
user who has one set of pairs trains and tests on parts of it: that is
:class:`~validation.laboratory.trials.WholeTest`. Both are valid tests; their powers are not the
same number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Tensor

from simulators.arguments import at_least, choice, count, number, of_type, settle
from simulators.random import torch_generator

from ..methods.conformal import conformal_c2st
from ..methods.localization import framed_draws, ranks_in_balls
from ..methods.two_sample import verdict_p_value
from ..perturbations import Task
from ..posteriors.draws import joint_draws
from ..scores.ball_ranks import ColtTraining, Embedding, fit_ball_networks
from ..scores.classifiers import Training, fit_classifiers
from ..scores.scores import Score, apply_score, labelled_pairs
from ..scores.uniformity import floor_p, ks_uniform
from ..seeds import part_seed
from .weak import weakened

Kind = Literal["uniform", "multiple", "c2st", "c2st_normal"]
"""What :class:`ScoreTest` does with scores."""


@dataclass(frozen=True)
class TrainedColt:
    """CoLT trained once on N pairs, then used on many batches of N pairs.

    Source: Chen, Bansal & Scott (2025), Section 4, "Baselines and settings", and Table 2.
    """

    embedding: Embedding = "full"
    num_samples: int = 500
    """K, in training and in every batch."""
    training: ColtTraining = field(default_factory=ColtTraining)

    def __post_init__(self) -> None:
        settle(
            self,
            embedding=choice(*get_args(Embedding)),
            num_samples=count(),
            training=of_type(ColtTraining),
        )

    def p_values(self, task: Task, num_pairs: int, repetitions: int, seed: int) -> list[float]:
        """One p-value for each batch."""

        def draws(key: int, r: int) -> tuple[Tensor, Tensor]:
            return task.joint(num_pairs, part_seed(seed, key, r))

        known, _ = framed_draws(
            task.q, *draws(0, 0), self.num_samples, self.training, part_seed(seed, 3)
        )
        networks = fit_ball_networks(
            known.theta,
            known.samples,
            known.x,
            embedding=self.embedding,
            training=self.training,
            seed=part_seed(seed, 4),
        )
        found = []
        for r in range(repetitions):
            batch_seed = part_seed(seed, 2, r)
            batch, _ = framed_draws(
                task.q, *draws(1, r), self.num_samples, self.training, batch_seed
            )
            found.append(ks_uniform(ranks_in_balls(networks, batch, part_seed(batch_seed, 3)))[1])
        return found


@dataclass(frozen=True)
class ScoreTest:
    """A test that uses a score on a batch: N points of q against points of p.

    Source: "The surprising strength of weak classifiers for two-sample testing", Section 3.1 and
    B.4.
    """

    kind: Kind
    """Conformal uniform(m) with fresh calibration points; conformal multiple; C2ST with the exact
    p-value of this package; C2ST with the normal approximation of the paper."""
    num_calibration: int = 200
    """m, of ``"uniform"`` alone."""
    num_permutations: int = 199
    """Of ``"multiple"`` alone."""

    def __post_init__(self) -> None:
        settle(
            self,
            kind=choice(*get_args(Kind)),
            num_calibration=count(),
            num_permutations=count(),
        )

    def p_value(self, score: Score, task: Task, num_pairs: int, data_seed: int, seed: int) -> float:
        """The p-value of one batch, drawn at ``data_seed``."""
        if self.kind == "uniform":
            theta, x = task.joint(num_pairs, data_seed)
            return conformal_c2st(
                task.q, theta, x, num_calibration=self.num_calibration,
                score=score, fresh=task.joint, seed=seed,
            ).p_value  # fmt: skip
        # Half of the pairs stand for p, the x of the other half for q.
        theta, x = task.joint(2 * num_pairs, data_seed)
        if self.kind == "multiple":
            return conformal_c2st(
                task.q, theta, x, variant="multiple", score=score,
                num_permutations=self.num_permutations, seed=seed,
            ).p_value  # fmt: skip
        from_q = task.q.sample(1, x[num_pairs:], part_seed(seed, 0))[0]
        called_p = apply_score(score, theta[:num_pairs], x[:num_pairs]) > 0
        called_q = apply_score(score, from_q, x[num_pairs:]) > 0
        return _C2ST[self.kind](called_p, called_q)


@dataclass(frozen=True)
class FixedScore:
    """A score that needs no training, used on many batches."""

    test: ScoreTest
    score: Score
    """(theta (n, d), x (n, p)) -> (n,), larger where p is denser; above 0 for C2ST to call p."""

    def p_values(self, task: Task, num_pairs: int, repetitions: int, seed: int) -> list[float]:
        """One p-value for each batch."""
        return [
            self.test.p_value(
                self.score, task, num_pairs, part_seed(seed, 1, r), part_seed(seed, 2, r)
            )
            for r in range(repetitions)
        ]


@dataclass(frozen=True)
class RatioScore:
    """The best possible score, log p - log q, with noise added; for failures with densities.

    Source: "The surprising strength of weak classifiers for two-sample testing", Appendix C.
    """

    test: ScoreTest
    noise: float = 0.0
    """Standard deviation of what is added to the score of every pair."""

    def __post_init__(self) -> None:
        settle(self, noise=at_least(0.0))

    def p_values(self, task: Task, num_pairs: int, repetitions: int, seed: int) -> list[float]:
        """One p-value for each batch."""
        generator = torch_generator(part_seed(seed, 5))

        def score(theta: Tensor, x: Tensor) -> Tensor:
            ratio = task.p.log_prob(theta[None], x)[0] - task.q.log_prob(theta[None], x)[0]
            return ratio + self.noise * torch.randn(len(ratio), generator=generator)

        return FixedScore(self.test, score).p_values(task, num_pairs, repetitions, seed)


@dataclass(frozen=True)
class TrainedScore:
    """A classifier trained once on N pairs, then used on many batches.

    It may be weakened on purpose.

    Source: "The surprising strength of weak classifiers for two-sample testing", Section 3.1 and
    B.2. Differs from the paper: no skip connections, and training stops where it no longer helps
    on held-out rows.
    """

    test: ScoreTest
    weakness: float = 0.0
    """b: how far the network is moved back to the one before training."""
    training: Training = field(default_factory=lambda: Training(hidden=(256, 256)))

    def __post_init__(self) -> None:
        settle(self, weakness=number("in [0, 1]", lambda value: 0.0 <= value <= 1.0))

    def p_values(self, task: Task, num_pairs: int, repetitions: int, seed: int) -> list[float]:
        """One p-value for each batch."""
        score = self._score(task, num_pairs, seed)
        return FixedScore(self.test, score).p_values(task, num_pairs, repetitions, seed)

    def _score(self, task: Task, num_pairs: int, seed: int) -> Score:
        pairs = task.joint(num_pairs, part_seed(seed, 0))
        draws = joint_draws(task.q, *pairs, 1, part_seed(seed, 3))
        features, labels, groups = labelled_pairs(draws)
        fit_seed = part_seed(seed, 4)
        network = fit_classifiers(
            features, labels[None], groups=groups, training=self.training, seed=fit_seed
        )
        network = weakened(network, self.weakness, fit_seed)
        return lambda theta, x: network.logits(torch.cat([theta, x], dim=1))[0]


def normal_p_value(called_p: Tensor, called_q: Tensor) -> float:
    """P-value of the accuracy (n + n points) by its normal approximation N(1/2, 1/(4 (n + n))).

    Source: Lopez-Paz & Oquab (2017), Section 3.
    """
    from scipy.stats import norm

    total = len(called_p) + len(called_q)
    accuracy = float(called_p.sum() + (~called_q).sum()) / total
    return floor_p(float(norm.sf((accuracy - 0.5) * 2 * total**0.5)))


_C2ST: dict[str, Callable[[Tensor, Tensor], float]] = {
    "c2st": verdict_p_value,
    "c2st_normal": normal_p_value,
}
