"""Baselines beside simulators that fail: what can be used is used, and what cannot is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from abi import baselines
from abi.generators.push_forward.wgan import WGANSettings
from simulators import GaussianLinear

TASK = GaussianLinear(2, 1.0, 1.0)
X_O = torch.tensor([0.8, -0.6])
BRIEF = WGANSettings(hidden=(16,), num_steps=10)
METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "snpe": (baselines.snpe, {"num_rounds": 1, "max_epochs": 1}),
    "snle": (baselines.snle, {"num_rounds": 1, "max_epochs": 1}),
    "smc_abc": (baselines.smc_abc, {}),
    "wabc": (baselines.wabc, {"view": "curve"}),
    "rejection_abc": (baselines.rejection_abc, {}),
    "abc_ss": (baselines.abc_ss, {}),
    "wgan_gp": (baselines.wgan_gp, {"settings": BRIEF}),
}


class Failing:
    """x of which a share is NaN, at random."""

    def __init__(self, share: float):
        self.share = share

    def __call__(self, theta: Tensor) -> Tensor:
        x = theta + torch.randn(theta.shape)
        x[torch.rand(len(x)) < self.share] = torch.nan
        return x


BROKEN: dict[str, tuple[Any, str]] = {
    "nearly all NaN": (Failing(0.995), "`simulator` gave .* too few"),
    "all NaN": (Failing(1.0), "`simulator` gave no finite x"),
    "constant": (lambda theta: torch.ones(len(theta), 2), "`simulator` returned the same x"),
    "one axis": (lambda theta: theta[:, 0], "`x_o` must have as many values"),
    "another width": (lambda theta: theta.repeat(1, 2), "`x_o` must have as many values"),
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("method", METHODS)
def test_a_simulator_that_tells_nothing_is_refused_in_a_line(method: str, broken: str) -> None:
    function, settings = METHODS[method]
    simulator, message = BROKEN[broken]
    with pytest.raises(ValueError, match=message):
        function(TASK.prior, simulator, X_O, num_simulations=400, seed=0, **settings)


@pytest.mark.parametrize("share", [0.02, 0.3])
@pytest.mark.parametrize("method", ["smc_abc", "wabc"])
def test_a_population_goes_on_without_the_theta_whose_x_fails(method: str, share: float) -> None:
    """Late populations are small, and all of one may fail: it happened at one seed in five."""
    function, settings = METHODS[method]
    for seed in range(8):
        found = function(
            TASK.prior, Failing(share), X_O, num_simulations=600, seed=seed, **settings
        )
        draws = found.sample((500,), seed=1)
        assert torch.isfinite(draws).all()
        assert (draws.mean(dim=0) - X_O / 2).abs().max() < 0.8


def test_a_population_that_accepts_every_theta_is_refused() -> None:
    with pytest.raises(ValueError, match="fewer finite x than the 50 particles"):
        baselines.smc_abc(TASK.prior, Failing(0.85), X_O, num_simulations=1_000, seed=0)


def test_a_prior_that_cannot_be_sampled_as_theta_is_said_to_be_one() -> None:
    from scipy import stats

    with pytest.raises(TypeError, match="`prior` must be frozen"):
        baselines.wabc(stats.norm, TASK, X_O)
    with pytest.raises(ValueError, match="`prior` must draw the parameters of `simulator`"):
        baselines.wabc(stats.norm(0, 1), TASK, X_O)
