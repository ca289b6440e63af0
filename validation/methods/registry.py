"""All tests by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..results.result import ValidationResult
from .conformal import conformal_c2st, conformal_multiple
from .coverage import tarp
from .density_ranks import hpd
from .discriminative import discriminative_calibration
from .local.call import lc2st
from .local.coverage import local_hpd
from .localization import colt, colt_identity
from .panel import panel
from .ranks import sbc
from .score_ranks import score_rank
from .two_sample import c2st

METHODS: Mapping[str, Callable[..., ValidationResult]] = MappingProxyType(
    {
        "panel": panel,
        "sbc": sbc,
        "tarp": tarp,
        "hpd": hpd,
        "c2st": c2st,
        "conformal_c2st": conformal_c2st,
        "conformal_multiple": conformal_multiple,
        "discriminative_calibration": discriminative_calibration,
        "score_rank": score_rank,
        "colt_identity": colt_identity,
        "colt": colt,
        "lc2st": lc2st,
        "local_hpd": local_hpd,
    }
)
"""Name -> ``function(q, theta, x, *, seed=0, ...) -> ValidationResult``: the panel of tests with
one p-value, then each test alone, the cheapest kind first."""
