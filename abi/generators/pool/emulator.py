r"""A likelihood of the values of x whose means are a network of theta: a learned simulator.

    g(x) | theta  ~  m(u) + e^{l(u)} R r

u are the numbers of theta, g the scale of each value (:mod:`.values.scales`), m and l one small
network, and r normal or with tails of rows (:mod:`.values.noise`). Of small counts m is the log of
the mean (:mod:`.values.counts`). Where values are many they say most of theta by their means, and a
network of theta has to learn one smooth curve for each, which is far easier than to read theta from
all of them; and where the curve bends more than squares and products do, as a wave's does whose
frequency is not yet known, :mod:`.values.law` cannot follow. (Of eight waves in noise, 15,000
calls, mean C2ST fell from .63 to .57; of the two whose frequency was known least, from .97 to .62
and from .85 to .74.)

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

from ...training.loop import TrainingLog, TrainingSettings, check_trained, train
from ..base import GeneratorState, Progress, besides, units, unprefixed
from ..flow_training import rows_held
from .cover import Cover, cover_of, everywhere
from .curves import Curves, EarlierCurves, curves, restored
from .values import counts
from .values.noise import NORMAL, fit_noise, inverse_of, log_density, with_tails
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
        network: numbers (n, c) in their units -> means (n, k), of counts their logs, and log sizes
            of the others' errors (n, 1).
        shape: r of those that are counts, (k,); 0 of the others.
        root: the factor R of what is measured, (k, k).
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
    shape: Tensor
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
        counted = self.shape > 0.0
        left = ((seen - self.level) / self.unit - means).where(~counted, 0.0) / log_size.exp()
        count = int((~counted).sum())
        each = log_density((left @ self._inverse.T).square().sum(dim=1), count, self.tails)
        units = self.root.diagonal().log().sum() + self.unit.log().sum()
        of_counts = counts.log_density(seen[:, counted], means[:, counted], self.shape[counted])
        value: Tensor = each - count * log_size[:, 0] - units + of_counts.sum(dim=1)
        return value - Cover(self.centers, self.radius).loss(u)

    @cached_property
    def _inverse(self) -> Tensor:
        return inverse_of(self.root)


def learn_emulator(
    numbers: Tensor, x: Tensor, *, device: str, seed: int, on_epoch: Progress
) -> Emulator | None:
    """That of x (n, p), given numbers of theta (n, c), trained on this device.

    A value that never varies, is not always there, or is an answer of yes or no says nothing. None
    where all are such.

    Raises:
        ValueError: if no loss is finite.
    """
    numbers, x = some_rows(_TOGETHER // max(x.shape[1], numbers.shape[1]), numbers, x)
    center, scale, _ = units(numbers)
    u = (numbers - center) / scale
    used, shape = _said(u, x)
    x, counted = x[:, used], shape > 0.0
    if not used.any():
        return None
    found = best_scales(terms_of(u.double(), x.shape[1]), x.double())
    scales = Scales(found.exponent.float().masked_fill(counted, 1.0), found.least.float())
    on = scales.of(x)
    level, unit, _ = units(on)
    level, unit = level.masked_fill(counted, 0.0), unit.masked_fill(counted, 1.0)
    z = (on - level) / unit
    start = torch.where(counted, x.mean(dim=0).log(), 0.0)
    network = curves(u.shape[1], start, shape, child_seed(seed, 0))
    rows = min(_TRAINING.batch_size, max(_LEAST_BATCH, len(x) // _STEPS_EACH))
    training, split = replace(_TRAINING, device=device, batch_size=rows), child_seed(seed, 1)
    log = _trained(network, (u, z), training, split, on_epoch)
    check_trained(log, "a network of the means of x")
    left = _left_by(network, u, z, rows_held(len(u), training, split))
    return Emulator(used, center, scale, *scales, level, unit, network, *left, *cover_of(u))


def _trained(
    network: Curves, pairs: tuple[Tensor, Tensor], training: TrainingSettings, seed: int,
    on_epoch: Progress,
) -> TrainingLog:  # fmt: skip
    if torch.device(training.device).type != "cpu":
        return train(network, network.loss, pairs, training, seed, on_epoch)
    quick = network.compiled()
    log = train(quick, quick.loss, pairs, training, seed, on_epoch, descend=quick.descend)
    quick.write_back()
    return log


def _said(u: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Which values of x (n, p) say something, (p,), and r of those that are counts, or 0, (k,).

    (Of fourteen epidemics, 1,000 calls, most of whose first values are 0 or 1, one fell from .63 to
    .54 of C2ST by the others.)
    """
    answers = ((x == 0.0) | (x == 1.0)).all(dim=0)
    used = x.isfinite().all(dim=0) & (x != x[0]).any(dim=0) & ~answers
    counted, laws = counts.counted(u.double(), x, used)
    shape = torch.zeros(len(used))
    shape[counted] = laws.shape.float()
    return used, shape[used]


@torch.no_grad()
def _left_by(network: Curves, u: Tensor, z: Tensor, held: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Shapes r (k,), a factor R (k, k) and tails (2, m) of what it leaves of values z (n, k).

    R is larger where the network left more of others: the rows ``held`` out (m,) say how much, as
    those that it has learned from lie nearer to it. (Of predators and prey, 400 and 600 pairs, laws
    gained .3 to .5 nats by that.)
    """
    means, log_size = network(u)
    shape, root, tails = network.shape.clone(), torch.eye(z.shape[1]), NORMAL
    counted, measured = shape > 0.0, (shape == 0.0).nonzero()[:, 0]
    shape[counted] = counts.likelier_shape(z[:, counted], means[:, counted], shape[counted])
    if len(measured):
        left = ((z - means) / log_size.exp())[:, measured].double()
        normal = fit_noise(left, torch.ones(len(left), dtype=left.dtype))
        noise = with_tails(normal, left) or normal
        squares = noise.squares(left)
        larger = (squares[held].median() / squares.median()).clamp_min(1.0)
        root[measured[:, None], measured] = (noise.root * larger.sqrt()).float()
        tails = noise.tails.float()
    return shape, root, tails


def restore_emulator(state: GeneratorState) -> Emulator:
    """The law of a file.

    Before version 20 it was as sure of itself everywhere, before 25 no value was a count.
    """
    others = besides("network", state.tensors)
    inputs, outputs = len(others["center"]), len(others["level"])
    others = everywhere(inputs)._asdict() | {"shape": torch.zeros(outputs)} | others
    network = restored(unprefixed("network", state.tensors), inputs, outputs)
    return Emulator(network=network, **others)
