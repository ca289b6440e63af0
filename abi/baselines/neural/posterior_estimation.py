"""SNPE through sbi: a spline flow q(theta | x), or an ensemble of them, in one round or several.

One round is amortised and needs no prior density. Each later round simulates where the posterior
so far has its mass: *truncated* draws theta from the prior restricted to the region of highest
density that holds all but 1e-4 of q(theta | x_o), where maximum likelihood needs no correction;
*atomic* draws from q(theta | x_o) and corrects the loss by contrasting atoms (APT).

Source: Greenberg, Nonnenmacher & Macke (2019); Deistler, Goncalves & Macke (2022).
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from ...rounds.problem import Problem
from ..guest import guest, quiet, training_record
from ..inputs import Inputs, z_scoring
from ..reals import RealPrior, draw_inside

Proposal = Literal["atomic", "truncated"]

_TRUNCATED_MASS = 1e-4
_THRESHOLD_DRAWS = 100_000
_LEAST_ACCEPTANCE = 1e-3  # below it the restricted prior is drawn by importance resampling


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
        from sbi.utils import RestrictedPrior, get_density_thresholder

        posterior = self._posterior()
        self.latest = posterior.set_default_x(self.inputs(self.problem.x_o[None]))
        if self.proposal == "atomic":
            # sbi knows no edges on the real line; a prior may have some inside its box.
            theta = draw_inside(
                self.problem, lambda n: _Quiet(posterior).sample((n,)), num_samples, "snpe"
            )
            return self.problem.support.to_real(theta)
        inside = get_density_thresholder(
            _Quiet(posterior), _TRUNCATED_MASS, num_samples_to_estimate_support=_THRESHOLD_DRAWS
        )
        tries = RealPrior(self.problem.prior, self.problem.support).sample((_THRESHOLD_DRAWS,))
        accepted = float(inside(tries).float().mean())
        self.records[-1]["prior_acceptance"] = accepted
        restricted = RestrictedPrior(
            self.prior,
            inside,
            posterior=_Quiet(posterior),
            sample_with="rejection" if accepted > _LEAST_ACCEPTANCE else "sir",
        )
        z: Tensor = restricted.sample((num_samples,)).detach()
        return z

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
    """A posterior of sbi that shows no bars when its callers forget to ask."""

    def __init__(self, posterior: Any):
        self.posterior = posterior

    def sample(self, sample_shape: Any, **keywords: Any) -> Tensor:
        """Draw."""
        keywords["show_progress_bars"] = False
        z: Tensor = self.posterior.sample(sample_shape, **keywords).detach()
        return z

    @torch.no_grad()
    def log_prob(self, theta: Tensor) -> Tensor:
        """Log density."""
        parts = [
            self.posterior.log_prob(part, norm_posterior=False) for part in theta.split(20_000)
        ]
        return torch.cat(parts)
