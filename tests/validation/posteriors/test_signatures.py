"""How a sampler is called: by its arguments' names, else as one trial shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from validation import as_posterior
from validation.posteriors.signatures import calls

X = torch.randn(7, 2, generator=torch.Generator().manual_seed(0))


def forms(function: Callable[..., Any]) -> list[str]:
    return [str(call) for call in calls(function)]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda num_samples, x: None, ["(num_samples, x)"]),
        (lambda x, num_samples: None, ["(x, num_samples)"]),
        (lambda n, context: None, ["(num_samples, x)"]),
        (lambda x, burn_in=5, num_samples=10: None, ["(x, num_samples=num_samples)"]),
        (lambda *, num_samples, conditions: None, ["(num_samples=num_samples, conditions=x)"]),
        (lambda shape, condition: None, ["((num_samples,), x)"]),
        (lambda sample_shape, x: None, ["((num_samples,), x)", "((num_samples,), x_i)"]),
        (lambda num_samples, x_o: None, ["(num_samples, x_i)", "(num_samples, x)"]),
        (lambda num_samples, x, seed: None, ["(num_samples, x)"]),
        (lambda x: None, []),
        (lambda x, n=3: None, []),  # a constant that a lambda keeps
        (lambda num_samples, x, temperature: None, []),
    ],
)
def test_names_say_which_argument_is_which(
    function: Callable[..., Any], expected: list[str]
) -> None:
    assert forms(function) == expected


def test_a_sampler_is_tried_once_and_only_where_its_names_do_not_tell() -> None:
    seen: list[tuple[Any, int]] = []

    def named(num_samples: int, x: Tensor) -> Tensor:
        seen.append((num_samples, len(x)))
        return x + torch.zeros(num_samples, 1, 1)

    def unnamed(a: Any, b: Any) -> Any:
        return named(a, b)

    as_posterior(named, batch_size=4).sample(9, X)
    assert seen == [(9, 4), (9, 3)]
    seen.clear()
    q = as_posterior(unnamed, batch_size=4)
    q.sample(9, X)
    q.sample(9, X)
    assert seen == [(3, 2), *2 * [(9, 4), (9, 3)]]


def test_what_answers_no_call_is_told_what_was_tried() -> None:
    def log_density(theta: Tensor, x: Tensor) -> Tensor:
        return -((theta - x) ** 2).sum(dim=-1)

    with pytest.raises(TypeError, match=r"no call that was tried.*\(num_samples, x\) gave"):
        as_posterior(log_density).sample(9, X)


def test_a_layout_is_not_guessed_from_a_trial() -> None:
    def turned(a: Any, b: Any) -> Any:
        return b[:, None] + torch.zeros(len(b), a, 1)

    with pytest.raises(TypeError, match=r"gave shape \(2, 3, 2\)"):
        as_posterior(turned).sample(9, X)
    drawn = as_posterior(turned, layout="observations_first").sample(9, X)
    assert torch.equal(drawn[4], X)


def test_a_method_of_nflows_order_takes_a_layout_too() -> None:
    class Flow:
        def sample(self, num_samples: int, context: Tensor) -> Tensor:
            return context[:, None] + torch.zeros(len(context), num_samples, 1)

    drawn = as_posterior(Flow(), layout="observations_first").sample(9, X)
    assert torch.equal(drawn[0], X)


def test_a_graph_is_kept_for_what_differentiates_alone() -> None:
    graphs: list[bool] = []

    def plain(num_samples: int, x: Tensor) -> Tensor:
        graphs.append(torch.is_grad_enabled())
        return x + torch.randn(num_samples, *x.shape)

    def steps(num_samples: int, x: Tensor) -> Tensor:
        theta = plain(num_samples, x).requires_grad_()
        (slope,) = torch.autograd.grad((theta**2).sum(), theta)
        return theta - slope

    as_posterior(plain, batch_size=4).sample(9, X)
    assert graphs == [False, False]
    graphs.clear()
    drawn = as_posterior(steps, batch_size=4).sample(9, X)
    assert graphs == [False, True, True]  # tried without at first, and never again
    assert not drawn.requires_grad


def test_an_error_of_the_sampler_is_its_own() -> None:
    def broken(num_samples: int, x: Tensor) -> Tensor:
        raise RuntimeError("no licence")

    with pytest.raises(RuntimeError, match="no licence"):
        as_posterior(broken).sample(9, X)


def test_x_of_any_shape_reaches_a_sampler_as_it_is() -> None:
    images = torch.zeros(5, 1, 8, 8)
    shapes = []

    def draw(num_samples: int, x: Tensor) -> Tensor:
        shapes.append(tuple(x.shape))
        return torch.zeros(num_samples, len(x), 2)

    assert as_posterior(draw, batch_size=3).sample(4, images).shape == (4, 5, 2)
    assert shapes == [(3, 1, 8, 8), (2, 1, 8, 8)]
    with pytest.raises(ValueError, match=r"`x` must hold one observation a row"):
        as_posterior(draw).sample(4, torch.zeros(5))
