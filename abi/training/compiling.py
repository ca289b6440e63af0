"""How loops over numbers are compiled: at their first call, kept on disk, without Python's lock.

A division by 0 gives infinity, as in torch: to check each would keep loops from being done many at
once.
"""

from __future__ import annotations

from numba import njit

compiled = njit(nogil=True, cache=True, error_model="numpy")
