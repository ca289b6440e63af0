"""What is handed in beside q: x of any shape, data frames, repeats, arguments in disorder."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from one_look import TASK, exact
from torch import Tensor

from simulators import GaussianLinear, sample_joint
from simulators.random import torch_generator
from validation import (
    METHODS,
    ColtTraining,
    PerObservation,
    Training,
    as_posterior,
    c2st,
    colt,
    fit_lc2st,
    lc2st,
    local_hpd,
    localize,
    sbc,
    score_rank,
    tarp,
)
from validation.posteriors.draws import given

pandas = pytest.importorskip("pandas")

QUICK = Training(hidden=(8,), max_epochs=4, batch_size=50)
BALLS = ColtTraining(hidden=(8,), epochs=3, draws_per_epoch=5)
NAMES = list(METHODS)
EVENT = (1, 2, 2)


def of_images(num_samples: int, x: Tensor) -> Tensor:
    """The same, of a 2 by 2 image whose first row is x."""
    assert x.shape[1:] == EVENT
    return exact(num_samples, x[:, 0, 0])


def run(name: str, q: Any, theta: Any, x: Any, **changes: Any) -> float:
    quick = {
        "training": BALLS if "colt" in name else QUICK,
        "num_samples": 10, "num_nulls": 9, "num_permutations": 99, "num_x_o": 2,
    }  # fmt: skip
    accepted = inspect.signature(METHODS[name]).parameters
    keywords = {key: value for key, value in quick.items() if key in accepted}
    return METHODS[name](q, theta, x, **(keywords | changes)).p_value


def images(rows: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    theta, x = sample_joint(TASK, rows, seed)
    noise = torch.randn(rows, 2, generator=torch_generator(seed))
    flat = torch.cat([x, noise], dim=1)
    return theta, flat, flat.reshape(rows, *EVENT)


@pytest.mark.parametrize("name", NAMES)
def test_x_in_its_own_shape_gives_the_p_value_of_flat_x(name: str) -> None:
    theta, flat, shaped = images(60, 1)
    expected = run(name, lambda num, x: exact(num, x[:, :2]), theta, flat)
    assert run(name, of_images, theta, shaped) == expected
    assert run(name, of_images, theta.numpy(), shaped.numpy()) == expected


@pytest.mark.parametrize("name", ["lc2st", "local_hpd", "score_rank"])
def test_an_observation_has_the_shape_that_x_has(name: str) -> None:
    theta, flat, shaped = images(60, 2)
    expected = run(name, lambda num, x: exact(num, x[:, :2]), theta, flat, x_o=flat[:1])
    assert run(name, of_images, theta, shaped, x_o=shaped[0]) == expected
    assert run(name, of_images, theta, shaped, x_o=shaped[:1]) == expected
    assert 0 < run(name, of_images, theta, shaped, x_o=shaped[:3]) <= 1
    with pytest.raises(ValueError, match=r"`x_o` must hold 4 finite values .*\(1, 2, 2\)"):
        run(name, of_images, theta, shaped, x_o=flat[0])


def test_what_is_trained_once_takes_observations_in_their_shape() -> None:
    theta, _, shaped = images(60, 3)
    fitted = fit_lc2st(of_images, theta, shaped, num_nulls=5, training=QUICK)
    assert fitted.test(shaped[:2]).details["x_o"].shape == (2, 4)
    result = colt(of_images, theta, shaped, num_samples=10, training=BALLS)
    assert localize(result, shaped[0]).point.shape == (2,)
    with pytest.raises(ValueError, match="`x_o` must be one observation; got 2"):
        localize(result, shaped[:2])
    at_x_o = c2st(of_images, theta, shaped, x_o=shaped[0], reference=theta, training=QUICK)
    assert 0 < at_x_o.p_value <= 1


def test_a_flow_sees_x_in_its_shape_too() -> None:
    class Flow:
        def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
            noise = torch.randn(num_samples, len(x), 2, generator=torch_generator(seed))
            return x[:, 0, 0] / 2 + 0.5**0.5 * noise

        def to_base(self, theta: Tensor, x: Tensor) -> Tensor:
            return (theta - x[:, 0, 0] / 2) / 0.5**0.5

    theta, _, shaped = images(60, 4)
    assert 0 < lc2st(Flow(), theta, shaped, flow=True, num_nulls=5, training=QUICK).p_value <= 1


def test_stored_samples_and_single_fits_take_any_shape() -> None:
    theta, _, shaped = images(60, 5)
    draws = exact_draws(50, shaped[:, 0, 0])
    stored = as_posterior((theta, shaped, draws), layout="samples_first")
    assert sbc(stored, theta, shaped, num_samples=50).p_value > 1e-3

    def fit(x_o: Tensor) -> Tensor:
        assert x_o.shape == EVENT
        return exact(20, x_o[:, 0])[:, 0]

    assert 0 < sbc(PerObservation(fit), theta[:20], shaped[:20], num_samples=20).p_value <= 1


def exact_draws(num_samples: int, x: Tensor) -> Tensor:
    noise = torch.randn(num_samples, *x.shape, generator=torch_generator(7))
    return x / 2 + 0.5**0.5 * noise


def test_x_of_one_axis_is_one_column() -> None:
    theta, x = sample_joint(GaussianLinear(1, 1.0, 1.0), 60, 6)
    expected = sbc(exact, theta, x, num_samples=20).p_value
    assert sbc(exact, theta, x[:, 0], num_samples=20).p_value == expected
    assert given(exact, theta, x[:, 0]).observations(0.5).shape == (1, 1)
    assert given(exact, theta, x[:, 0]).observations([0.5, 0.1]).shape == (2, 1)
    with pytest.raises(ValueError, match="`x` must hold one observation a row; got the number 3"):
        sbc(exact, theta, 3.0)


# --- data frames ----------------------------------------------------------------------------------


def frames(rows: int, seed: int) -> tuple[Tensor, Tensor, Any, Any]:
    theta, x = sample_joint(TASK, rows, seed)
    return (
        theta, x,
        pandas.DataFrame(theta.numpy(), columns=["a", "b"], index=range(5, rows + 5)),
        pandas.DataFrame(x.numpy(), columns=["u", "v"], index=range(5, rows + 5)),
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_data_frames_give_the_p_value_of_tensors(name: str) -> None:
    theta, x, theta_frame, x_frame = frames(60, 8)
    assert run(name, exact, theta_frame, x_frame) == run(name, exact, theta, x)


@pytest.mark.parametrize("name", ["lc2st", "local_hpd", "score_rank"])
def test_rows_of_a_data_frame_are_observations(name: str) -> None:
    theta, x, _, frame = frames(60, 9)
    expected = run(name, exact, theta, x, x_o=x[0])
    assert run(name, exact, theta, frame, x_o=frame.iloc[0]) == expected
    assert run(name, exact, theta, frame, x_o=frame.iloc[[0]]) == expected
    several = run(name, exact, theta, frame, x_o=frame.iloc[:3])
    assert several == run(name, exact, theta, x, x_o=x[:3])
    with pytest.raises(ValueError, match=r"`x_o` must have its columns in the order of x"):
        run(name, exact, theta, frame, x_o=frame.iloc[0][["v", "u"]])


def test_stored_samples_may_be_frames() -> None:
    theta, x = sample_joint(GaussianLinear(1, 1.0, 1.0), 60, 10)
    draws = exact_draws(20, x)
    expected = sbc(
        as_posterior((theta, x, draws), layout="samples_first"), theta, x, num_samples=20
    )
    table = pandas.DataFrame(draws[:, :, 0].T.numpy())
    q = as_posterior(
        (pandas.DataFrame(theta.numpy()), pandas.DataFrame(x.numpy()), table),
        layout="observations_first",
    )
    assert sbc(q, theta, x, num_samples=20).p_value == expected.p_value
    theta, x, theta_frame, x_frame = frames(60, 11)
    with pytest.raises(ValueError, match=r"three axes \(L, n, d\); got shape \(60, 2\)"):
        as_posterior((theta_frame, x_frame, theta_frame), layout="observations_first")


def test_missing_values_and_words_in_a_frame_are_told_apart() -> None:
    theta, _, _, frame = frames(30, 12)
    missing = frame.astype("Float64")
    missing.iloc[3, 0] = None
    with pytest.raises(ValueError, match="`x` must be finite; 1 of 30 rows hold NaN"):
        sbc(exact, theta, missing)
    with pytest.raises(TypeError, match=r"`x` must be an array of numbers, and \['w'\] are not"):
        sbc(exact, theta, frame.assign(w="word"))


# --- arguments in disorder ------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_sbis_order_of_arguments_is_told(name: str) -> None:
    theta, x = sample_joint(TASK, 30, 13)
    with pytest.raises(TypeError, match=r"`x` must be an array .*order .* is \(q, theta, x\)"):
        METHODS[name](theta, x, exact)
    with pytest.raises(TypeError, match=r"`theta` must be an array .*order .* is \(q, theta, x\)"):
        METHODS[name](theta, exact, x)


@pytest.mark.parametrize("bad", [None, "theta", [["a", "b"]], torch.zeros(30, 2) + 0j])
def test_what_holds_no_numbers_is_named(bad: Any) -> None:
    theta, x = sample_joint(TASK, 30, 14)
    for name, pair in (("theta", (bad, x)), ("x", (theta, bad))):
        with pytest.raises(TypeError, match=f"`{name}` must (be an array of|hold real) numbers"):
            sbc(exact, *pair)


def test_lists_are_numbers_unless_their_lengths_differ() -> None:
    theta, x = sample_joint(TASK, 30, 15)
    expected = sbc(exact, theta, x, num_samples=10).p_value
    assert sbc(exact, theta.tolist(), list(x), num_samples=10).p_value == expected
    with pytest.raises(
        ValueError, match="`x` must be an array of numbers; its rows have different"
    ):
        sbc(exact, theta, [[1.0], [2.0, 3.0]])


@pytest.mark.parametrize(
    ("q", "keywords", "error"),
    [
        (exact, {"flow": True}, NotImplementedError),
        ("stored", {}, ValueError),
    ],
)
def test_what_cannot_answer_is_refused_before_a_network_is_trained(
    q: Any, keywords: dict[str, Any], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(*_: Any, **__: Any) -> None:
        raise AssertionError("networks are trained")

    for module in ("base_space", "classifier"):
        monkeypatch.setattr(f"validation.methods.local.{module}.fit_classifiers", trained)
    theta, x = sample_joint(TASK, 60, 16)
    if q == "stored":
        q = as_posterior((theta, x, exact_draws(5, x)), layout="samples_first")
    with pytest.raises(error, match=r"not a flow|not one of them"):
        lc2st(q, theta, x, torch.zeros(2), num_samples=5, **keywords)


@pytest.mark.parametrize("test", [lc2st, local_hpd, score_rank])
def test_an_observation_in_other_units_is_refused(test: Callable[..., Any]) -> None:
    theta, x = sample_joint(TASK, 100, 17)
    with pytest.raises(ValueError, match=r"`x_o` lies far outside of all x.*column 1 is 1000"):
        test(exact, theta, x, x_o=torch.tensor([0.0, 1000.0]))
    fitted = fit_lc2st(exact, theta, x, num_nulls=3, training=QUICK)
    with pytest.raises(ValueError, match="row 1 is 1000"):
        fitted.test(torch.tensor([[0.0, 0.0], [0.0, 1000.0]]))


# --- repeated pairs -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_repeated_pairs_are_told_once(name: str) -> None:
    theta, x = sample_joint(TASK, 30, 18)
    with pytest.warns(UserWarning, match="hold 30 different pairs in 120 rows") as caught:
        run(name, exact, theta.repeat(4, 1), x.repeat(4, 1))
    assert [warning.filename for warning in caught] == [__file__]


def counts(rows: int, generator: torch.Generator) -> Tensor:
    return torch.poisson(torch.full((rows, 1), 2.0), generator=generator)


def test_pairs_that_repeat_with_reason_are_not_told() -> None:
    generator = torch_generator(19)
    theta = counts(200, generator)
    spike = torch.where(torch.rand(200, 1, generator=generator) < 0.3, 0.0, theta + 0.5)
    noise = torch.rand(200, 1, generator=generator)
    pairs = {
        "counts of counts": (theta, counts(200, generator)),
        "counts, and a function of them": (theta, theta.square()),
        "half counts": (theta / 2 + 0.25, counts(200, generator)),
        "an atom at zero": (torch.where(spike > 0, noise, 0.0), torch.where(spike > 0, noise, 0.0)),
        "one value": (torch.ones(200, 1), torch.ones(200, 1)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for known in pairs.values():
            given(exact, *known)
            given(exact, *(part.numpy() for part in known))
    with pytest.warns(UserWarning, match="200 different pairs in 220 rows"):
        given(exact, torch.cat([noise, noise[:20]]), torch.cat([theta, theta[:20]]))


# --- draws in parts -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sbc", "tarp", "hpd", "local_hpd"])
def test_draws_taken_in_parts_give_a_test_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(num_samples: int, x: Tensor) -> Tensor:
        asked.append(len(x))
        return exact(num_samples, x)

    monkeypatch.setattr("validation.posteriors.draws._MOST_NUMBERS", 10 * 2 * 26)
    theta, x = sample_joint(TASK, 60, 20)
    x_o = {"x_o": x[:1]} if name == "local_hpd" else {}
    # Three exact tests and a rank among ten: below 1e-3 with probability 0.003 at a fixed seed.
    assert run(name, counted, theta, x, **x_o) > 1e-3
    assert asked == [26, 26, 8]


def test_parts_are_drawn_with_noise_and_references_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("validation.posteriors.draws._MOST_NUMBERS", 10 * 2 * 25)
    theta, x = torch.zeros(50, 2), torch.zeros(50, 1)
    q = lambda num, x: torch.randn(num, len(x), 2)  # noqa: E731
    ranks = sbc(q, theta, x, num_samples=10).details["counts"]
    assert not torch.equal(ranks[:25], ranks[25:])
    points = np.zeros((50, 2))
    points[:25] = 1.0
    ranks = tarp(q, theta, x, num_samples=10, references=points).details["ranks"]
    assert ranks[25:].max() < 1 / 11  # the truth is the reference itself
    assert ranks[:25].mean() > 0.2


@pytest.mark.parametrize("name", ["score_rank", "colt", "colt_identity"])
def test_of_more_pairs_than_fit_a_part_is_judged(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("validation.posteriors.draws._MOST_AT_ONCE", 60 * 2 * 40)
    theta, x = sample_joint(TASK, 80, 21)
    details = METHODS[name](
        exact, theta, x, num_samples=60 if name == "score_rank" else 10,
        training=QUICK if name == "score_rank" else BALLS,
    ).details  # fmt: skip
    assert details["num_test"] == 20
