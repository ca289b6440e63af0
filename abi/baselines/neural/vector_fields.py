"""FMPE and NPSE through sbi: a vector field that carries noise to draws of the posterior.

Flow matching learns the velocity along straight lines from noise to theta and is drawn from by an
ordinary differential equation; score estimation learns the score of theta under more and more noise
(variance exploding) and is drawn from by the stochastic equation that takes the noise away. One
round, amortised, without a prior density. Networks, training and samplers are sbi's defaults.

Source: Wildberger et al. (2023), FMPE; Geffner, Papamakarios & Mnih (2023) and Sharrock et al.
(2024), NPSE.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.distributions import Independent, Normal

from ...rounds.problem import Problem
from ..guest import guest, quiet, training_record
from ..inputs import Inputs, z_scoring
from ..reals import draw_inside

Method = Literal["fmpe", "npse"]


def require_fields(who: str) -> None:
    """Refuse a release of sbi that builds its fields in another way.

    Raises:
        ImportError: if sbi is older than 0.25.
    """
    with guest(0):
        from sbi import neural_nets
    if not hasattr(neural_nets, "posterior_flow_nn"):
        raise ImportError(f"`{who}` needs sbi 0.25 or newer; pip install --upgrade sbi.")


class VectorFieldTrainer:
    """sbi's FMPE or NPSE for one fit, theta on the real line."""

    def __init__(
        self,
        method: Method,
        problem: Problem,
        inputs: Inputs,
        embedding: nn.Module,
        limits: dict[str, int],
    ):
        from sbi.inference import FMPE, NPSE
        from sbi.neural_nets import posterior_flow_nn, posterior_score_nn

        self.method, self.problem, self.inputs, self.limits = method, problem, inputs, limits
        trainer, build = {
            "fmpe": (FMPE, posterior_flow_nn),
            "npse": (NPSE, posterior_score_nn),
        }[method]
        # Asked for nothing: the field learns from pairs, and what lies outside is drawn again here.
        num_parameters = len(problem.support.lower)
        unused = Independent(Normal(torch.zeros(num_parameters), torch.ones(num_parameters)), 1)
        self.trainer = trainer(
            prior=unused,
            vf_estimator=build(embedding_net=embedding, z_score_x=z_scoring(embedding)),
            **quiet(trainer),
        )
        self.posterior: Any = None
        self.records: list[dict[str, float]] = []

    def add(self, theta: Tensor, x: Tensor) -> None:
        """Train on the pairs."""
        trainer = self.trainer.append_simulations(
            self.problem.support.to_real(theta), self.inputs(x)
        )
        estimator = trainer.train(**self.limits)
        self.posterior = trainer.build_posterior(estimator)
        self.records.append(training_record(self.trainer, len(theta)))

    def draw(self, x_o: Tensor, num_samples: int, seed: int) -> Tensor:
        """Draw theta (n, d) given x_o (p,), within the prior."""
        condition = self.inputs(x_o[None])

        def propose(count: int) -> Tensor:
            z: Tensor = self.posterior.sample(
                (count,), x=condition, show_progress_bars=False, reject_outside_prior=False
            )
            return z.detach()

        with guest(seed):
            return draw_inside(self.problem, propose, num_samples, self.method)
