"""Regions of theta that hold the posterior, and draws of the prior inside them.

Takes the model that a round leaves, and gives where the next one draws. Imports generators.
"""
