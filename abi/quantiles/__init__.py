"""The paper's centre: the MSW distance, the network that predicts it, and the quantile map to x_o.

Takes pairs (theta, x), gives distances to the posterior at x_o. Imports training, encoders,
generators and the constants of :mod:`abi.config`.
"""
