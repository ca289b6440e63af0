"""Compiled random streams, one for each row: normals, exponentials and counts for numba loops.

Takes (seed, row), gives numbers. Imports nothing of the package.
"""
