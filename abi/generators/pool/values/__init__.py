"""Likelihoods of the values of x by linear models: few numbers to find from few pairs.

Takes numbers of theta and x, gives their laws. Imports the rooms below it.
"""
