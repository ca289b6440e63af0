"""One loop that trains every network here, and the settings of torch that a fit relies on.

Takes a loss and tensors, gives a trained module and its log. Imports ``simulators`` alone.
"""
