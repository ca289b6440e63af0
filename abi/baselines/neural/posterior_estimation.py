"""SNPE through sbi: a spline flow q(theta | x), or an ensemble of them, in one round or several.

One round is amortised and needs no prior density. Each later round simulates where the posterior
so far has its mass: *truncated* draws theta from the prior inside a region that holds nearly all of
q(theta | x_o) (:mod:`.truncation`), where maximum likelihood needs no correction; *atomic* draws
from q(theta | x_o) and corrects the loss by contrasting atoms (APT).

Source: Greenberg, Nonnenmacher & Macke (2019); Deistler, Goncalves & Macke (2022).
"""

from __future__ import annotations

from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from ...rounds.problem import Problem
from ..guest import guest, quiet, training_record
from ..inputs import Inputs, z_scoring
from ..reals import RealPrior, draw_inside
from .truncation import Truncated

Proposal = Literal["atomic", "truncated"]


class PosteriorTrainer:
    """sbi's NPE_C over the rounds of one fit, theta on the real line."""

    def __init__(
        self,
        problem: Problem,
        inputs: Inputs,
        embedding: nn.Module,
        proposal: str,
        num_networks: int,
        limits: dict[str, int],
    ):
        from sbi.inference import NPE_C
        from sbi.neural_nets import posterior_nn

        self.problem, self.inputs, self.proposal = problem, inputs, proposal
        self.limits = limits
        known = hasattr(problem.prior, "log_prob")  # a posed prior has none that cannot be called
        self.prior = RealPrior(problem.prior, problem.support) if known else None
        scaled = z_scoring(embedding)
        build = posterior_nn("nsf", embedding_net=embedding, z_score_x=scaled)
        self.trainers = [
            NPE_C(prior=self.prior, density_estimator=build, **quiet(NPE_C))
            for _ in range(num_networks)
        ]
        self.estimators: list[Any] = []
        self.latest: Any = None
        self.records: list[dict[str, float]] = []

    def add(self, theta: Tensor, x: Tensor) -> None:
        """Train on one more round's pairs."""
        z = self.problem.support.to_real(theta)
        atomic = self.proposal == "atomic"
        seen = self.inputs(x)
        self.estimators = []
        for trainer in self.trainers:
            trainer.append_simulations(z, seen, proposal=self.latest if atomic else None)
            self.estimators.append(trainer.train(force_first_round_loss=not atomic, **self.limits))
        self.records.append(training_record(self.trainers[0], len(z)))

    def propose(self, num_samples: int) -> Tensor:
        """Draw z (n, d) for the next round."""
        self.latest = self._posterior().set_default_x(self.inputs(self.problem.x_o[None]))
        posterior = _Quiet(self.latest)
        if self.proposal == "atomic":
            # sbi knows no edges on the real line; a prior may have some inside its box.
            theta = draw_inside(self.problem, posterior.sample, num_samples, "snpe")
            return self.problem.support.to_real(theta)
        prior = cast("RealPrior", self.prior)  # a second round is refused without one
        truncated = Truncated(prior, posterior.sample, posterior.log_prob)
        self.records[-1]["share_of_prior"] = truncated.share
        return truncated.sample(num_samples)

    @torch.no_grad()
    def draw(self, x_o: Tensor, num_samples: int, seed: int) -> Tensor:
        """Draw theta (n, d) given x_o (p,), within the prior."""
        condition = self.inputs(x_o[None])

        def propose(count: int) -> Tensor:
            share = torch.Size([-(-count // len(self.estimators))])
            z = [each.sample(share, condition=condition)[:, 0] for each in self.estimators]
            return torch.stack(z, dim=1).flatten(0, 1)[:count].detach()

        with guest(seed):
            return draw_inside(self.problem, propose, num_samples, "snpe")

    def _posterior(self) -> Any:
        """The posterior of sbi: of the one network, or of all in equal parts."""
        from sbi.inference import EnsemblePosterior

        each = [
            trainer.build_posterior(estimator, prior=self.prior)
            for trainer, estimator in zip(self.trainers, self.estimators, strict=True)
        ]
        return each[0] if len(each) == 1 else EnsemblePosterior(each)


class _Quiet:
    """A posterior of sbi on the real line, without bars and gradients."""

    def __init__(self, posterior: Any):
        self.posterior = posterior

    def sample(self, num_samples: int) -> Tensor:
        """Draw z (num_samples, d)."""
        z: Tensor = self.posterior.sample((num_samples,), show_progress_bars=False)
        return z.detach()

    @torch.no_grad()
    def log_prob(self, z: Tensor) -> Tensor:
        """Log density at z (n, d), (n,)."""
        log_density: Tensor = self.posterior.log_prob(z, norm_posterior=False)
        return log_density
