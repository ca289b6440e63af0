"""Which parameters explain this observation? Adaptive Bayesian inference (Lu & Wong 2025)."""

from typing import TYPE_CHECKING

from simulators.lazy import lazily

from .files.versions import __version__

if TYPE_CHECKING:
    from . import baselines, metrics
    from .comparison.odds import LogOdds
    from .comparison.result import ModelComparison
    from .comparison.run import compare_models
    from .comparison.verdict import ComparisonVerdict
    from .config import ABIConfig
    from .many import fit_many, resume_many
    from .posterior import ABIPosterior
    from .posteriors import Posteriors
    from .quantiles.distance import QuantileTable, msw_distance
    from .rounds.record import RoundRecord
    from .sampler import fit, resume
    from .saved import load
    from .verdict.record import Verdict
else:  # torch is imported as a name is first used: a command's help does without
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "ABIConfig": "config",
            "ABIPosterior": "posterior",
            "ComparisonVerdict": "comparison.verdict",
            "LogOdds": "comparison.odds",
            "ModelComparison": "comparison.result",
            "Posteriors": "posteriors",
            "QuantileTable": "quantiles.distance",
            "RoundRecord": "rounds.record",
            "Verdict": "verdict.record",
            "baselines": "baselines",
            "compare_models": "comparison.run",
            "fit": "sampler",
            "fit_many": "many",
            "load": "saved",
            "metrics": "metrics",
            "msw_distance": "quantiles.distance",
            "resume": "sampler",
            "resume_many": "many",
        },
    )

__all__ = [
    "ABIConfig",
    "ABIPosterior",
    "ComparisonVerdict",
    "LogOdds",
    "ModelComparison",
    "Posteriors",
    "QuantileTable",
    "RoundRecord",
    "Verdict",
    "__version__",
    "baselines",
    "compare_models",
    "fit",
    "fit_many",
    "load",
    "metrics",
    "msw_distance",
    "resume",
    "resume_many",
]
