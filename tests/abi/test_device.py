"""The networks of a fit on another device: the same posterior, back on the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import abi
from abi.encoders.choice import FIXED, LEARNED, build_encoder, prepared
from abi.generators.flow_network import FlowSettings, build_flow
from abi.quantiles.distance import draw_directions, quantile_levels
from abi.quantiles.network import QuantileNetwork
from abi.training.torch_settings import unvalidated
from simulators import GaussianLinear

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA here")
    ),
]
TASK = GaussianLinear(2, 1.0, 0.5)
X_O = torch.tensor([0.4, -0.3])
CONFIG = abi.ABIConfig(encoder="flat", num_flows=1)
CONFIG = replace(
    CONFIG,
    network_training=replace(CONFIG.network_training, num_steps=200),
    generator_training=replace(CONFIG.generator_training, num_steps=200),
)


def _fit(**changes: object) -> abi.ABIPosterior:
    settings: dict[str, object] = {"num_simulations": 600, "config": CONFIG, "progress": False}
    return abi.fit(TASK.prior, TASK, **({"x_o": X_O} | settings | changes))


@pytest.mark.parametrize("device", DEVICES)
def test_a_fit_gives_the_same_posterior_on_every_device(device: str) -> None:
    """Weights, splits and batches are drawn on the CPU; what differs is float32 rounding."""
    here, there = _fit(device="cpu"), _fit(device=device)
    draws = [posterior.sample((2_000,), seed=1) for posterior in (here, there)]
    assert {part.device.type for part in draws} == {"cpu"}
    assert all(part.device.type == "cpu" for part in there.model.state().tensors.values())
    error = (draws[1].mean(dim=0) - draws[0].mean(dim=0)) / draws[0].std(dim=0)
    assert error.abs().max() < 0.25
    assert torch.allclose(draws[1].std(dim=0), draws[0].std(dim=0), rtol=0.25)
    assert there.config.network_training.device == device


@pytest.mark.parametrize("device", DEVICES)
def test_the_networks_follow_the_observation(device: str) -> None:
    assert _fit(x_o=X_O.to(device)).config.generator_training.device.split(":")[0] == device


@pytest.mark.moves_global_rng
@pytest.mark.parametrize("device", DEVICES)
def test_the_users_encoder_may_live_elsewhere(device: str) -> None:
    encoder = nn.Linear(2, 4).to(device)
    posterior = _fit(encoder=encoder, device=device)
    assert posterior.sample((10,)).shape == (10, 2)
    assert encoder.weight.device.type == device


@pytest.mark.moves_global_rng
@pytest.mark.parametrize("encoder", [*FIXED, *LEARNED])
def test_no_tensor_of_a_quantile_network_is_left_behind_on_the_cpu(encoder: str) -> None:
    """Without a GPU: tensors on the device "meta" refuse to meet those on the CPU."""
    theta, x = torch.randn(50, 3), torch.randn(50, 12)
    module = build_encoder(encoder, x)
    directions = draw_directions(3, 4, torch.Generator().manual_seed(0))
    network = QuantileNetwork(
        theta, module, module(x).shape[1], directions, quantile_levels(5, 0.05), (8,),
        standardize=True,
    )  # fmt: skip
    network.encoder, inputs = prepared(module, x)  # as the training does
    rows = torch.empty(9, 3, device="meta"), inputs[:9].to("meta")
    assert network.to("meta").loss(*rows, 0.01).device.type == "meta"


@pytest.mark.parametrize("context", [0, 3])
def test_no_tensor_of_a_flow_is_left_behind_on_the_cpu(context: int) -> None:
    flow = build_flow(2, context, FlowSettings(hidden=(8,)), seed=0).to("meta")
    given = torch.empty(9, context, device="meta") if context else None
    with unvalidated():  # as fits do; checks ask tensors for their values
        transform = flow(given).transform
    z, log_stretching = transform.call_and_ladj(torch.empty(9, 2, device="meta"))
    assert {z.device.type, log_stretching.device.type} == {"meta"}


def test_a_device_that_is_not_there_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`device` 'cuda:99'"):
        _fit(device="cuda:99", run_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_of_another_machine_goes_on_here(tmp_path: Path) -> None:
    """The device is recorded with the constants, and may be changed when the run is resumed."""
    whole = _fit(run_dir=tmp_path)
    (tmp_path / "round_02.safetensors").unlink()
    again = abi.resume(tmp_path, device="cpu", progress=False)
    assert torch.equal(again.sample((5,), seed=0), whole.sample((5,), seed=0))
