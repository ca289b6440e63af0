"""May this answer be trusted? Pairs that no training saw judge a posterior around its x_o.

Takes candidates: at each x the theta that belongs to it among draws of q there. Gives one exact
p-value over a panel of tests, how far off the answer may be, and a verdict in one line. Imports
``validation``, and of this package the MSW distance; it knows neither fits nor files.
"""
