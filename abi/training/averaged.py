"""AdamW and the mean of the weights on its way, which is what a training evaluates and keeps.

The rate climbs to its peak, stays for a while, and falls along half a cosine. At a high rate the
weights wander about the place they look for; the mean of the latest of them, the step k counting as
k^8, lies nearer to it than any. So each pass can be judged as if the rate had fallen already, and
training may stop as soon as passes no longer help. (Before, a first flow was trained for 6, 12, 25
and 50 passes, each time anew, which took twice as long. Of 83 trainings of flows, on eight models,
those on 1,000 rows or more had held-out losses .02 to .1 nats lower this way, in the mean of either
half; of 21 on fewer rows, rows that had no part in it had .07 lower.)

The arithmetic is one compiled pass on the CPU (:mod:`.adamw`) and torch's own function on another
device. Torch's optimiser and scheduler objects do the same, but the first of them to be made
imports torch's compiler, a second of CPU time, and a step of theirs costs as much as the networks
here.

Source: Shamir & Zhang (2013), "Stochastic gradient descent for non-smooth optimization", for the
mean; Loshchilov & Hutter (2019), "Decoupled weight decay regularization".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_CLIMB, _MOST_CLIMB = 0.1, 50  # share of the steps before the peak, and steps at most
_STAY = 0.3  # share of the steps, the climb among them
_FIRST, _LAST = 0.04, 1e-4  # of the peak
_MEANS, _SQUARES, _EPS = 0.9, 0.999, 1e-8
_MAX_NORM, _LEAST_NORM = 5.0, 1e-6  # of the gradient; keeps a scale from being infinite
_ETA = 8.0  # a step k counts as k^eta: the mean lies a tenth of the way before the end


class AveragedAdamW:
    """One training's optimiser: call :meth:`step` after each backward pass.

    Args:
        module: whose parameters move; on its device.
        peak: the largest rate.
        weight_decay: decoupled.
        num_steps: over which the rate climbs, stays and falls.
    """

    def __init__(self, module: nn.Module, peak: float, weight_decay: float, num_steps: int):
        self.parameters = [part for part in module.parameters() if part.requires_grad]
        # What a batch norm has seen belongs to the weights it was seen with.
        names = module.state_dict()
        seen = [b for n, b in module.named_buffers() if n in names and b.is_floating_point()]
        self._averaged: list[Tensor] = [*(part.detach() for part in self.parameters), *seen]
        self._means = [value.clone() for value in self._averaged]
        moves = _Compiled if all(map(_plain, self._averaged)) else _Torch
        self._moves = moves(self._averaged, self._means, len(self.parameters), weight_decay)
        self._peak, self._num_steps = peak, num_steps
        self._done = 0

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for part in self.parameters:
            part.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Shorten the gradient to its limit, move the weights, and their mean."""
        gradients = {k: p.grad for k, p in enumerate(self.parameters) if p.grad is not None}
        if not gradients:
            return
        rate = self._rate()
        self._done += 1
        self._moves.step(gradients, rate, (_ETA + 1.0) / (_ETA + self._done))

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Within it, the module has its mean weights."""
        own = [value.clone() for value in self._averaged]
        _copy(self._means, self._averaged)
        try:
            yield
        finally:
            _copy(own, self._averaged)

    def _rate(self) -> float:
        """That of the next step."""
        climb = min(_MOST_CLIMB, _CLIMB * self._num_steps)
        if self._done < climb:
            return self._peak * (_FIRST + (1.0 - _FIRST) * self._done / climb)
        stay = _STAY * self._num_steps
        share = min(1.0, max(0.0, (self._done - stay) / (self._num_steps - stay)))
        return self._peak * (_LAST + (1.0 - _LAST) * (1.0 + math.cos(math.pi * share)) / 2.0)


def _plain(values: Tensor) -> bool:
    """Whether compiled code can write to these values."""
    on_cpu = values.device.type == "cpu" and values.is_contiguous()
    return on_cpu and values.dtype == torch.float32


class _Compiled:
    """Moves weights on the CPU, and their means.

    Args:
        values: of which the first ``count`` are weights.
        means: of all values.
        count: how many weights there are.
        weight_decay: decoupled.
    """

    def __init__(self, values: list[Tensor], means: list[Tensor], count: int, weight_decay: float):
        from . import adamw

        self._adamw, self._weight_decay = adamw, weight_decay
        self._others = values[count:], means[count:]
        self._arrays = [
            (_flat(value), _flat(torch.zeros_like(value)), _flat(torch.zeros_like(value)),
             _flat(mean))
            for value, mean in zip(values[:count], means, strict=False)
        ]  # fmt: skip
        self._counts = [0] * count

    def step(self, gradients: dict[int, Tensor], rate: float, share: float) -> None:
        """Move the weights that have a gradient, at this rate, and the means by this share."""
        flat = {k: _flat(gradient.contiguous()) for k, gradient in gradients.items()}
        norm = math.sqrt(sum(self._adamw.square(gradient) for gradient in flat.values()))
        scale = _MAX_NORM / (norm + _LEAST_NORM)
        kept = 1.0 - rate * self._weight_decay
        for k, gradient in flat.items():
            self._counts[k] += 1
            value, first, second, mean = self._arrays[k]
            numbers = np.array(
                (1.0 if scale > 1.0 else scale, kept, _MEANS, _SQUARES,
                 rate / (1.0 - _MEANS ** self._counts[k]),
                 1.0 / math.sqrt(1.0 - _SQUARES ** self._counts[k]), _EPS, share),
                np.float32,
            )  # fmt: skip
            self._adamw.move(value, gradient, first, second, mean, numbers)
        if self._others[0]:
            torch._foreach_lerp_(self._others[1], self._others[0], share)


class _Torch:
    """The same on another device, or where values are of another type."""

    def __init__(self, values: list[Tensor], means: list[Tensor], count: int, weight_decay: float):
        self._values, self._means, self._weight_decay = values, means, weight_decay
        self._first = [torch.zeros_like(value) for value in values[:count]]
        self._second = [torch.zeros_like(value) for value in values[:count]]
        self._counts = [torch.zeros((), device=value.device) for value in values[:count]]

    def step(self, gradients: dict[int, Tensor], rate: float, share: float) -> None:
        """Move the weights that have a gradient, at this rate, and the means by this share."""
        slopes = list(gradients.values())
        norm = torch.stack(torch._foreach_norm(slopes)).norm()
        torch._foreach_mul_(slopes, (_MAX_NORM / (norm + _LEAST_NORM)).clamp_max(1.0))
        parts = self._values, self._first, self._second, self._counts
        weights, first, second, counts = ([part[k] for k in gradients] for part in parts)
        torch._foreach_add_(counts, 1.0)
        torch._fused_adamw_(
            weights, slopes, first, second, [], counts, amsgrad=False, lr=rate, beta1=_MEANS,
            beta2=_SQUARES, weight_decay=self._weight_decay, eps=_EPS, maximize=False,
        )  # fmt: skip
        torch._foreach_lerp_(self._means, self._values, share)


def _flat(values: Tensor) -> Any:
    """Values as compiled code takes them, in the same memory."""
    return values.detach().numpy().reshape(-1)


@torch.no_grad()
def _copy(values: list[Tensor], into: list[Tensor]) -> None:
    for value, target in zip(values, into, strict=True):
        target.copy_(value)
