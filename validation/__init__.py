"""May we trust that answer? Tests of any posterior with joint draws from prior and simulator."""

from .coverage import tarp
from .density_ranks import hpd
from .posteriors import Posterior
from .ranks import sbc
from .recognise import as_posterior
from .result import ValidationResult
from .stored_samples import PerObservation

__all__ = [
    "PerObservation",
    "Posterior",
    "ValidationResult",
    "as_posterior",
    "hpd",
    "sbc",
    "tarp",
]
