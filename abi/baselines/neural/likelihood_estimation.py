"""SNLE through sbi: a flow q(x | theta) as likelihood, and slice sampling of its posterior.

The second round simulates at draws of the first posterior; a likelihood needs no correction for
where its theta come from. Chains start at draws of the prior, resampled by their likelihood, and
are many, so that every mode gets its share. The sampler moves on the real line, where the prior's
support is all there is.

Source: Papamakarios, Sterratt & Murray (2019).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...rounds.problem import Problem
from ..guest import guest, quiet, training_record
from ..inputs import Inputs
from ..reals import RealPrior

_CANDIDATES = 50_000  # prior draws that compete to start a chain


class LikelihoodTrainer:
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
            **quiet(NLE_A),
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
