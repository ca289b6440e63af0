"""Which likelihoods are tried, and in which order: those with fewest numbers to find come first.

Where x is a list of items, their likelihood is tried first, and others where it gains nothing, as
where items depend on each other. (Of slcp, four points whose law has five parameters, mean C2ST
fell from .89 to .80 with 1,000 calls, five fits, and from .61 to .55 with 10,000, four.) A list of
many items is left to its features, which say all that they share. Of other x those of the values
are tried: normal, with tails of rows or of each value, with means that are a network where values
are more than parameters, an exponential family. (Of ten epidemics with 1,000 calls mean C2ST fell
from .60 to .56; of a GLM with a hundred answers of yes or no from .80 to .74, and from .60 to .56
with 10,000.) The last is that of features, and where pairs are few another, whose noise is the same
at every theta. (Of ten two moons with 1,000 calls it made mean C2ST fall from .58 to .54. With
10,000 it gained .02 nats more than any noise, and where the moons touch C2ST was .53 and not .50.)

Pairs held out choose among them (:mod:`.power`). A law of values that is a linear model is then
learned again, with these, which takes next to no time. (Of twenty-nine fits with 1,000 calls mean
C2ST fell by .005; of eight, by .013, where a hundred answers of yes or no have 1,100 coefficients.)
Laws of yes and no, potentials, and noise that is the same at every theta hold wherever theta lies:
they see earlier rounds' pairs, too, from within six sds of these. (Of those eight, C2ST fell by
.009 more; of six GLMs, by .019.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from ...encoders.choice import features_of, features_of_pairs, is_list
from ...encoders.fitted import FittedEncoders
from ..base import GenerativeModel, Progress
from .emulator import Emulator
from .learning import Learning
from .likelihood import Law, Likelihood
from .model import PooledFlows
from .potential import Potential
from .values.law import OfValues
from .values.natural import Natural

Learned = Callable[[Learning, Progress], list[Likelihood]]

_EACH = 5  # features, or values of an item, at most for each parameter
_MANY = 10  # values for each parameter, and more
_MOST_ITEMS, _MOST_VALUES = 20, 128
_FEW_PAIRS = 2_000


@dataclass(frozen=True, eq=False)
class Candidate:
    """A likelihood, and the way in which it, and others, were learned."""

    likelihood: Likelihood
    way: Learned

    def of_all_pairs(self, learning: Learning) -> Likelihood | None:
        """The same from pairs held out, too; None where that takes long, or it is another."""
        if not isinstance(self.likelihood.law, OfValues | Natural | Potential):
            return None
        found = _found(self.way, replace(learning, whole=True), lambda share: None)
        same = [other for other in found if _kind(other) == _kind(self.likelihood)]
        return same[0] if same else None


def region_ways(
    encoders: FittedEncoders, x: Tensor, theta_dim: int, before: GenerativeModel | None
) -> list[Learned]:
    """Those that say where to simulate: of many values, all measured.

    Where a network of theta gave the region ``before``, nothing else is tried: in a fit to a wave,
    with six rounds, other laws took a tenth of the time and were never taken.
    """
    curved = isinstance(before, PooledFlows) and isinstance(before.likelihood.law, Emulator)

    def of_measured(learning: Learning, told: Progress) -> list[Likelihood]:
        curves = learning.of_curves(x, told)
        return curves if curved or not curves else [*learning.of_values(x), *curves]

    if not _valued(encoders, x) or x.shape[1] <= _MANY * theta_dim:
        return []
    return [of_measured]


def ways_to_learn(
    encoders: FittedEncoders, x: Tensor, num_features: int, theta_dim: int
) -> list[Learned]:
    """The likelihoods to try, in their order."""
    layout = encoders.layout

    def of_items(learning: Learning, told: Progress) -> list[Likelihood]:
        return [learning.of_items(x, layout, told)]

    def of_values(learning: Learning, told: Progress) -> list[Likelihood]:
        return learning.of_values(x)

    def of_curves(learning: Learning, told: Progress) -> list[Likelihood]:
        return learning.of_curves(x, told)

    def of_family(learning: Learning, told: Progress) -> list[Likelihood]:
        return learning.of_family(x)

    encoder = encoders.modules[0]

    def features(learning: Learning) -> Tensor:
        z = learning.density.support.to_real(learning.theta)
        return features_of_pairs(encoder, x, z)

    def of_features(learning: Learning, told: Progress) -> list[Likelihood]:
        return [learning.of_features(features(learning), told)]

    def of_noise(learning: Learning, told: Progress) -> list[Likelihood]:
        return learning.of_noise(features(learning), partial(features_of, encoder), told)

    few = 1 < layout.length(x.shape[1]) <= _MOST_ITEMS and layout.width <= _EACH * theta_dim
    listed = few and is_list(layout, encoders.name)
    valued = _valued(encoders, x)
    ways = [
        (of_items, listed),
        (of_values, valued),
        (of_curves, valued and x.shape[1] > theta_dim),
        (of_family, valued),
        (of_features, num_features <= _EACH * theta_dim),
        (of_noise, num_features <= _EACH * theta_dim and len(x) < _FEW_PAIRS),
    ]
    return [way for way, possible in ways if possible]


def _valued(encoders: FittedEncoders, x: Tensor) -> bool:
    """Whether values of x (n, p) have laws of their own: not of very many, nor of few pairs."""
    return encoders.layout.missing == "nothing" and x.shape[1] <= min(_MOST_VALUES, len(x) // 4)


def closer(law: Law, x: Tensor) -> list[Learned]:
    """What is tried after a law that pairs gain by: after an exponential family, the closer one."""
    if not isinstance(law, Natural):
        return []

    def of_potential(learning: Learning, told: Progress) -> list[Likelihood]:
        return learning.of_potential(law, x, told)

    return [of_potential]


def candidates(
    ways: list[Learned], learning: Learning, on_epoch: Progress | None
) -> Iterator[Candidate]:
    """Likelihoods, one after another; those without a finite loss are left out."""
    for number, learned in enumerate(ways):

        def told(share: float, before: int = number) -> None:
            if on_epoch is not None:
                on_epoch((before + share) / len(ways))

        for likelihood in _found(learned, learning, told):
            yield Candidate(likelihood, learned)


def _found(way: Learned, learning: Learning, told: Progress) -> list[Likelihood]:
    """Those of a way; none where one has no finite loss."""
    try:
        return way(learning, told)
    except (ValueError, torch.linalg.LinAlgError):  # type: ignore[attr-defined]
        return []


def _kind(likelihood: Likelihood) -> tuple[object, ...]:
    """Of which form a law is: of values with their tails, or another."""
    law = likelihood.law
    return (law.apart.item(), law.tails.shape) if isinstance(law, OfValues) else (type(law),)
