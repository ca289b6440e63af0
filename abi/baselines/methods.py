"""The baselines by the names that studies, the command line and tests call them by."""

from __future__ import annotations

from .approximate.methods import abc_ss, rejection_abc, smc_abc, wabc
from .neural.methods import fmpe, npse, snle, snpe, wgan_gp

METHODS = {
    "snpe": snpe,
    "fmpe": fmpe,
    "npse": npse,
    "snle": snle,
    "smc_abc": smc_abc,
    "wabc": wabc,
    "abc_ss": abc_ss,
    "wgan_gp": wgan_gp,
    "rejection_abc": rejection_abc,
}
