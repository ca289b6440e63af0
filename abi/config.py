"""Every constant of ABI in one place, each with its symbol and equation in the paper."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from numbers import Real
from typing import Any, Literal, get_args

from simulators.arguments import (
    POSITIVE,
    SHARE,
    Rule,
    at_least,
    choice,
    count,
    device_here,
    flag,
    layers,
    number,
    of_type,
    optional,
    require,
    settle,
)

from .encoders.choice import FIXED, LEARNED
from .generators.flow import FlowSettings
from .generators.potnet import POTNetSettings
from .generators.wgan import WGANSettings
from .training.loop import TrainingSettings

Encoder = Literal[
    "auto",
    "flat", "sorted", "moments", "moments+sorted", "principal", "principal+lags", "transitions",
    "deep_set", "conv", "both_orders",
]  # fmt: skip
Proposal = Literal["truncated", "generator"]
Adjustment = Literal["none", "quantile", "conditional"]
Generator = Literal["flow", "mixture", "potnet", "wgan"]
WITHOUT_DENSITY = ("potnet", "wgan")


@dataclass(frozen=True)
class ABIConfig:
    """Constants of a fit. The defaults are ours; :meth:`paper` gives the published algorithm."""

    # MSW distance
    order: float = 1.0  # p of eqs. (2.1)-(2.5)
    mixing: float = 0.5  # lambda of eq. (2.2); 1 uses the marginals only (Remark 2.4)
    trim: float = 0.05  # delta of eq. (2.1), in (0, 1/2)
    num_slices: int = 10  # K, random directions beside the d axes
    num_levels: int = 10  # H of eq. (2.5): H + 1 quantiles a direction
    redraw_directions: bool = False  # Algorithm 2, step 4 draws them anew in every round
    standardize: bool = True  # measure theta in prior sds, so that units do not weigh

    # Quantile network
    kappa: float = 0.01  # of the Huber quantile loss, eq. (2.7)
    hidden: tuple[int, ...] = (128, 128, 128)  # d_1..d_L of Definition 2.4
    encoder: Encoder = "auto"  # what of x the network sees; auto compares held-out losses
    fine_tune: bool = False  # Section 2.2.3 goes on from the last round's weights
    network_training: TrainingSettings = field(default_factory=TrainingSettings)

    # Proposals
    proposal: Proposal = "truncated"  # the prior cut to the last model's region, or Algorithm 4
    growth: float = 1.5  # calls of a round over those of the one before; the paper: 1
    max_retries: int = 10  # R of Algorithm 4, simulator calls a theta may use

    # Tolerance
    # alpha of Section 2.2.2, the share a round keeps; None: all where a flow conditional on x is
    # fitted to pairs from a region, which loses more by fewer pairs than by distant ones; else
    # half, as where the distance is known
    accept_fraction: float | None = None
    min_accepted: int = 500  # a round keeps at least this many where it has them
    tolerances: tuple[float, ...] | None = None  # eps_1 >= ... >= eps_T instead of alpha
    pairs_per_round: int | None = None  # N of Algorithm 2; the budget alone decides when None
    reuse_simulations: bool = True  # earlier pairs inside the region join the round's own

    # Generative model
    generator: Generator = "flow"  # G_beta of Section 2.2.3; the paper's is POTNet
    flow: FlowSettings = field(default_factory=FlowSettings)
    num_flows: int = 3  # of the answer; twice as many where few passes do, two at most of a region
    max_components: int = 10  # of the mixture, chosen by BIC
    generator_training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(
            learning_rate=1e-2, weight_decay=0.1, batch_size=128, num_steps=2_400, max_epochs=50
        )
    )
    potnet: POTNetSettings = field(default_factory=POTNetSettings)
    wgan: WGANSettings = field(default_factory=WGANSettings)
    adjustment: Adjustment = "conditional"  # how the last round's draws are moved to x_o

    def __post_init__(self) -> None:
        settle(self, **_RULES)

    @classmethod
    def paper(cls, **changes: Any) -> ABIConfig:
        """The algorithm as published (Algorithms 2-4), with any constant changed.

        Proposals of the last generator with retries, raw theta, directions drawn anew and the
        network fine-tuned in each round, equal rounds of their own pairs only, acceptance by the
        alpha-quantile alone, and draws of the last generator as they are. Pass
        ``pairs_per_round`` (N) to fix the number of proposals as the paper does, and
        ``generator="potnet"`` for its generator; the one here is our flow. Line 5 of Algorithm 2,
        which draws pairs for the network alone, is left out: those of line 3 serve both.
        """
        published = cls(
            proposal="generator",
            growth=1.0,
            accept_fraction=0.1,
            num_flows=1,
            standardize=False,
            redraw_directions=True,
            fine_tune=True,
            encoder="flat",
            reuse_simulations=False,
            min_accepted=2,
            adjustment="none",
            num_slices=5,
            generator_training=replace(cls().generator_training, max_epochs=100),
        )
        return replace(published, **changes)

    def on(self, device: str) -> ABIConfig:
        """The same constants, with every network but a WGAN's trained on a device such as "cuda".

        Raises:
            ValueError: if the device is not there.
        """
        device = device_here(device)
        parts = {name: getattr(self, name) for name in _TRAININGS}
        potnet = replace(self.potnet, training=replace(self.potnet.training, device=device))
        moved = {name: replace(part, device=device) for name, part in parts.items()}
        return replace(self, **moved, potnet=potnet)

    def check_devices(self) -> None:
        """Refuse a device of a network that is not there, before anything is spent.

        Raises:
            ValueError: if torch cannot place a tensor on it.
        """
        for training in (self.network_training, self.generator_training, self.potnet.training):
            device_here(training.device)

    def __repr__(self) -> str:
        """The constants that are not the default ones."""
        usual = vars(type(self)())
        changed = [(name, value) for name, value in vars(self).items() if value != usual[name]]
        return f"ABIConfig({', '.join(f'{name}={value!r}' for name, value in changed)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values that fit in JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ABIConfig:
        """The inverse of :meth:`to_dict`, also after a trip through JSON."""
        values = values | {"flow": FlowSettings(**values["flow"])}
        for name in _TRAININGS:
            values[name] = TrainingSettings(**values[name])
        if "potnet" in values:  # files of before these two have neither
            training = TrainingSettings(**values["potnet"]["training"])
            values["potnet"] = POTNetSettings(**values["potnet"] | {"training": training})
            values["wgan"] = WGANSettings(**values["wgan"])
        return cls(**values)


def _falling(value: Any, name: str) -> tuple[float, ...]:
    """Tolerances, none above the one before; an infinite one keeps every pair."""
    several = isinstance(value, tuple | list) and all(isinstance(part, Real) for part in value)
    positive = several and all(part > 0.0 for part in value)
    falling = positive and all(a >= b for a, b in pairwise(value))
    require(falling, name, "a tuple of positive numbers, not increasing", value)
    return tuple(float(part) for part in value)


_TRAININGS = ("network_training", "generator_training")
_RULES: dict[str, Rule] = {
    "order": at_least(1.0),
    "mixing": SHARE,
    "trim": number("in (0, 1/2)", lambda value: 0.0 < value < 0.5),
    "num_slices": count(0),
    "num_levels": count(),
    "redraw_directions": flag,
    "standardize": flag,
    "kappa": POSITIVE,
    "hidden": layers(least=1),
    "encoder": choice("auto", *FIXED, *LEARNED),
    "fine_tune": flag,
    "network_training": of_type(TrainingSettings),
    "proposal": choice(*get_args(Proposal)),
    "growth": at_least(1.0),
    "max_retries": count(),
    "accept_fraction": optional(SHARE),
    "min_accepted": count(2),
    "tolerances": optional(_falling),
    "pairs_per_round": optional(count()),
    "reuse_simulations": flag,
    "generator": choice(*get_args(Generator)),
    "flow": of_type(FlowSettings),
    "num_flows": count(),
    "max_components": count(),
    "generator_training": of_type(TrainingSettings),
    "potnet": of_type(POTNetSettings),
    "wgan": of_type(WGANSettings),
    "adjustment": choice(*get_args(Adjustment)),
}
