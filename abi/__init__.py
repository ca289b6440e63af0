"""Which parameters explain this observation? Adaptive Bayesian inference (Lu & Wong 2025)."""

from . import baselines, metrics
from .config import ABIConfig
from .distance import QuantileTable, msw_distance
from .posterior import ABIPosterior
from .rounds import RoundRecord
from .sampler import fit, resume
from .storage import load

__version__ = "0.1.0"

__all__ = [
    "ABIConfig",
    "ABIPosterior",
    "QuantileTable",
    "RoundRecord",
    "__version__",
    "baselines",
    "fit",
    "load",
    "metrics",
    "msw_distance",
    "resume",
]
