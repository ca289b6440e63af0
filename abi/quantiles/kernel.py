"""The kernel statistic: x -> the distance between the posteriors given x and given x_o.

ABI learns it (Algorithm 3). Where the distance is known, as in the conjugate warm-up of Appendix
C.1, a fixed function takes its place and the rest of the algorithm stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from simulators.random import child_seed, isolated_rng, torch_generator
from simulators.summary import summary

from ..config import ABIConfig
from ..encoders.choice import OWN_ENCODER, build_encoder, candidates, features_of, prepared
from ..encoders.layout import PLAIN, Layout
from ..generators.base import Progress
from ..generators.support import Support
from ..training.loop import TrainingLog, TrainingSettings, check_trained, train
from .distance import QuantileTable, draw_directions, msw_distance, quantile_levels
from .encoder_race import EncoderRace
from .network import QuantileNetwork

_ROWS = 50_000  # of x looked at together: a table is a hundred times as wide as theta


@dataclass(frozen=True, eq=False)
class LearnedKernel:
    """A trained quantile network, the name of its encoder, and the observation it compares with.

    ``rivals`` are the encoders that lost to it and are tried again in the next round.
    """

    network: QuantileNetwork
    encoder: str
    layout: Layout
    x_o: Tensor
    order: float
    mixing: float
    rivals: tuple[str, ...] = ()

    __repr__ = summary

    def table(self, x: Tensor) -> QuantileTable:
        """Quantiles of theta given each row of x (n, p), in the network's units."""
        return self.network.table(x)

    def __call__(self, x: Tensor) -> Tensor:
        """Estimated MSW distance of each posterior to that of x_o, (n, p) -> (n,)."""
        observed = self.table(self.x_o[None])
        target = QuantileTable(observed.values[0], observed.directions, observed.levels)
        return torch.cat(
            [
                msw_distance(self.table(part), target, order=self.order, mixing=self.mixing)
                for part in x.split(_ROWS)
            ]
        )


@dataclass(frozen=True)
class FixedKernel:
    """A known distance, x (n, p) -> (n,)."""

    function: Callable[[Tensor], Tensor]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"`distance` must be a function x (n, p) -> (n,); got {self.function!r}."
            )

    def __call__(self, x: Tensor) -> Tensor:
        """The distance at each row.

        Raises:
            ValueError: if the function gives anything but one number a row.
        """
        values = torch.as_tensor(self.function(x)).detach().float()
        if values.shape not in {(len(x),), (len(x), 1)} or values.isnan().any():
            what = "NaN" if values.isnan().any() else f"shape {tuple(values.shape)}"
            raise ValueError(
                f"`distance` must give one number for each of the {len(x)} rows of x; got {what}."
            )
        return values.reshape(len(x))


Kernel = LearnedKernel | FixedKernel


def layout_of(kernel: Kernel | None) -> Layout:
    """Items, series and gaps of x, as far as a kernel knows them."""
    return kernel.layout if isinstance(kernel, LearnedKernel) else PLAIN


Extent = Literal["encoder", "network", "whole"]
"""Of a training: the encoder for a quarter of the steps, the network then behind it, or all."""

_BRIEF = 0.25  # of the steps, for an encoder that flows go on teaching
_RACE_TIME, _ENCODER_TIME = 0.5, 0.75  # of the progress


def train_kernel(
    theta: Tensor,
    x: Tensor,
    x_o: Tensor,
    config: ABIConfig,
    seed: int,
    previous: LearnedKernel | None = None,
    on_epoch: Progress | None = None,
    *,
    support: Support | None = None,
    layout: Layout = PLAIN,
    own: nn.Module | None = None,
    extent: Extent = "whole",
) -> tuple[LearnedKernel, TrainingLog]:
    """Train the quantile network on pairs (Algorithm 3).

    Differs from the paper: a network of its own is trained in each round, in the units of that
    round's pairs, instead of fine-tuning the last one (``fine_tune``). As the pairs close in on
    x_o, so do the scales of theta and x; on the M/G/1 queue this leaves accepted draws a third
    as wide as fine-tuning does. Where several encoders may be taken, a race
    (:mod:`.encoder_race`) chooses.

    Args:
        theta: (n, d).
        x: (n, p).
        x_o: the observation, (p,).
        config: constants.
        seed: seed of directions, weights and batches.
        previous: the last round's kernel, to fine-tune or to choose the encoder from.
        on_epoch: told the share of the training done.
        support: of the prior; all theta when omitted.
        layout: items or series of x, for the encoders that know them.
        own: the user's encoder, in place of the configured one.
        extent: of the training. Flows that go on teaching an encoder ask for no more than "encoder"
            or, where distances are to be shown, "network": on the queue (40,000 calls, two
            observations) they were within .01 nats of those whose encoder had all of the steps.
    """
    told = on_epoch if on_epoch is not None else _untold
    support = Support.everywhere(theta.shape[1]) if support is None else support
    z = support.to_real(theta)
    names: Sequence[str] = ()
    if own is None:
        names = _choices(z, x, config, previous, layout)
    waiting = len(names) == 2 and previous is not None and extent == "encoder"
    raced = len(names) > 1 and not waiting
    if raced:
        race = EncoderRace(theta, x, support, layout, config, child_seed(seed, 3))
        names = race.ranked(names, lambda share: told(_RACE_TIME * share), first=previous is None)
    name = names[0] if own is None else own
    kernel = _start(theta, x, z, x_o, config, name, layout, seed, previous)
    begin = _RACE_TIME if raced else 0.0
    log = _train(
        kernel.network, theta, x, z, config, extent, seed,
        lambda share: told(begin + (1.0 - begin) * share),
    )  # fmt: skip
    check_trained(log, "the quantile network")
    return replace(kernel, rivals=tuple(names[1 : max(2, (len(names) + 1) // 2)])), log


def _untold(share: float) -> None:
    """Nobody asked for the progress."""


def _train(
    network: QuantileNetwork,
    theta: Tensor,
    x: Tensor,
    z: Tensor,
    config: ABIConfig,
    extent: Extent,
    seed: int,
    on_epoch: Progress,
) -> TrainingLog:
    """Train a network in place; an encoder without weights is applied once, beforehand."""
    network.encoder, inputs = prepared(whole := network.encoder, x, z)
    learns = not isinstance(network.encoder, nn.Identity)
    training = config.network_training
    brief, begin = training.shortened(_BRIEF), 0.0

    def loss(rows: Tensor, inputs: Tensor) -> Tensor:
        return network.loss(rows, inputs, config.kappa)

    def trained(inputs: Tensor, training: TrainingSettings, told: Progress) -> TrainingLog:
        return train(network, loss, (theta, inputs), training, child_seed(seed, 1), told)

    if extent == "network" and learns:
        trained(inputs, brief, lambda share: on_epoch(_ENCODER_TIME * share))
        network.encoder, inputs, begin = nn.Identity(), features_of(whole, x), _ENCODER_TIME
    log = trained(
        inputs,
        brief if extent == "encoder" else training,
        lambda share: on_epoch(begin + (1.0 - begin) * share),
    )
    network.encoder = whole
    return log


def _choices(
    z: Tensor,
    x: Tensor,
    config: ABIConfig,
    previous: LearnedKernel | None,
    layout: Layout,
) -> Sequence[str]:
    """The encoders to try: the one asked for, or those that fit x.

    What the prior's pairs are too few and too wide to teach, a later round's may: the better half
    of one round's encoders is tried again in the next, and the last two once more in the last
    round, whose pairs are those of the answer. (Ten predator-prey ODEs, 10,000 calls: mean C2ST .56
    -> .54.) The first round's learned one waits for what the fixed ones say.
    """
    if config.encoder != "auto":
        return (config.encoder,)
    if previous is None:
        return candidates(x.shape[1], layout, (x, z))
    if config.fine_tune:
        return (previous.encoder,)
    return (previous.encoder, *previous.rivals)


def _start(
    theta: Tensor,
    x: Tensor,
    z: Tensor,
    x_o: Tensor,
    config: ABIConfig,
    encoder: str | nn.Module,
    layout: Layout,
    seed: int,
    previous: LearnedKernel | None,
) -> LearnedKernel:
    """A fresh network in the units of these pairs, or the previous one to be fine-tuned."""
    if previous is None or config.redraw_directions:
        generator = torch_generator(child_seed(seed, 2))
        directions = draw_directions(theta.shape[1], config.num_slices, generator)
    else:
        directions = previous.network.directions
    levels = quantile_levels(config.num_levels, config.trim)
    tuned = previous.network if previous is not None and config.fine_tune else None
    with isolated_rng(child_seed(seed, 0)):
        module = build_encoder(tuned.encoder if tuned else encoder, x, layout, z)
        with torch.no_grad():
            num_features = module.eval()(x[:1]).shape[1]  # batch norms cannot train on one row
        network = QuantileNetwork(
            theta,
            module,
            num_features,
            directions,
            levels,
            config.hidden,
            standardize=config.standardize,
        )
    if tuned is not None:
        network.load_state_dict(tuned.state_dict() | {"directions": directions})
    name = encoder if isinstance(encoder, str) else OWN_ENCODER
    return LearnedKernel(network, name, layout, x_o, config.order, config.mixing)
