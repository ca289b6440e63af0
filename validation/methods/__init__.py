"""One file a test, and the registry that names them.

Takes (q, theta, x), gives a :class:`~validation.ValidationResult`; what these three are says
:mod:`validation`, each function what it takes besides. Imports results, scores and posteriors.
"""
