"""The methods ABI is compared with, behind one signature and one account of their cost.

    posterior = abi.baselines.snpe(prior, simulator, x_o, num_simulations=10_000, seed=0)

Each takes what :func:`abi.fit` takes, and returns draws of the posterior, the simulator calls made
and the CPU seconds spent. All of them prepare x and theta as ABI does, so that a comparison is one
of methods, not of preparation. They share these arguments:

- ``prior``, ``simulator``, ``x_o`` and ``parameter_names``: as for :func:`abi.fit`. Some methods
  need a prior with ``log_prob``.
- ``num_simulations``: simulator calls, never exceeded.
- ``seed``: decides everything random.
- ``encoder``: what the method sees of x, by a name of :mod:`abi.encoders.choice`. Methods that
  train on x also take a torch module x (n, p) -> features (n, k); a copy of it is trained.
"""

from typing import TYPE_CHECKING

from simulators.lazy import lazily

if TYPE_CHECKING:
    from .approximate.methods import abc_ss, rejection_abc, smc_abc, wabc
    from .methods import METHODS
    from .neural.methods import fmpe, npse, snle, snpe, wgan_gp
    from .result import BaselinePosterior
else:  # whoever fits without a rival does not wait for any
    __getattr__, __dir__ = lazily(
        __name__,
        {
            **dict.fromkeys(("abc_ss", "rejection_abc", "smc_abc", "wabc"), "approximate.methods"),
            **dict.fromkeys(("fmpe", "npse", "snle", "snpe", "wgan_gp"), "neural.methods"),
            "BaselinePosterior": "result",
            "METHODS": "methods",
        },
    )

__all__ = [
    "METHODS",
    "BaselinePosterior",
    "abc_ss",
    "fmpe",
    "npse",
    "rejection_abc",
    "smc_abc",
    "snle",
    "snpe",
    "wabc",
    "wgan_gp",
]
