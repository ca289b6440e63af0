"""What of x a baseline sees: the encoder and the standardisation that ABI has.

NPE conditions on features of x, any function of it. NLE models the density of x, so that only a
bijection will do: items are put in the order of their first coordinate, which is one for a
multiset, and each value is mapped by the invertible standardisation of ABI's network. The features
"sorted", which repeat the items in the order of each coordinate, have no density.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

from torch import Tensor, nn

from ..encoders import ENCODERS, encode
from ..quantiles import InputScaling

Inputs = Callable[[Tensor], Tensor]


def features(encoder: str | nn.Module, x: Tensor, item_dim: int) -> tuple[Inputs, nn.Module]:
    """A fixed map of x for NPE, and the module to be trained with it.

    Args:
        encoder: a name, or a module x (n, p) -> features (n, k), copied before it is trained.
        x: simulations that set the units, (n, p).
        item_dim: values of one item of x.
    """
    if isinstance(encoder, nn.Module):
        return nn.Identity(), copy.deepcopy(encoder)
    _check(encoder)
    scaling = InputScaling(encode(x, encoder, item_dim))
    return lambda rows: scaling(encode(rows, encoder, item_dim)), nn.Identity()


def bijection(encoder: str | nn.Module, x: Tensor, item_dim: int) -> Inputs:
    """An invertible map of x, up to the order of its items, for NLE.

    Raises:
        ValueError: if ``encoder`` is a module: features have no likelihood.
    """
    if isinstance(encoder, nn.Module):
        raise ValueError(
            "`encoder` of a likelihood must be 'flat' or 'sorted'; got a module, whose features "
            "have no density that gives that of x. Use snpe."
        )
    _check(encoder)
    order = canonical if encoder == "sorted" else _as_is
    scaling = InputScaling(order(x, item_dim))
    return lambda rows: scaling(order(rows, item_dim))


def canonical(x: Tensor, item_dim: int) -> Tensor:
    """The items of x (n, p) in the order of their first coordinate, (n, p)."""
    items = x.reshape(len(x), -1, item_dim)
    order = items[:, :, 0].argsort(dim=1)[:, :, None].expand_as(items)
    return items.gather(1, order).reshape(len(x), -1)


def _as_is(x: Tensor, item_dim: int) -> Tensor:
    return x


def _check(encoder: str) -> None:
    if encoder not in ENCODERS:
        raise ValueError(
            f"`encoder` must be one of {', '.join(ENCODERS)} or a torch module; got {encoder!r}."
        )
