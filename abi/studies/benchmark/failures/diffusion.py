"""Figures 4 and 7 of the CoLT paper: who sees that a diffusion model stopped too early?"""

from __future__ import annotations

from typing import Any

from validation import ColtTraining, Training, WholeTest
from validation.perturbations import DiffusionTraining, Failure, spiral

from ..experiment import Experiment, Part, Place
from .trials import batches, colt_tests, hidden_units


def diffusion_steps(quick: bool) -> Experiment:
    """The experiment; quick: a small model, 300 pairs in place of 1,000, one seed, 20 batches."""
    # The paper's 50,000 epochs over 32,768 pairs are read as steps.
    training = (
        DiffusionTraining()
        if quick
        else DiffusionTraining(hidden=(256, 256, 256), learning_rate=1e-4, steps=50_000)
    )

    def failure(place: Place) -> Failure:
        return spiral(training, folder=place.cells, progress=place.progress)

    strengths = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    sizes = (300 if quick else 1_000, *batches(quick))
    part = Part("spiral", failure, _tests(quick), strengths, *sizes)
    return Experiment(
        "The spiral: a diffusion model that stops too early",
        "Chen, Bansal & Scott (2025), Appendices C.3 and D.4, Figures 4 and 7 (curves, no numbers:"
        " CoLT's statistic grows with every step left out, its level is kept)",
        "The truth is what the model draws after 20 reverse steps; strength a is the estimate after"
        " 20 - a. The model's size and the scale of theta are ours, for the paper gives neither."
        " Networks of the tests trained once a seed; CoLT whitens theta by q's core. The figures"
        " show CoLT alone.",
        (part,),
    )


def _tests(quick: bool) -> dict[str, Any]:
    num_samples = 100 if quick else 200
    hidden = hidden_units(quick)
    # Smaller networks learn from larger steps.
    balls = ColtTraining(hidden=hidden, learning_rate=1e-4 if quick else 1e-5)
    return colt_tests(num_samples, balls, Training(hidden=hidden)) | {
        "score-rank": WholeTest("score_rank", {"num_samples": num_samples}),
    }
