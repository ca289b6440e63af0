"""What the experiments share: tests of both papers by name, and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from validation import ColtTraining, ScoreTest, TrainedColt, TrainedScore, Training, WholeTest


def colt_tests(num_samples: int, balls: ColtTraining, network: Training) -> dict[str, Any]:
    """Name -> trial: CoLT thrice, C2ST, SBC and TARP, with ``num_samples`` draws of q a pair."""
    return {
        "CoLT ID": TrainedColt("identity", num_samples, balls),
        "CoLT Full": TrainedColt("full", num_samples, balls),
        "CoLT residual": TrainedColt("residual", num_samples, balls),
        "C2ST": TrainedScore(ScoreTest("c2st_normal"), training=network),
        "SBC": WholeTest("sbc", {"num_samples": num_samples}),
        "TARP": WholeTest("tarp", {"num_samples": num_samples}),
    }


def score_tests(most: int) -> dict[str, ScoreTest]:
    """Name -> how a score is tested: conformal with ``most`` draws a pair and with all, C2ST."""
    return {
        f"uniform({most})": ScoreTest("uniform", most),
        "multiple": ScoreTest("multiple"),
        "C2ST": ScoreTest("c2st_normal"),
        "C2ST, exact": ScoreTest("c2st"),
    }


def by_weakness(
    kinds: Mapping[str, ScoreTest],
    values: Sequence[float],
    trial: Callable[[ScoreTest, float], Any],
) -> dict[str, Any]:
    """Name -> trial, every test at every b."""
    return {f"{name}, b = {b:g}": trial(test, b) for b in values for name, test in kinds.items()}


def batches(quick: bool) -> tuple[int, int]:
    """Batches a seed, and seeds."""
    return (20, 1) if quick else (200, 3)


def hidden_units(quick: bool) -> tuple[int, int]:
    """Of the networks of the tests."""
    return (64, 64) if quick else (256, 256)
