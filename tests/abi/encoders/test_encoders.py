"""Encoders: blind to order where they say so, finite on any data, trained and stored with a fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import problems
import pytest
import torch
from fits import SMALL, X_O, quick_fit
from torch import Tensor, nn

import abi
from abi.encoders.choice import (
    FIXED,
    LEARNED,
    OWN_ENCODER,
    build_encoder,
    candidates,
    learned_for,
    prepared,
)
from abi.encoders.layout import Layout
from abi.encoders.moments import moments
from abi.files.parts import read_parts, write_parts
from simulators.random import isolated_rng, torch_generator

ORDERLESS = ("sorted", "moments", "moments+sorted", "deep_set")
ITEMS, WIDTH = 6, 2


def data(rows: int = 40) -> Tensor:
    return torch.randn(rows, ITEMS * WIDTH, generator=torch_generator(0))


def built(name: str, x: Tensor) -> nn.Module:
    with isolated_rng(0):
        return build_encoder(name, x, Layout(WIDTH))


@pytest.mark.parametrize("name", [*FIXED, *LEARNED])
def test_only_some_see_the_order_of_items(name: str) -> None:
    x = data()
    shuffled = x.reshape(40, ITEMS, WIDTH)[:, [3, 0, 5, 1, 4, 2]].reshape(40, ITEMS * WIDTH)
    encoder = built(name, x)
    with torch.no_grad():
        same = torch.allclose(encoder(x), encoder(shuffled), atol=1e-5)
    assert same == (name in ORDERLESS)


@pytest.mark.parametrize("name", [*FIXED, *LEARNED])
@pytest.mark.parametrize("spread", [1e-5, 1e5])
def test_features_are_finite_on_any_scale_and_for_constant_items(name: str, spread: float) -> None:
    x = spread * data()
    x[:3] = 0.0  # items that are all the same
    with torch.no_grad():
        features = built(name, x)(x)
    assert features.shape[0] == 40
    assert torch.isfinite(features).all()


def test_moments_are_the_mean_and_the_covariance() -> None:
    items = data(5).reshape(5, ITEMS, WIDTH)
    values = moments(items)
    assert values.shape == (5, 5)
    torch.testing.assert_close(values[:, :2], items.mean(dim=1))
    log_diagonal, slope = values[:, 2:4], values[:, 4].sinh()
    factor = torch.zeros(5, 2, 2)
    factor[:, 0, 0], factor[:, 1, 1] = log_diagonal.exp().T
    factor[:, 1, 0] = slope * factor[:, 1, 1]
    expected = torch.stack([torch.cov(rows.T, correction=0) for rows in items])
    torch.testing.assert_close(factor @ factor.mT, expected, atol=1e-4, rtol=1e-4)


def test_what_auto_chooses_from_fits_the_data() -> None:
    assert candidates(7, Layout(7)) == ("flat",)  # one item has no order
    assert candidates(8, Layout(4)) == ("flat", "sorted")  # two items: no covariance of four values
    assert candidates(8, Layout(2)) == ("flat", "sorted", "moments", "moments+sorted")  # no axes
    assert candidates(20, Layout(20)) == ("flat", "principal")  # a list of values, not a series
    assert candidates(50, Layout()) == FIXED
    assert candidates(50, Layout(num_series=2)) == FIXED


def test_values_that_pile_up_at_an_end_are_counted() -> None:
    generator = torch_generator(1)
    x = torch.randn(200, 30, generator=generator).exp()
    z = torch.randn(200, 2, generator=generator)
    assert "atoms" not in candidates(30, Layout(), (x, z))  # one value in many is the least
    below = x.masked_fill(x < 0.5, 0.0)  # a detection limit
    assert "atoms" in candidates(30, Layout(), (below, z))
    assert "atoms" in candidates(30, Layout(), (x.clamp_max(2.0), z))  # it saturates
    assert "atoms" not in candidates(30, Layout(), (torch.zeros(200, 30), z))  # nothing else
    ending = x.masked_fill(torch.arange(30) >= 30 * torch.rand(200, 1, generator=generator), 0.0)
    assert "atoms" not in candidates(30, Layout(), (ending, z))  # a series: it says where
    features = build_encoder("atoms", below)(below)
    shares = torch.stack([(below == 0.0).float().mean(dim=1), features[:, 2]])
    assert float(torch.corrcoef(shares)[0, 1]) > 0.99
    assert torch.equal(features[:, 3], torch.zeros(200))  # the largest is one alone
    shuffled = below[:, torch.randperm(30, generator=generator)]
    torch.testing.assert_close(build_encoder("atoms", below)(shuffled), features)
    # A file holds what makes it up.
    again = build_encoder("atoms", torch.zeros(2, 30))
    again.load_state_dict(build_encoder("atoms", below).state_dict())
    assert torch.equal(again(below), features)


def test_a_learned_encoder_is_tried_where_the_order_of_many_items_tells_little() -> None:
    does_not = {"flat": 0.3, "sorted": 0.2, "moments": 0.1}
    assert learned_for(50, Layout(), does_not) == "both_orders"
    for ordered in ("flat", "principal+lags", "transitions"):
        assert learned_for(50, Layout(), does_not | {ordered: 0.0}) is None
    assert learned_for(8, Layout(2), does_not) is None  # four items have no gaps to speak of


def test_an_encoder_without_weights_is_applied_once() -> None:
    x = data()
    encoder = built("sorted", x)
    module, features = prepared(encoder, x)
    assert isinstance(module, nn.Identity)
    assert torch.equal(features, encoder(x))
    learned = built("deep_set", x)
    module, inputs = prepared(learned, x)
    assert inputs is x
    assert module is learned


def test_what_is_no_encoder_is_refused() -> None:
    with pytest.raises(ValueError, match="`encoder` must be one of flat"):
        build_encoder("bags", data(), Layout(WIDTH))


def test_series_one_after_another_and_items_one_after_another_are_the_same_data() -> None:
    items = data()
    series = items.reshape(40, ITEMS, WIDTH).transpose(1, 2).reshape(40, -1)
    assert torch.equal(Layout(WIDTH).items(items), Layout(num_series=WIDTH).items(series))
    for name in ("sorted", "moments", "transitions", "deep_set"):
        with torch.no_grad(), isolated_rng(0):
            listed = build_encoder(name, items, Layout(WIDTH))(items)
        with torch.no_grad(), isolated_rng(0):
            stacked = build_encoder(name, series, Layout(num_series=WIDTH))(series)
        torch.testing.assert_close(listed, stacked)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"item_dim": 5}, "items of 5 values"),
        ({"num_series": 5}, "5 series"),
        ({"item_dim": 2, "num_series": 2}, "keep one of them"),
    ],
)
def test_a_layout_that_does_not_make_up_x_is_refused(
    declared: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Layout.of(SimpleNamespace(**declared), 12)


def test_transitions_say_how_fast_a_path_returns_whatever_its_unit() -> None:
    rate = torch.linspace(0.05, 0.95, 200)
    noise = torch.randn(200, 2, 400, generator=torch_generator(1))
    path = torch.zeros(200, 2, 400)
    for t in range(1, 400):
        path[:, :, t] = (1.0 - rate[:, None]) * path[:, :, t - 1] + noise[:, :, t]
    x = path.reshape(200, -1)
    layout = Layout(num_series=2)
    features = build_encoder("transitions", x, layout)(x)
    rescaled = build_encoder("transitions", 1e3 * x, layout)(1e3 * x)
    torch.testing.assert_close(features, rescaled, atol=1e-3, rtol=1e-3)
    correlation = torch.corrcoef(torch.cat([rate[None], features.T]))[0, 1:]
    assert correlation.abs().max() > 0.97


def own_encoder() -> nn.Module:
    with isolated_rng(3):
        return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def test_your_own_module_is_trained_as_a_copy_and_stored(tmp_path: Path) -> None:
    module = own_encoder()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    posterior = quick_fit(encoder=module, run_dir=tmp_path / "run")
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert {record.encoder for record in posterior.rounds} == {OWN_ENCODER}
    posterior.save(tmp_path / "posterior.safetensors")
    loaded = abi.load(tmp_path / "posterior.safetensors")
    assert torch.equal(loaded.sample((50,), seed=1), posterior.sample((50,), seed=1))


def test_a_fit_with_your_own_module_resumes(tmp_path: Path) -> None:
    whole = quick_fit(encoder=own_encoder(), num_rounds=2, run_dir=tmp_path / "whole")
    (tmp_path / "whole" / "round_02.safetensors").unlink()
    with pytest.raises(ValueError, match="encoder"):
        abi.resume(tmp_path / "whole", problems.BOX, problems.simulate, progress=False)
    resumed = abi.resume(
        tmp_path / "whole", problems.BOX, problems.simulate, encoder=own_encoder(), progress=False
    )
    assert torch.equal(resumed.sample((50,)), whole.sample((50,)))


def test_a_run_with_the_earlier_form_of_an_encoder_is_refused(tmp_path: Path) -> None:
    config = replace(SMALL, encoder="both_orders")
    quick_fit(config=config, num_rounds=1, run_dir=tmp_path)
    (path,) = tmp_path.glob("round_*.safetensors")
    tensors, header = read_parts(path, "abi-round")
    write_parts(path, "abi-round", tensors, header | {"version": 5})
    with pytest.raises(ValueError, match="`run_dir`: its rounds have an earlier form"):
        abi.resume(tmp_path, problems.BOX, problems.simulate, progress=False)


def test_each_named_encoder_goes_through_a_fit() -> None:
    for name in ("moments", *LEARNED):
        config = replace(SMALL, encoder=name)  # type: ignore[arg-type]
        posterior = quick_fit(config=config, num_rounds=1, num_simulations=400, x_o=X_O)
        assert posterior.rounds[0].encoder == name
        assert torch.isfinite(posterior.sample((20,))).all()
