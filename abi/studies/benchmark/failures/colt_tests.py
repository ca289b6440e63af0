"""The tests that every experiment of the CoLT paper compares, and our residual embedding."""

from __future__ import annotations

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
