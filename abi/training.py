"""One training loop for every network: mini-batches, a validation split, early stopping.

The rate falls by half whenever the validation loss stalls and training stops once it has stalled
for ``patience`` epochs; the weights of the best epoch are kept. Batches and split come from a
generator of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from simulators.random import torch_generator

Loss = Callable[..., Tensor]


@dataclass(frozen=True)
class TrainingSettings:
    """How to train a network.

    Attributes:
        learning_rate: first step size of Adam.
        batch_size: rows a step.
        max_epochs: passes over the training rows at most.
        patience: epochs without a better validation loss before training stops.
        validation_fraction: share of the rows held out, in (0, 1).
    """

    learning_rate: float = 1e-3
    batch_size: int = 256
    max_epochs: int = 200
    patience: int = 15
    validation_fraction: float = 0.1


@dataclass(frozen=True)
class TrainingLog:
    """What training did: epochs run, and the mean losses of the epoch that was kept."""

    epochs: int
    train_loss: float
    validation_loss: float


def train(
    module: nn.Module,
    loss: Loss,
    data: tuple[Tensor, ...],
    settings: TrainingSettings,
    seed: int,
    on_epoch: Callable[[float], None] | None = None,
) -> TrainingLog:
    """Minimise the mean of ``loss(*rows)`` over the rows of ``data`` and leave the best weights.

    Args:
        module: the network, trained in place.
        loss: rows of each tensor of ``data`` -> mean loss, a scalar.
        data: tensors of equal length n, row i of each belonging together.
        settings: constants of the training.
        seed: seed of split and batches.
        on_epoch: told the share of ``max_epochs`` done, after each epoch.
    """
    generator = torch_generator(seed)
    order = torch.randperm(len(data[0]), generator=generator)
    num_held = max(1, int(settings.validation_fraction * len(order)))
    held = tuple(tensor[order[:num_held]] for tensor in data)
    rows = tuple(tensor[order[num_held:]] for tensor in data)

    optimizer = torch.optim.Adam(module.parameters(), lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=max(1, settings.patience // 3)
    )
    best, best_state, stalled = TrainingLog(0, float("inf"), float("inf")), _copy(module), 0
    epoch = 0
    for epoch in range(1, settings.max_epochs + 1):
        train_loss = _epoch(module, loss, rows, optimizer, settings.batch_size, generator)
        held_loss = _evaluate(module, loss, held)
        schedule.step(held_loss)
        stalled += 1
        if held_loss < best.validation_loss:
            best, best_state, stalled = TrainingLog(epoch, train_loss, held_loss), _copy(module), 0
        if on_epoch is not None:
            on_epoch(epoch / settings.max_epochs)
        if stalled >= settings.patience:
            break
    module.load_state_dict(best_state)
    module.eval()
    return TrainingLog(epoch, best.train_loss, best.validation_loss)


def _epoch(
    module: nn.Module,
    loss: Loss,
    rows: tuple[Tensor, ...],
    optimizer: torch.optim.Optimizer,
    batch_size: int,
    generator: torch.Generator,
) -> float:
    module.train()
    order = torch.randperm(len(rows[0]), generator=generator)
    total = 0.0
    for chosen in order.split(batch_size):
        value = loss(*(tensor[chosen] for tensor in rows))
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(module.parameters(), 5.0)
        optimizer.step()
        total += value.item() * len(chosen)
    return total / len(order)


@torch.no_grad()
def _evaluate(module: nn.Module, loss: Loss, rows: tuple[Tensor, ...]) -> float:
    module.eval()
    parts = [
        (loss(*part), len(part[0])) for part in zip(*(t.split(8192) for t in rows), strict=True)
    ]
    return float(sum(float(value) * count for value, count in parts) / len(rows[0]))


def _copy(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}
