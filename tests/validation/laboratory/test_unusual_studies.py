"""Studies of power with settings, numbers and names that are not what one expects."""

from __future__ import annotations

import functools
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal

from abi.studies.benchmark.experiment import Experiment, Part
from abi.studies.benchmark.results import markdown, summary
from simulators.random import isolated_rng, torch_generator
from validation import PowerStudy, Training, ValidationResult, WholeTest, power, sbc
from validation.laboratory.cells import PowerCell
from validation.perturbations import find_failure, image_corruption, nptbench
from validation.perturbations.described import described

SMALL = {"strengths": [0.0], "num_pairs": 5, "repetitions": 2}


class Shift:
    """A test with a setting: its p-value."""

    def __init__(self, p: Any) -> None:
        self.p = p

    def __call__(self, q: Any, theta: Tensor, x: Tensor, *, seed: int = 0) -> ValidationResult:
        return ValidationResult("shift", 0.0, float(np.mean(np.asarray(self.p))), seed)

    def method(self, q: Any, theta: Tensor, x: Tensor, *, seed: int = 0) -> ValidationResult:
        return self(q, theta, x, seed=seed)


def closed(p: Any) -> Any:
    def test(q: Any, theta: Tensor, x: Tensor, *, seed: int = 0) -> ValidationResult:
        return Shift(p)(q, theta, x, seed=seed)

    return test


def with_default(p: Any) -> Any:
    return lambda q, theta, x, seed=0, p=p: Shift(p)(q, theta, x, seed=seed)


def given(p: Any, q: Any, theta: Tensor, x: Tensor, *, seed: int = 0) -> ValidationResult:
    return Shift(p)(q, theta, x, seed=seed)


def large(p: float) -> np.ndarray:
    """Differs in its middle alone, which repr leaves out."""
    values = np.full(5_000, 0.5)
    values[2_500] += 5_000 * (p - 0.5)
    return values


def network(slope: float, seed: int = 0) -> nn.Module:
    with isolated_rng(seed):
        return nn.Sequential(nn.Linear(3, 2), nn.LeakyReLU(slope))


# ---------------------------------------------------------------------------- what is kept


@pytest.mark.parametrize(
    "make",
    [
        Shift,
        lambda p: Shift(p).method,
        lambda p: Shift(large(p)),
        lambda p: Shift(torch.from_numpy(large(p))),
        closed,
        with_default,
        lambda p: functools.partial(given, [p]),
        lambda p: functools.partial(given, large(p)),
        lambda p: WholeTest(functools.partial(given, (large(p),))),
    ],
)
def test_a_cell_of_another_setting_is_not_taken(make: Any, tmp_path: Path) -> None:
    for p in (0.25, 0.75, 0.25):
        study = power({"mine": make(p)}, "bivariate", folder=tmp_path, **SMALL)
        assert study.cells[0].p_values == pytest.approx((p, p))
    assert len(list(tmp_path.glob("*.json"))) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (network(0.1), network(0.2)),
        (network(0.1), network(0.1, seed=1)),
        (network(0.1), network(0.1).eval()),
        (Normal(torch.zeros(2), 1.0), Normal(torch.ones(2), 1.0)),
        ([large(0.2)], [large(0.3)]),
        ({"a": (large(0.2),)}, {"a": (large(0.3),)}),
        ({1, 2}, {1, 3}),
        (torch.ones(2, dtype=torch.bfloat16), torch.ones(2)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (lambda theta: theta + 1, lambda theta: theta + 2),
        (find_failure("covariance").at(0.1).joint, find_failure("covariance").at(0.2).joint),
    ],
)  # fmt: skip
def test_other_settings_have_other_words(one: Any, other: Any) -> None:
    assert described(one, "method") != described(other, "method")


def test_the_same_settings_have_the_same_words() -> None:
    assert described(network(0.1)) == described(network(0.1))
    assert described(closed(large(0.2))) == described(closed(large(0.2)))
    with isolated_rng(0):
        assert described(nn.LSTM(2, 2), "method").startswith("torch.nn.modules.rnn.LSTM ")
    itself: list[Any] = []
    itself.append(itself)
    assert described(itself, "method") == "[itself]"


def test_plain_settings_keep_their_words() -> None:
    """Cells that users have kept are found by them."""
    assert described(sbc) == "validation.methods.ranks.sbc"
    assert described(functools.partial(max, 1, "b", key=len)) == (
        "builtins.max with (1, 'b') and {key: builtins.len}"
    )
    assert described(WholeTest("c2st", {"training": Training(), "a": [1, (2,), {}]})) == (
        "WholeTest(method='c2st', keywords={a: [1, (2,), {}], training: Training(hidden=(64, 64), "
        "learning_rate=0.001, batch_size=200, max_epochs=200, patience=20, "
        "validation_fraction=0.1, stop_on='loss', device='cpu')}, fresh=False)"
    )


@pytest.mark.parametrize("held", [threading.Lock(), object(), (k for k in range(3))])
def test_what_cannot_be_read_is_refused_where_cells_are_kept(held: Any, tmp_path: Path) -> None:
    test = closed_over(held)
    with pytest.raises(ValueError, match=r"`method` holds a \S+, whose settings cannot be read"):
        power({"mine": test}, "bivariate", folder=tmp_path, **SMALL)
    assert power({"mine": test}, "bivariate", **SMALL).cells[0].p_values == (0.5, 0.5)


def closed_over(held: Any) -> Any:
    def test(q: Any, theta: Tensor, x: Tensor, *, seed: int = 0) -> ValidationResult:
        return ValidationResult(type(held).__name__, 0.0, 0.5, seed)

    return test


class Power(nn.Module):
    """Features with a setting that is no tensor."""

    def __init__(self, exponent: float) -> None:
        super().__init__()
        self.exponent = exponent

    def forward(self, images: Tensor) -> Tensor:
        return images.mean(dim=(2, 3)) ** self.exponent


def test_features_of_another_extractor_or_strength_are_not_taken(tmp_path: Path) -> None:
    images = torch.rand(20, 3, 8, 8, generator=torch_generator(0))
    labels = torch.arange(20) % 2
    one, two = (
        image_corruption("blur", images, labels, Power(k), folder=tmp_path) for k in (1.0, 2.0)
    )
    assert one.name != two.name
    x = one.observe(5, 1)
    drawn = [failure.at(0.0).p.sample(3, x, 1) for failure in (one, two)]
    assert torch.allclose(drawn[0] ** 2, drawn[1])
    near = [one.at(strength).q.sample(3, x, 1) for strength in (0.5, 0.5000004)]
    assert not torch.equal(*near)


# ------------------------------------------------------------------------------ p-values


@pytest.mark.parametrize("p", [math.nan, -0.1, 1.5])
def test_a_p_value_that_is_none_is_the_cells_error(p: float, tmp_path: Path) -> None:
    study = power({"mine": Shift(p)}, "bivariate", folder=tmp_path, **SMALL)
    rate = study.rate("mine", 0.0)
    assert rate.rate is None
    assert f"p-value of repetition 0 must lie in [0, 1]; got {p}" in rate.errors[0]


def test_a_kept_cell_with_such_a_p_value_is_worked_again(tmp_path: Path) -> None:
    power({"mine": Shift(0.5)}, "bivariate", folder=tmp_path, **SMALL)
    (path,) = tmp_path.glob("*.json")
    path.write_text(path.read_text().replace("0.5\n", "NaN\n"))
    study = power({"mine": Shift(0.5)}, "bivariate", folder=tmp_path, **SMALL)
    assert study.cells[0].p_values == (0.5, 0.5)


# ------------------------------------------------------------------------------- numbers


def test_numpys_integers_are_integers(tmp_path: Path) -> None:
    sizes = {"num_pairs": np.int64(5), "repetitions": np.int32(2), "seed": np.int64(3)}
    study = power("sbc", "bivariate", [0.5], folder=tmp_path, num_seeds=np.int64(1), **sizes)
    assert type(study.to_dict()["num_pairs"]) is int
    assert type(study.to_dict()["seed"]) is int
    plain = power("sbc", "bivariate", [0.5], num_pairs=5, repetitions=2, seed=3, minutes=0.0,
                  folder=tmp_path)  # fmt: skip
    assert plain.cells == study.cells


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"repetitions": 2.0}, r"`repetitions` must be a whole number of at least 1; got 2\.0"),
        ({"num_pairs": None}, r"`num_pairs` must be a whole number"),
        ({"workers": 0}, r"`workers` must be a whole number of at least 1; got 0"),
        ({"seed": 1.5}, r"`seed` must be a whole number of at least 0; got 1\.5"),
        ({"seed": None}, r"`seed` .*got None"),
        ({"seed": -1}, r"`seed` .*got -1"),
        ({"strengths": [math.nan]}, r"`strengths` must be a list of finite numbers.*nan"),
        ({"strengths": [0.0, math.inf]}, r"`strengths`.*inf"),
        ({"strengths": 0.5}, r"`strengths`.*got 0\.5"),
        ({"strengths": []}, r"`strengths`.*got \[\]"),
        ({"strengths": ["much"]}, r"`strengths`.*much"),
        ({"minutes": math.nan}, r"`minutes` must be 0 or more, or None; got nan"),
        ({"minutes": -1}, r"`minutes`.*-1"),
        ({"family": ["covariance"]}, r"`family` must be one of .*got \['covariance'\]"),
    ],
)
def test_arguments_are_checked_before_anything_is_worked(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        power(**{"method": "sbc", "family": "covariance"} | arguments)


@pytest.mark.parametrize("methods", [None, 3, [None]])
def test_what_is_no_test_is_named(methods: Any) -> None:
    with pytest.raises(TypeError, match=r"`method` must hold names, functions or trials"):
        power(methods, "covariance")


@pytest.mark.parametrize("strength", [math.nan, math.inf, -1.0])
def test_no_failure_has_such_a_strength(strength: float) -> None:
    with pytest.raises(ValueError, match=r"`strength` must be a finite number of 0 or more"):
        find_failure("covariance").at(strength)


# -------------------------------------------------------------------------------- studies


def cell(method: str, strength: float, p: float | None) -> PowerCell:
    values, error = ((), "ValueError: no") if p is None else ((p,) * 4, None)
    return PowerCell("f", method, strength, 0, 0, 10, 4, "", values, 1.0, error)


STUDY = PowerStudy(
    "f",
    tuple(
        cell(method, strength, p)
        for method, p in (("seen", 0.01), ("not", 0.9), ("broken", None))
        for strength in (0.0, 1.0)
    ),
)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 5, math.nan])
def test_the_level_is_checked(alpha: float) -> None:
    for call in (
        lambda: STUDY.rate("seen", 1.0, alpha),
        lambda: STUDY.rates(alpha),
        lambda: STUDY.smallest_strength("seen", alpha=alpha),
        lambda: STUDY.to_dict(alpha),
    ):
        with pytest.raises(ValueError, match=r"`alpha` must be between 0 and 1, without either"):
            call()


def test_not_seen_is_not_the_same_as_never_run() -> None:
    assert STUDY.smallest_strength("seen") == 1.0
    assert STUDY.smallest_strength("not") is None
    with pytest.raises(ValueError, match=r"'broken' had an error in every cell: ValueError: no"):
        STUDY.smallest_strength("broken")
    with pytest.raises(ValueError, match=r"`power` must lie in \[0, 1\]; got 80"):
        STUDY.smallest_strength("seen", power=80)


def test_tests_that_an_order_leaves_out_follow_it() -> None:
    drawn = {box.get_label(): box.lines[0].get_color() for box in
             STUDY.plot(order=["not"]).containers}  # fmt: skip
    assert drawn == {"not": "C0", "seen": "C1", "broken": "C2"}


def test_a_table_says_how_much_of_it_is_there() -> None:
    part = Part("one", nptbench("covariance"), {"seen": "sbc"}, (0.0, 1.0), 10, 4, 3)
    study = PowerStudy("f", STUDY.cells[:2])
    values = summary("e", Experiment("t", "s", "how", (part,)), [(part, study)], False, 0)
    assert "for each of 3 seeds. Worked so far: 2 of 6 cells" in markdown(values)
    values["parts"][0]["cells"] = {"asked": 6, "worked": 6}
    assert "cells" not in markdown(values)
