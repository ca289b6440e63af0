"""The compiled flow is zuko's: same values, same gradients, same draws, same weights."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits
from torch import Tensor, nn

from abi.generators.compiled import flow as flow_module
from abi.generators.compiled import passes
from abi.generators.compiled.flow import CompiledFlow
from abi.generators.compiled.network import Layout, network_back, network_forth, places_of
from abi.generators.compiled.training import DeviceFlow, trainable
from abi.generators.flow_network import FlowSettings, build_flow

DIMENSIONS = [(5, 10), (2, 0), (1, 4), (1, 0), (10, 3)]


def _flow(theta_dim: int, context_dim: int, seed: int = 0) -> Any:
    """Weights large enough that bins are narrow and derivatives far from 1."""
    flow = build_flow(theta_dim, context_dim, FlowSettings(), seed=seed)
    generator = torch.Generator().manual_seed(1 + seed)
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


def _with_gradients(theta: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor | None]:
    return (
        theta.clone().requires_grad_(),
        None if context is None else context.clone().requires_grad_(),
    )


def _zuko_gradients(flow: Any, theta: Tensor, context: Tensor | None) -> list[Tensor]:
    """Of theta, context and weights, in the type of the flow."""
    flow.zero_grad()
    theta, context = _with_gradients(theta, context)
    flow(context).log_prob(theta).mean().backward()
    inputs = [theta] if context is None else [theta, context]
    return [part.grad.clone() for part in (*inputs, *flow.parameters()) if part.grad is not None]


def _compiled_gradients(flow: Any, theta: Tensor, context: Tensor | None) -> list[Tensor]:
    """The same of the compiled flow, its weights' in zuko's form."""
    quick = CompiledFlow(flow)
    theta, context = _with_gradients(theta, context)
    quick.log_prob(theta, context).mean().backward()
    inputs = [theta] if context is None else [theta, context]
    assert quick.weights.grad is not None
    quick.weights.data.copy_(quick.weights.grad)
    back = build_flow(theta.shape[1], 0 if context is None else context.shape[1], FlowSettings(), 0)
    quick.write_to(back)
    return [
        *(part.grad for part in inputs if part.grad is not None),
        *(part.detach() for part in back.parameters()),
    ]


@pytest.mark.parametrize(("theta_dim", "context_dim"), DIMENSIONS)
def test_values_are_those_of_zuko(theta_dim: int, context_dim: int) -> None:
    flow = _flow(theta_dim, context_dim)
    theta, context = _rows(theta_dim, context_dim)
    values = CompiledFlow(flow).log_prob(theta, context).detach()
    wide = None if context is None else context.double()
    expected = flow.double()(wide).log_prob(theta.double()).detach()
    torch.testing.assert_close(values, expected.float(), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("theta_dim", "context_dim"), DIMENSIONS)
def test_gradients_are_as_exact_as_those_of_zuko(theta_dim: int, context_dim: int) -> None:
    """What float32 costs zuko, at the worst of four flows, is the measure."""
    theta, context = _rows(theta_dim, context_dim)
    wide = (theta.double(), None if context is None else context.double())
    errors = {"compiled": 0.0, "zuko": 0.0}
    for seed in range(4):
        flow = _flow(theta_dim, context_dim, seed)
        ours = _compiled_gradients(flow, theta, context)
        theirs = _zuko_gradients(flow, theta, context)
        for name, found in (("compiled", ours), ("zuko", theirs)):
            known = _zuko_gradients(flow.double(), *wide)
            assert len(found) == len(known)
            errors[name] = max(errors[name], _furthest(found, known))
            flow.float()
    assert errors["compiled"] <= 3.0 * errors["zuko"]


def _furthest(found: list[Tensor], known: list[Tensor]) -> float:
    """The largest error of a tensor over its largest entry."""
    pairs = zip(found, known, strict=True)
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


@pytest.mark.parametrize(("theta_dim", "context_dim"), DIMENSIONS)
@pytest.mark.parametrize("weighed", [False, True])
def test_training_without_autograd_has_its_gradient(
    theta_dim: int, context_dim: int, weighed: bool
) -> None:
    quick = CompiledFlow(_flow(theta_dim, context_dim))
    theta, context = _rows(theta_dim, context_dim)
    shares = torch.linspace(0.0, 1.0, len(theta)) if weighed else torch.ones(len(theta))
    shares /= shares.sum()
    (-quick.log_prob(theta, context) @ shares).backward()  # type: ignore[no-untyped-call]
    assert quick.weights.grad is not None
    expected = quick.weights.grad.clone()
    value = quick.descend(theta, context, shares if weighed else None)
    torch.testing.assert_close(value, -quick.log_prob(theta, context).detach() @ shares)
    torch.testing.assert_close(quick.weights.grad, expected)


@pytest.mark.parametrize(("theta_dim", "context_dim"), DIMENSIONS)
def test_draws_are_those_of_zuko(theta_dim: int, context_dim: int) -> None:
    flow = _flow(theta_dim, context_dim)
    base, context = _rows(theta_dim, context_dim)
    quick = CompiledFlow(flow)
    found, on_the_way = quick.from_base(base, context)
    exact = flow.double()(None if context is None else context.double())
    with torch.no_grad():
        expected = exact.transform.inv(base.double())
        torch.testing.assert_close(found, expected.float(), rtol=1e-3, atol=1e-3)
        there, log_slope = quick.to_base(found, context)
    torch.testing.assert_close(there, base, rtol=1e-2, atol=1e-2)
    steep = exact.transform.log_abs_det_jacobian(found.double(), there.double())
    torch.testing.assert_close(log_slope, steep.float().detach(), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(on_the_way, log_slope, rtol=1e-3, atol=1e-3)


def test_one_context_serves_many_rows_and_many_rows_go_in_parts() -> None:
    quick = CompiledFlow(_flow(3, 2))
    theta, _ = _rows(3, 0)
    theta, context = theta.repeat(23, 1)[:9_001], torch.tensor([0.3, -1.0])
    with torch.no_grad():
        shared = quick.log_prob(theta, context)
        each = quick.log_prob(theta, context.expand(9_001, 2))
    assert torch.equal(shared, each)
    assert quick.from_base(theta, context)[0].shape == (9_001, 3)
    assert quick.log_prob(theta[:0], context).shape == (0,)
    assert quick.from_base(theta[:0], context)[0].shape == (0, 3)


def test_the_copy_takes_and_gives_the_weights_of_the_flow() -> None:
    flow = _flow(3, 2)
    before = {name: value.clone() for name, value in flow.state_dict().items()}
    quick = CompiledFlow(flow)
    back = build_flow(3, 2, FlowSettings(), seed=5)
    quick.write_to(back)
    quick.weights.data.zero_()
    assert all(torch.equal(value, before[name]) for name, value in flow.state_dict().items())
    masks = {name: mask for name, mask in flow.named_buffers() if name.endswith("mask")}
    for name, value in back.named_parameters():  # hidden weights are 0, and change nothing
        mask = masks.get(name.replace("weight", "mask"), torch.tensor(1.0))
        assert torch.equal(value, before[name] * mask)


def test_weights_may_move_to_another_place() -> None:
    theta, context = _rows(3, 2)
    quick, other = CompiledFlow(_flow(3, 2)), CompiledFlow(build_flow(3, 2, FlowSettings(), 9))
    with torch.no_grad():
        other.log_prob(theta, context)
        other.weights.data = quick.weights.data.clone()
        assert torch.equal(other.log_prob(theta, context), quick.log_prob(theta, context))


def test_another_device_is_served_by_zuko_itself() -> None:
    quick: nn.Module = trainable(_flow(3, 2), "meta").to("meta")
    theta, context = torch.empty(4, 3, device="meta"), torch.empty(4, 2, device="meta")
    assert quick.log_prob(theta, context).device.type == "meta"  # type: ignore[operator]


@pytest.mark.parametrize("weighed", [False, True])
def test_training_elsewhere_descends_alike(weighed: bool) -> None:
    flow = _flow(2, 3)
    theta, context = _rows(2, 3)
    shares = torch.linspace(0.0, 1.0, len(theta)) if weighed else None
    shares = None if shares is None else shares / shares.sum()
    there, here = DeviceFlow(flow), CompiledFlow(flow)
    values = [part.descend(theta, context, shares) for part in (there, here)]
    torch.testing.assert_close(*values, rtol=1e-4, atol=1e-4)
    assert all(part.grad is not None for part in there.parameters())


def test_training_elsewhere_writes_its_weights_back() -> None:
    flow, back = _flow(2, 3), build_flow(2, 3, FlowSettings(), seed=3)
    DeviceFlow(flow).write_to(back)
    theta, context = _rows(2, 3)
    assert torch.equal(flow(context).log_prob(theta), back(context).log_prob(theta))


def test_a_second_derivative_is_refused_rather_than_wrong() -> None:
    quick = CompiledFlow(_flow(2, 0))
    theta = torch.zeros(1, 2, requires_grad=True)
    (slope,) = torch.autograd.grad(quick.log_prob(theta, None).sum(), theta, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        slope.sum().backward()


@pytest.mark.parametrize("widths", [(4, 128, 128, 46), (3, 7), (0, 5), (0, 5, 2), (50, 33, 1, 115)])
@pytest.mark.parametrize("rows", [1, 37, 400])
def test_a_network_is_its_layers_one_after_another(widths: tuple[int, ...], rows: int) -> None:
    """Both ways, beside torch's own operations; other networks' weights are left alone."""
    generator = torch.Generator().manual_seed(0)
    layouts, start = [], 5
    for inputs, outputs in itertools.pairwise(widths):
        layouts.append(Layout(start, outputs, inputs, None))
        start = layouts[-1].end
    weights = torch.randn(start + 3, generator=generator, requires_grad=True)
    x = torch.randn(rows, widths[0], generator=generator, requires_grad=True)
    expected = x
    for layer in [layout.view(weights) for layout in layouts]:
        expected = torch.addmm(
            layer.bias, expected.relu() if expected is not x else x, layer.weight.T
        )
    of_outputs = torch.randn(expected.shape, generator=generator)
    of_x, of_weights = torch.autograd.grad(expected, (x, weights), of_outputs)

    hidden = torch.empty(rows * sum(widths[1:-1]))
    out, into, again = torch.empty(rows, widths[-1]), *torch.zeros(2, len(weights))
    given = weights.detach().numpy(), places_of(layouts), x.detach().numpy(), hidden.numpy()
    network_forth(*given, out.numpy())
    found = torch.from_numpy(network_back(*given, of_outputs.numpy(), into.numpy(), False))
    for ours, known in ((out, expected), (into, of_weights), (found, of_x)):
        torch.testing.assert_close(ours, known.detach(), atol=1e-3, rtol=1e-4)
    # Without the gradient of x.
    assert len(network_back(*given, of_outputs.numpy(), again.numpy(), True)) == 0
    assert torch.equal(again, into)


@pytest.mark.parametrize(
    ("way", "place", "inside"),
    [("to_base", passes, "forth"), ("from_base", flow_module, "_parts")],
)
def test_its_products_run_on_one_thread_whatever_the_users_setting(
    way: str, place: Any, inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that wait for each other made draws ten times as slow on two cores."""

    def threads() -> set[int]:
        return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}

    compiled, (theta, context) = CompiledFlow(_flow(2, 3)), _rows(2, 3)
    getattr(compiled, way)(theta, context)  # its libraries are loaded
    seen, asked = [], getattr(place, inside)

    def watched(*rows: Any) -> Any:
        seen.append(threads())
        return asked(*rows)

    monkeypatch.setattr(place, inside, watched)
    with threadpool_limits(2, user_api="blas"):
        own = threads()
        getattr(compiled, way)(theta, context)
        assert threads() == own
    assert seen == [{1}]
