"""How far the posterior is from the exact one, where the simulator knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from validation.page import Facts, Section, Text
from validation.page.words import number

from ...pictures.marginals import Marginal
from ..sources import FitRecord

_MOST_DRAWS = 2_000


@dataclass(frozen=True)
class Distance:
    """Differences at this x_o."""

    accuracy: float
    """Of a classifier between the two samples: 1/2 is alike, 1 is apart."""
    shift: float
    """Largest difference of means, in exact standard deviations."""
    shifted: str
    ratios: tuple[float, float]
    """Smallest and largest ratio of standard deviations."""
    num_draws: int

    @property
    def far(self) -> bool:
        """Whether a reader of intervals would be misled: by half an sd, or by half a width."""
        low, high = self.ratios
        return self.shift > 0.5 or low < 1 / 1.5 or high > 1.5 or self.accuracy > 0.8


def distance_to_exact(
    record: FitRecord, marginals: Sequence[Marginal], seed: int
) -> Distance | None:
    """C2ST accuracy and moments against the exact posterior; None where it is not known."""
    from validation import c2st

    if record.exact is None:
        return None
    samples = record.samples
    num = min(len(samples), len(record.exact), _MOST_DRAWS)
    result = c2st(
        lambda num_samples, x: samples[:num_samples, None],
        torch.zeros(2, samples.shape[1]),
        torch.zeros(2, 1),
        x_o=torch.zeros(1),
        reference=record.exact[:num],
        seed=seed,
    )
    shifts = [(abs(m.shift), m.name) for m in marginals if m.shift is not None]
    ratios = [m.width_ratio for m in marginals if m.width_ratio is not None]
    shift, name = max(shifts, default=(0.0, ""))
    return Distance(
        result.statistic, shift, name, (min(ratios, default=1.0), max(ratios, default=1.0)), num
    )


def exact_section(found: Distance, key: str) -> Section:
    """The numbers, and what they mean."""
    items = (
        ("C2ST accuracy", f"{found.accuracy:.3f}"),
        ("largest shift of a mean", f"{number(found.shift, 3)} exact sds ({found.shifted})"),
        ("sd ÷ exact sd", f"{number(found.ratios[0], 3)} to {number(found.ratios[1], 3)}"),
        ("draws compared", f"{found.num_draws:,} of each"),
    )
    text = (
        "An accuracy of 0.5 means that a classifier cannot tell the two apart, 1 that it always "
        "can. It is measured, not tested: with enough draws any approximation is told apart."
    )
    return Section(f"{key}-exact", "Against the exact posterior", (Facts(items), Text(text, True)))


def exact_words(found: Distance) -> str:
    """The line of the verdict."""
    return (
        f"Against the exact posterior at this x_o: C2ST accuracy {found.accuracy:.2f} (0.5 is "
        f"alike); means off by up to {number(found.shift, 2)} exact sds ({found.shifted}); sds "
        f"{number(found.ratios[0], 2)} to {number(found.ratios[1], 2)} times the exact."
    )
