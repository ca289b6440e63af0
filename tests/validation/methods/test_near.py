"""An x_o of the law of x is let through, one clearly outside of all x is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from simulators.random import torch_generator
from validation.posteriors.pairs.near import check_within


def line(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """Columns that are one number but for noise of a thousandth."""
    along = torch.randn(rows, 1, generator=generator)
    return along + 1e-3 * torch.randn(rows, columns, generator=generator)


def cauchy(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.empty(rows, columns).cauchy_(generator=generator)


def counts(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """Counts, mostly 0 in the odd columns; the last is constant."""
    rate = torch.tensor([3.0, 0.1]).repeat(columns)[:columns].expand(rows, -1)
    values = torch.poisson(rate, generator=generator)
    return torch.cat([values, torch.ones(rows, 1)], dim=1)


def normal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.randn(rows, columns, generator=generator)


def is_refused(x_o: Tensor, x: Tensor) -> bool:
    try:
        check_within(x_o, x)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("law", [normal, line, cauchy, counts])
@pytest.mark.parametrize("rows", [20, 200])
@pytest.mark.parametrize("columns", [1, 3, 60])
def test_an_observation_of_the_same_law_is_let_through(
    law: Callable[..., Tensor], rows: int, columns: int
) -> None:
    generator = torch_generator(columns)
    refused = sum(
        is_refused(row[None], x)
        for x in (law(rows, columns, generator) for _ in range(20))
        for row in law(10, columns, generator)
    )
    # Fewer than 1 in 1,000 are: of 200, more than 2 with probability 0.001.
    assert refused <= 2


@pytest.mark.parametrize("law", [normal, line])
@pytest.mark.parametrize("columns", [1, 2, 10])
def test_ten_deviations_beyond_all_x_are_refused_in_every_direction(
    law: Callable[..., Tensor], columns: int
) -> None:
    generator = torch_generator(columns)
    for _ in range(20):
        x = law(200, columns, generator)
        direction = torch.randn(columns, generator=generator)
        if law is line and columns > 1:
            direction -= direction.mean()  # off the line
        direction /= direction.norm()
        along = x @ direction
        x_o = x[0] + (along.max() + 10 * along.std() - along[0]) * direction
        assert is_refused(x_o[None], x)


@pytest.mark.parametrize("rows", [50, 200, 5_000])
def test_other_units_are_refused_however_few_or_discrete_the_x(rows: int) -> None:
    generator = torch_generator(0)
    for law in (normal, cauchy, counts):
        x = law(rows, 2, generator)
        x_o = x[:1].clone()
        x_o[0, 0] = 1e9
        with pytest.raises(
            ValueError, match=r"`x_o` lies far outside of all x.*column 0 is 1e\+09"
        ):
            check_within(x_o, x)


def test_what_goes_off_the_line_is_told_so() -> None:
    x = line(200, 3, torch_generator(1))
    with pytest.raises(ValueError, match="the values of row 1 do not go together as they do in x"):
        check_within(torch.tensor([[0.1, 0.1, 0.1], [0.1, 0.2, 0.1]]), x)


def test_too_few_x_and_constant_ones_say_nothing() -> None:
    check_within(torch.full((1, 2), 1e9), torch.randn(9, 2, generator=torch_generator(2)))
    check_within(torch.full((1, 2), 1e9), torch.zeros(100, 2))
