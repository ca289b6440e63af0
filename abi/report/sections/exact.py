"""How far the posterior is from the exact one, where the simulator knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from validation.page import Facts, Section, Text
from validation.words import number

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
        ("accuracy of a classifier (C2ST)", f"{found.accuracy:.3f}"),
        ("largest shift of a mean", f"{number(found.shift, 2)} sd ({found.shifted})"),
        ("sd ÷ exact sd", f"{found.ratios[0]:.2f} to {found.ratios[1]:.2f}"),
        ("draws compared", f"{found.num_draws:,} of each"),
    )
    text = (
        "The accuracy is 0.5 where a classifier cannot tell draws of the two apart, and 1 where it "
        "always can. Shifts are in standard deviations of the exact posterior."
    )
    return Section(f"{key}-exact", "Against the exact posterior", (Facts(items), Text(text, True)))


def exact_words(found: Distance) -> str:
    """The line of the verdict."""
    return (
        f"A classifier tells its draws from exact ones with accuracy {found.accuracy:.2f} (0.5 is "
        f"chance); means are off by at most {number(found.shift, 2)} sd, and sds are "
        f"{found.ratios[0]:.2f} to {found.ratios[1]:.2f} times the exact ones."
    )
