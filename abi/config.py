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

from .encoders.choice import FIXED, LEARNED, OF_PAIRS
from .generators.flow_network import FlowSettings
from .generators.push_forward.potnet import POTNetSettings
from .generators.push_forward.wgan import WGANSettings
from .training.loop import TrainingSettings

Encoder = Literal[
    "auto",
    "flat", "sorted", "moments", "moments+sorted", "principal", "principal+lags", "transitions",
    "atoms", "regression", "selected", "deep_set", "conv", "both_orders",
]  # fmt: skip
Proposal = Literal["truncated", "generator"]
Adjustment = Literal["none", "quantile", "conditional"]
Generator = Literal["flow", "mixture", "potnet", "wgan"]
WITHOUT_DENSITY = ("potnet", "wgan")


@dataclass(frozen=True)
class ABIConfig:
    """Settings of a fit. The defaults are ours; :meth:`paper` gives the published algorithm.

    In brackets: the symbol and the place in Lu & Wong (2025).

    Attributes:
        order: power of the one-dimensional distances, at least 1 [p, eqs. 2.1 to 2.5].
        mixing: weight of the marginals in the MSW distance, in (0, 1]; 1 compares marginals only
            [lambda, eq. 2.2].
        trim: probability cut off each tail of a marginal, in (0, 1/2) [delta, eq. 2.1].
        num_slices: random directions compared beside the d axes [K].
        num_levels: intervals between the quantiles predicted in each direction [H, eq. 2.5].
        redraw_directions: draw new directions in every round [Algorithm 2, step 4].
        standardize: measure theta in prior standard deviations, so that units do not matter.
        kappa: width of the quadratic part of the quantile loss [eq. 2.7].
        hidden: widths of the quantile network's layers [d_1, ..., d_L, Definition 2.4].
        encoder: what the networks see of x: "flat" (x as it is), "sorted", "moments",
            "moments+sorted", "principal", "principal+lags", "transitions", "atoms", "regression",
            "selected", and the learned "deep_set", "conv" and "both_orders". "auto" takes the one
            that predicts best, of all but "deep_set" and "conv".
        fine_tune: start the quantile network from the last round's weights [Section 2.2.3].
        network_training: how the quantile network is trained.
        proposal: where rounds after the first draw theta. "truncated": from the prior, cut to the
            region where the last answer is. "generator": from the last answer [Algorithm 4].
        growth: calls of a round over those of the round before, at least 1.
        max_retries: simulator calls that one theta may use with "generator" [R, Algorithm 4].
        accept_fraction: share of the pairs, those nearest to x_o, that the answer is trained on, in
            (0, 1] [alpha, Section 2.2.2]. None: all of them; half with "generator", a known
            distance, or another adjustment than "conditional".
        min_accepted: keep at least so many pairs, where there are as many.
        tolerances: the largest distance to x_o of a pair that is kept, one value a round, none
            above the one before [eps_1, ..., eps_T]; instead of ``accept_fraction``.
        pairs_per_round: pairs in a round [N, Algorithm 2]; as many as the calls give when None.
        reuse_simulations: train on pairs of earlier rounds too, where they lie in the region.
        generator: model of the answer: "flow", "mixture", "potnet" (the paper's) or "wgan". The
            last two have no density, and need ``proposal="generator"``.
        flow: settings of the flow.
        num_flows: flows that are averaged in the answer, two at most between rounds.
        max_components: most components of the mixture; BIC chooses.
        generator_training: how flow and mixture are trained.
        potnet: settings of POTNet.
        wgan: settings of the WGAN.
        likelihood: also learn p(x | theta), where x has few values or features, and pool the answer
            with it as far as pairs held out gain by it.
        adjustment: how pairs near x_o are used. "conditional": train flows of theta given x and
            read them at x_o. "quantile": move each theta by the predicted quantiles. "none": as
            if they were at x_o, as published.
    """

    # MSW distance
    order: float = 1.0
    mixing: float = 0.5
    trim: float = 0.05
    num_slices: int = 10
    num_levels: int = 10
    redraw_directions: bool = False
    standardize: bool = True

    # Quantile network
    kappa: float = 0.01
    hidden: tuple[int, ...] = (128, 128, 128)
    encoder: Encoder = "auto"
    fine_tune: bool = False
    network_training: TrainingSettings = field(default_factory=TrainingSettings)

    # Proposals
    proposal: Proposal = "truncated"
    growth: float = 1.5
    max_retries: int = 10

    # Tolerance: where flows given x are fitted to pairs of a region, fewer pairs lose more than
    # distant ones, so the default is to take all
    accept_fraction: float | None = None
    min_accepted: int = 500
    tolerances: tuple[float, ...] | None = None
    pairs_per_round: int | None = None
    reuse_simulations: bool = True

    # Generative model
    generator: Generator = "flow"
    flow: FlowSettings = field(default_factory=FlowSettings)
    num_flows: int = 3
    max_components: int = 10
    generator_training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(
            learning_rate=1e-2, weight_decay=0.1, batch_size=128, num_steps=2_400, max_epochs=50
        )
    )
    potnet: POTNetSettings = field(default_factory=POTNetSettings)
    wgan: WGANSettings = field(default_factory=WGANSettings)
    likelihood: bool = True
    adjustment: Adjustment = "conditional"

    def __post_init__(self) -> None:
        settle(self, **_RULES)

    @classmethod
    def paper(cls, **changes: Any) -> ABIConfig:
        """The algorithm as published (Algorithms 2 to 4), with the settings you name changed.

        Rounds of equal size draw theta from the last generator, with retries, and train on their
        own pairs only: the nearest tenth. Theta is not standardised, directions are drawn anew in
        each round, the network is fine-tuned, and the answer is what the last generator draws. Give
        ``pairs_per_round`` to fix the number of pairs, as the paper does, and
        ``generator="potnet"`` for its generator; ours is a flow.

        Differs from the paper: line 5 of Algorithm 2, which draws pairs for the network alone, is
        left out; the pairs of line 3 serve both.
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
        """The same settings with the networks trained on a device such as "cuda"; a WGAN stays.

        Raises:
            ValueError: if the device is not there.
        """
        device = device_here(device)
        parts = {name: getattr(self, name) for name in _TRAININGS}
        potnet = replace(self.potnet, training=replace(self.potnet.training, device=device))
        moved = {name: replace(part, device=device) for name, part in parts.items()}
        return replace(self, **moved, potnet=potnet)

    def check_devices(self) -> None:
        """Check that the devices of the networks are there.

        Raises:
            ValueError: if torch cannot place a tensor on one.
        """
        for training in (self.network_training, self.generator_training, self.potnet.training):
            device_here(training.device)

    def __repr__(self) -> str:
        """The constants that are not the default ones."""
        usual = vars(type(self)())
        changed = [(name, value) for name, value in vars(self).items() if value != usual[name]]
        return f"ABIConfig({', '.join(f'{name}={value!r}' for name, value in changed)})"

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ABIConfig:
        """Settings from what :meth:`to_dict` gave, also after it was JSON."""
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
    "encoder": choice("auto", *FIXED, *OF_PAIRS, *LEARNED),
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
    "likelihood": flag,
    "adjustment": choice(*get_args(Adjustment)),
}
