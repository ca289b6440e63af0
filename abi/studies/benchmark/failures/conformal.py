"""Figures 1, 2 and 6 to 11 of the conformal paper: good, weak and moved classifiers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from validation import FixedScore, ScoreTest, TrainedScore, Training, WholeTest
from validation.perturbations import LinearScore, bivariate, nptbench

from ..experiment import Experiment, Ordering, Part
from .images import image_parts
from .sphere import sphere_parts
from .trials import by_weakness, hidden_units, score_tests

_MAIN_TEXT = ("mean_shift", "covariance", "anisotropic", "t_tails")
_STRENGTHS = {
    "mean_shift": (0.0, 0.02, 0.04, 0.06, 0.08, 0.1),
    "covariance": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
    "anisotropic": (0.0, 0.25, 0.5, 0.75, 1.0, 1.5),
    "t_tails": (0.0, 0.05, 0.1, 0.15, 0.2, 0.3),
    "additional_mode": (0.0, 0.02, 0.04, 0.06, 0.08, 0.1),
    "mode_collapse": (0.0, 0.02, 0.04, 0.06, 0.08, 0.1),
}
_WEAKNESSES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
"""b, from the trained network to its start."""
_DISCRIMINATIVE = {"DC, rows permuted": "rows", "DC, labels permuted": "labels"}
"""Discriminative calibration by its null."""


def conformal(quick: bool) -> Experiment:
    """The experiment; quick: the four failures of the main text at three strengths, 20 batches."""
    names = _MAIN_TEXT if quick else tuple(_STRENGTHS)
    repetitions, num_seeds = (10, 2) if quick else (200, 3)
    weak = partial(TrainedScore, training=_network(quick))
    parts = []
    for name in names:
        failure = nptbench(name)
        strengths = _STRENGTHS[name][::2] if quick else _STRENGTHS[name]
        weaknesses = (0.0, 0.95) if quick else _WEAKNESSES
        studies = {
            "trained": (_tests(quick), strengths),
            "weak": (by_weakness(score_tests(200), weaknesses, weak), _STRENGTHS[name][-1:]),
        }
        parts += [
            Part(f"{name},{how}", failure, tests, at, 1_000, repetitions, num_seeds)
            for how, (tests, at) in studies.items()
        ]
    seeds = 1 if quick else 3
    parts.append(Part("boundary", bivariate(), _boundaries(), (0.5,), 100, 200, seeds))
    parts += sphere_parts(quick, _discriminative(quick)) + image_parts(quick)
    return Experiment(
        "Conformal C2ST with trained, weak and moved classifiers",
        "The surprising strength of weak classifiers, Figures 1 to 3 and 5 to 11 (curves)",
        "Classifiers trained once a seed on 1,000 pairs and as many of q, then batches of 1,000"
        " points of q. b moves the network back to its start. C2ST by the paper's normal p-value,"
        " and by ours, which is exact given how often p is called. Boundary: 100 points, for the"
        " paper does not say how many. Sphere: the exact log density ratio, blurred by noise of"
        " deviation b; its strengths and noise are ours, for the paper prints none. Images:"
        " features of Inception-v3, the class one-hot; noise drawn once an image, no dropout.",
        tuple(parts),
        tuple(_orderings(names)),
    )


def _orderings(names: tuple[str, ...]) -> Iterator[Ordering]:
    for name in names:
        trained, weak = (name, "trained"), (name, "weak")
        for first in ("uniform(200)", "multiple"):
            yield Ordering(
                f"{first} is above C2ST, {name}", "Figure 2a, Results", first, ("C2ST",), trained
            )
            yield Ordering(
                f"{first} matches or outperforms SBC, TARP and DC, {name}", "Figure 2a, Results",
                first, ("SBC", "TARP", *_DISCRIMINATIVE), trained, strict=False,
            )  # fmt: skip
            for b in _WEAKNESSES[1:-1]:
                yield Ordering(
                    f"{first} is above C2ST at b = {b:g}, {name}", "Figure 2b, Results",
                    f"{first}, b = {b:g}", (f"C2ST, b = {b:g}",), weak,
                )  # fmt: skip


def _tests(quick: bool) -> dict[str, Any]:
    network = _network(quick)
    sizes = (10, 200) if quick else (1, 2, 5, 10, 20, 50, 200)
    uniform = {
        f"uniform({m})": TrainedScore(ScoreTest("uniform", m), training=network) for m in sizes
    }
    return uniform | {
        "multiple": TrainedScore(ScoreTest("multiple"), training=network),
        "C2ST": TrainedScore(ScoreTest("c2st_normal"), training=network),
        "C2ST, exact": TrainedScore(ScoreTest("c2st"), training=network),
        "SBC": WholeTest("sbc", {"num_samples": 200}),
        "TARP": WholeTest("tarp", {"num_samples": 200}),
        **_discriminative(quick),
    }


def _discriminative(quick: bool) -> dict[str, Any]:
    """Discriminative calibration, too dear for the quick setting."""
    return {
        name: WholeTest(
            "discriminative_calibration",
            {"num_samples": 10, "null": null, "num_permutations": 99, "training": _network(quick)},
        )
        for name, null in ({} if quick else _DISCRIMINATIVE).items()
    }


def _network(quick: bool) -> Training:
    return Training(hidden=hidden_units(quick), learning_rate=1e-3)


def _boundaries() -> dict[str, Any]:
    """Figure 1: the boundary moved by c, and turned by an angle."""
    kinds = {"uniform(200)": ScoreTest("uniform", 200), "C2ST": ScoreTest("c2st_normal")}
    scores = {f"moved {shift:g}": LinearScore(0.5, shift) for shift in (0.0, 0.5, 1.0, 2.0)}
    turns = (30, 60, 75, 90)
    scores |= {f"turned {t}°": LinearScore(0.5, angle=math.radians(t)) for t in turns}
    return {
        f"{name}, {how}": FixedScore(test, score)
        for how, score in scores.items()
        for name, test in kinds.items()
    }
