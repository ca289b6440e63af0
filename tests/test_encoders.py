"""Encoders: blind to order where they say so, finite on any data, trained and stored with a fit."""

from __future__ import annotations

from pathlib import Path

import problems
import pytest
import torch
from test_sampler import SMALL, X_O, quick_fit
from torch import Tensor, nn

import abi
from abi.encoders import FIXED, LEARNED, build_encoder, candidates, learned_for, moments, prepared
from abi.kernel import OWN_ENCODER
from simulators.random import isolated_rng, torch_generator

ORDERLESS = ("sorted", "moments", "moments+sorted", "deep_set")
ITEMS, WIDTH = 6, 2


def data(rows: int = 40) -> Tensor:
    return torch.randn(rows, ITEMS * WIDTH, generator=torch_generator(0))


def built(name: str, x: Tensor) -> nn.Module:
    with isolated_rng(0):
        return build_encoder(name, x, WIDTH)


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
    assert candidates(7, 7) == ("flat",)  # one item has no order
    assert candidates(8, 4) == ("flat", "sorted")  # two items have no covariance of four values
    assert candidates(8, 2) == ("flat", "sorted", "moments", "moments+sorted")  # too few for axes
    assert candidates(20, 20) == ("flat", "principal")  # a list of values, not a series
    assert candidates(50, 1) == FIXED


def test_a_learned_encoder_is_tried_where_the_order_of_many_items_tells_little() -> None:
    matters, does_not = {"flat": 0.1, "sorted": 0.2}, {"flat": 0.2, "sorted": 0.1}
    assert learned_for(50, 1, does_not) == "both_orders"
    assert learned_for(50, 1, matters) is None
    assert learned_for(8, 2, does_not) is None  # four items have no gaps to speak of


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


@pytest.mark.parametrize(
    ("name", "width", "message"),
    [("bags", 2, "`encoder` must be one of flat"), ("flat", 5, "`item_dim` must divide x_dim")],
)
def test_what_is_no_encoder_is_refused(name: str, width: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_encoder(name, data(), width)


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


def test_each_named_encoder_goes_through_a_fit() -> None:
    from dataclasses import replace

    for name in ("moments", *LEARNED):
        config = replace(SMALL, encoder=name)
        posterior = quick_fit(config=config, num_rounds=1, num_simulations=400, x_o=X_O)
        assert posterior.rounds[0].encoder == name
        assert torch.isfinite(posterior.sample((20,))).all()
