"""May we trust that answer? Tests of any posterior with joint draws from prior and simulator.

What every test needs is a posterior q of any kind (:func:`as_posterior`), and pairs that q was not
trained on: parameters theta (N, d) from the prior, and x (N, p), what the simulator makes of each.

- :func:`validate` asks whether q is the posterior: one exact p-value, and in words what is wrong.
- :func:`validate_at` asks so at one observation x_o.
- Single tests have one signature, ``test(q, theta, x, *, seed=0, ...) -> ValidationResult``.
  ``METHODS`` has them by name; ``NOTES`` says what each can see and what it cannot.
- :func:`power` measures how often a test notices :mod:`~validation.perturbations`, posteriors that
  are wrong by a known amount.

>>> import torch
>>> from simulators import GaussianLinear, sample_joint
>>> theta, x = sample_joint(GaussianLinear(2, 1.0, 1.0), 300, seed=1)
>>> q = lambda x: torch.distributions.Normal(x / 2, 0.4)  # the spread should be 0.71
>>> import validation
>>> print(validation.validate(q, theta, x))  # doctest: +ELLIPSIS
rejected: p = 0.002 for q being the posterior, 300 pairs
  theta_1 is too narrow by ...
"""

from typing import TYPE_CHECKING

from simulators.lazy import lazily

if TYPE_CHECKING:
    from . import perturbations
    from .laboratory.rates import PowerRate, PowerStudy
    from .laboratory.study import power
    from .laboratory.trained_tests import (
        FixedScore,
        RatioScore,
        ScoreTest,
        TrainedColt,
        TrainedScore,
    )
    from .laboratory.trials import WholeTest
    from .methods.conformal import conformal_c2st, conformal_multiple
    from .methods.coverage import tarp
    from .methods.density_ranks import hpd
    from .methods.discriminative import discriminative_calibration
    from .methods.local.base_space import FlowNull, fit_flow_null
    from .methods.local.call import lc2st
    from .methods.local.classifier import LC2ST, fit_lc2st
    from .methods.local.coverage import local_hpd
    from .methods.localization import colt, colt_identity, localize
    from .methods.panel import panel
    from .methods.ranks import sbc
    from .methods.registry import METHODS
    from .methods.score_ranks import score_rank
    from .methods.two_sample import c2st
    from .posteriors.protocol import Posterior
    from .posteriors.recognise import as_posterior
    from .posteriors.stored_samples import PerObservation
    from .report import Report
    from .results.localized import Localization
    from .results.notes import NOTES
    from .results.report_file import load_report
    from .results.result import ValidationResult
    from .run import validate, validate_at
    from .scores.ball_ranks import ColtTraining
    from .scores.classifiers import Training
else:  # a fit needs a few rooms of this house: the others are imported as they are first used
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "ColtTraining": "scores.ball_ranks",
            "FixedScore": "laboratory.trained_tests",
            "FlowNull": "methods.local.base_space",
            "LC2ST": "methods.local.classifier",
            "Localization": "results.localized",
            "METHODS": "methods.registry",
            "NOTES": "results.notes",
            "PerObservation": "posteriors.stored_samples",
            "Posterior": "posteriors.protocol",
            "PowerRate": "laboratory.rates",
            "PowerStudy": "laboratory.rates",
            "RatioScore": "laboratory.trained_tests",
            "Report": "report",
            "ScoreTest": "laboratory.trained_tests",
            "TrainedColt": "laboratory.trained_tests",
            "TrainedScore": "laboratory.trained_tests",
            "Training": "scores.classifiers",
            "ValidationResult": "results.result",
            "WholeTest": "laboratory.trials",
            "as_posterior": "posteriors.recognise",
            "c2st": "methods.two_sample",
            "colt": "methods.localization",
            "colt_identity": "methods.localization",
            "conformal_c2st": "methods.conformal",
            "conformal_multiple": "methods.conformal",
            "discriminative_calibration": "methods.discriminative",
            "fit_flow_null": "methods.local.base_space",
            "fit_lc2st": "methods.local.classifier",
            "hpd": "methods.density_ranks",
            "lc2st": "methods.local.call",
            "load_report": "results.report_file",
            "local_hpd": "methods.local.coverage",
            "localize": "methods.localization",
            "panel": "methods.panel",
            "perturbations": "perturbations",
            "power": "laboratory.study",
            "sbc": "methods.ranks",
            "score_rank": "methods.score_ranks",
            "tarp": "methods.coverage",
            "validate": "run",
            "validate_at": "run",
        },
    )

__all__ = [
    "LC2ST",
    "METHODS",
    "NOTES",
    "ColtTraining",
    "FixedScore",
    "FlowNull",
    "Localization",
    "PerObservation",
    "Posterior",
    "PowerRate",
    "PowerStudy",
    "RatioScore",
    "Report",
    "ScoreTest",
    "TrainedColt",
    "TrainedScore",
    "Training",
    "ValidationResult",
    "WholeTest",
    "as_posterior",
    "c2st",
    "colt",
    "colt_identity",
    "conformal_c2st",
    "conformal_multiple",
    "discriminative_calibration",
    "fit_flow_null",
    "fit_lc2st",
    "hpd",
    "lc2st",
    "load_report",
    "local_hpd",
    "localize",
    "panel",
    "perturbations",
    "power",
    "sbc",
    "score_rank",
    "tarp",
    "validate",
    "validate_at",
]
