"""Compiled random streams, one for each row: words, normals and exponentials for numba loops.

Takes (seed, row), gives numbers. Imports nothing of the package.
"""
