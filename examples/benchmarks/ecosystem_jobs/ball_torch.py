"""The same model for the libraries that work with torch: many theta at once."""

import torch
from torch.distributions import Independent, Uniform

torch.manual_seed(2)
PRIOR = Independent(Uniform(torch.tensor([1.0, 0.2]), torch.tensor([10.0, 1.4])), 1)


def throw(theta):
    """(n, 2) -> (n, 16): eight positions with noise of 0.1."""
    t = torch.linspace(0.1, 1.0, 8)
    speed, angle = theta[:, :1], theta[:, 1:]
    height = speed * torch.sin(angle) * t - 4.9 * t**2
    where = torch.cat([speed * torch.cos(angle) * t, height], dim=1)
    return where + 0.1 * torch.randn(where.shape)
