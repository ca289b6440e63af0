"""Regions of flows that are pooled with the likelihood of many measured values."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import Tensor
from torch.distributions import Independent, Normal, Uniform

import abi
from abi.generators.base import Progress
from abi.generators.flow import FlowModel
from abi.generators.flow_network import FlowSettings
from abi.generators.pool.emulator import Emulator
from abi.generators.pool.learning import Learning
from abi.generators.pool.model import PooledFlows
from abi.generators.pool.ways import region_ways
from abi.rounds.regions.region import is_pooled
from simulators.random import torch_generator

TIMES = torch.arange(1.0, 41.0)
PRIOR = Independent(Uniform(torch.tensor([0.02, 0.5]), torch.tensor([0.1, 3.0])), 1)
TRUE = torch.tensor([0.061, 1.4])
CONFIG = abi.ABIConfig(num_flows=1, flow=FlowSettings(num_transforms=1, hidden=(32,)))


def wave(theta: Tensor, seed: int | None = None) -> Tensor:
    """Frequency a step and height -> 40 values with noise of sd 1."""
    generator = None if seed is None else torch_generator(seed)
    noise = torch.randn(len(theta), len(TIMES), generator=generator)
    return theta[:, 1:] * (2.0 * math.pi * theta[:, :1] * TIMES).sin() + noise


X_O = wave(TRUE[None], 5)[0]


def fit_in(folder: Path) -> abi.ABIPosterior:
    return abi.fit(
        PRIOR, wave, X_O, num_simulations=2_000, num_rounds=3, config=CONFIG, seed=2,
        run_dir=folder, progress=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wave")


@pytest.fixture(scope="module")
def posterior(folder: Path) -> abi.ABIPosterior:
    return fit_in(folder)


def exact(count: int) -> Tensor:
    """Draws of the posterior, from a grid."""
    place = torch.linspace(0.0, 1.0, 801)
    grid = torch.cartesian_prod(0.02 + 0.08 * place, 0.5 + 2.5 * place)
    means = grid[:, 1:] * (2.0 * math.pi * grid[:, :1] * TIMES).sin()
    chances = Normal(means, 1.0).log_prob(X_O).sum(dim=1).softmax(dim=0)
    return grid[torch.multinomial(chances, count, replacement=True, generator=torch_generator(1))]


def test_a_region_is_that_of_the_pool_and_holds_the_posterior(
    posterior: abi.ABIPosterior,
) -> None:
    assert posterior.reach is not None
    regions = posterior.reach.regions
    assert any(map(is_pooled, regions))
    for region in regions:
        assert float(region.contains(exact(4_000)).float().mean()) > 0.99


def test_the_answer_is_the_exact_one(posterior: abi.ABIPosterior) -> None:
    true, draws = exact(4_000), posterior.sample((4_000,))
    bias = (draws.mean(dim=0) - true.mean(dim=0)) / true.std(dim=0)
    assert float(bias.abs().max()) < 0.3
    torch.testing.assert_close(draws.std(dim=0), true.std(dim=0), rtol=0.2, atol=0.0)


class Asked:
    """Stands for what learns laws, and says which."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def of_curves(self, x: Tensor, told: Progress) -> list[str]:
        self.names.append("network")
        return ["law"]

    def of_values(self, x: Tensor) -> list[str]:
        self.names.append("lines")
        return ["law"]


def test_after_a_region_by_a_network_only_that_is_tried(posterior: abi.ABIPosterior) -> None:
    assert posterior.reach is not None
    model, x = posterior.model, torch.zeros(200, len(TIMES))
    assert isinstance(model, FlowModel)
    assert model.encoders is not None
    laws: dict[PooledFlows | None, list[str]] = {None: ["network", "lines"]}
    for region in posterior.reach.regions:
        if isinstance(region.model, PooledFlows):
            curved = isinstance(region.model.likelihood.law, Emulator)
            laws[region.model] = ["network"] if curved else ["network", "lines"]
    assert ["network"] in laws.values()
    for before, expected in laws.items():
        (way,) = region_ways(model.encoders, x, 2, before)
        asked = Asked()
        way(cast("Learning", asked), lambda share: None)
        assert asked.names == expected
    assert region_ways(model.encoders, x[:, :20], 2, None) == []  # few values


def test_its_file_holds_the_regions(posterior: abi.ABIPosterior, tmp_path: Path) -> None:
    posterior.save(tmp_path / "fit.safetensors")
    loaded = abi.load(tmp_path / "fit.safetensors")
    assert loaded.reach is not None
    assert posterior.reach is not None
    theta = exact(2_000) + 0.002 * torch.randn(2_000, 2, generator=torch_generator(3))
    for again, region in zip(loaded.reach.regions, posterior.reach.regions, strict=True):
        assert torch.equal(again.contains(theta), region.contains(theta))


@pytest.mark.parametrize("finished", [1, 2])
def test_an_interrupted_fit_goes_on_by_them(
    finished: int, posterior: abi.ABIPosterior, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "run")
    (tmp_path / "run" / "posterior.safetensors").unlink()
    for path in (tmp_path / "run").glob("round_*"):
        if int(path.stem.split("_")[1]) > finished:
            path.unlink()
    again = abi.resume(tmp_path / "run", PRIOR, wave, progress=False)
    assert torch.equal(again.sample((50,)), posterior.sample((50,)))
    assert again.verdict == posterior.verdict
