"""Figure 5 of the conformal paper: a RealNVP posterior in 100 dimensions whose base is moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from validation import RatioScore, ScoreTest, WholeTest
from validation.perturbations import Failure, FlowTraining, sphere

from ..experiment import Part, Place

_FIXED = 0.02


def sphere_parts(quick: bool, more_tests: Mapping[str, Any]) -> list[Part]:
    """Power over the shift of the base, and over the noise of the score at one shift.

    ``more_tests`` join the first.
    """
    training = (
        FlowTraining(hidden=(128,), epochs=40, num_pairs=20_000, learning_rate=5e-3, batch_size=250)
        if quick
        else FlowTraining()
    )

    def failure(place: Place) -> Failure:
        return sphere(training, folder=place.cells, progress=place.progress)

    sizes = (500, 20, 1) if quick else (1_000, 200, 3)
    strengths = (0.0, 0.01, 0.02, 0.03) if quick else (0.0, 0.005, 0.01, 0.015, 0.02, 0.03)
    noise = (0.0, 0.2, 1.0) if quick else (0.0, 0.1, 0.2, 0.5, 1.0)
    return [
        Part("sphere,shift", failure, _tests(quick) | dict(more_tests), strengths, *sizes),
        Part("sphere,noise", failure, _noisy_tests(noise, quick), (_FIXED,), *sizes),
    ]


def _kinds(quick: bool) -> dict[str, ScoreTest]:
    most = 20 if quick else 200
    return {
        f"uniform({most})": ScoreTest("uniform", most),
        "multiple": ScoreTest("multiple"),
        "C2ST": ScoreTest("c2st_normal"),
        "C2ST, exact": ScoreTest("c2st"),
    }


def _tests(quick: bool) -> dict[str, Any]:
    num_samples = 50 if quick else 200
    return {
        **{name: RatioScore(test) for name, test in _kinds(quick).items()},
        "SBC": WholeTest("sbc", {"num_samples": num_samples}),
        "TARP": WholeTest("tarp", {"num_samples": num_samples}),
    }


def _noisy_tests(noise: tuple[float, ...], quick: bool) -> dict[str, Any]:
    return {
        f"{name}, b = {b:g}": RatioScore(test, b)
        for b in noise
        for name, test in _kinds(quick).items()
    }
