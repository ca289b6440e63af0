"""Approximate Bayesian computation: keep the draws whose data lie nearest to the observation.

Takes a run of :mod:`abi.baselines.frame`, gives weighted draws. Imports nothing of ``neural``.
"""
