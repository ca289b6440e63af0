"""What of x the networks see: an encoder maps x (n, p) to features (n, k).

Many data sets are samples, x = (items of m values each): the order of their items carries little,
and a plain network needs far more simulations to find that out than one that is shown the items
in a form without order. The fixed encoders have nothing to learn:

*flat* is x itself; *sorted* the items sorted by each of their coordinates in turn, so that none is
preferred; *moments* their mean mu, and the Cholesky factor L of their covariance as log L_jj and
asinh(L_ij / L_ii), which resolve a scale of 1e-4 and a correlation of 0.999 as well as any other;
*moments+sorted* both; *principal* the scores of x on its principal axes, and *principal+lags* the
autocorrelations beside them (:mod:`abi.encoders.principal`), for series, spectra and curves;
*transitions* the moments of values and of the increments that follow them
(:mod:`abi.encoders.transition`), for paths.

*atoms* is the moments and the share of items at the least or largest value
(:mod:`abi.encoders.atoms`), tried where these pile up there. *regression* is what a straight line
predicts of theta, and *selected* the values of x that tell of theta, where half of them or more do
not (:mod:`abi.encoders.of_theta`).

Others are learned with the network they feed: *deep_set* and *conv* (:mod:`abi.encoders.item`), and
*both_orders* (:mod:`abi.encoders.both_orders`). A torch module of your own, x (n, p) -> features
(n, k), takes the same place.

``auto`` chooses by what flows behind them say of theta held out, never by the answer
(:mod:`abi.quantiles.encoder_race`). The first round tries all that fit x but the learned ones (two
or three values that nobody has called items are taken as they are) and, where x has ten items or
more and one that sees no order did best, *both_orders*. Each later round, with more pairs, tries
again the better half of those before it (successive halving, Jamieson & Talwalkar 2016), unless a
learned one has left them behind.

All but yours end or begin with :class:`InputScaling`, a fixed invertible map per coordinate.

Of x with gaps they see what is there. Places where nothing ever was measured are left out. Where
gaps differ from x to x, *flat*, *sorted*, *moments*, *moments+sorted*, *principal* and *deep_set*
have forms of their own (:mod:`abi.encoders.masked`); a module of yours is given the NaN.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor, nn

from .atoms import Atoms, pile_up
from .both_orders.encoder import BothOrders
from .item import DeepSet, InputScaling, SeriesEncoder, enough, sorted_by_each
from .layout import PLAIN, Layout
from .masked import MASKED, masked
from .moments import moments
from .of_theta import MOST_VALUES, Regression, Selected, telling
from .principal import PrincipalScores
from .transition import Transitions

FIXED = (
    "flat", "sorted", "moments", "moments+sorted", "principal", "principal+lags", "transitions",
)  # fmt: skip
LEARNED = ("deep_set", "conv", "both_orders")
OF_THETA = ("regression", "selected")
OF_PAIRS = ("atoms", *OF_THETA)
"""Those that are tried where pairs say that they may help."""
OWN_ENCODER = "your module"
"""What a module of the user's is called."""
_SETS = ("sorted", "moments", "moments+sorted", "atoms")  # see no order
_FEW = 4  # values that may be a sample
_MANY = 10  # fewer items have no gaps to speak of, fewer values no axes
_ROWS = 8192  # at a time


class Measured(nn.Module):
    """An encoder of the places (k,) of x (n, p) where something was measured."""

    def __init__(self, encoder: nn.Module, places: list[int]):
        super().__init__()
        self.encoder, self.places = encoder, places

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to features (n, k)."""
        features: Tensor = self.encoder(x[:, self.places])
        return features


class _Fixed(nn.Module):
    """A function x -> features with nothing to learn, scaled."""

    def __init__(self, function: Callable[[Tensor], Tensor], x: Tensor):
        super().__init__()
        self.function = function
        self.scaling = InputScaling(function(x))

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.scaling(self.function(x))
        return features


def candidates(
    x_dim: int, layout: Layout, pairs: tuple[Tensor, Tensor] | None = None
) -> tuple[str, ...]:
    """The fixed encoders that can tell something about x (n, x_dim).

    Two or three values that nobody has called items are what they are. Given pairs of x (n, p) and
    theta on the real line (n, d), also those that these say may help.
    """
    seen = layout.seen(x_dim)
    x_dim, layout = len(seen), layout.measured
    num_items = layout.length(x_dim)
    names = ["flat"]
    if layout.width == 1 and layout.missing != "items" and x_dim < _FEW:
        return tuple(names)
    if num_items > 1:
        names += ["sorted"]
    if num_items > max(1, layout.width):  # else their covariance has no full factor
        names += ["moments", "moments+sorted"]
    if x_dim >= _MANY:
        names += ["principal"]
    if num_items >= _MANY:
        names += ["principal+lags", "transitions"]
    if pairs is not None and layout.missing == "nothing" and num_items >= _MANY:
        names += ["atoms"] if pile_up(layout.items(enough(pairs[0][:, seen]))).any() else []
    if pairs is not None and layout.missing == "nothing" and _MANY <= x_dim <= MOST_VALUES:
        x, z = pairs
        names += ["regression"] if z.shape[1] < x_dim else []
        names += ["selected"] if 2 * len(telling(x[:, seen], z)) <= x_dim else []
    if layout.missing == "items":
        names = [name for name in names if name != "principal"]  # no axes of what has no order
    return tuple(name for name in names if layout.missing == "nothing" or name in MASKED)


def learned_for(x_dim: int, layout: Layout, losses: Mapping[str, float]) -> str | None:
    """The learned encoder that suits x, if any, by the held-out losses of the fixed ones.

    Where one that sees the order of x predicts best, x is a series, and convolutions, at ten times
    the cost, were .4 to 1.6 nats behind (waves, predators and prey, brain signals; on queues they
    were between .3 behind and .6 ahead). Of sets with gaps the fixed ones see number, moments and
    edges; deep_set cost twice as much, and its sds were up to 14% off where theirs were 4% (a
    normal law's mean, two data sets).
    """
    many = layout.measured.length(len(layout.seen(x_dim))) >= _MANY
    suits = many and layout.missing == "nothing" and min(losses, key=losses.__getitem__) in _SETS
    return "both_orders" if suits else None


def is_list(layout: Layout, name: str) -> bool:
    """Whether x is a list of items, whole or missing: by its layout, or by the encoder that won.

    Args:
        layout: of x.
        name: of the encoder; one that sees no order may have won as there is none.
    """
    whole = layout.num_series == 1 and layout.missing != "values"
    return whole and (layout.item_dim > 1 or layout.missing == "items" or name in _SETS)


def build_encoder(
    encoder: str | nn.Module, x: Tensor, layout: Layout = PLAIN, z: Tensor | None = None
) -> nn.Module:
    """An encoder for data like x.

    Args:
        encoder: a name of this module's text (but ``auto``), or a module x (n, p) -> (n, k), of
            which a copy is made.
        x: data that set the scales, (n, p).
        layout: items or series that x holds one after another.
        z: theta of the same pairs on the real line, (n, d), for an encoder that is found with
            theta; without it, a blank one, to be filled from a file.

    Raises:
        ValueError: if the name is unknown, or x holds too few items or times for it.

    >>> build_encoder("moments", torch.randn(100, 8), Layout(item_dim=2))(torch.randn(3, 8)).shape
    torch.Size([3, 5])
    """
    if isinstance(encoder, nn.Module):
        return copy.deepcopy(encoder).to("cpu")
    if layout.gaps:
        seen = layout.seen(x.shape[1])
        return Measured(build_encoder(encoder, x[:, seen], layout.measured, z), seen)
    if layout.missing != "nothing":
        return masked(encoder, x, layout)
    num_items, least = layout.length(x.shape[1]), _LEAST_ITEMS.get(encoder, 1)
    if num_items < least:
        raise ValueError(
            f"`encoder` {encoder!r} needs at least {least} items or times; x holds {num_items}."
        )
    if encoder in OF_THETA:
        return Regression(x, z) if encoder == "regression" else Selected(x, z)
    if encoder in _MODULES:
        return _MODULES[encoder](x, layout)
    if encoder not in FIXED:
        names = ", ".join((*FIXED, *OF_PAIRS, *LEARNED))
        raise ValueError(f"`encoder` must be one of {names}, or a torch module; got {encoder!r}.")
    return _Fixed(partial(encode, encoder=encoder, layout=layout), x)


_LEAST_ITEMS = {"transitions": 3, "both_orders": 2}
_MODULES: dict[str, Callable[[Tensor, Layout], nn.Module]] = {
    "flat": lambda x, layout: InputScaling(x),
    "principal": lambda x, layout: PrincipalScores(x, layout, lags=False),
    "principal+lags": lambda x, layout: PrincipalScores(x, layout, lags=True),
    "transitions": Transitions,
    "atoms": Atoms,
    "deep_set": DeepSet,
    "conv": SeriesEncoder,
    "both_orders": BothOrders,
}


def prepared(encoder: nn.Module, x: Tensor, z: Tensor | None = None) -> tuple[nn.Module, Tensor]:
    """What to train and what to feed it: an encoder that does not learn is applied beforehand.

    Of pairs with theta z (n, d) on the real line it gives :func:`features_of_pairs`.
    """
    if any(weights.requires_grad for weights in encoder.parameters()):
        return encoder, x
    return nn.Identity(), features_of(encoder, x) if z is None else features_of_pairs(encoder, x, z)


@torch.no_grad()
def features_of(encoder: nn.Module, x: Tensor) -> Tensor:
    """The features of x (n, p), as they are, (n, k)."""
    return torch.cat([encoder(part) for part in x.split(_ROWS)])


def features_of_pairs(encoder: nn.Module, x: Tensor, z: Tensor) -> Tensor:
    """The features (n, k) of pairs to learn from: x (n, p), and theta on the real line (n, d).

    Few pairs that the encoder was found from are seen as if each had been left out.
    """
    if isinstance(encoder, Measured):
        return features_of_pairs(encoder.encoder, x[:, encoder.places], z)
    left_out = encoder.left_out(x, z) if isinstance(encoder, Regression) else None
    return features_of(encoder, x) if left_out is None else left_out


def encode(x: Tensor, encoder: str, layout: Layout) -> Tensor:
    """The features of a fixed encoder before scaling, x (n, p) -> (n, k)."""
    if encoder == "flat":
        return x
    items = layout.items(x)
    if encoder == "sorted":
        return _sorted_items(items)
    if encoder == "moments":
        return moments(items)
    return torch.cat([moments(items), _sorted_items(items)], dim=1)


def _sorted_items(items: Tensor) -> Tensor:
    return torch.cat([order.flatten(1) for order in sorted_by_each(items)], dim=1)
