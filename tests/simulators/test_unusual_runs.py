"""simulate, its store and the exact posteriors where users come to the edges of them."""

from __future__ import annotations

import functools
import json
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from problems import default_float64
from torch import Tensor
from torch.distributions import Independent, Uniform

from simulators import (
    BernoulliGLM,
    TwoMoons,
    forget_failures,
    from_function,
    load_store,
    sample_prior,
    simulate,
)
from simulators.random import child_seed
from simulators.runner import _Judge
from simulators.running.batches import BatchResult
from simulators.store.identity import identify

PRIOR = Independent(Uniform(torch.zeros(1), torch.ones(1)), 1)
THETA = torch.arange(1_000.0)[:, None]


@dataclass
class Mended:
    """Two values a row; some NaN until it is mended, and interrupted where it is told so."""

    broken: bool = field(default=False, compare=False)
    calls_left: float = field(default=math.inf, compare=False)

    def __call__(self, theta: Tensor) -> Tensor:
        self.calls_left -= 1
        if self.calls_left < 0:
            raise KeyboardInterrupt
        x = theta + torch.zeros(len(theta), 2)
        if self.broken:
            x[3::8] = torch.nan
        return x


def test_rows_that_come_twice_do_not_hide_rows_that_are_missing(tmp_path: Path) -> None:
    first = simulate(Mended(broken=True), THETA, seed=1, store=tmp_path)
    assert forget_failures(tmp_path) == len(first.failures) > 100
    with pytest.raises(KeyboardInterrupt):
        simulate(Mended(calls_left=20), THETA, seed=1, store=tmp_path)
    run = simulate(Mended(), THETA, seed=1, store=tmp_path)
    assert run.index.tolist() == list(range(1_000))
    assert torch.equal(run.x, THETA.expand(-1, 2))


def test_a_row_counts_once_and_its_values_before_its_failure() -> None:
    judge = _Judge(np.zeros((100, 1), np.float32), 1.0, None)
    rows = np.arange(40)
    for _ in range(3):
        judge.consider(BatchResult(rows[:30], np.zeros((30, 2), np.float32), failures_of(30, 40)))
    assert (judge.done, judge.failed) == (40, 10)
    judge.consider(BatchResult(rows[35:], np.zeros((5, 2), np.float32), failures_of(0, 5)))
    assert (judge.done, judge.failed) == (40, 5)


def failures_of(first: int, end: int) -> tuple[Any, ...]:
    from simulators import Failure

    return tuple(Failure(row, "no reason") for row in range(first, end))


def test_rows_of_a_wrong_shape_are_forgotten_too(tmp_path: Path) -> None:
    narrow = {"every": 10}  # not a plain value, so no part of the simulator's identity

    def simulator(theta: Tensor) -> Tensor:
        return torch.zeros(3 if int(theta[0]) % narrow["every"] == 0 else 2)

    task = from_function(simulator, PRIOR)
    first = simulate(task, THETA[:200], seed=3, store=tmp_path)
    assert len(first.failures) == 20
    assert forget_failures(tmp_path) == 20
    narrow["every"] = 1_000_000
    again = simulate(task, THETA[:200], store=tmp_path)
    assert [failure.index for failure in again.failures] == [0]


@dataclass(frozen=True)
class Queue:
    rate: float = 0.5
    folder: Path | None = None

    def __call__(self, theta: Tensor) -> Tensor:
        return theta * self.rate


class Plain:
    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, theta: Tensor) -> Tensor:
        return theta * self.rate


def double(theta: Tensor, factor: float = 2.0) -> Tensor:
    """Twice theta."""
    return factor * theta


def triple(theta: Tensor) -> Tensor:
    return 3.0 * theta


def written(source: str, module: str = "night") -> Callable[..., Any]:
    """The function ``simulator`` of a module with this text."""
    names: dict[str, Any] = {"__name__": module}
    exec(source, names)
    found: Callable[..., Any] = names["simulator"]
    return found


def scaled(rate: float) -> Callable[[Tensor], Tensor]:
    def simulator(theta: Tensor) -> Tensor:
        return rate * theta

    return simulator


def counted(calls: int) -> Callable[[Tensor], Tensor]:
    def simulator(theta: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return theta.clone()

    return simulator


TEXT = "def simulator(theta):\n    return 2.0 * theta\n"
COMMENTED = '# why\n\ndef simulator(theta):\n    """Twice."""\n    # so\n    return 2.0 * theta\n'
OTHER = "def simulator(theta):\n    return 3.0 * theta\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (double, triple),
        (double, lambda theta: 2.0 * theta),
        (lambda theta: 2.0 * theta, lambda theta: 3.0 * theta),
        (Queue(0.5), Queue(0.6)),
        (functools.partial(double, factor=2.0), functools.partial(double, factor=3.0)),
        (from_function(double, PRIOR), from_function(double, PRIOR, batched=True)),
        (from_function(double, PRIOR), from_function(triple, PRIOR)),
        (written(TEXT, "night"), written(OTHER, "day")),
        (BernoulliGLM("raw"), BernoulliGLM()),
    ],
)
def test_a_store_of_another_simulator_is_refused(tmp_path: Path, first: Any, second: Any) -> None:
    theta = torch.zeros(3, 10 if isinstance(first, BernoulliGLM) else 1)
    simulate(first, theta, seed=1, store=tmp_path)
    with pytest.raises(ValueError, match=r"`store`: .* holds simulations of another `simulator`"):
        simulate(second, theta, seed=1, store=tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    del manifest["simulator"]  # a store of before, and what the message advises
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert len(simulate(second, theta, store=tmp_path).x) == 3


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (written(TEXT), written(OTHER)),
        (written(TEXT, "__main__"), written(OTHER, "night")),
        (Plain(0.5), Plain(0.6)),
        (scaled(0.5), scaled(0.6)),
    ],
)
def test_other_code_of_the_same_simulator_is_warned_of_and_its_rows_are_kept(
    tmp_path: Path, first: Any, second: Any
) -> None:
    before = simulate(first, THETA[:5], seed=1, store=tmp_path)
    with pytest.warns(UserWarning, match=r"`store`: .* was begun with other code of"):
        after = simulate(second, THETA[:5], seed=1, store=tmp_path)
    assert torch.equal(before.x, after.x)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (written(TEXT), written(COMMENTED)),
        (written(TEXT, "__main__"), written(TEXT, "night")),
        (written(TEXT, "old.place"), written(TEXT, "new.place")),
        (lambda theta: 2.0 * theta, lambda theta: 2.0 * theta),
        (Queue(0.5, Path("a")), Queue(np.float64(0.5), Path("b"))),
        (from_function(double, PRIOR), from_function(double, PRIOR, parameter_names=["a"])),
        (double, from_function(double, PRIOR, batched=True)),
        (scaled(0.5), scaled(0.5)),
        (counted(0), counted(7)),
        (TwoMoons(), TwoMoons()),
    ],
)
def test_the_same_simulator_goes_on_without_a_word(first: Any, second: Any, tmp_path: Path) -> None:
    theta = torch.zeros(3, 2) if isinstance(first, TwoMoons) else torch.zeros(3, 1)
    begun = simulate(first, theta, seed=1, store=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = simulate(second, theta, seed=1, store=tmp_path)
    assert torch.equal(done.x, begun.x)


def test_code_of_another_python_is_not_compared(tmp_path: Path) -> None:
    simulate(written(TEXT), THETA[:3], seed=1, store=tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["simulator"]["code"] = "3.99 other"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert len(simulate(written(TEXT), THETA[:3], seed=1, store=tmp_path).x) == 3


@pytest.mark.parametrize("thing", [math.sin, torch.sin, np.sin, torch.nn.Linear(1, 1), Queue, len])
def test_any_callable_has_an_identity(thing: Any) -> None:
    identity = identify(thing)
    assert identity.name
    assert json.loads(json.dumps(vars(identity))) == vars(identity)


def slow_at_half(theta: Tensor) -> Tensor:
    time.sleep(0.4 if theta[0] > 0.5 else 0.001)
    return theta + torch.randn(2)


class SeededSlow:
    """Rows that are functions of (seed, row), simulated many at a time."""

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        time.sleep(sum(0.4 if value > 0.5 else 0.001 for value in theta[:, 0]))
        rows = [
            np.random.default_rng(child_seed(seed or 0, first_row + i)).standard_normal(2)
            for i in range(len(theta))
        ]
        return torch.from_numpy(np.array(rows)).float()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("simulator", [from_function(slow_at_half, PRIOR), SeededSlow()])
def test_a_row_that_takes_too_long_is_lost_wherever_it_stands(workers: int, simulator: Any) -> None:
    theta = torch.zeros(150, 1)
    slow = [0, 40, 41, 90]
    theta[slow] = 1.0
    run = simulate(simulator, theta, seed=2, timeout=0.2, workers=workers)
    assert [failure.index for failure in run.failures] == slow
    assert {failure.reason for failure in run.failures} == {"timeout: no result within 0.2 s"}
    assert torch.equal(run.x, simulator(torch.zeros(150, 1), 2)[run.index])


def test_an_infinite_timeout_is_none() -> None:
    for workers in (1, 2):
        assert len(simulate(double, THETA[:5], timeout=math.inf, workers=workers).x) == 5


def test_a_seed_is_a_whole_number_of_any_kind(tmp_path: Path) -> None:
    run = simulate(double, THETA[:5], seed=np.int64(3), store=tmp_path)  # type: ignore[arg-type]
    assert type(run.seed) is int
    assert load_store(tmp_path).seed == 3
    for wrong in (1.5, "a"):
        with pytest.raises(ValueError, match=rf"`seed` must be a whole number .* got {wrong!r}"):
            simulate(double, THETA[:5], seed=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["[1]", '{"format": "simulators store", "version": 1, "num_rows": 3}', "3", "{"]
)
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    simulate(double, THETA[:3], seed=1, store=tmp_path)
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match=r"`store`: .*manifest\.json is damaged: "):
        load_store(tmp_path)


def test_the_spiking_neuron_has_its_prior_in_double_precision_too() -> None:
    single = sample_prior(BernoulliGLM().prior, 4, seed=0)
    with default_float64():
        assert torch.equal(sample_prior(BernoulliGLM().prior, 4, seed=0), single)


def test_an_edge_through_the_corners_of_cells_hides_no_part_of_the_posterior() -> None:
    """The share beyond 0.21875, a face of the first cells, by importance sampling of the noise."""
    x_o = torch.tensor([-0.3, 1.0])
    rng = np.random.default_rng(1)
    angle, radius = rng.uniform(np.pi / 4, np.pi / 2, 400_000), rng.uniform(0.13, 0.2, 400_000)
    weight = np.exp(-0.5 * ((radius - 0.1) / 0.01) ** 2 + 0.5 * 3.5**2)
    total = 0.25 + radius * np.cos(angle) - float(x_o[0])
    difference = float(x_o[1]) - radius * np.sin(angle)
    theta = np.stack([total - difference, total + difference], axis=1) / np.sqrt(2.0)
    weight *= (np.abs(theta) < 1.0).all(axis=1)
    weight /= weight.sum()
    beyond = np.abs(theta).min(axis=1) > 0.21875
    exact = float(weight @ beyond)
    draws = TwoMoons().reference_posterior(x_o, 2_000, seed=3)
    share = (draws.abs().min(dim=1).values > 0.21875).double().mean().item()
    # Four standard errors of 2,000 draws and of the weighted oracle.
    error = math.sqrt(exact * (1.0 - exact) * (1 / 2_000 + float((weight**2).sum())))
    assert abs(share - exact) < 4.0 * error
