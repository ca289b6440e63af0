"""The four tests of the paper, each asked whether q is right at some observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from torch import Tensor

from simulators import Task, sample_joint
from simulators.random import child_seed
from validation import FlowNull, c2st, fit_flow_null, fit_lc2st, local_hpd
from validation.posteriors.protocol import Posterior

from .parts import NUM_OBSERVATIONS, Sizes

ORACLE, LOCAL, FLOW, HPD = PAPER_TESTS = "oracle C2ST", "L-C2ST", "L-C2ST-NF", "local HPD"
Answer = tuple[list[float], list[float]]
"""Statistics and p-values, one an observation."""


@dataclass(frozen=True)
class _Pairs:
    """Joint draws for the calibration, a name for them rather than themselves."""

    task: Task
    num_cal: int
    seed: int

    def draw(self) -> tuple[Tensor, Tensor]:
        """Theta (N_cal, d) and x (N_cal, p)."""
        return sample_joint(self.task, self.num_cal, child_seed(self.seed, 0))


@dataclass(frozen=True, eq=False)
class Question:
    """Is ``q`` right at the observations of ``task``, by ``num_cal`` pairs drawn at ``seed``?"""

    task: Task
    q: Posterior
    exact: bool
    """Whether q itself plays the truth: then each rejection is a mistake."""
    num_cal: int
    seed: int
    sizes: Sizes

    @property
    def x_o(self) -> Tensor:
        """The observations, (m, p)."""
        return observations(self.task, self.sizes.num_x_o)

    @property
    def named_pairs(self) -> _Pairs:
        """What the calibration pairs are drawn by, whoever plays the truth."""
        return _Pairs(self.task, self.num_cal, self.seed)

    def pairs(self) -> tuple[Tensor, Tensor]:
        """Calibration pairs: theta (N_cal, d), x (N_cal, p)."""
        theta, x = self.named_pairs.draw()
        return (self.q.sample(1, x, child_seed(self.seed, 1))[0] if self.exact else theta), x

    def truth(self, k: int, num_samples: int) -> Tensor:
        """Draws (num_samples, d) of the true posterior at observation ``k``."""
        if not self.exact:
            return _exact_draws(self.named_pairs, self.sizes.num_x_o, k, num_samples)
        seed = child_seed(self.seed, 2, k)
        return self.q.sample(num_samples, self.x_o[k : k + 1], seed)[:, 0]


def observations(task: Task, number: int) -> Tensor:
    """Observations of a task, (number, p): the first of its ten, or as many new ones as are more.

    Draws from prior and simulator: nobody chose them.
    """
    most = max(number, NUM_OBSERVATIONS)
    return sample_joint(task, most, seed=child_seed(2023, 0))[1][:number]


def oracle(question: Question) -> Answer:
    """C2ST against draws of the exact posterior, with the paper's MSE statistic (eq. 7)."""
    sizes, (theta, x) = question.sizes, question.pairs()
    total = question.num_cal + sizes.num_samples
    found = [
        c2st(
            question.q, theta, x, statistic="mse",
            x_o=x_o, reference=question.truth(k, total), num_nulls=sizes.num_nulls,
            train_fraction=question.num_cal / total,
            training=sizes.training(question.task.theta_dim), seed=child_seed(question.seed, 3, k),
        )
        for k, x_o in enumerate(question.x_o)
    ]  # fmt: skip
    return [result.statistic for result in found], [result.p_value for result in found]


def local(question: Question) -> Answer:
    """L-C2ST as this package has it: null labels swapped within pairs, one start for all."""
    return _local(question)


def local_as_published(question: Question) -> Answer:
    """L-C2ST with the null of Algorithm 1: labels permuted over all rows, starts of their own."""
    return _local(question, labels="pooled", start="own")


def local_flow(question: Question) -> Answer:
    """L-C2ST-NF; the null networks serve every q that is asked about with the same pairs."""
    null = _flow_null(question.named_pairs, question.sizes)
    fitted = fit_lc2st(question.q, *question.pairs(), flow=True, flow_null=null)
    return _answer(fitted.test(question.x_o, num_samples=question.sizes.num_samples))


def hpd(question: Question) -> Answer:
    """Local HPD (Zhao et al. 2021), with a null by uniform ranks."""
    sizes = question.sizes
    return _answer(
        local_hpd(
            question.q, *question.pairs(), question.x_o, num_samples=sizes.num_ranked,
            num_nulls=sizes.num_nulls, seed=child_seed(question.seed, 3),
        )
    )  # fmt: skip


JUDGES: Mapping[str, Callable[[Question], Answer]] = {
    ORACLE: oracle,
    LOCAL: local,
    FLOW: local_flow,
    HPD: hpd,
    "L-C2ST, published null": local_as_published,
}
"""Name -> test, in the order of the tables."""


def _local(question: Question, **null: Any) -> Answer:
    sizes = question.sizes
    fitted = fit_lc2st(
        question.q, *question.pairs(), num_nulls=sizes.num_nulls,
        training=sizes.training(question.task.theta_dim), seed=child_seed(question.seed, 3), **null,
    )  # fmt: skip
    return _answer(fitted.test(question.x_o, num_samples=sizes.num_samples))


def _answer(result: Any) -> Answer:
    # One observation after the other, as the paper tests: not adjusted for their number.
    return result.details["statistics"], result.details["p_values"]


# Estimates on more or fewer pairs are asked about one after the other, with the same truth.
@lru_cache(maxsize=128)
def _exact_draws(pairs: _Pairs, num_x_o: int, k: int, num_samples: int) -> Tensor:
    x_o = observations(pairs.task, num_x_o)[k]
    return pairs.task.reference_posterior(x_o, num_samples, child_seed(pairs.seed, 2, k))


@lru_cache(maxsize=1)
def _flow_null(pairs: _Pairs, sizes: Sizes) -> FlowNull:
    theta_dim = pairs.task.theta_dim
    return fit_flow_null(
        pairs.draw()[1], theta_dim, num_nulls=sizes.num_nulls,
        training=sizes.training(theta_dim), seed=child_seed(pairs.seed, 3),
    )  # fmt: skip
