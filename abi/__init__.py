"""Which parameters explain this observation? Adaptive Bayesian inference (Lu & Wong 2025)."""

from . import baselines, metrics
from .config import ABIConfig
from .files.versions import __version__
from .posterior import ABIPosterior, load
from .quantiles.distance import QuantileTable, msw_distance
from .rounds.record import RoundRecord
from .sampler import fit, resume
from .verdict.record import Verdict

__all__ = [
    "ABIConfig",
    "ABIPosterior",
    "QuantileTable",
    "RoundRecord",
    "Verdict",
    "__version__",
    "baselines",
    "fit",
    "load",
    "metrics",
    "msw_distance",
    "resume",
]


def __dir__() -> list[str]:
    return __all__  # what a user needs: rooms are found in docs/architecture.md
