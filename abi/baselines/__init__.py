"""The methods ABI is compared with, behind one signature and one account of their cost.

    posterior = abi.baselines.snpe(prior, simulator, x_o, num_simulations=10_000, seed=0)

Each takes what :func:`abi.fit` takes and returns draws, the simulator calls really made and the CPU
seconds. All see x through the encoders and the standardisation of ABI's network, and theta through
the prior's support, so that a comparison is one of methods and not of preparation. Shared are:

- ``prior``, ``simulator``, ``x_o`` and ``parameter_names``: as for :func:`abi.fit`; what a method
  does by densities needs a prior with ``log_prob``.
- ``num_simulations`` is never exceeded, and ``seed`` decides all that is random.
- ``encoder``: a name of :mod:`abi.encoders.choice`, or, where something is trained on x, a module
  x (n, p) -> features (n, k), which is copied, trained along and given x as it is.
"""

from .approximate.methods import abc_ss, rejection_abc, smc_abc, wabc
from .neural.methods import snle, snpe, wgan_gp
from .result import BaselinePosterior

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
