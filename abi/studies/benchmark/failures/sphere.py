"""Figure 5 of the conformal paper: a RealNVP posterior in 100 dimensions whose base is moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from validation import RatioScore, WholeTest
from validation.perturbations import Failure, FlowTraining, sphere

from ..experiment import Part, Place
from .trials import by_weakness, score_tests

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

    kinds = score_tests(20 if quick else 200)
    draws = {"num_samples": 50 if quick else 200}
    tests = {
        **{name: RatioScore(test) for name, test in kinds.items()},
        "SBC": WholeTest("sbc", draws),
        "TARP": WholeTest("tarp", draws),
    }
    sizes = (500, 20, 1) if quick else (1_000, 200, 3)
    strengths = (0.0, 0.01, 0.02, 0.03) if quick else (0.0, 0.005, 0.01, 0.015, 0.02, 0.03)
    noise = (0.0, 0.2, 1.0) if quick else (0.0, 0.1, 0.2, 0.5, 1.0)
    return [
        Part("sphere,shift", failure, tests | dict(more_tests), strengths, *sizes),
        Part("sphere,noise", failure, by_weakness(kinds, noise, RatioScore), (_FIXED,), *sizes),
    ]
