"""The optimiser is torch's AdamW on the rates it says, and keeps the mean of its weights."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn

from abi.training import averaged
from abi.training.averaged import AveragedAdamW
from abi.training.loop import TrainingSettings, train


def _network() -> nn.Module:
    network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    generator = torch.Generator().manual_seed(0)
    for weights in network.parameters():
        weights.data = torch.randn(weights.shape, generator=generator)
    return network


class _Place(nn.Module):
    """One parameter, and a batch norm's memory of what it has seen."""

    seen: Tensor

    def __init__(self, start: float, width: int = 1):
        super().__init__()
        self.at = nn.Parameter(torch.full((width,), start))
        self.register_buffer("seen", torch.zeros(width))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))


@pytest.mark.moves_global_rng  # weights are drawn, then replaced
@pytest.mark.parametrize(
    ("num_steps", "way"), [(20, "_Compiled"), (700, "_Compiled"), (700, "_Torch")]
)
def test_it_moves_as_torchs_own_does_at_the_same_rates(
    num_steps: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "_Torch":  # as on another device
        monkeypatch.setattr(averaged, "_plain", lambda values: False)
    x = torch.randn(num_steps, 16, 3, generator=torch.Generator().manual_seed(1))
    ours, theirs = _network(), _network()
    mine = AveragedAdamW(ours, 1e-2, 0.1, num_steps)
    assert type(mine._moves).__name__ == way
    optimiser = torch.optim.AdamW(theirs.parameters(), 1e-2, weight_decay=0.1, fused=True)
    rates = []
    for batch in x:
        rates.append(mine._rate())
        mine.zero_grad()
        (20.0 * ours(batch) ** 2).mean().backward()
        mine.step()
        optimiser.param_groups[0]["lr"] = rates[-1]
        optimiser.zero_grad()
        (20.0 * theirs(batch) ** 2).mean().backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 5.0)
        optimiser.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    climb = min(50, num_steps // 10)
    assert rates[: climb + 1] == sorted(rates[: climb + 1])
    assert rates[climb : int(0.3 * num_steps)] == [1e-2] * (int(0.3 * num_steps) - climb)
    assert rates[climb:] == sorted(rates[climb:], reverse=True)
    assert rates[-1] < 1e-3


def test_moments_of_what_no_longer_moves_cost_no_more_than_others() -> None:
    # They would shrink to the smallest numbers there are, which processors are slow to multiply.
    module = _Place(1.0, width=3)
    optimiser = AveragedAdamW(module, 0.1, 0.0, 3_000)
    slopes = torch.tensor([1e-3, 0.0, 1.0])
    module.at.grad = torch.full((3,), 1e-3)
    optimiser.step()
    for _ in range(1_500):
        module.at.grad = slopes.clone()
        optimiser.step()
    (moments,) = ([first, second] for _, first, second, _ in optimiser._moves._arrays)
    tiny = torch.finfo(torch.float32).tiny
    assert moments[0][1] == 0.0
    assert all(((abs(moment) == 0.0) | (abs(moment) > tiny)).all() for moment in moments)


def test_a_gradient_that_is_no_number_is_not_hidden() -> None:
    module = _Place(1.0, width=3)
    optimiser = AveragedAdamW(module, 0.1, 0.0, 30)
    module.at.grad = torch.tensor([1.0, torch.nan, 0.0])
    optimiser.step()
    assert module.at.isnan().any()


def test_the_mean_counts_late_steps_most_and_leaves_the_weights_alone() -> None:
    module = _Place(0.0)
    optimiser = AveragedAdamW(module, 0.1, 0.0, 1_000)
    way = []
    for step in range(900):
        optimiser.zero_grad()
        (module.at * (-1) ** step).sum().backward()
        optimiser.step()
        module.seen.fill_(float(step))
        way.append(float(module.at.detach()))
    with optimiser.averaged():
        mean, seen = float(module.at.detach()), float(module.seen)
    assert float(module.at.detach()) == way[-1]
    assert float(module.seen) == 899.0
    # Weights k^8 of the k-th step: their mean lies a tenth before the end. What was seen is what
    # it was before the step.
    k = torch.arange(1, 901, dtype=torch.float64)
    weights = k**8
    expected = float((weights * torch.tensor(way, dtype=torch.float64)).sum() / weights.sum())
    assert mean == pytest.approx(expected, abs=2e-3)
    assert seen == pytest.approx(0.9 * 900, abs=3.0)


def test_the_mean_of_noisy_steps_lies_nearer_to_the_minimum_than_their_end() -> None:
    noise = torch.randn(500, 200, generator=torch.Generator().manual_seed(0))
    module = _Place(2.0, 200)
    optimiser = AveragedAdamW(module, 0.1, 0.0, 5_000)  # the rate has not fallen yet
    for shift in noise:
        optimiser.zero_grad()
        (0.5 * (module.at - shift) ** 2).sum().backward()
        optimiser.step()
    own = float(module.at.detach().square().mean())
    with optimiser.averaged():
        assert float(module.at.detach().square().mean()) < 0.5 * own


@pytest.mark.moves_global_rng
def test_training_keeps_the_mean_that_rows_held_out_judge_best_and_stops_soon_after() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 30, generator=generator)
    noise, line = torch.randn(200, 1, generator=generator), x[:, :1]

    def epochs(y: Tensor) -> int:
        network = nn.Linear(30, 1)
        nn.init.zeros_(network.weight)
        nn.init.zeros_(network.bias)

        def loss(rows: Tensor, y: Tensor) -> Tensor:
            return (network(rows) - y).square().mean()

        settings = TrainingSettings(batch_size=20, max_epochs=80, weight_decay=0.0)
        log = train(network, loss, (x, y), settings, seed=0)
        held, _ = settings.split(200, torch.Generator().manual_seed(0))
        with torch.no_grad():
            assert float(loss(x[held], y[held])) == pytest.approx(log.validation_loss, rel=1e-4)
        return log.epochs

    assert 12 <= epochs(noise) < 40  # which nothing in x tells
    assert epochs(line) == 80


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
    module = nn.ParameterDict({"used": torch.ones(2), "unused": torch.ones(2)})
    module["frozen"] = nn.Parameter(torch.ones(2), requires_grad=False)
    optimiser = AveragedAdamW(module, 0.1, 0.0, 30)
    for _ in range(3):
        optimiser.zero_grad()
        module["used"].square().sum().backward()
        optimiser.step()
    assert (module["used"] < 1.0).all()
    assert torch.equal(module["unused"], module["frozen"])
