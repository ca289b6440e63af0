"""What encoders see of x with gaps: what is there, how much it is, and nothing else."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from abi.encoders.choice import build_encoder, candidates, encode, features_of, learned_for
from abi.encoders.fitted import FittedEncoders
from abi.encoders.layout import Layout, as_observations, is_observation
from abi.encoders.masked import MASKED, seen_moments, seen_quantiles
from simulators.given.observation import same_values
from simulators.random import isolated_rng, torch_generator

VALUES, ITEMS = Layout(missing="values"), Layout(missing="items")
PLANE = Layout(item_dim=2, missing="items")


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch_generator(seed))


def sets(n: int = 400, k: int = 12, m: int = 1) -> Tensor:
    """Rows of 0 to k items."""
    number = torch.arange(n) % (k + 1)
    x = normal(n, k, m)
    x[torch.arange(k) >= number[:, None]] = torch.nan
    return x.flatten(1)


def built(name: str, x: Tensor, layout: Layout) -> nn.Module:
    with isolated_rng(0):  # of weights
        return build_encoder(name, x, layout).eval()


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("layout", [VALUES, ITEMS, PLANE])
def test_features_are_numbers_whatever_is_missing_and_are_kept_in_a_file(
    name: str, layout: Layout
) -> None:
    x = sets(k=24 // layout.width, m=layout.width)
    if layout is VALUES:
        x = x[:, torch.randperm(x.shape[1], generator=torch_generator(1))]
    encoder = built(name, x, layout)
    features = features_of(encoder, x)
    assert bool(features.isfinite().all())
    fitted = FittedEncoders(torch.nn.ModuleList([encoder]), name, layout, x.shape[1])
    again = FittedEncoders.restore(fitted.tensors(), fitted.values(), None)
    assert again is not None
    assert again.layout == layout
    assert torch.equal(again.features(x, 0), features)


@pytest.mark.parametrize("name", ["sorted", "moments", "moments+sorted", "deep_set"])
@pytest.mark.parametrize("layout", [ITEMS, PLANE])
def test_sets_are_seen_without_order_and_without_the_place_of_their_gaps(
    name: str, layout: Layout
) -> None:
    m = layout.width
    x = sets(m=m)
    encoder = built(name, x, layout)
    order = torch.randperm(12, generator=torch_generator(2))
    moved = x.reshape(400, 12, m)[:, order].flatten(1)
    difference = features_of(encoder, x) - features_of(encoder, moved)
    assert float(difference.abs().max()) < 1e-4


def test_moments_are_those_of_what_is_there() -> None:
    items = normal(1, 12, 2)
    items[0, 5:] = torch.nan
    mean, log_sd, slope = seen_moments(items)[0].split([2, 2, 1])
    there = items[0, :5]
    r = float(torch.corrcoef(there.T)[0, 1])
    assert torch.allclose(mean, there.mean(dim=0), atol=1e-5)
    assert torch.allclose(log_sd, there.std(dim=0, correction=0).log(), atol=1e-5)
    assert float(slope) == pytest.approx(math.asinh(r / math.sqrt(1.0 - r**2)), abs=1e-4)
    one = items.clone()
    one[0, 1:] = torch.nan
    assert seen_moments(one)[0].isnan().tolist() == [False, False, True, True, True]
    assert bool(seen_moments(one * torch.nan).isnan().all())


def test_quantiles_go_from_the_least_to_the_largest_item_and_are_the_sorted_items_of_all() -> None:
    items = normal(1, 9, 1)
    assert torch.equal(seen_quantiles(items), encode(items.flatten(1), "sorted", Layout()))
    items[0, 3:] = torch.nan
    low, middle, high = items[0, :3, 0].sort().values
    found = seen_quantiles(items)[0]
    assert torch.allclose(found[[0, 4, 8]], torch.stack([low, middle, high]))
    assert float(found[2]) == pytest.approx(float(0.5 * (low + middle)), abs=1e-6)
    items[0, 1:] = torch.nan
    assert torch.equal(seen_quantiles(items)[0], items[0, 0].expand(9))


def test_places_that_never_are_measured_are_as_if_they_were_not_there() -> None:
    x = normal(300, 14)
    x_o = x[0].clone()
    x_o[[2, 5, 6]] = torch.nan
    layout = Layout().with_gaps_of(x_o)
    assert layout.gaps == (2, 5, 6)
    seen = layout.seen(14)
    assert candidates(14, layout) == candidates(11, Layout())
    for name in candidates(14, layout):
        alone = build_encoder(name, x[:, seen])
        features = features_of(build_encoder(name, x, layout), x)
        assert torch.equal(features, features_of(alone, x[:, seen]))


def test_an_item_of_which_one_value_is_missing_stays_an_item() -> None:
    x_o = torch.arange(8.0)
    x_o[3] = torch.nan
    layout = Layout(item_dim=2).with_gaps_of(x_o)
    assert layout == Layout(item_dim=2, missing="values")
    x = torch.where(x_o.isnan(), torch.nan, normal(100, 8))
    for name in candidates(8, layout):
        assert bool(features_of(build_encoder(name, x, layout), x).isfinite().all())
    whole = torch.arange(8.0)
    whole[2:4] = torch.nan
    assert Layout(item_dim=2).with_gaps_of(whole) == Layout(item_dim=2, gaps=(2, 3))


def test_masked_forms_are_raced_and_others_refused() -> None:
    assert candidates(20, ITEMS) == ("flat", "sorted", "moments", "moments+sorted")
    assert "principal" in candidates(20, VALUES)
    assert learned_for(20, ITEMS, {"flat": 1.0, "sorted": 0.5}) is None
    with pytest.raises(ValueError, match=r"`encoder` must be one of .* for x with gaps; got 'c"):
        build_encoder("conv", sets(), ITEMS)


@pytest.mark.parametrize("layout", [Layout(gaps=(1,)), VALUES, ITEMS])
def test_numbers_say_all_of_x_with_gaps(layout: Layout) -> None:
    x = normal(20, 4)
    x[:, 1] = torch.nan
    if layout.missing != "nothing":
        x[:9, 3] = torch.nan
    numbers = layout.as_numbers(x)
    assert bool(numbers.isfinite().all())
    assert same_values(layout.from_numbers(numbers, 4), x)


def test_observations_are_taken_as_the_fit_knows_them() -> None:
    nan = torch.nan
    known = torch.tensor([1.0, 2.0, nan, nan])
    assert same_values(as_observations([1.0, 2.0], 4, ITEMS)[0], known)
    assert same_values(as_observations([[1.0, 2.0], [3.0]], 4, ITEMS, several=True)[0], known)
    assert is_observation(torch.tensor([1.0, 2.0]), known, ITEMS)
    assert not is_observation(torch.tensor([1.0]), known, ITEMS)
    assert is_observation(torch.tensor([1.0, 2.0, 7.0, 8.0]), known, Layout(gaps=(2, 3)))
    words = "`x` must be finite; 1 of 1 rows .*The fit knows x with"
    with pytest.raises(ValueError, match=f"{words} no gaps"):
        as_observations(known, 4)
    with pytest.raises(ValueError, match=f"{words} the values that x_o has"):
        as_observations(torch.full((4,), nan), 4, Layout(gaps=(0, 1)))
    with pytest.raises(ValueError, match="`x` has 5 items, more than the 4"):
        as_observations(torch.zeros(5), 4, ITEMS)
