"""Tests at one observation: L-C2ST, in theta or in the base space of a flow, and local HPD.

Takes (q, theta, x, x_o), gives a result for each x_o. Imports the rooms below methods.
"""
