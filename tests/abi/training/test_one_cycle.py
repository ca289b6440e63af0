"""The optimiser is torch's AdamW under torch's one-cycle schedule, step by step."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from abi.training.one_cycle import OneCycle


def _network() -> nn.Module:
    network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    generator = torch.Generator().manual_seed(0)
    for weights in network.parameters():
        weights.data = torch.randn(weights.shape, generator=generator)
    return network


@pytest.mark.moves_global_rng  # weights are drawn, then replaced
@pytest.mark.parametrize("num_steps", [20, 57])
def test_it_moves_as_torchs_own_do(num_steps: int) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(num_steps, 16, 3, generator=generator)
    ours, theirs = _network(), _network()
    mine = OneCycle(ours.parameters(), 1e-2, 0.1, num_steps)
    optimiser = torch.optim.AdamW(theirs.parameters(), 1e-2, weight_decay=0.1, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, 1e-2, total_steps=num_steps, pct_start=0.1
    )
    for batch in x:
        mine.zero_grad()
        (20.0 * ours(batch) ** 2).mean().backward()
        mine.step()
        optimiser.zero_grad()
        (20.0 * theirs(batch) ** 2).mean().backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 5.0)
        optimiser.step()
        schedule.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_a_training_does_not_import_torchs_compiler() -> None:
    code = (
        "import sys, torch\n"
        "from abi.training.loop import TrainingSettings, train\n"
        "network = torch.nn.Linear(2, 1)\n"
        "rows = torch.ones(40, 2)\n"
        "train(network, lambda x: network(x).square().mean(), (rows,),"
        " TrainingSettings(max_epochs=2), 0)\n"
        "print('torch._dynamo' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.moves_global_rng
def test_parameters_without_a_gradient_stay() -> None:
    used, unused = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    frozen = nn.Parameter(torch.ones(2), requires_grad=False)
    optimiser = OneCycle([used, unused, frozen], 0.1, 0.0, 30)
    for _ in range(3):
        optimiser.zero_grad()
        used.square().sum().backward()
        optimiser.step()
    assert (used < 1.0).all()
    assert torch.equal(unused, frozen)
