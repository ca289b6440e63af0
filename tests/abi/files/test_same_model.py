"""A run goes on with the prior and the simulator that it began with, or says why not."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import problems
import pytest
import torch
from fits import quick_fit
from torch import Tensor
from torch.distributions import Independent, Uniform

import abi
from abi.files.same_model import FILE
from simulators.given.probe import NUM_PROBES

WIDER = Independent(Uniform(-3 * torch.ones(2), 3 * torch.ones(2)), 1)


def other(theta: Tensor) -> Tensor:
    return 2.0 * problems.simulate(theta)


def unseeded(theta: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(secrets.randbits(60))
    return theta.repeat(1, 3) + 0.3 * torch.randn(len(theta), 6, generator=generator)


@pytest.fixture
def interrupted(tmp_path: Path) -> Callable[[Callable[[Tensor], Tensor]], Path]:
    """A run of one round, of a simulator."""

    def begin(simulator: Callable[[Tensor], Tensor]) -> Path:
        def stopped(theta: Tensor) -> Tensor:
            if problems.rounds_done(tmp_path) >= 1:
                raise KeyboardInterrupt
            return simulator(theta)

        with pytest.raises(KeyboardInterrupt):
            quick_fit(simulator=stopped, num_simulations=600, run_dir=tmp_path)
        return tmp_path

    return begin


def test_another_prior_is_refused_before_the_round_goes_on(
    interrupted: Callable[[Callable[[Tensor], Tensor]], Path],
) -> None:
    folder, counting = interrupted(problems.simulate), problems.Counting()
    with pytest.raises(ValueError, match=r"^`prior` is not the one that the run began with"):
        abi.resume(folder, WIDER, counting, progress=False)
    assert counting.calls <= NUM_PROBES  # these find out how it is called


def test_another_simulator_is_refused_and_the_file_that_tells_is_named(
    interrupted: Callable[[Callable[[Tensor], Tensor]], Path],
) -> None:
    folder = interrupted(problems.simulate)
    told = rf"^`simulator` is not the one .* remove .*{FILE}"
    with pytest.raises(ValueError, match=told):
        abi.resume(folder, problems.BOX, other, progress=False)
    (folder / FILE).unlink()
    abi.resume(folder, problems.BOX, other, progress=False)


def test_a_finished_run_is_not_judged_by_another_simulator(tmp_path: Path) -> None:
    fit = quick_fit(simulator=problems.simulate, num_simulations=600, run_dir=tmp_path)
    with pytest.raises(ValueError, match=r"^`simulator` is not the one"):
        abi.resume(tmp_path, problems.BOX, other, progress=False)
    again = abi.resume(tmp_path, problems.BOX, problems.simulate, progress=False)
    assert torch.equal(fit.sample((5,), seed=1), again.sample((5,), seed=1))


def test_a_simulator_that_no_seed_rules_goes_on(
    interrupted: Callable[[Callable[[Tensor], Tensor]], Path],
) -> None:
    folder = interrupted(unseeded)
    assert abi.resume(folder, problems.BOX, unseeded, progress=False).rounds
