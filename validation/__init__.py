"""May we trust that answer? Tests of any posterior with joint draws from prior and simulator.

Every test has one signature, ``test(q, theta, x, *, seed=0, ...) -> ValidationResult``: q is any
posterior (:func:`as_posterior`), theta (N, d) and x (N, p) are joint draws that q was not trained
on. :func:`validate` runs them all and adjusts their p-values; ``METHODS`` names them and ``NOTES``
says what each can and cannot see; :func:`power` measures it on :mod:`~validation.perturbations`,
posteriors that are wrong by a known amount.

>>> import torch
>>> from simulators import GaussianLinear, sample_joint
>>> theta, x = sample_joint(GaussianLinear(2, 1.0, 1.0), 300, seed=1)
>>> q = lambda x: torch.distributions.Normal(x / 2, 0.4)  # the spread should be 0.71
>>> validate(q, theta, x, ["sbc", "hpd"]).rejected
('sbc', 'hpd')
"""

from .laboratory.rates import PowerRate, PowerStudy
from .laboratory.study import power
from .laboratory.trained_tests import FixedScore, RatioScore, ScoreTest, TrainedColt, TrainedScore
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
from .methods.ranks import sbc
from .methods.registry import METHODS, NOTES
from .methods.score_ranks import score_rank
from .methods.two_sample import c2st
from .posteriors.protocol import Posterior
from .posteriors.recognise import as_posterior
from .posteriors.stored_samples import PerObservation
from .report import Report, validate
from .results.localized import Localization
from .results.report_file import load_report
from .results.result import ValidationResult
from .scores.ball_ranks import ColtTraining
from .scores.classifiers import Training

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
    "power",
    "sbc",
    "score_rank",
    "tarp",
    "validate",
]
