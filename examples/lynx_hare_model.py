"""Lynx and hares of the Hudson Bay, 1900-1920: real counts as a model for inference.

========= ================================= ======================== ====================
symbol    meaning                           unit                     prior
========= ================================= ======================== ====================
alpha     birth of hares                    1 / year                 N(1, 0.5^2), > 0
beta      hares lost to each lynx           1 / (year * kilolynx)    N(0.05, 0.05^2), > 0
gamma     death of lynx                     1 / year                 N(1, 0.5^2), > 0
delta     lynx gained from each hare        1 / (year * kilohare)    N(0.05, 0.05^2), > 0
hare_0    hares in 1900                     thousands of pelts       log N(log 10, 1)
lynx_0    lynx in 1900                      thousands of pelts       log N(log 10, 1)
sigma_h   noise of the hare counts          log of pelts             log N(-1, 1)
sigma_l   noise of the lynx counts          log of pelts             log N(-1, 1)
========= ================================= ======================== ====================

    du/dt = alpha u - beta u v,   dv/dt = -gamma v + delta u v,   (u, v)(1900) = (hare_0, lynx_0)
    log hare_t ~ N(log u(t), sigma_h^2),  log lynx_t ~ N(log v(t), sigma_l^2),  t = 1900 ... 1920

x (n, 42) holds the logarithms of the 21 hare counts, then of the 21 lynx counts. The populations
are solved for on the log scale, which keeps them positive, by the classical Runge-Kutta method at
forty steps a year. Rates far beyond the prior outrun that and give rows that are not finite, which
the runner counts as failures.

Data: the Hudson's Bay Company's pelt counts, after Howard (2009), "Modeling Basics". Model and
priors: Carpenter (2018), "Predator-prey population dynamics: the Lotka-Volterra model in Stan".
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

import simulators

YEARS = tuple(range(1900, 1921))
HARES = (
    30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1,
    40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7,
)  # fmt: skip
LYNX = (
    4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4,
    8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6,
)  # fmt: skip
PARAMETERS = ("alpha", "beta", "gamma", "delta", "hare_0", "lynx_0", "sigma_h", "sigma_l")
STEPS_PER_YEAR = 40

observation = torch.tensor(HARES + LYNX).log()
"""The default observation, (42,): log hares, then log lynx, in thousands of pelts."""


class Prior:
    """Half normals for the rates, log-normals for the rest; a sampler and its density."""

    def sample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        """Draw (*sample_shape, 8)."""
        mean = torch.tensor([1.0, 0.05, 1.0, 0.05])
        sd = torch.tensor([0.5, 0.05, 0.5, 0.05])
        # A normal above zero, by the inverse of its distribution function.
        below = torch.special.ndtr(-mean / sd)
        u = below + (1.0 - below) * torch.rand(*sample_shape, 4)
        rates = mean + sd * torch.special.ndtri(u)
        start = torch.exp(math.log(10.0) + torch.randn(*sample_shape, 2))
        noise = torch.exp(-1.0 + torch.randn(*sample_shape, 2))
        return torch.cat([rates.clamp_min(1e-6), start, noise], dim=-1)


def populations(theta: Tensor) -> Tensor:
    """Log hares and log lynx at the 21 years, (n, 2, 21), for theta (n, 8)."""
    alpha, beta, gamma, delta = theta.double()[:, :4].T

    def slope(state: Tensor) -> Tensor:
        hares, lynx = state.exp()
        return torch.stack([alpha - beta * lynx, delta * hares - gamma])

    state = theta.double()[:, 4:6].log().T
    h = 1.0 / STEPS_PER_YEAR
    out = [state]
    for _ in YEARS[1:]:
        for _ in range(STEPS_PER_YEAR):
            k1 = slope(state)
            k2 = slope(state + 0.5 * h * k1)
            k3 = slope(state + 0.5 * h * k2)
            k4 = slope(state + h * k3)
            state = state + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        out.append(state)
    return torch.stack(out, dim=-1).transpose(0, 1)


def simulate(theta: Tensor) -> Tensor:
    """Simulate theta (n, 8) -> x (n, 42)."""
    noise = theta[:, 6:8, None] * torch.randn(len(theta), 2, len(YEARS))
    return (populations(theta) + noise).reshape(len(theta), -1).float()


model = simulators.from_function(simulate, Prior(), batched=True, parameter_names=PARAMETERS)


def main() -> None:
    theta = simulators.sample_prior(model.prior, 5_000, seed=0)
    run = simulators.simulate(model, theta, seed=1)
    print(f"{len(run.x)} simulations, {len(run.failures)} failures")
    low, middle, high = torch.quantile(run.x, torch.tensor([0.05, 0.5, 0.95]), dim=0)
    inside = ((observation >= low) & (observation <= high)).float().mean()
    print(f"{inside:.0%} of the 42 counts lie inside the prior's 90% band")
    print("year   hares  [prior 5%, 50%, 95%]")
    for k, year in enumerate(YEARS):
        band = ", ".join(f"{float(q[k].exp()):8.2g}" for q in (low, middle, high))
        print(f"{year}  {HARES[k]:6.1f}  [{band}]")


if __name__ == "__main__":
    main()
