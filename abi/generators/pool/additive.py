r"""A likelihood of features whose noise has any law, but the same at every theta.

    s | theta  ~  t(u) + R (m(u) + n),      n ~ f

u are the numbers of theta, t and R the trend of s in u (:mod:`abi.generators.trend`), m a small
network, and f a flow of its own, which theta do not bend. A simulator that adds noise to what its
parameters give is of this form, whatever shape the noise has, and however its parts hang together;
all pairs then show one and the same noise, those of earlier rounds among them. (Of ten two moons,
1,000 calls, mean C2ST fell from .58 to .54; of three fits with exponential noise, from .61 to .56.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from torch import Tensor, nn

from simulators.random import child_seed, isolated_rng

from ...training.loop import TrainingSettings, check_trained, train
from ..base import GeneratorState, Progress, besides, units, unprefixed
from ..flow_network import FlowSettings, build_flow
from ..trend import Trend, fit_trend
from .values.rows import InParts

if TYPE_CHECKING:
    from ..compiled.shifted import Shifted

_WIDTH = 64
_NOISE = FlowSettings(num_transforms=2, hidden=(32, 32), num_bins=5)
_TRAINING = TrainingSettings(
    batch_size=128, num_steps=2_500, max_epochs=400, least_epochs=100,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Additive(InParts):
    """The law of k features given c numbers of theta.

    Attributes:
        middle: of the numbers, (c,).
        scale: likewise.
        center: of the trend, (k,).
        root: likewise, (k, k).
        slope: likewise, (c, k) or of its squares and products, too.
        network: of the means, numbers (n, c) in their units -> (n, k), and the noise's flow.
    """

    kind = "additive"
    middle: Tensor
    scale: Tensor
    center: Tensor
    root: Tensor
    slope: Tensor
    network: MeansAndNoise

    def seen(self, x: Tensor, features: Tensor) -> Tensor:
        """The features."""
        return features

    def _log_prob(self, seen: Tensor, numbers: Tensor) -> Tensor:
        u = (numbers - self.middle) / self.scale
        trend = Trend(self.center, self.root, self.slope)
        return self._compiled.log_prob(trend.to_rest(seen, u), u) - trend.log_scale

    @cached_property
    def _compiled(self) -> Shifted:
        return self.network.compiled()


class MeansAndNoise(nn.Module):
    """A network of two hidden layers, c -> k, that begins as 0, and a flow of k numbers."""

    def __init__(self, inputs: int, outputs: int, seed: int = 0) -> None:
        super().__init__()
        with isolated_rng(seed):
            self.means = nn.Sequential(
                nn.Linear(inputs, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _WIDTH), nn.ReLU(),
                nn.Linear(_WIDTH, outputs),
            )  # fmt: skip
        for weights in self.means[-1].parameters():
            nn.init.zeros_(weights)
        self.noise = build_flow(outputs, 0, _NOISE, child_seed(seed, 0))

    def compiled(self) -> Shifted:
        """Both as one function, quick to train."""
        from ..compiled.shifted import Shifted

        return Shifted(self.noise, self.means)


def learn_additive(
    numbers: Tensor, features: Tensor, *, seed: int, on_epoch: Progress
) -> Additive | None:
    """That of features (n, k), given numbers of theta (n, c); None if one never varies.

    It is small, and trained on the CPU whatever the device.

    Raises:
        ValueError: if no loss is finite.
    """
    middle, scale, _ = units(numbers)
    u = (numbers - middle) / scale
    trend, _ = fit_trend(features, u)
    if trend.slope is None or (features == features[0]).all(dim=0).any():
        return None
    network = MeansAndNoise(u.shape[1], features.shape[1], child_seed(seed, 0))
    quick = network.compiled()

    def loss(rows: Tensor, u: Tensor) -> Tensor:
        return -quick.log_prob(rows, u).mean()

    rest = trend.to_rest(features, u)
    data, split = (rest, u), child_seed(seed, 1)
    log = train(quick, loss, data, _TRAINING, split, on_epoch, descend=quick.descend)
    check_trained(log, "the noise of features")
    quick.write_to(network.noise, network.means)
    return Additive(middle, scale, trend.center, trend.root, trend.slope, network.eval())


def restore_additive(state: GeneratorState) -> Additive:
    """The law of a file."""
    parts = besides("network", state.tensors)
    network = MeansAndNoise(len(parts["middle"]), len(parts["center"]))
    network.load_state_dict(unprefixed("network", state.tensors))
    return Additive(network=network.eval(), **parts)
