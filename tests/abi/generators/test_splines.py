"""The compiled splines are zuko's: same values, same gradients, same weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from abi.generators.flow import FlowSettings, build_flow
from abi.generators.splines import quickened


def _flow(theta_dim: int, context_dim: int) -> Any:
    """Weights large enough that bins are narrow and derivatives far from 1."""
    flow = build_flow(theta_dim, context_dim, FlowSettings(), seed=0)
    generator = torch.Generator().manual_seed(1)
    for weights in flow.parameters():
        weights.data += 0.15 * torch.randn(weights.shape, generator=generator)
    return flow


def _rows(theta_dim: int, context_dim: int) -> tuple[Tensor, Tensor | None]:
    """Rows inside the splines' box, outside, and on its edge."""
    generator = torch.Generator().manual_seed(2)
    theta = 3.0 * torch.randn(400, theta_dim, generator=generator)
    theta[0], theta[1], theta[2] = 5.0, -5.0, 100.0
    context = torch.randn(400, context_dim, generator=generator) if context_dim else None
    return theta, context


def _gradients(flow: nn.Module, theta: Tensor, context: Tensor | None) -> list[Tensor]:
    distribution: Any = flow(context)
    flow.zero_grad()
    theta = theta.clone().requires_grad_()
    distribution.log_prob(theta).mean().backward()
    assert theta.grad is not None
    return [  # copies of the weights': a cast of the flow casts what it holds in place
        theta.grad,
        *(weights.grad.clone() for weights in flow.parameters() if weights.grad is not None),
    ]


@pytest.mark.parametrize(("theta_dim", "context_dim"), [(5, 10), (2, 0), (1, 4), (1, 0)])
def test_values_and_gradients_are_those_of_zuko(theta_dim: int, context_dim: int) -> None:
    flow = _flow(theta_dim, context_dim)
    theta, context = _rows(theta_dim, context_dim)
    rounded = _gradients(flow, theta, context)
    exact = flow.double()
    wide = (theta.double(), None if context is None else context.double())
    expected = exact(wide[1]).log_prob(wide[0])
    gradients = _gradients(exact, *wide)
    quick: Any = quickened(flow.float())

    torch.testing.assert_close(
        quick(context).log_prob(theta), expected.float(), rtol=1e-4, atol=1e-3
    )
    # What float32 costs by itself, which differs from one processor to the next, is the measure.
    found = _gradients(quick, theta, context)
    for ours, theirs, known in zip(found, rounded, gradients, strict=True):
        rounding = (theirs - known).abs().max()
        assert (ours - known).abs().max() <= 3.0 * rounding + 1e-5 * known.abs().max()


def test_the_copy_takes_and_gives_the_weights_of_the_flow() -> None:
    flow = _flow(3, 2)
    before = {name: value.clone() for name, value in flow.state_dict().items()}
    quick = quickened(flow)
    for weights in quick.parameters():
        weights.data.zero_()
    assert all(torch.equal(value, before[name]) for name, value in flow.state_dict().items())
    quick.load_state_dict(before)
    back = build_flow(3, 2, FlowSettings(), seed=5)
    back.load_state_dict(quick.state_dict())
    for name, value in back.state_dict().items():
        assert torch.equal(value, before[name])
        assert value.dtype == before[name].dtype


def test_another_device_is_served_by_zuko_itself() -> None:
    quick: Any = quickened(_flow(3, 2), "meta").to("meta")
    theta, context = torch.empty(4, 3, device="meta"), torch.empty(4, 2, device="meta")
    assert quick(context).log_prob(theta).device.type == "meta"


def test_a_second_derivative_is_refused_rather_than_wrong() -> None:
    quick: Any = quickened(_flow(2, 0))
    theta = torch.zeros(1, 2, requires_grad=True)
    (slope,) = torch.autograd.grad(quick(None).log_prob(theta).sum(), theta, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()
