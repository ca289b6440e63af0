r"""A likelihood of the values of x whose means are a network of theta: a learned simulator.

    g(x) | theta  ~  m(u) + e^{l(u)} R r

u are the numbers of theta, g the scale of each value (:mod:`.values.scales`), m and l one small
network, and r normal or with tails of rows (:mod:`.values.noise`). Where values are many they say
most of theta by their means, and a network of theta has to learn one smooth curve for each, which
is far easier than to read theta from all of them; and where the curve bends more than squares and
products do, as a wave's does whose frequency is not yet known, :mod:`.values.law` cannot follow.
(Of eight waves in noise, 15,000 calls, mean C2ST fell from .63 to .57; of the two whose frequency
was known least, from .97 to .62 and from .85 to .74.)

Source: Craig, Goldstein, Rougier & Seheult (2001), "Bayesian forecasting for complex systems using
computer simulators", for emulators; Nix & Weigend (1994), "Estimating the mean and variance of the
target probability distribution", for its loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from simulators.random import child_seed, some_rows

from ...training.loop import TrainingSettings, check_trained, train
from ..base import GeneratorState, Progress, besides, units, unprefixed
from ..flow_training import rows_held
from .cover import Cover, cover_of, everywhere
from .curves import Curves, EarlierCurves, curves, restored
from .values.noise import Noise, fit_noise, inverse_of, log_density, with_tails
from .values.rows import InParts
from .values.scales import Scales, best_scales
from .values.terms import terms_of

_TRAINING = TrainingSettings(learning_rate=1e-2, num_steps=6_000, max_epochs=200)
_STEPS_EACH, _LEAST_BATCH = 20, 64  # of a pass over few rows, at least; rows of a step
_TOGETHER = 4_000_000  # numbers


@dataclass(frozen=True, eq=False)
class Emulator(InParts):
    """The law of k values given c numbers of theta.

    Attributes:
        used: which of the p values of x these are, (p,): others never vary, may be missing, or are
            but 0 or 1.
        center: of the numbers, (c,).
        scale: likewise.
        exponent: of the values' scales, (k,).
        least: what lesser values count as there, (k,).
        level: of the values, on their scales, (k,).
        unit: likewise.
        network: numbers (n, c) in their units -> means (n, k), and log sizes of errors (n, 1).
        root: the factor R, (k, k).
        tails: of the noise, (2, m).
        centers: of the balls in which it has learned, (b, c); see :mod:`.cover`.
        radius: of these, ().
    """

    kind = "emulator"
    used: Tensor
    center: Tensor
    scale: Tensor
    exponent: Tensor
    least: Tensor
    level: Tensor
    unit: Tensor
    network: Curves | EarlierCurves
    root: Tensor
    tails: Tensor
    centers: Tensor
    radius: Tensor

    def seen(self, x: Tensor, features: Tensor) -> Tensor:
        """What it sees of x (n, p): each value that it uses, on its scale."""
        return Scales(self.exponent, self.least).of(x[:, self.used])

    def _log_prob(self, seen: Tensor, numbers: Tensor) -> Tensor:
        u = (numbers - self.center) / self.scale
        means, log_size = self.network(u)
        left = ((seen - self.level) / self.unit - means) / log_size.exp()
        count = left.shape[1]
        each = log_density((left @ self._inverse.T).square().sum(dim=1), count, self.tails)
        units = self.root.diagonal().log().sum() + self.unit.log().sum()
        value: Tensor = each - count * log_size[:, 0] - units
        return value - Cover(self.centers, self.radius).loss(u)

    @cached_property
    def _inverse(self) -> Tensor:
        return inverse_of(self.root)


def learn_emulator(
    numbers: Tensor, x: Tensor, *, device: str, seed: int, on_epoch: Progress
) -> Emulator | None:
    """That of x (n, p), given numbers of theta (n, c), trained on this device.

    A value that never varies, is not always there, or is but 0 or 1 says nothing. (Of fourteen
    epidemics, 1,000 calls, most of whose first values are 0 or 1, one fell from .63 to .54 of C2ST
    by the others.) None where all are such.

    Raises:
        ValueError: if no loss is finite.
    """
    numbers, x = some_rows(_TOGETHER // max(x.shape[1], numbers.shape[1]), numbers, x)
    answers = ((x == 0.0) | (x == 1.0)).all(dim=0)
    used = x.isfinite().all(dim=0) & (x != x[0]).any(dim=0) & ~answers
    x = x[:, used]
    if not used.any():
        return None
    center, scale, _ = units(numbers)
    u = (numbers - center) / scale
    found = best_scales(terms_of(u.double(), x.shape[1]), x.double())
    scales = Scales(*(part.float() for part in found))
    on = scales.of(x)
    level, unit, _ = units(on)
    z = (on - level) / unit
    network = curves(u.shape[1], z.shape[1], child_seed(seed, 0))
    rows = min(_TRAINING.batch_size, max(_LEAST_BATCH, len(x) // _STEPS_EACH))
    training, split = replace(_TRAINING, device=device, batch_size=rows), child_seed(seed, 1)
    log = train(network, network.loss, (u, z), training, split, on_epoch, descend=network.descend)
    check_trained(log, "a network of the means of x")
    noise = _noise_of(network, u, z, rows_held(len(u), training, split))
    root, tails = noise.root.float(), noise.tails.float()
    return Emulator(used, center, scale, *scales, level, unit, network, root, tails, *cover_of(u))


@torch.no_grad()
def _noise_of(network: Curves, u: Tensor, z: Tensor, held: Tensor) -> Noise:
    """The law of what the network leaves of values z (n, k), larger where it left more of others.

    The rows ``held`` out (m,) say how much: those that it has learned from lie nearer to it. (Of
    predators and prey, 400 and 600 pairs, laws gained .3 to .5 nats by that.)
    """
    means, log_size = network(u)
    left = ((z - means) / log_size.exp()).double()
    normal = fit_noise(left, torch.ones(len(left), dtype=left.dtype))
    noise = with_tails(normal, left) or normal
    squares = noise.squares(left)
    larger = (squares[held].median() / squares.median()).clamp_min(1.0)
    return replace(noise, root=noise.root * larger.sqrt())


def restore_emulator(state: GeneratorState) -> Emulator:
    """The law of a file; before version 20 it was as sure of itself everywhere."""
    others = besides("network", state.tensors)
    inputs, outputs = len(others["center"]), len(others["level"])
    others = everywhere(inputs)._asdict() | others
    network = restored(unprefixed("network", state.tensors), inputs, outputs)
    return Emulator(network=network, **others)
