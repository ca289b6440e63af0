"""Several tests on the same draws of q, and the same tests on what is wrong on purpose."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..posteriors.draws import drawn
from ..posteriors.recognise import as_posterior
from ..posteriors.shared_draws import SharedDraws, wrong_on_purpose
from ..posteriors.stored_samples import StoredSamples
from ..results.result import ValidationResult
from ..scores.frames import num_frame_draws
from ..scores.uniformity import holm
from ..seeds import part_seed
from .registry import METHODS

LOCAL = ("lc2st", "local_hpd")
"""The tests that answer at an x_o; the others are about all x, whatever x_o they could take."""


@dataclass(frozen=True, eq=False)
class Together:
    """What all tests are given.

    Attributes:
        shared: q, sampled once at the pairs' x.
        theta: of the pairs, (N, d).
        x: of the pairs, (N, p).
        x_o: for the local tests, (m, p).
        num_samples: K, draws of q an observation.
        seed: of the tests.
    """

    shared: SharedDraws
    theta: Tensor
    x: Tensor
    x_o: Tensor | None
    num_samples: int
    seed: int

    def test(self, name: str) -> ValidationResult:
        """One test of q.

        Raises:
            ValueError, NotImplementedError: if it cannot run on this posterior.
        """
        return self._test(name, self.shared, self.num_samples)

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
                    p_values.append(self._test(name, q, min(self.num_samples, most)).p_value)
                except (ValueError, NotImplementedError):
                    p_values.append(1.0)
                advance()
            found[control] = dict(zip(names, holm(p_values), strict=True))
        return found

    def _test(self, name: str, q: SharedDraws, num_samples: int) -> ValidationResult:
        if name in ("colt", "colt_identity"):
            frame = num_frame_draws(self.theta.shape[1])
            num_samples = max(1, min(num_samples, len(q.stored.samples) - frame))
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
        if self.x_o is not None and name in LOCAL:
            keywords["x_o"] = self.x_o
        return keywords


def together(
    q: Any, theta: Tensor, x: Tensor, x_o: Tensor | None, num_samples: int, seed: int
) -> Together:
    """Draw once, enough for the test that needs most (CoLT's frame comes on top of K)."""
    posterior = as_posterior(q)
    needed = num_samples + num_frame_draws(theta.shape[1])
    if isinstance(posterior, StoredSamples):
        needed = min(needed, len(posterior.samples))
    samples = drawn(posterior, needed, x, theta.shape[1], part_seed(seed, 100))
    shared = SharedDraws(posterior, StoredSamples(x, samples))
    return Together(shared, theta, x, x_o, min(num_samples, needed), seed)
