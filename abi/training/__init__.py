"""One loop that trains every network here, its compiled arithmetic, and torch's settings in a fit.

Takes a loss and tensors, gives a trained module and its log. Imports ``simulators`` alone.
"""
