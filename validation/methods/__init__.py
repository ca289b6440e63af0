"""One file a test, and the registry that names them.

Takes (q, theta, x), gives a :class:`~validation.ValidationResult`. Imports results, scores and
posteriors.
"""
