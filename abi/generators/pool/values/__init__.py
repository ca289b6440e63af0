"""A likelihood of the values of x by a linear model of each: few numbers to find from few pairs.

Takes numbers of theta and x, gives their law. Imports the rooms below it.
"""
