"""How often does a test reject? Level and power over strengths, worked cell by cell.

Takes tests and failures of :mod:`validation.perturbations`, gives a
:class:`~validation.PowerStudy`. Imports methods and below.
"""
