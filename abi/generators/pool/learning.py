"""How a likelihood, and the prior's density beside it, are learned from pairs.

Theta come from the prior cut to some regions; given theta, x is as it always is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import torch
from torch import Tensor, nn

from simulators import Prior, sample_prior
from simulators.random import child_seed

from ...encoders.choice import build_encoder, features_of
from ...encoders.fitted import FittedEncoders
from ...encoders.layout import PLAIN, Layout
from ...training.loop import TrainingSettings, check_trained, train
from ..base import Past, Progress, both
from ..conditional import ConditionalFlows
from ..flow import FlowModel
from ..flow_network import FlowSettings, build_flow
from ..flow_training import Conditioning, first_split, fit_flow, rows_held, varied
from ..support import Support, has_density, prior_log_prob
from ..trend import fit_trend
from .additive import learn_additive
from .emulator import learn_emulator
from .likelihood import Likelihood, OfFeatures, OfItems, numbers_of, one_each
from .potential import learn_potential
from .values.law import learn_values
from .values.natural import Natural, learn_natural

_ROWS_EACH = 2  # items of a batch, for each row of another flow's: they are narrow
_PRIOR_DRAWS, _PRIOR_STEPS = 10_000, 1 / 3
_NOISE = 2.0  # times that of a trend found from the draws of a normal prior
_NEAR = 6.0  # sds of the pairs, within which others say something of the law there

View = Callable[[Tensor], Tensor]
"""What is seen of x (n, p), (n, k)."""


@dataclass(frozen=True, eq=False)
class Learning:
    """What likelihoods of the same pairs have in common.

    Attributes:
        theta: of the pairs, (n, d).
        density: of the prior; its support is that of theta.
        settings: of a likelihood's flow.
        training: of this.
        seed: of the answer's flows: the first of them holds out the same pairs.
        whole: whether laws of values see the pairs held out as well, once these have chosen.
        past: pairs of earlier rounds that are none of these, theta (m, d) and x (m, p).
    """

    theta: Tensor
    density: FlowModel
    settings: FlowSettings
    training: TrainingSettings
    seed: int
    whole: bool = False
    past: Past | None = None

    @property
    def held(self) -> Tensor:
        """The pairs that the first of the answer's flows holds out, (m,)."""
        return rows_held(len(self.theta), self.training, first_split(self.seed))

    @property
    def others(self) -> Tensor:
        """Which of the pairs a law may see, (n,)."""
        others = torch.ones(len(self.theta), dtype=torch.bool)
        others[self.held] = self.whole
        return others

    @cached_property
    def numbers(self) -> Tensor:
        """What laws see of theta, (n, c)."""
        return numbers_of(self.theta, self.density.support)

    def beyond(self, x: Tensor, view: View = lambda x: x) -> Past:
        """Numbers of theta and x of the pairs with x (n, p), and of past ones not far from them.

        For laws that are of one form wherever theta lies. What they see of past x is a ``view``.
        """
        numbers, x = self.numbers[self.others], x[self.others]
        if self.past is None:
            return numbers, x
        past = numbers_of(self.past[0], self.density.support)
        near = (((past - numbers.mean(dim=0)) / numbers.std(dim=0)).abs() <= _NEAR).all(dim=1)
        if not near.any():  # a view of nothing may fail
            return numbers, x
        return both((numbers, x), (past[near], view(self.past[1][near])))

    def of_features(self, features: Tensor, on_epoch: Progress) -> Likelihood:
        """That of what the answer's flows see of x, (n, k).

        Raises:
            ValueError: if no loss is finite.
        """
        numbers = self.numbers
        given = Conditioning(build_encoder("flat", numbers), numbers, numbers[0], "flat")
        learned, _ = fit_flow(
            features, Support.everywhere(features.shape[1]), settings=self.settings,
            training=self.training, seed=self.seed, given=given, on_epoch=on_epoch,
            known=self.others,
        )  # fmt: skip
        of_theta = cast("ConditionalFlows", ConditionalFlows.of(replace(learned, held=())))
        return Likelihood(OfFeatures(of_theta), self.density)

    def of_noise(self, features: Tensor, view: View, on_epoch: Progress) -> list[Likelihood]:
        """That of features (n, k), a view of x, as a place that theta says and noise of any law.

        Raises:
            ValueError: if no loss is finite.
        """
        known = self.beyond(features, view)
        law = learn_additive(*known, seed=child_seed(self.seed, 5), on_epoch=on_epoch)
        return [] if law is None else [Likelihood(law, self.density)]

    def of_items(self, x: Tensor, layout: Layout, on_epoch: Progress) -> Likelihood:
        """That of each item of x (n, p), among which some may be missing.

        Raises:
            ValueError: if no loss is finite.
        """
        items = layout.items(x)
        there = items.isfinite().all(dim=2)
        encoder = build_encoder("flat", self.numbers).eval()
        seen = features_of(encoder, self.numbers)
        rows, given = items[there], seen[there.nonzero()[:, 0]]
        known = self.others[there.nonzero()[:, 0]]
        trend, _ = fit_trend(rows[known], given[known])
        rest = torch.zeros_like(items)
        rest[there] = varied(trend.to_rest(rows, given), rows, child_seed(self.seed, 1))
        settings = self.settings.halved().for_rows(len(rows))
        flow = self._trained((rest, seen, there.float()), settings, on_epoch)
        encoders = FittedEncoders(nn.ModuleList([encoder]), "flat", PLAIN, self.numbers.shape[1])
        everywhere = Support.everywhere(items.shape[2])
        model = FlowModel(flow, everywhere, trend, seen[:1], settings, (), encoders)
        return Likelihood(OfItems(ConditionalFlows(model, encoders), layout), self.density)

    def of_values(self, x: Tensor) -> list[Likelihood]:
        """That of each value of x (n, p), and another where its noise may have tails."""
        laws = learn_values(self.numbers[self.others], x[self.others], self.beyond(x))
        return [Likelihood(law, self.density) for law in laws]

    def of_curves(self, x: Tensor, on_epoch: Progress) -> list[Likelihood]:
        """That of values of x (n, p) whose means are a network of theta, if all are measured.

        Raises:
            ValueError: if no loss is finite.
        """
        law = learn_emulator(
            self.numbers[self.others], x[self.others], device=self.training.device,
            seed=child_seed(self.seed, 3), on_epoch=on_epoch,
        )  # fmt: skip
        return [] if law is None else [Likelihood(law, self.density)]

    def of_family(self, x: Tensor) -> list[Likelihood]:
        """That of values of x (n, p) as an exponential family, if there are pairs enough."""
        used = one_each(self.density.support)
        law = learn_natural(self.numbers[self.others], used, x[self.others])
        return [] if law is None else [Likelihood(law, self.density)]

    def of_potential(self, natural: Natural, x: Tensor, on_epoch: Progress) -> list[Likelihood]:
        """That of values of x (n, p) as a family whose moments fit together, if there are enough.

        Raises:
            ValueError: if no loss is finite.
        """
        law = learn_potential(
            natural, *self.beyond(x), device=self.training.device,
            seed=child_seed(self.seed, 4), on_epoch=on_epoch,
        )  # fmt: skip
        return [] if law is None else [Likelihood(law, self.density)]

    def _trained(
        self, data: tuple[Tensor, Tensor, Tensor], settings: FlowSettings, on_epoch: Progress
    ) -> nn.ModuleList:
        """A flow of items less their trend (n, k, m), given what is seen of theta (n, c).

        The third of ``data`` says which of the items are there, (n, k).
        """
        from ..compiled.training import trainable

        _, each, width = data[0].shape
        flow = build_flow(width, data[1].shape[1], settings, child_seed(self.seed, 2))
        quick = trainable(flow, self.training.device)

        def parts(rest: Tensor, seen: Tensor, there: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            shares = there.flatten() / there.sum().clamp_min(1.0)
            return rest.flatten(0, 1), seen.repeat_interleave(each, dim=0), shares

        def loss(*rows: Tensor) -> Tensor:
            items, given, shares = parts(*rows)
            return -(quick.log_prob(items, given) * shares).sum()

        pairs = max(1, _ROWS_EACH * self.training.batch_size // each)
        training = replace(self.training, batch_size=pairs)

        def descend(*rows: Tensor) -> Tensor:
            return quick.descend(*parts(*rows))

        split = first_split(self.seed)
        log = train(quick, loss, data, training, split, on_epoch, descend=descend)
        check_trained(log, "a flow of items")
        quick.write_to(flow)
        return nn.ModuleList([flow.eval()])


def prior_flow(
    prior: Prior, support: Support, settings: FlowSettings, training: TrainingSettings, seed: int
) -> FlowModel:
    """The prior's density, found from its draws: files need it, and a prior may offer none.

    One that is normal on the real line, as a uniform one is there, is its trend alone.
    """
    draws = sample_prior(prior, _PRIOR_DRAWS, child_seed(seed, 0))
    if has_density(prior):
        straight = replace(settings, num_transforms=0)
        untrained = nn.ModuleList([build_flow(draws.shape[1], 0, straight, seed)])
        trend, _ = fit_trend(support.to_real(draws), None)
        plain = FlowModel(untrained, support, trend, None, straight)
        away = prior_log_prob(prior, draws) - plain.log_prob(draws)
        constants = trend.dim * (trend.dim + 3) / 2
        if float(away.std()) < _NOISE * math.sqrt(constants / len(draws)):
            return plain
    shorter = training.shortened(_PRIOR_STEPS)
    found, _ = fit_flow(draws, support, settings=settings, training=shorter, seed=seed)
    return replace(found, held=())
