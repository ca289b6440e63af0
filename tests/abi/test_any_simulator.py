"""abi.fit takes prior, simulator and observation as their owner has them, at the first try."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import invoke
from fits import SMALL, quick_fit
from scipy import stats

import abi
from abi.rounds.problem import pose
from simulators import from_command
from simulators.given.function import FunctionSimulator

PRIOR = {"shift": stats.norm(0.0, 1.0), "scale": stats.uniform(0.2, 1.0)}
X_O = {"sd": 0.5, "mean": 1.0}
CALLS: list[tuple[float, float]] = []

MODULE = """
import numpy as np
import simulators
from scipy import stats

prior = {"shift": stats.norm(0.0, 1.0), "scale": stats.uniform(0.2, 1.0)}
command = simulators.from_command("echo {scale} {shift} {seed:d}")

def summaries(scale, shift):
    values = np.random.normal(shift, scale, size=8)
    return {"mean": values.mean(), "sd": values.std()}
"""


def summaries(scale: float, shift: float) -> Any:
    CALLS.append((scale, shift))
    values = np.random.normal(shift, scale, size=8)
    return {"mean": values.mean(), "sd": values.std()}


def small_fit(**changes: Any) -> abi.ABIPosterior:
    return quick_fit(
        **{"prior": PRIOR, "simulator": summaries, "x_o": X_O, "num_simulations": 200} | changes
    )


def test_a_numpy_function_with_distributions_by_name_and_a_dict_observed(tmp_path: Path) -> None:
    CALLS.clear()
    posterior = small_fit(run_dir=tmp_path / "run")
    # One found out how it is called, one is there to know it by when the run goes on.
    assert len(CALLS) == posterior.num_simulations + 1 + 1
    assert posterior.parameter_names == ("shift", "scale")
    assert posterior.x_o.tolist() == [1.0, 0.5]
    draws = posterior.sample((200,))
    assert bool(((draws[:, 1] >= 0.2) & (draws[:, 1] <= 1.2)).all())
    assert torch.equal(draws, small_fit().sample((200,)))
    again = abi.resume(tmp_path / "run", PRIOR, summaries, progress=False)
    assert torch.equal(draws, again.sample((200,)))
    tree = posterior.to_arviz(20, prior=PRIOR, simulator=summaries)
    assert tree["posterior_predictive"]["x"].shape == (1, 20, 2)


def test_calls_that_find_out_the_form_leave_the_fit_as_it_would_be() -> None:
    """A function that is told of makes none; its simulations are the same."""
    problem = pose(PRIOR, summaries, X_O)
    simulator: Any = problem.simulator
    told = FunctionSimulator(summaries, simulator.form)
    theta = torch.tensor([[0.5, 0.3], [1.0, 0.9]])
    assert torch.equal(told(theta, 7), simulator(theta, 7))


def test_a_command_is_fitted() -> None:
    command = from_command("echo {scale} {shift}")
    posterior = small_fit(simulator=command, x_o=[0.5, 1.0], num_rounds=1, check_fraction=0.0)
    assert posterior.num_simulations == 200
    assert posterior.parameter_names == ("shift", "scale")


def test_names_come_from_where_they_are_known() -> None:
    def unnamed(n: int) -> torch.Tensor:
        return torch.rand(n, 2)

    assert pose(unnamed, summaries, X_O).parameter_names == ("scale", "shift")
    assert pose(unnamed, lambda theta: theta, [0, 0]).parameter_names == ("theta_1", "theta_2")
    assert pose(PRIOR, summaries, X_O, ["m", "s"]).parameter_names == ("m", "s")
    with pytest.raises(ValueError, match=r"`parameter_names` must name .* in one order"):
        pose(PRIOR, summaries, X_O, ["scale", "shift"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x_o": {"mean": 1.0}}, "`x_o` must have the names that `simulator` returns"),
        ({"x_o": [1.0, 2.0, 3.0]}, "`x_o` must have as many values as a simulation; got 3"),
        (
            {"simulator": lambda theta: theta["a"]},
            "`simulator` (raised|works in none of the forms tried)",
        ),
        ({"simulator": lambda a, b, c: a}, "`simulator` asks for a, b, c"),
        ({"prior": {"shift": 1.0}}, "`prior` 'shift' must be a distribution"),
        ({"prior": {"a": stats.norm(), "b": stats.norm()}}, "asks for scale, shift, where `prior`"),
        ({"simulator": from_command("echo {shift}")}, "`simulator` has places for shift, where"),
    ],
)
def test_what_cannot_be_is_told_in_one_line_and_leaves_no_folder(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        small_fit(run_dir=tmp_path / "run", config=SMALL, **changes)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_the_command_line_takes_the_same_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "anysim.py").write_text(MODULE)
    np.savetxt(tmp_path / "x.csv", [[1.0, 0.5]], delimiter=",")
    words = ("--simulator", "anysim:summaries", "--prior", "anysim:prior")
    sizes = ("--num-simulations", "200", "--rounds", "1", "--num-samples", "50", "--no-progress")
    done = invoke("fit", *words, "--observed", "x.csv", "--out", "run", *sizes)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "run/samples.csv").read_text().startswith("shift,scale")
    for name, width in (("summaries", 2), ("command", 3)):
        words = ("--simulator", f"anysim:{name}", "--prior", "anysim:prior")
        for _ in range(2):  # the second goes on where nothing is left to do
            done = invoke("simulate", *words, "--num-simulations", "20", "--out", name)
            assert "20 simulations, 0 failures" in done.output, done.output
        stored = np.concatenate([np.load(f)["x"] for f in (tmp_path / name).glob("rows-*.npy")])
        assert stored.shape == (20, width)
