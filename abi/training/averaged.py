"""AdamW and the mean of the weights on its way, which is what a training evaluates and keeps.

The rate climbs to its peak, stays for a while, and falls along half a cosine. At a high rate the
weights wander about the place they look for; the mean of the latest of them, the step k counting as
k^8, lies nearer to it than any. So each pass can be judged as if the rate had fallen already, and
training may stop as soon as passes no longer help. (Before, a first flow was trained for 6, 12, 25
and 50 passes, each time anew, which took twice as long. Of 83 trainings of flows, on eight models,
those on 1,000 rows or more had held-out losses .02 to .1 nats lower this way, in the mean of either
half; of 21 on fewer rows, rows that had no part in it had .07 lower.)

The arithmetic is torch's own function. Its optimiser and scheduler objects do the same, but the
first of them to be made imports torch's compiler, a second of CPU time, and a step of theirs costs
as much as the networks here.

Source: Shamir & Zhang (2013), "Stochastic gradient descent for non-smooth optimization", for the
mean; Loshchilov & Hutter (2019), "Decoupled weight decay regularization".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

_CLIMB, _MOST_CLIMB = 0.1, 50  # share of the steps before the peak, and steps at most
_STAY = 0.3  # share of the steps, the climb among them
_FIRST, _LAST = 0.04, 1e-4  # of the peak
_MEANS, _SQUARES, _EPS = 0.9, 0.999, 1e-8
_MAX_NORM = 5.0  # of the gradient
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
        self._first = [torch.zeros_like(part) for part in self.parameters]
        self._second = [torch.zeros_like(part) for part in self.parameters]
        self._counts = [torch.zeros((), device=part.device) for part in self.parameters]
        # What a batch norm has seen belongs to the weights it was seen with.
        names = module.state_dict()
        seen = [b for n, b in module.named_buffers() if n in names and b.is_floating_point()]
        self._averaged: list[Tensor] = [*(part.detach() for part in self.parameters), *seen]
        self._means = [value.clone() for value in self._averaged]
        self._peak, self._weight_decay, self._num_steps = peak, weight_decay, num_steps
        self._done = 0

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for part in self.parameters:
            part.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Shorten the gradient to its limit, move the weights, and their mean."""
        moved = [k for k, part in enumerate(self.parameters) if part.grad is not None]
        if not moved:
            return
        weights: list[Tensor] = [self.parameters[k] for k in moved]
        gradients: list[Tensor] = [part.grad for part in weights if part.grad is not None]
        norm = torch.stack(torch._foreach_norm(gradients)).norm()
        torch._foreach_mul_(gradients, (_MAX_NORM / (norm + 1e-6)).clamp_max(1.0))
        first, second, counts = (
            [values[k] for k in moved] for values in (self._first, self._second, self._counts)
        )
        torch._foreach_add_(counts, 1.0)
        torch._fused_adamw_(
            weights, gradients, first, second, [], counts, amsgrad=False, lr=self._rate(),
            beta1=_MEANS, beta2=_SQUARES, weight_decay=self._weight_decay, eps=_EPS,
            maximize=False,
        )  # fmt: skip
        self._done += 1
        share = (_ETA + 1.0) / (_ETA + self._done)
        torch._foreach_lerp_(self._means, self._averaged, share)

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


@torch.no_grad()
def _copy(values: list[Tensor], into: list[Tensor]) -> None:
    for value, target in zip(values, into, strict=True):
        target.copy_(value)
