"""SNLE through sbi: a flow q(x | theta) as likelihood, and slice sampling of its posterior.

The second round simulates at draws of the first posterior; a likelihood needs no correction for
where its theta come from. Chains start at draws of the prior, resampled by their likelihood, and
are many, so that every mode gets its share. The sampler moves on the real line, where the prior's
support is all there is.

Source: Papamakarios, Sterratt & Murray (2019).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from simulators import Prior, sample_prior
from simulators.arguments import choice
from simulators.random import as_count, child_seed

from ..rounds.problem import Problem, pose
from ..training.torch_settings import usual_torch
from .calls import CountedSimulator, calls_per_round
from .guest import NoTracker, guest, training_limits, training_record
from .inputs import Inputs, with_density
from .reals import RealPrior, require_density
from .result import BaselinePosterior

_CANDIDATES = 50_000  # prior draws that compete to start a chain


@usual_torch()
def snle(
    prior: Prior | Callable[[int], Any],
    simulator: Callable[..., Any],
    x_o: Tensor,
    *,
    num_simulations: int = 10_000,
    num_rounds: int = 1,
    seed: int = 0,
    encoder: str | nn.Module = "flat",
    flow: Literal["maf", "nsf"] = "maf",
    num_chains: int = 200,
    warmup_steps: int = 10,
    thin: int = 5,
    max_epochs: int | None = None,
    parameter_names: Sequence[str] | None = None,
) -> BaselinePosterior:
    """Fit q(x | theta) by sequential neural likelihood estimation.

    Args:
        prior: as for :func:`abi.fit`, with ``log_prob``.
        simulator: theta (n, d) -> x (n, p).
        x_o: the observation, (p,).
        num_simulations: simulator calls, shared equally by the rounds.
        num_rounds: one round is amortised, more are for ``x_o`` alone.
        seed: of simulations, training and chains.
        encoder: ``"flat"``, ``"sorted"`` for items in the order of their first coordinate, or
            ``"moments"`` for the likelihood of these.
        flow: masked autoregressive or spline flow.
        num_chains: chains of the vectorised slice sampler.
        warmup_steps: draws of each chain that are thrown away, ``thin`` sweeps each; fifty sweeps
            that tune the sampler come before them.
        thin: sweeps between two draws of a chain.
        max_epochs: passes over the pairs at most; training stops by itself when omitted.
        parameter_names: d names.

    Raises:
        ValueError: if the prior has no density, the encoder has no density, or arguments are out of
            range.
    """
    started = time.process_time()
    per_round = calls_per_round(num_simulations, num_rounds)
    chains = {
        "num_chains": as_count(num_chains, "num_chains", 1),
        "warmup_steps": as_count(warmup_steps, "warmup_steps", 0),
        "thin": as_count(thin, "thin", 1),
    }
    choice("maf", "nsf")(flow, "flow")
    limits = training_limits(max_epochs)
    problem = pose(prior, simulator, x_o, parameter_names)
    require_density(prior, "snle")
    calls = CountedSimulator(problem, num_simulations, child_seed(seed, 0))
    theta, x = calls.pairs(sample_prior(problem.prior, per_round, child_seed(seed, 1)))
    inputs = with_density(encoder, x, problem.layout)
    with guest(child_seed(seed, 2)):
        trainer = _Trainer(problem, inputs, flow, chains, limits)
        trainer.add(theta, x)
        for number in range(1, num_rounds):
            theta = trainer.draw(problem.x_o, per_round, child_seed(seed, 3, number))
            trainer.add(*calls.pairs(theta))
    return BaselinePosterior(
        method="snle",
        x_o=problem.x_o,
        parameter_names=problem.parameter_names,
        draw=trainer.draw,
        amortised=num_rounds == 1,
        num_simulations=calls.made,
        cpu_seconds=time.process_time() - started,
        seed=seed,
        details={"rounds": trainer.records, "flow": flow},
    )


class _Trainer:
    """sbi's NLE_A over the rounds of one fit, theta on the real line."""

    def __init__(
        self,
        problem: Problem,
        inputs: Inputs,
        flow: str,
        chains: dict[str, int],
        limits: dict[str, int],
    ):
        from sbi.inference import NLE_A
        from sbi.neural_nets import likelihood_nn

        self.problem, self.inputs, self.chains = problem, inputs, chains
        self.limits = limits
        self.prior = RealPrior(problem.prior, problem.support)
        self.trainer = NLE_A(
            prior=self.prior,
            density_estimator=likelihood_nn(flow),
            tracker=NoTracker(),
            show_progress_bars=False,
        )
        self.estimator: Any = None
        self.records: list[dict[str, float]] = []

    def add(self, theta: Tensor, x: Tensor) -> None:
        """Train on one more round's pairs."""
        z = self.problem.support.to_real(theta)
        trainer = self.trainer.append_simulations(z, self.inputs(x))
        self.estimator = trainer.train(**self.limits)
        self.records.append(training_record(self.trainer, len(z)))

    def draw(self, x_o: Tensor, num_samples: int, seed: int) -> Tensor:
        """Draw theta (n, d) given x_o (p,) by slice sampling."""
        with guest(seed):
            from sbi.inference import MCMCPosterior, likelihood_estimator_based_potential

            condition = self.inputs(x_o[None])
            potential, transform = likelihood_estimator_based_potential(
                self.estimator, self.prior, condition
            )
            posterior = MCMCPosterior(
                potential,
                _Starts(self.prior, potential, self.chains["num_chains"]),
                transform,
                method="slice_np_vectorized",
                init_strategy="proposal",
                **self.chains,
            )
            z = posterior.sample((num_samples,), x=condition, show_progress_bars=False)
        return self.problem.support.from_real(z.detach())


class _Starts:
    """Starting points of chains: prior draws resampled by their likelihood, one a call."""

    def __init__(self, prior: RealPrior, potential: Any, num_chains: int):
        z = prior.sample((_CANDIDATES,))
        # The potential is likelihood times prior, and the candidates come from the prior.
        weight = potential(z, track_gradients=False) - prior.log_prob(z)
        weight = torch.nan_to_num(weight, nan=-torch.inf, posinf=-torch.inf)
        chosen = torch.multinomial(weight.softmax(dim=0), num_chains, replacement=True)
        self.rows = iter(z[chosen])

    def sample(self, sample_shape: Any) -> Tensor:
        """The next starting point, (1, d)."""
        row: Tensor = next(self.rows)
        return row[None]
