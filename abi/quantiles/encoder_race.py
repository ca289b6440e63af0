"""Which encoder: the one through which a short flow gives theta held out the highest density.

What is compared is what the answer will be: a flow of theta given the features, beginning at their
linear Gaussian posterior, with networks half as wide. Each encoder's is trained on the same pairs,
in a quarter of the steps, and scored on the same others, which neither its flow nor its trend has
seen. (A learned encoder goes on learning with the answer, but has no start for that: of thirty
counts with too many zeros it won by a start of .1 nats, and means were .6 exact sds off instead of
.1, in thrice the time.)

(Quantile networks chose before, by their held-out loss. On the predator-prey ODE with 446 pairs
they took *transitions*, whose flows are a nat behind those of *flat*, C2ST .91 against .75; on the
epidemic with 554 they took *both_orders*, and means were .9 exact sds off instead of .1.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.random import child_seed, isolated_rng, torch_generator

from ..config import ABIConfig
from ..encoders.choice import LEARNED, build_encoder, features_of, learned_for
from ..encoders.layout import Layout
from ..generators.base import Progress
from ..generators.conditional import ConditionalFlows
from ..generators.flow_training import Conditioning, fit_flow
from ..generators.support import Support

_SHARE = 0.25  # of the steps and passes of a flow of the answer
_HELD = 0.2  # of the pairs
_ENOUGH = 1_000  # pairs, below which a second part of them is held out in its turn
_FURTHEST = 15.0  # nats below the median, where a log density stops counting
_LEFT_BEHIND = 0.2  # nats, by one that learns more from more pairs: it leads in later rounds, too


@dataclass(frozen=True, eq=False)
class EncoderRace:
    """What all encoders of a race have in common.

    Attributes:
        theta: of the pairs, (n, d).
        x: of the pairs, (n, p).
        support: of the prior.
        layout: of x.
        config: constants of the flow and its training.
        seed: of split, weights and batches.
    """

    theta: Tensor
    x: Tensor
    support: Support
    layout: Layout
    config: ABIConfig
    seed: int

    def ranked(self, names: Sequence[str], told: Progress, *, first: bool) -> list[str]:
        """The encoders, best first; without those that are left behind by one that is learned.

        Args:
            names: those to try.
            told: of the share that is done.
            first: try the learned one that suits x, too, by what the fixed ones say.
        """
        scores: dict[str, float] = {}
        for k, name in enumerate(names):
            scores[name] = self.score(name)
            told((k + 1) / (len(names) + int(first)))
        if first:
            losses = {name: -score for name, score in scores.items()}
            learned = learned_for(self.x.shape[1], self.layout, losses)
            if learned is not None:
                scores[learned] = self.score(learned)
        best = max(scores, key=scores.__getitem__)
        least = scores[best] - _LEFT_BEHIND if best in LEARNED else -math.inf
        left = [name for name, score in scores.items() if score >= least]
        return sorted(left, key=lambda name: -scores[name])

    def score(self, name: str) -> float:
        """The mean log density of theta held out behind an encoder: the higher the better.

        An encoder whose features no flow can be trained on comes last, and ends no fit.
        """
        count = len(self.theta)
        order = torch.randperm(count, generator=torch_generator(child_seed(self.seed, 0)))
        size = math.ceil(_HELD * count)
        folds = range(1 if count >= _ENOUGH else 2)
        parts = [order.roll(-k * size).tensor_split([size]) for k in folds]
        log_density = torch.cat([self._held_out(name, *part) for part in parts])
        return float(log_density.clamp_min(log_density.median() - _FURTHEST).mean())

    def _held_out(self, name: str, held: Tensor, rest: Tensor) -> Tensor:
        """The log density of rows held out, by a flow trained on the rest."""
        theta, x = self.theta[rest], self.x[rest]
        with isolated_rng(child_seed(self.seed, 1)):
            encoder = build_encoder(name, x, self.layout, self.support.to_real(theta))
        nothing = torch.full((len(held),), -torch.inf)
        if not features_of(encoder.eval(), x).isfinite().all():
            return nothing
        try:
            flow, _ = fit_flow(
                theta,
                self.support,
                settings=self.config.flow.halved(),
                training=self.config.generator_training.shortened(_SHARE),
                seed=child_seed(self.seed, 2),
                given=Conditioning(encoder, x, x[0], name, self.layout),
            )
        except ValueError:  # it found no finite loss
            return nothing
        q = ConditionalFlows.of(flow)
        if q is None:
            raise TypeError(f"the flow behind {name!r} does not know its encoder.")
        return q.log_prob(self.theta[held][None], self.x[held])[0].nan_to_num(nan=-torch.inf)
