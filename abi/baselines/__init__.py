"""The methods ABI is compared with, behind one signature and one account of their cost.

    posterior = abi.baselines.snpe(prior, simulator, x_o, num_simulations=10_000, seed=0)

Each takes what :func:`abi.fit` takes and returns draws, the simulator calls really made and the CPU
seconds. All see x through the encoders and the standardisation of ABI's network, and theta through
the prior's support, so that a comparison is one of methods and not of preparation.
"""

from .adversarial import wgan_gp
from .approximate import rejection_abc, smc_abc, wabc
from .likelihood_estimation import snle
from .posterior_estimation import snpe
from .result import BaselinePosterior
from .summary_statistics import abc_ss

METHODS = {
    "snpe": snpe,
    "snle": snle,
    "smc_abc": smc_abc,
    "wabc": wabc,
    "abc_ss": abc_ss,
    "wgan_gp": wgan_gp,
    "rejection_abc": rejection_abc,
}
"""Every baseline by its name."""

__all__ = [
    "METHODS",
    "BaselinePosterior",
    "abc_ss",
    "rejection_abc",
    "smc_abc",
    "snle",
    "snpe",
    "wabc",
    "wgan_gp",
]
