"""The methods ABI is compared with, behind one signature and one account of their cost.

    posterior = abi.baselines.snpe(prior, simulator, x_o, num_simulations=10_000, seed=0)

Each takes what :func:`abi.fit` takes and returns draws, the simulator calls really made and the CPU
seconds. All see x through the encoders and the standardisation of ABI's network, and theta through
the prior's support, so that a comparison is one of methods and not of preparation.
"""

from .approximate import rejection_abc, smc_abc, wabc
from .likelihood_estimation import snle
from .posterior_estimation import snpe
from .result import BaselinePosterior

METHODS = {
    "snpe": snpe,
    "snle": snle,
    "smc_abc": smc_abc,
    "wabc": wabc,
    "rejection_abc": rejection_abc,
}
"""Every baseline by its name."""

__all__ = ["METHODS", "BaselinePosterior", "rejection_abc", "smc_abc", "snle", "snpe", "wabc"]
