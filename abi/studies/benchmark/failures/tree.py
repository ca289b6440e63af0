"""Figures 1 and 6 of the CoLT paper: who sees draws that lie a little beside a thin tree?"""

from __future__ import annotations

from typing import Any

from validation import ColtTraining, Training, WholeTest
from validation.perturbations import tree

from ..experiment import Experiment, Ordering, Part, Published
from .trials import batches, colt_tests, hidden_units

_IN_THE_TEXT = {
    ("CoLT Full", 1.5): Published(0.877, 0.0),
    ("CoLT Full", 4.0): Published(1.000, 0.0),
    ("C2ST", 1.5): Published(0.000, 0.0),
    ("C2ST", 4.0): Published(0.065, 0.0),
}


def tree_curves(quick: bool) -> Experiment:
    """The experiment; quick: three strengths, one seed, 20 batches, smaller networks."""
    failure = tree()
    strengths = (0.0, 1.5, 4.0) if quick else failure.strengths
    sizes = (1_000, *batches(quick))
    part = Part("tree", failure, _tests(quick), strengths, *sizes, _IN_THE_TEXT)
    return Experiment(
        "The tree",
        "Chen, Bansal & Scott (2025), Section 1 and Figure 1 (four numbers in the text)",
        "The branches are drawn anew: theirs are in code under another licence. Networks trained"
        " once a seed on 1,000 pairs, then batches of 1,000, 100 draws each.",
        (part,),
        (
            Ordering(
                "CoLT Full is above C2ST, SBC and TARP", "Figure 1, caption", "CoLT Full",
                ("C2ST", "SBC", "TARP"),
            ),
        ),
    )  # fmt: skip


def _tests(quick: bool) -> dict[str, Any]:
    hidden = hidden_units(quick)
    rate, epochs = (1e-4, 1_000) if quick else (1e-5, 5_000)
    # On a thin tree q's core says nothing of its shape.
    balls = ColtTraining(
        hidden=hidden, learning_rate=rate, epochs=epochs, anchors_per_epoch=200, whiten=False
    )
    return colt_tests(100, balls, Training(hidden=hidden)) | {
        "score-rank": WholeTest("score_rank"),
        "HPD": WholeTest("hpd", {"num_samples": 100}),
    }
