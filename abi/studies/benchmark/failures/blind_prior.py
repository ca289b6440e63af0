"""Tables 3 and 4 of the CoLT paper: who notices that the estimate is the prior?"""

from __future__ import annotations

from typing import Any

from validation import ColtTraining, ScoreTest, TrainedScore, Training, WholeTest
from validation.perturbations import DIMENSIONS, nptbench

from ..experiment import Experiment, Part, Published
from .trials import colt_tests, hidden_units

_POWER = {  # Table 3, in the order of DIMENSIONS
    "CoLT ID": ((1.000, 0.000), (1.000, 0.000), (1.000, 0.000), (1.000, 0.000)),
    "CoLT Full": ((0.975, 0.014), (0.778, 0.222), (0.693, 0.307), (0.452, 0.260)),
    "C2ST": ((1.000, 0.000), (1.000, 0.000), (0.847, 0.038), (0.122, 0.007)),
    "SBC": ((0.052, 0.004), (0.028, 0.007), (0.048, 0.007), (0.040, 0.015)),
    "TARP": ((0.053, 0.004), (0.047, 0.012), (0.035, 0.009), (0.068, 0.004)),
}
_LEVEL = {  # Table 4
    "C2ST": ((0.0767, 0.0044), (0.0433, 0.0067), (0.0200, 0.0050), (0.0233, 0.0073)),
    "CoLT Full": ((0.0400, 0.0076), (0.0400, 0.0029), (0.0517, 0.0109), (0.0467, 0.0093)),
    "CoLT ID": ((0.0567, 0.0093), (0.0550, 0.0076), (0.0467, 0.0044), (0.0433, 0.0017)),
    "SBC": ((0.0400, 0.0104), (0.0350, 0.0000), (0.0350, 0.0000), (0.0350, 0.0087)),
    "TARP": ((0.0367, 0.0093), (0.0383, 0.0017), (0.0517, 0.0109), (0.0433, 0.0017)),
}


def blind_prior(quick: bool) -> Experiment:
    """The experiment; quick: dimensions (3, 3) and (10, 10), fewer batches, smaller networks."""
    dimensions = DIMENSIONS[:2] if quick else DIMENSIONS
    parts = []
    for k, (x_dim, theta_dim) in enumerate(dimensions):
        published = {
            (test, strength): Published(*values[k])
            for strength, table in ((1.0, _POWER), (0.0, _LEVEL))
            for test, values in table.items()
        }
        failure = nptbench("blind_prior", x_dim, theta_dim)
        sizes = (100, 20 if quick else 200, 3)
        label = f"{x_dim},{theta_dim}"
        parts.append(Part(label, failure, _tests(quick), (0.0, 1.0), *sizes, published))
    return Experiment(
        "The prior in the place of the posterior",
        "Chen, Bansal & Scott (2025), Tables 3 (strength 1, power) and 4 (strength 0, level)",
        "Networks trained once a seed on 100 pairs, then judged on batches of 100, as in the paper."
        " CoLT whitens theta by q's core and maximises a Wasserstein distance; C2ST's network"
        " stops where it no longer helps. Not in the paper: CoLT residual, whose embedding is theta"
        " plus a network that starts at nothing; conformal; score-rank, which trains and tests"
        " within each batch of 100.",
        tuple(parts),
    )


def _tests(quick: bool) -> dict[str, Any]:
    num_samples = 100 if quick else 500
    hidden = hidden_units(quick)
    balls = ColtTraining(hidden=hidden, learning_rate=1e-3, epochs=300 if quick else 1_000)
    network = Training(hidden=hidden)
    return colt_tests(num_samples, balls, network) | {
        "conformal uniform(10)": TrainedScore(ScoreTest("uniform", 10), training=network),
        "score-rank": WholeTest("score_rank"),
    }
