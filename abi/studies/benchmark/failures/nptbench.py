"""Figures 3 and 8 to 13 of the CoLT paper: power over the strength of six failures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from validation import ColtTraining, TrainedColt, Training, WholeTest
from validation.perturbations import DIMENSIONS, NPTBENCH, nptbench

from ..experiment import Experiment, Ordering, Part
from .trials import batches, colt_tests, hidden_units

_TEXT = "Section 4, Results"
_RAW = ", theta as it is"
"""CoLT as the paper has it, without whitening: run where theta is curved, and for ``_IN_Q``."""
_IN_Q = "additional_mode"
"""The failure that is in q's own moments: whitening by all of q would hide it."""
_FRAMES = {"": "theta whitened", _RAW: "theta as it is"}
_SHOWN = ("covariance", "anisotropic", "t_tails", "additional_mode")
"""The failures of Figure 3, which the text speaks of."""


def power_curves(quick: bool) -> Experiment:
    """The experiment; quick: dimensions (3, 3), flat and curved, every other strength, one seed."""
    parts = []
    for x_dim, theta_dim in DIMENSIONS[:1] if quick else DIMENSIONS:
        for name in NPTBENCH[:-1]:
            for curved in (False, True):
                failure = nptbench(name, x_dim, theta_dim, curved=curved)
                strengths = failure.strengths[::3] if quick else failure.strengths
                shape = "curved" if curved else "flat"
                label = f"{name},{shape},{x_dim},{theta_dim}"
                tests = _tests(name, curved, quick)
                parts.append(Part(label, failure, tests, strengths, 100, *batches(quick)))
    return Experiment(
        "NPTBench: power over strength",
        "Chen, Bansal & Scott (2025), Figures 3 and 8 to 13 (curves, no numbers in print)",
        "Networks trained once a seed on 100 pairs, then judged on batches of 100, with the"
        " learning rates of the paper's Table 2; CoLT whitens theta by q's core, but for"
        " *theta as it is*, which is the paper's. Not in the paper: CoLT residual, whose embedding"
        " is theta plus a network that starts at nothing, and score-rank, which trains and tests"
        " within each batch of 100.",
        tuple(parts),
        tuple(_orderings()),
    )


def _orderings() -> Iterator[Ordering]:
    for name in _SHOWN:
        for form in _forms(name, curved=False):
            for test in ("CoLT Full", "CoLT ID"):
                yield Ordering(
                    f"{test} matches or exceeds C2ST, {name}, flat, {_FRAMES[form]}", _TEXT,
                    f"{test}{form}", ("C2ST",), (name, "flat"), strict=False,
                )  # fmt: skip
                yield Ordering(
                    f"{test} is above SBC and TARP, {name}, flat, {_FRAMES[form]}", _TEXT,
                    f"{test}{form}", ("SBC", "TARP"), (name, "flat"),
                )  # fmt: skip
        for form in _forms(name, curved=True):
            yield Ordering(
                f"CoLT Full is above CoLT ID, {name}, curved, {_FRAMES[form]}", _TEXT,
                f"CoLT Full{form}", (f"CoLT ID{form}",), (name, "curved"),
            )  # fmt: skip
            yield Ordering(
                f"CoLT ID matches or exceeds C2ST, SBC and TARP, {name}, curved, {_FRAMES[form]}",
                _TEXT, f"CoLT ID{form}", ("C2ST", "SBC", "TARP"), (name, "curved"), strict=False,
            )  # fmt: skip


def _forms(name: str, *, curved: bool) -> tuple[str, ...]:
    """What follows the names of CoLT's tests of a part: nothing, and ``_RAW`` where that runs."""
    return ("", _RAW) if curved or name == _IN_Q else ("",)


def _tests(name: str, curved: bool, quick: bool) -> dict[str, Any]:
    num_samples = 100 if quick else 500
    hidden = hidden_units(quick)
    # Smaller networks learn from larger steps.
    rate = 1e-4 if quick else 5e-5 if name == "additional_mode" else 1e-5
    epochs = 300 if quick else 25 if name == "mean_shift" else 1_000
    balls = ColtTraining(hidden=hidden, learning_rate=rate, epochs=epochs)
    raw = replace(balls, whiten=False)
    as_it_is = {
        f"CoLT ID{_RAW}": TrainedColt("identity", num_samples, raw),
        f"CoLT Full{_RAW}": TrainedColt("full", num_samples, raw),
    }
    return {
        **colt_tests(num_samples, balls, Training(hidden=hidden)),
        **(as_it_is if _RAW in _forms(name, curved=curved) else {}),
        "score-rank": WholeTest("score_rank"),
    }
