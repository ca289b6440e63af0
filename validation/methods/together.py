"""Several tests on the same draws of q, and the same tests on what is wrong on purpose."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..posteriors.draws import Given, drawn
from ..posteriors.shared_draws import SharedDraws, wrong_on_purpose
from ..posteriors.stored_samples import StoredSamples
from ..results.result import ValidationResult
from ..scores.frames import num_frame_draws
from ..scores.uniformity import holm
from ..seeds import part_seed
from .panel import num_draws
from .registry import METHODS

LOCAL = ("lc2st", "local_hpd")
"""The tests that answer at an x_o alone; the others are about all x, whatever x_o they could take.
The panel answers at an x_o in :func:`~validation.validate_at`."""
NUM_SAMPLES = 200
"""K where nothing else is asked for; the panel takes fewer."""
_FRAMED = ("colt", "colt_identity")


@dataclass(frozen=True, eq=False)
class Together:
    """What all tests are given.

    Attributes:
        shared: q, sampled once at the pairs' x.
        theta: of the pairs, (N, d).
        x: of the pairs, (N, p).
        x_o: for the local tests, (m, p).
        num_samples: K, draws of q an observation; None for each test's own.
        seed: of the tests.
        at_x_o: whether the panel answers there too.
        apart: tests that draw for themselves.
    """

    shared: SharedDraws
    theta: Tensor
    x: Tensor
    x_o: Tensor | None
    num_samples: int | None
    seed: int
    at_x_o: bool = False
    apart: frozenset[str] = frozenset()

    def test(self, name: str) -> ValidationResult:
        """One test of q.

        Raises:
            ValueError, NotImplementedError: if it cannot run on this posterior.
        """
        return self._test(name, self.shared, len(self.shared.stored.samples))

    def controls(
        self, names: Sequence[str], advance: Callable[[], None]
    ) -> dict[str, dict[str, float]]:
        """Holm-adjusted p-values of the tests on each posterior that is wrong on purpose.

        A test that cannot run there, because it needs a density, has 1: it does not reject.
        """
        found = {}
        wrong = wrong_on_purpose(self.shared, self.theta, part_seed(self.seed, 101))
        for control, (q, most) in wrong.items():
            p_values = []
            for name in names:
                try:
                    p_values.append(self._test(name, q, most).p_value)
                except (ValueError, NotImplementedError):
                    p_values.append(1.0)
                advance()
            found[control] = dict(zip(names, holm(p_values), strict=True))
        return found

    def _test(self, name: str, q: SharedDraws, most: int) -> ValidationResult:
        """One test of a posterior that has at most so many draws an observation."""
        num_samples = draws_of(name, self.num_samples, *self.theta.shape)
        if name not in self.apart:
            num_samples = min(num_samples, most)
        if name in _FRAMED:
            if name not in self.apart:
                num_samples = min(num_samples, len(q.stored.samples))
            num_samples = max(1, num_samples - num_frame_draws(self.theta.shape[1]))
        keywords = self._keywords(name, q, num_samples)
        return METHODS[name](q, self.theta, self.x, seed=self.seed, **keywords)

    def _keywords(self, name: str, q: SharedDraws, num_samples: int) -> dict[str, Any]:
        """What of ``num_samples`` and ``x_o`` the test takes."""
        accepted = inspect.signature(METHODS[name]).parameters
        keywords: dict[str, Any] = {}
        if name == "lc2st":
            # Its draws are read at x_o, where a posterior of stored samples has no more than these;
            # what is wrong on purpose should cost no fit of its own there.
            if isinstance(self.shared.q, StoredSamples):
                keywords["num_samples"] = len(self.shared.q.samples)
            if q is not self.shared:
                keywords["num_samples"] = len(q.stored.samples)
        elif name == "discriminative_calibration":
            keywords["num_samples"] = min(10, num_samples)
        elif "num_samples" in accepted:
            keywords["num_samples"] = num_samples
        if self.x_o is not None and (name in LOCAL or (name == "panel" and self.at_x_o)):
            keywords["x_o"] = self.x_o
        return keywords


def together(
    pairs: Given,
    x_o: Tensor | None,
    num_samples: int | None,
    seed: int,
    names: Iterable[str],
    at_x_o: bool = False,
) -> Together:
    """Draw once, as often as that of the named tests needs which needs most.

    CoLT takes no more pairs than its draws, with those of the frame, fit into memory for. Where
    that is not all, it draws for itself at those it takes.
    """
    q, theta, x = pairs.q, pairs.theta, pairs.x
    needed = {name: draws_of(name, num_samples, *theta.shape) for name in names}
    apart = frozenset(
        name
        for name in needed
        if name in _FRAMED and not isinstance(q, StoredSamples)
        and pairs.that_fit(needed[name]) is not pairs
    )  # fmt: skip
    most = max((count for name, count in needed.items() if name not in apart), default=1)
    if isinstance(q, StoredSamples):
        most = min(most, len(q.samples))
    samples = drawn(q, most, x, theta.shape[1], part_seed(seed, 100))
    shared = SharedDraws(q, StoredSamples(x, samples))
    return Together(shared, theta, x, x_o, num_samples, seed, at_x_o, apart)


def draws_of(name: str, num_samples: int | None, pairs: int, width: int) -> int:
    """Draws of q an observation that a test takes: those of CoLT's frame come on top of K."""
    if name == "panel":
        most = num_draws(pairs, width)
        return most if num_samples is None else min(most, num_samples)
    count = NUM_SAMPLES if num_samples is None else num_samples
    return count + num_frame_draws(width) if name in _FRAMED else count
