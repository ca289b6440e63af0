"""The sections of a fit's page: the answer, pairs, predicted data, rounds, what ran.

Each takes a :class:`~abi.report.sources.FitRecord`, gives the records of :mod:`validation.page`.
"""
