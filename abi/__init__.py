"""Which parameters explain this observation? Adaptive Bayesian inference (Lu & Wong 2025)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .files.versions import __version__

if TYPE_CHECKING:
    from . import baselines, metrics
    from .config import ABIConfig
    from .posterior import ABIPosterior, load
    from .quantiles.distance import QuantileTable, msw_distance
    from .rounds.record import RoundRecord
    from .sampler import fit, resume
    from .verdict.record import Verdict
else:  # torch is imported as a name is first used: a command's help does without

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = import_module(f".{_HOMES[name]}", __name__)
        found = globals()[name] = home if name == _HOMES[name] else getattr(home, name)
        return found


_HOMES = {
    "ABIConfig": "config",
    "ABIPosterior": "posterior",
    "QuantileTable": "quantiles.distance",
    "RoundRecord": "rounds.record",
    "Verdict": "verdict.record",
    "baselines": "baselines",
    "fit": "sampler",
    "load": "posterior",
    "metrics": "metrics",
    "msw_distance": "quantiles.distance",
    "resume": "sampler",
}
"""Name -> the module it is in, or that it is."""

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
