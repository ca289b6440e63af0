"""One training loop for every network: mini-batches, mean weights, a validation split.

After each pass the mean of the weights on the way (:mod:`.averaged`) is judged by rows held out;
the best is kept, the weights it begins with among them, and training stops once as many passes
again were no better. Batches and split come from a generator of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from simulators.arguments import FRACTION, POSITIVE, at_least, count, device_name, settle
from simulators.random import child_seed, isolated_rng, torch_generator

from .averaged import AveragedAdamW

Loss = Callable[..., Tensor]

_PATIENCE = 2.0  # times the passes to the best weights
_PASSES, _MOST_TIMES = 20, 4  # that steps should make, for which they grow so many times at most


@dataclass(frozen=True)
class TrainingSettings:
    """How to train a network.

    Attributes:
        learning_rate: peak step size of AdamW.
        weight_decay: of AdamW, decoupled.
        batch_size: rows a step.
        num_steps: steps in all, whatever the number of rows.
        max_epochs: passes over the rows at most: few rows get fewer steps.
        least_epochs: passes before it may stop, where as many are allowed.
        validation_fraction: share of the rows held out, in (0, 1).
        device: where it trains, such as "cuda"; the trained network is on the CPU.
    """

    learning_rate: float = 5e-3
    weight_decay: float = 0.01
    batch_size: int = 256
    num_steps: int = 1_500
    max_epochs: int = 100
    least_epochs: int = 12
    validation_fraction: float = 0.1
    device: str = "cpu"

    def __post_init__(self) -> None:
        settle(
            self,
            learning_rate=POSITIVE,
            weight_decay=at_least(0.0),
            batch_size=count(),
            num_steps=count(),
            max_epochs=count(),
            least_epochs=count(),
            validation_fraction=FRACTION,
            device=device_name,
        )

    def shortened(self, share: float) -> TrainingSettings:
        """The same training in this share of its steps and passes."""
        num_steps = max(1, int(share * self.num_steps))
        return replace(self, num_steps=num_steps, max_epochs=max(1, int(share * self.max_epochs)))

    def for_rows(self, num_rows: int) -> TrainingSettings:
        """With steps that see more at once, where they would make few passes over so many rows."""
        rows = num_rows - self.num_held(num_rows)
        wanted = math.ceil(_PASSES * rows / self.num_steps)
        most = _MOST_TIMES * self.batch_size
        return replace(self, batch_size=max(self.batch_size, min(wanted, most)))

    def num_held(self, num_rows: int) -> int:
        """Of so many rows, those held out."""
        return max(1, int(self.validation_fraction * num_rows))

    def split(self, num_rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """The rows that :func:`train` holds out, and those it trains on."""
        order = torch.randperm(num_rows, generator=generator)
        num_held = self.num_held(num_rows)
        return order[:num_held], order[num_held:]

    def passes(self, num_rows: int) -> int:
        """Passes over so many rows, the held out among them, that the limits above allow."""
        per_pass = math.ceil((num_rows - self.num_held(num_rows)) / self.batch_size)
        return min(self.max_epochs, math.ceil(self.num_steps / per_pass))


@dataclass(frozen=True)
class TrainingLog:
    """What training did: epochs run, and the mean losses of the epoch that was kept.

    The loss on the rows trained on is that of the weights on their way, not of their mean.
    """

    epochs: int
    train_loss: float
    validation_loss: float


def check_trained(log: TrainingLog, what: str) -> None:
    """Refuse a network none of whose epochs had a finite loss: its weights are still random.

    Raises:
        ValueError: if so.
    """
    if not math.isfinite(log.validation_loss):
        raise ValueError(
            f"`simulator`: {what} found no finite loss on its x; return values that float32 can "
            "hold and compare, such as logarithms, or give an encoder of your own."
        )


def train(
    module: nn.Module,
    loss: Loss,
    data: tuple[Tensor, ...],
    settings: TrainingSettings,
    seed: int,
    on_epoch: Callable[[float], None] | None = None,
    *,
    descend: Loss | None = None,
) -> TrainingLog:
    """Minimise the mean of ``loss(*rows)`` over the rows of ``data`` and leave the best weights.

    Args:
        module: the network, trained in place; weights, split and batches are drawn on the CPU, so
            that another device changes the rounding alone.
        loss: rows of each tensor of ``data`` -> mean loss, a scalar.
        data: tensors of equal length n, row i of each belonging together.
        settings: constants of the training.
        seed: seed of split and batches.
        on_epoch: told the share of the training done, after each epoch.
        descend: the loss, leaving its gradient with the parameters; by autograd when omitted.
    """
    descend = _by_autograd(loss) if descend is None else descend
    generator = torch_generator(seed)
    parts = settings.split(len(data[0]), generator)
    held, rows = (tuple(tensor[part].to(settings.device) for tensor in data) for part in parts)
    module.to(settings.device)

    per_epoch = math.ceil(len(rows[0]) / settings.batch_size)
    num_epochs = settings.passes(len(data[0]))
    steps = num_epochs * per_epoch
    optimizer = AveragedAdamW(module, settings.learning_rate, settings.weight_decay, steps)
    first = _evaluate(module, loss, held)
    first = first if math.isfinite(first) else float("inf")
    best, best_state = TrainingLog(0, first, first), _copy(module)
    with isolated_rng(child_seed(seed, 0)):  # a module of the user's may drop values out
        for epoch in range(1, num_epochs + 1):
            train_loss = _epoch(module, descend, rows, optimizer, settings.batch_size, generator)
            with optimizer.averaged():
                held_loss = _evaluate(module, loss, held)
                if held_loss < best.validation_loss:
                    best, best_state = TrainingLog(epoch, train_loss, held_loss), _copy(module)
            enough = epoch >= max(settings.least_epochs, _PATIENCE * best.epochs)
            if on_epoch is not None:
                on_epoch(1.0 if enough else epoch / num_epochs)
            if enough:
                break
    module.load_state_dict(best_state)
    module.to("cpu").eval()
    return TrainingLog(epoch, best.train_loss, best.validation_loss)


def _by_autograd(loss: Loss) -> Loss:
    def descend(*rows: Tensor) -> Tensor:
        value = loss(*rows)
        value.backward()
        return value.detach()

    return descend


def _epoch(
    module: nn.Module,
    descend: Loss,
    rows: tuple[Tensor, ...],
    optimizer: AveragedAdamW,
    batch_size: int,
    generator: torch.Generator,
) -> float:
    module.train()
    order = torch.randperm(len(rows[0]), generator=generator).to(rows[0].device)
    total = torch.zeros((), device=rows[0].device)  # read once an epoch: a GPU need not wait
    for chosen in _batches(order, batch_size):
        optimizer.zero_grad()
        value = descend(*(tensor[chosen] for tensor in rows))
        optimizer.step()
        total += value * len(chosen)
    return float(total) / len(order)


def _batches(order: Tensor, batch_size: int) -> list[Tensor]:
    """Parts of the rows; a last one goes with those before it, for batch norms need two."""
    batches = list(order.split(batch_size))
    if len(batches) > 1 and len(batches[-1]) == 1:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


@torch.no_grad()
def _evaluate(module: nn.Module, loss: Loss, rows: tuple[Tensor, ...]) -> float:
    module.eval()
    parts = [
        (loss(*part), len(part[0])) for part in zip(*(t.split(8192) for t in rows), strict=True)
    ]
    return float(sum(float(value) * count for value, count in parts) / len(rows[0]))


def _copy(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}
