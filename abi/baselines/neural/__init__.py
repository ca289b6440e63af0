"""Networks that estimate the posterior, the likelihood, or a map from noise to the posterior.

Takes a run of :mod:`abi.baselines.frame`, gives fitted draws. Imports nothing of ``approximate``.
"""
