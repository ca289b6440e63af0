"""Models that map noise to theta and have no density: the paper's POTNet, and a WGAN.

Takes draws of theta, gives a map from noise to more of them. Imports nothing above generators.
"""
