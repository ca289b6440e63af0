"""How far are draws from the exact posterior? Distances, and errors of means, sds, correlations.

    comparison = abi.metrics.compare(draws, exact, seed=0)
    comparison["w1"].value, comparison["w1"].floor

Two finite samples of one and the same posterior are not at distance zero. So each value comes with
a ``floor``: the distance between two exact samples of the same size. A method that cannot be told
from the exact posterior has a value near its floor.
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
