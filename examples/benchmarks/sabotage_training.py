"""What the sabotage study trains: four simulators, and sbi's estimators as a user trains them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from simulators import MG1, BernoulliGLM, GaussianLinearUniform, TwoMoons, sample_joint
from simulators.random import child_seed, isolated_rng
from validation import as_posterior

Draw = Callable[[int, Tensor, int], Tensor]
"""(K, x (n, p), seed) -> (K, n, d)."""
MANY, SOME = 10_000, 2_000
"""Simulations of an honest training, and of one that goes wrong in another way."""


@dataclass(frozen=True)
class Problem:
    """A simulator with the flow that its posterior is learned by."""

    name: str
    task: Any
    flow: str
    summary: Callable[[Tensor], Tensor] = lambda x: x

    def pairs(self, number: int, seed: int) -> tuple[Tensor, Tensor]:
        """Parameters (n, d) of the prior, and what is observed of them (n, p)."""
        theta, x = sample_joint(self.task, number, seed=seed)
        return theta, self.summary(x)

    def at(self, theta: Tensor, seed: int) -> Tensor:
        """What is observed at parameters of any other law, (n, p)."""
        return self.summary(self.task(theta, seed))


def _quantiles(x: Tensor) -> Tensor:
    """Logs of five quantiles of the times between departures, the usual summary of the queue."""
    levels = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0])
    return torch.quantile(x, levels, dim=1).T.log().contiguous()


MOONS = Problem("two moons", TwoMoons(), "nsf")
BOX = Problem("box", GaussianLinearUniform(5), "maf")
GLM = Problem("neuron", BernoulliGLM(), "maf")
QUEUE = Problem("queue", MG1(), "maf", _quantiles)


@contextmanager
def quietly(seed: int) -> Iterator[None]:
    """Seeded, and without sbi's warnings: half of what is done here it warns of, rightly."""
    with isolated_rng(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def trainer(
    method: str, prior: Any, density: Any, pairs: tuple[Tensor, Tensor], **train: Any
) -> Any:
    """sbi's trainer, trained on the pairs."""
    from sbi import inference
    from sbi.utils.user_input_checks import process_prior

    known = None if prior is None else process_prior(prior)[0]
    made = getattr(inference, method)(known, density, show_progress_bars=False)
    made.append_simulations(*pairs).train(**train)
    print(f"{method}: {len(pairs[0]):,} pairs, {made.summary['epochs_trained'][-1]} epochs")
    return made


def npe(
    problem: Problem,
    pairs: tuple[Tensor, Tensor],
    seed: int,
    *,
    prior: Any = None,
    flow: str | None = None,
    build: dict[str, Any] | None = None,
    **train: Any,
) -> Any:
    """sbi's posterior of the pairs; ``build`` is for its flow, ``train`` for its training."""
    from sbi.neural_nets import posterior_nn

    with quietly(seed):
        density = posterior_nn(flow or problem.flow, **(build or {}))
        made = trainer("NPE", prior or problem.task.prior, density, pairs, **train)
        return made.build_posterior()


def estimator(problem: Problem, pairs: tuple[Tensor, Tensor], seed: int) -> Any:
    """sbi's flow alone, for parameters that have another prior than the problem's."""
    with quietly(seed):
        return trainer("NPE", None, problem.flow, pairs)._neural_net


@cache
def honest(problem: Problem, flow: str | None = None) -> Any:
    """Well trained: on many simulations, to the end or for 200 epochs."""
    settings = {"training_batch_size": 500, "learning_rate": 1e-3, "max_num_epochs": 200}
    return npe(problem, problem.pairs(MANY, 11), 12, flow=flow, **settings)


def likelihood(problem: Problem) -> Any:
    """sbi's NLE, trained."""
    with quietly(14):
        return trainer("NLE", problem.task.prior, "nsf", problem.pairs(SOME, 13))


def drawing(q: Any, batch_size: int = 20) -> Draw:
    """Draws of anything of sbi's."""
    posterior = as_posterior(q, batch_size=batch_size)

    def draw(number: int, x: Tensor, seed: int) -> Tensor:
        with quietly(0):
            return posterior.sample(number, x, seed)

    return draw


def exact(problem: Problem) -> Draw:
    """The simulator's own exact posterior."""

    def draw(number: int, x: Tensor, seed: int) -> Tensor:
        rows = [
            problem.task.reference_posterior(row, number, seed=child_seed(seed, i))
            for i, row in enumerate(x)
        ]
        return torch.stack(rows, dim=1)

    return draw
