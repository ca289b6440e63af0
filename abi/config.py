"""Every constant of ABI in one place, each with its symbol and equation in the paper."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, get_args

from .encoders import FIXED, LEARNED
from .generators.flow import FlowSettings
from .generators.potnet import POTNetSettings
from .generators.wgan import WGANSettings
from .training import TrainingSettings, check_device

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
    tolerances: tuple[float, ...] | None = None  # eps_1 > ... > eps_T instead of alpha
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
        for name in _WHOLE:
            value = getattr(self, name)
            _require(value is None or hasattr(value, "__index__"), name, "a whole number", value)
        _require(self.order >= 1.0, "order", "at least 1", self.order)
        _require(0.0 < self.mixing <= 1.0, "mixing", "in (0, 1]", self.mixing)
        _require(0.0 < self.trim < 0.5, "trim", "in (0, 1/2)", self.trim)
        _require(self.num_slices >= 0, "num_slices", "at least 0", self.num_slices)
        _require(self.num_levels >= 1, "num_levels", "at least 1", self.num_levels)
        _require(self.kappa > 0.0, "kappa", "positive", self.kappa)
        _require(self.max_retries >= 1, "max_retries", "at least 1", self.max_retries)
        _require(self.accept_fraction is None or 0.0 < self.accept_fraction <= 1.0,
                 "accept_fraction", "in (0, 1]", self.accept_fraction)  # fmt: skip
        _require(self.growth >= 1.0, "growth", "at least 1", self.growth)
        _require(self.num_flows >= 1, "num_flows", "at least 1", self.num_flows)
        _require(self.min_accepted >= 2, "min_accepted", "at least 2", self.min_accepted)
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            _require(value in allowed, name, f"one of {', '.join(allowed)}", value)
        if self.tolerances is not None:
            falling = all(a >= b for a, b in pairwise(self.tolerances))
            positive = all(tolerance > 0.0 for tolerance in self.tolerances)
            _require(
                falling and positive, "tolerances", "positive and not increasing", self.tolerances
            )

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
        check_device(device)
        parts = {name: getattr(self, name) for name in _TRAININGS}
        potnet = replace(self.potnet, training=replace(self.potnet.training, device=device))
        moved = {name: replace(part, device=device) for name, part in parts.items()}
        return replace(self, **moved, potnet=potnet)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that fit in JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ABIConfig:
        """The inverse of :meth:`to_dict`, also after a trip through JSON."""
        values = _tuples_in(values)
        values["flow"] = FlowSettings(**_tuples_in(values["flow"]))
        for name in _TRAININGS:
            values[name] = TrainingSettings(**values[name])
        if "potnet" in values:  # files of before these two have neither
            potnet = _tuples_in(values["potnet"])
            potnet["training"] = TrainingSettings(**potnet["training"])
            values["potnet"] = POTNetSettings(**potnet)
            values["wgan"] = WGANSettings(**_tuples_in(values["wgan"]))
        return cls(**values)


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _tuples_in(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _tuples(value) for name, value in values.items()}


_WHOLE = (
    "num_slices",
    "num_levels",
    "max_retries",
    "min_accepted",
    "pairs_per_round",
    "num_flows",
    "max_components",
)
_TRAININGS = ("network_training", "generator_training")
_CHOICES = {
    "encoder": ("auto", *FIXED, *LEARNED),
    "proposal": ("truncated", "generator"),
    "generator": get_args(Generator),
    "adjustment": ("none", "quantile", "conditional"),
}


def _require(holds: bool, name: str, rule: str, value: object) -> None:
    if not holds:
        raise ValueError(f"`{name}` must be {rule}; got {value!r}.")
