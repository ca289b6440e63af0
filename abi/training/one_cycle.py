"""AdamW whose rate climbs to its peak over a tenth of the steps and falls to nothing over the rest.

The arithmetic is torch's own function. Its optimiser and scheduler objects do the same, but the
first of them to be made imports torch's compiler, a second of CPU time, and a step of theirs costs
as much as the networks here.

Source: Smith & Topin (2019), "Super-convergence"; Loshchilov & Hutter (2019), "Decoupled weight
decay regularization"; the constants are those of torch's OneCycleLR.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

_WARM_UP = 0.1  # share of the steps before the peak
_FIRST, _LAST = 25.0, 1e4  # the peak over the first rate, and that over the last
_MOMENTUM, _AT_PEAK = 0.95, 0.85
_SQUARES, _EPS = 0.999, 1e-8
_MAX_NORM = 5.0  # of the gradient


class OneCycle:
    """One training's optimiser: call :meth:`step` after each backward pass.

    Args:
        parameters: of a network, on its device.
        peak: the largest rate.
        weight_decay: decoupled.
        num_steps: of the cycle.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], peak: float, weight_decay: float, num_steps: int
    ):
        self.parameters = [part for part in parameters if part.requires_grad]
        self._means = [torch.zeros_like(part) for part in self.parameters]
        self._squares = [torch.zeros_like(part) for part in self.parameters]
        self._counts = [torch.zeros((), device=part.device) for part in self.parameters]
        self._peak, self._weight_decay = peak, weight_decay
        self._num_steps = max(num_steps, math.ceil(2.0 / _WARM_UP))
        self._done = 0

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for part in self.parameters:
            part.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Clip the gradient and move the weights."""
        rate, momentum = self._rates()
        moved = [k for k, part in enumerate(self.parameters) if part.grad is not None]
        weights: list[Tensor] = [self.parameters[k] for k in moved]
        nn.utils.clip_grad_norm_(weights, _MAX_NORM)
        gradients: list[Tensor] = [part.grad for part in weights if part.grad is not None]
        means, squares, counts = (
            [values[k] for k in moved] for values in (self._means, self._squares, self._counts)
        )
        adamw(
            weights, gradients, means, squares, [], counts, fused=True, amsgrad=False,
            beta1=momentum, beta2=_SQUARES, lr=rate, weight_decay=self._weight_decay, eps=_EPS,
            maximize=False,
        )  # fmt: skip
        self._done += 1

    def _rates(self) -> tuple[float, float]:
        """Rate and momentum of the next step."""
        turn = _WARM_UP * self._num_steps - 1.0
        first, last = self._peak / _FIRST, self._peak / _FIRST / _LAST
        if self._done <= turn:
            share = self._done / turn
            return _between(first, self._peak, share), _between(_MOMENTUM, _AT_PEAK, share)
        share = (self._done - turn) / (self._num_steps - 1.0 - turn)
        return _between(self._peak, last, share), _between(_AT_PEAK, _MOMENTUM, share)


def _between(start: float, end: float, share: float) -> float:
    """From start to end along half a cosine."""
    return end + (start - end) / 2.0 * (1.0 + math.cos(math.pi * share))
