"""How far are draws from the exact posterior? Distances, each beside its floor.

    comparison = abi.metrics.compare(draws, exact, seed=0)
    comparison["w1"].value, comparison["w1"].floor

Two finite samples of the same posterior are not at distance zero. The floor is what the same metric
says of two independent samples of the reference, of the same sizes.
"""

from .classifier import c2st
from .comparison import METRICS, compare
from .kernel import median_bandwidth, mmd_squared
from .moments import correlation_error, mean_bias, sd_ratio
from .projections import marginal_distance, sliced_distance
from .scores import Comparison, Score
from .transport import normalised_wasserstein, wasserstein

__all__ = [
    "METRICS",
    "Comparison",
    "Score",
    "c2st",
    "compare",
    "correlation_error",
    "marginal_distance",
    "mean_bias",
    "median_bandwidth",
    "mmd_squared",
    "normalised_wasserstein",
    "sd_ratio",
    "sliced_distance",
    "wasserstein",
]
