"""One round of Algorithm 2, step by step: problem, proposals, calls, kernel, regions, next model.

Takes a problem and the state after the round before, gives the next state. Imports quantiles,
generators, encoders and training; it knows nothing of the disk but a folder for slow simulations.
"""
