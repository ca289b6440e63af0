"""A study from data to figures: influenza in six boarding schools, with days without counts.

The first school is real: 14 daily counts of boys in bed in a school of 763, England 1978. The
others are made up, with known parameters, and three of them lack the days on which nobody counted.

    python examples/outbreaks.py runs/outbreaks        # 4 minutes

asks, in this order: what are the parameters in each school (one fit for all six), and may each
answer be trusted? What does a fit of its own say of the real one? Do boys in bed go on infecting
others (two models compared)? It prints tables and leaves posteriors, a picture of the schools side
by side, and one of the data predicted for the real one.

Source of the counts: Anonymous (1978), "Influenza in a boarding school", British Medical Journal
1, 587.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import uniform

import abi

Array = NDArray[Any]

BOYS, DAYS, STEPS = 763, 14, 8  # steps a day
COUNTED = (3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4)
PRIOR = {
    "R0": uniform(1.2, 6.8),  # infected by one boy among many who are not immune
    "days infectious": uniform(0.5, 3.5),  # before he goes to bed
    "days in bed": uniform(0.5, 4.5),
    "first infected": uniform(1.0, 14.0),  # on the evening before the first count
}


def school(theta: Array, rng: np.random.Generator) -> Array:
    """Roots of the boys in bed on 14 days, (n, 14): the sick infect others until they go to bed.

    The noise of a count's root is the same at all sizes, so that early days count as much as late.
    """
    return _outbreak(theta, 0.0, rng)


def visited_school(theta: Array, rng: np.random.Generator) -> Array:
    """The same where those in bed infect others, half as often."""
    return _outbreak(theta, 0.5, rng)


def _outbreak(theta: Array, in_bed: float, rng: np.random.Generator) -> Array:
    """A chain-binomial model (n, 4) -> (n, 14): well, infectious, in bed, immune.

    Illness and rest have two stages each, so that few are over at once.
    """
    r0, infectious, rest, first = theta.T
    leaves = [1.0 - np.exp(-2.0 / (STEPS * days)) for days in (infectious, infectious, rest, rest)]
    rate = r0 / (infectious + in_bed * rest) / BOYS / STEPS
    well = BOYS - np.round(first).astype(int)
    stages = [BOYS - well, *(np.zeros_like(well) for _ in range(3))]
    counts = []
    for step in range(DAYS * STEPS):
        force = rate * (stages[0] + stages[1] + in_bed * (stages[2] + stages[3]))
        moves = [rng.binomial(well, 1.0 - np.exp(-force))]
        moves += [rng.binomial(n, share) for n, share in zip(stages, leaves, strict=True)]
        well = well - moves[0]
        stages = [n + moves[k] - moves[k + 1] for k, n in enumerate(stages)]
        if step % STEPS == STEPS - 1:
            counts.append(stages[2] + stages[3])
    return np.sqrt(np.stack(counts, axis=1))


def six_schools() -> tuple[list[Array], list[Array | None]]:
    """Roots of each school's counts, NaN where nobody counted, and true parameters where known."""
    truths = np.array(
        [[3.0, 1.5, 2.5, 4.0], [5.0, 2.0, 2.0, 2.0], [2.2, 1.0, 3.0, 8.0], [4.0, 1.2, 1.5, 3.0],
         [6.0, 2.5, 2.0, 1.0]]
    )  # fmt: skip
    made = school(truths, np.random.default_rng(1978))
    for row, gaps in {0: [5, 6, 12, 13], 2: [0, 1, 2], 4: [4, 7, 8, 11]}.items():
        made[row, gaps] = np.nan
    return [np.sqrt(COUNTED), *made], [None, *truths]


def side_by_side(posteriors: abi.Posteriors, truths: list[Array | None], path: Path) -> None:
    """Each parameter's median and central 90% in every school, and the truth where it is known."""
    from matplotlib.figure import Figure

    figure = Figure((8.0, 2.6), layout="constrained")
    panels = figure.subplots(1, len(PRIOR), sharey=True)
    for place, (axis, name) in enumerate(zip(panels, PRIOR, strict=True)):
        for row, (posterior, truth) in enumerate(zip(posteriors, truths, strict=True)):
            draws = posterior.sample((4_000,))[:, place].numpy()
            low, middle, high = np.quantile(draws, [0.05, 0.5, 0.95])
            axis.plot([low, high], [row, row], color="#2a5d9f", linewidth=2.5)
            axis.plot(middle, row, "o", color="#2a5d9f", markersize=4)
            if truth is not None:
                axis.plot(truth[place], row, "|", color="#d1662b", markersize=14, markeredgewidth=2)
        axis.set_xlabel(name)
        axis.set_xlim(PRIOR[name].support())
    panels[0].set_yticks(range(len(posteriors)), ["1978", "A", "B", "C", "D", "E"])
    panels[0].invert_yaxis()
    figure.savefig(path, dpi=150)


def main(folder: Path) -> None:
    """The whole study, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    counts, truths = six_schools()
    posteriors = abi.fit_many(PRIOR, school, counts, num_simulations=8_000, seed=1)
    print(posteriors)
    # The school in question has a fit of its own: all calls go where its posterior is.
    real = abi.fit(PRIOR, school, counts[0], num_simulations=4_000, seed=1)
    posteriors = abi.Posteriors((real, *posteriors[1:]))
    print(f"\nthe school of 1978\n{real.summary()}\n\n{real.verdict}")
    posteriors.save(folder / "posteriors")
    side_by_side(posteriors, truths, folder / "schools.png")
    figure = real.plot_predictive(times=range(1, DAYS + 1), num_series=1)
    figure.savefig(folder / "predicted.png", dpi=150)

    models = {"bed isolates": (PRIOR, school), "bed does not": (PRIOR, visited_school)}
    compared = abi.compare_models(models, counts[0], num_simulations=6_000, seed=2)
    print(f"\n{compared}")
    compared.save(folder / "models.safetensors")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/outbreaks"))
