"""What of x a baseline sees: the encoder and the standardisation that ABI has.

NPE conditions on features of x, any function of it. NLE models a density, so that the features must
have one: "flat" is x, "moments" the density of these moments, and for "sorted" items are put in the
order of their first coordinate, a bijection of a multiset; the features of ABI's "sorted", which
repeat the items in the order of each coordinate, have no density. Each value is mapped by the
invertible standardisation of ABI's network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from simulators.random import isolated_rng

from ..encoders.choice import FIXED, LEARNED, build_encoder, encode, features_of
from ..encoders.item import InputScaling
from ..encoders.layout import Layout

Inputs = Callable[[Tensor], Tensor]


def features(
    encoder: str | nn.Module, x: Tensor, layout: Layout, seed: int = 0
) -> tuple[Inputs, nn.Module]:
    """A fixed map of x for NPE and other networks, and the module to be trained with them.

    Args:
        encoder: a name, or a module x (n, p) -> features (n, k), copied before it is trained.
        x: simulations that set the units, (n, p).
        layout: items or series of x.
        seed: of the initial weights of a learned encoder.
    """
    if isinstance(encoder, nn.Module) or encoder in LEARNED:
        with isolated_rng(seed):
            return nn.Identity(), build_encoder(encoder, x, layout)
    return build_encoder(encoder, x, layout), nn.Identity()


def z_scoring(embedding: nn.Module) -> Any:
    """What sbi is told of the scaling of x: a module is given x as it is, as in a fit of ABI."""
    return "independent" if isinstance(embedding, nn.Identity) else "none"


def num_features(inputs: Inputs, embedding: nn.Module, x: Tensor) -> int:
    """Values of one row as a network after ``embedding`` sees it."""
    return features_of(embedding, inputs(x[:2])).shape[1]


def require_fixed(encoder: str) -> None:
    """Refuse an encoder that has weights to learn.

    Raises:
        ValueError: if ``encoder`` is not fixed.
    """
    if encoder not in FIXED:
        names = ", ".join(FIXED)
        raise ValueError(
            f"`encoder` of a distance must be one of {names}; got {encoder!r}. A distance has "
            "no network that could teach another."
        )


def with_density(encoder: str | nn.Module, x: Tensor, layout: Layout) -> Inputs:
    """A map of x whose image has a density, for NLE.

    Raises:
        ValueError: if ``encoder`` is none of ``"flat"``, ``"sorted"`` and ``"moments"``.
    """
    if not isinstance(encoder, str) or encoder not in _WITH_DENSITY:
        given = "a module" if isinstance(encoder, nn.Module) else repr(encoder)
        raise ValueError(
            f"`encoder` of a likelihood must be one of {', '.join(_WITH_DENSITY)}; got {given}, "
            "whose features have no density. Use snpe."
        )
    order = _WITH_DENSITY[encoder]
    scaling = InputScaling(order(x, layout))
    return lambda rows: scaling(order(rows, layout))


def encoder_for(method: str, encoder: str) -> str:
    """The encoder a method can be shown: SNLE sees x as it is where features have no density."""
    return "flat" if method == "snle" and encoder not in _WITH_DENSITY else encoder


def canonical(x: Tensor, layout: Layout) -> Tensor:
    """The items of x (n, p) in the order of their first coordinate, (n, p)."""
    items = layout.items(x)
    order = items[:, :, 0].argsort(dim=1)[:, :, None].expand_as(items)
    return items.gather(1, order).reshape(len(x), -1)


_WITH_DENSITY: dict[str, Callable[[Tensor, Layout], Tensor]] = {
    "flat": lambda x, layout: x,
    "sorted": canonical,
    "moments": lambda x, layout: encode(x, "moments", layout),
}
