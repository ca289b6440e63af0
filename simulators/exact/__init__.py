"""Exact draws from densities that are known: what the reference posteriors are made with.

Takes a log density on a box, gives draws. Imports nothing of the package but its seeds.
"""
