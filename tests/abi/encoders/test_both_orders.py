"""Compiled loops of *both_orders* give what its layers give in torch, and so do their gradients."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from abi.encoders.both_orders import encoder as module
from abi.encoders.both_orders.encoder import BothOrders
from abi.encoders.layout import Layout
from simulators.random import isolated_rng


def _encoder(x: Tensor, item_dim: int) -> BothOrders:
    with isolated_rng(1):
        return BothOrders(x, Layout(item_dim=item_dim))


def _found(encoder: nn.Module, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Features, and gradients of a sum of them in which each counts for itself."""
    encoder.zero_grad()
    features = encoder(x)
    shares = torch.linspace(-1.0, 2.0, features.numel()).reshape(features.shape)
    (features * shares).sum().backward()
    return features.detach(), {
        name: torch.zeros_like(part) if part.grad is None else part.grad.clone()
        for name, part in encoder.named_parameters()
    }


def _by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_compilable", lambda x, encoder: False)


@pytest.mark.parametrize(
    ("rows", "items", "item_dim"), [(1, 2, 1), (64, 5, 2), (65, 50, 1), (150, 12, 3)]
)
@pytest.mark.parametrize("tied", [False, True])
def test_loops_give_what_torch_gives_and_so_do_their_gradients(
    rows: int, items: int, item_dim: int, tied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.randn(rows, items * item_dim, generator=torch.Generator().manual_seed(0))
    encoder = _encoder(torch.cat([x, x + 1.0]), item_dim)
    if tied:  # all items alike: places share the maximum
        x = x[:, :item_dim].repeat(1, items)
    found, gradients = _found(encoder, x)
    with torch.no_grad():
        assert torch.equal(encoder(x), found)
    _by_torch(monkeypatch)
    expected, exact = _found(encoder, x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    for name, gradient in gradients.items():
        scale = max(float(exact[name].abs().max()), 1e-3 * rows)
        torch.testing.assert_close(
            gradient / scale, exact[name] / scale, rtol=1e-3, atol=1e-4, msg=name
        )


def test_each_row_is_what_it_would_be_alone() -> None:
    x = torch.randn(130, 20, generator=torch.Generator().manual_seed(2)).exp()
    encoder = _encoder(x, 1)
    with torch.no_grad():
        together = encoder(x)
        alone = torch.cat([encoder(row[None]) for row in x])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)


def test_whoever_asks_how_x_matters_is_told() -> None:
    x = torch.randn(5, 8, generator=torch.Generator().manual_seed(3))
    encoder = _encoder(x, 1)
    asked = x.clone().requires_grad_()
    encoder(asked).sum().backward()
    assert asked.grad is not None
    assert asked.grad.abs().sum() > 0.0


def test_weights_of_another_precision_are_torchs_matter() -> None:
    x = torch.randn(5, 8, generator=torch.Generator().manual_seed(4))
    encoder = _encoder(x, 1)
    wide = copy.deepcopy(encoder).double()
    with torch.no_grad():
        torch.testing.assert_close(wide(x.double()).float(), encoder(x), rtol=1e-4, atol=1e-4)
