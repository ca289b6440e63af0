"""A newcomer's first hour: whatever goes wrong ends in one line with the argument and the cure.

Each row is what somebody did and what the line must say: the argument, and what to do instead. What
stands here are mistakes with arguments of every kind; those of one room stand with its tests.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import problems
import pytest
import torch
from fits import X_O, quick_fit
from scipy import stats
from torch import Tensor
from torch.distributions import Independent, Uniform

import abi
import simulators
import validation
from abi.cli.app import main
from simulators.given import probe
from simulators.random import isolated_rng

PRIOR = Independent(Uniform(torch.zeros(2), torch.ones(2)), 1)
X = torch.tensor([0.3, 0.7, 0.3, 0.7])
TASK = simulators.TwoMoons()


class Box:
    """A prior that a user wrote, to be made before it is used."""

    def sample(self, shape: Any) -> Tensor:
        return torch.rand(*shape, 2)


class Counting:
    """A prior whose sample takes a number, as numpy's do."""

    def sample(self, count: int) -> Any:
        return np.random.rand(count, 2)


def noisy(theta: Tensor) -> Tensor:
    return torch.cat([theta, theta]) + 0.1 * torch.randn(4)


def in_numpy(theta: Any) -> Any:
    return np.concatenate([theta, theta]) + 0.1 * np.random.randn(4)


def unstable(theta: Tensor) -> Tensor:
    raise RuntimeError("the step is too long")


def nothing(theta: Tensor) -> None:
    theta * 2


def longer(theta: Tensor) -> Tensor:
    return torch.zeros(3 + int(10 * theta[0]))


def not_finite(theta: Tensor) -> Tensor:
    return torch.full((4,), torch.nan)


def ends_never(theta: Tensor) -> None:
    time.sleep(3600.0)


def fit(**changes: Any) -> abi.ABIPosterior:
    given = {"prior": PRIOR, "simulator": noisy, "x_o": X, "num_simulations": 400}
    return abi.fit(**(given | {"progress": False} | changes))


def pairs() -> tuple[Tensor, Tensor]:
    return simulators.sample_joint(simulators.GaussianLinear(2, 1.0, 1.0), 60, seed=0)


def q(num_samples: int, x: Tensor) -> Tensor:
    return x[:, :2] / 2 + 0.7 * torch.randn(num_samples, len(x), 2)


RANGE = r'\{"rate": scipy.stats.uniform\(low, high - low\)\}'
ORDER = r"The order of the arguments is \(prior, simulator, x_o\)"
FIT: dict[str, tuple[dict[str, Any], str]] = {
    # the prior
    "two ends": ({"prior": (0, 1)}, f"`prior` must be of distributions; .*{RANGE}"),
    "ends a parameter": ({"prior": [(0, 1), (0, 1)]}, f"`prior` must be of dist.*{RANGE}"),
    "named ends": ({"prior": {"a": (0, 1)}}, r"`prior` 'a' .*uniform\(low, high - low\)"),
    "no prior": ({"prior": None}, f"`prior` must have sample.*got NoneType.*{RANGE}"),
    "a prior's name": ({"prior": "uniform"}, f"`prior` must have sample.*got str.*{RANGE}"),
    "draws for a prior": ({"prior": torch.rand(9, 2)}, f"`prior` must have .*Tensor.*{RANGE}"),
    "a class": ({"prior": Box}, r"`prior` is the class Box: pass an object of it, Box\("),
    "a class of torch": ({"prior": Uniform}, "`prior` is the class Uniform: pass an object"),
    "a family": ({"prior": stats.norm}, "`prior` must be frozen: call it with its parameters"),
    "a task": ({"prior": TASK, "simulator": TASK}, "`prior` is a simulator .*: pass task.prior"),
    "a count to sample": ({"prior": Counting()}, r"`prior` cannot .*sample\(\(5,\)\) raised TypeE"),
    "no argument": ({"prior": lambda: torch.rand(2)}, r"`prior` .*must be a function n -> \(n, d"),
    "one draw": ({"prior": lambda n: torch.rand(2)}, r"`prior` must .*\(2,\). Return n rows"),
    "d rows": ({"prior": lambda n: torch.rand(2, n)}, r"`prior` must .*Return the transpose"),
    "draws of NaN": ({"prior": lambda n: torch.full((n, 2), math.nan)}, "`prior` gave .*correct i"),
    # the simulator
    "swapped": ({"prior": noisy, "simulator": PRIOR}, f"`simulator` must .* a prior. {ORDER}"),
    "swapped functions": (
        {"prior": in_numpy, "simulator": lambda n: np.random.rand(n, 2)},
        r"`prior` cannot be drawn from.*the order is abi.fit\(prior, simulator, x_o\)",
    ),
    "its result": ({"simulator": noisy(X[:2])}, "`simulator` must be a call.*Pass the function"),
    "a simulator's class": ({"simulator": simulators.TwoMoons}, "`simulator` is the class TwoM"),
    "it raises": (
        {"simulator": unstable},
        r"`simulator` raised RuntimeError: the step is too long \(test_first_hour.py, line \d+\).*"
        r"Call it yourself to see more: unstable\(torch.tensor\(\[0",
    ),
    "it returns nothing": ({"simulator": nothing}, "`simulator` returned None; end it with `ret"),
    "it returns text": ({"simulator": lambda theta: "done"}, "`simulator` must return numbers; .*"),
    "it varies in length": ({"simulator": longer, "x_o": X[:2]}, "`simulator` must return the same "
                            "number of values .*; got .* and .*Summarise its output"),
    "all is NaN": (
        {"simulator": not_finite},
        r"`simulator` failed for .* theta = \[0.*: not finite: 4 of 4 .*Call it there",
    ),
    "nearly all is NaN": (
        {"simulator": lambda theta: noisy(theta) if theta[0] < 0.06 else not_finite(theta)},
        "`num_simulations`: .* calls, of which .* failed .not finite.* or correct the simulator",
    ),
    # the observation
    "a file": ({"x_o": "x_o.csv"}, "`x_o` must .*got 'x_o.csv'. Read a file first, as numpy.load"),
    "the prior for x_o": ({"x_o": PRIOR}, f"`x_o` must be a tensor of numbers; .*{ORDER}"),
    "another width": ({"x_o": X[:3]}, "`x_o` must .*got 3 values and .*of 4. Pass x_o in the form"),
    "many x_o": ({"x_o": X.repeat(3, 1)}, r"`x_o` must be one.*\(3, 4\). Pass one row, x_o\[0\]"),
    "a column": ({"x_o": X[:, None]}, r"`x_o` must be one.*\(4, 1\).*all of it as one, x_o.resh"),
    "NaN in x_o": ({"x_o": X * math.nan}, "`x_o` must hold a value that was measured; all 4 .*NaN"),
    # numbers
    "text": ({"num_simulations": "1000"}, "`num_simulations` must be .*'1000', a str. Write 1000"),
    "a float": ({"num_simulations": 1e3}, "`num_simulations` must be a whole.*float. Write 1000"),
    "too few": ({"num_simulations": 10}, "`num_simulations` must be at least 200 .*Ask for more"),
    "rounds as text": ({"num_rounds": "2"}, "`num_rounds` must be a whole number .*Write 2"),
    "half a seed": ({"seed": 1.5}, "`seed` must be a whole number of at least 0; got 1.5"),
    "no seed": ({"seed": None}, "`seed` must be a whole number of at least 0; got None"),
    "a share of 2": ({"check_fraction": 2}, r"`check_fraction` must be in \[0, 1/2\]; got 2"),
    "an end": ({"stop_when": "good"}, '`stop_when` must be "passes", a largest bias .*such as 0'),
    "seconds as text": ({"timeout": "3"}, "`timeout` must be a positive number of sec.*got '3'"),
    "no workers": ({"workers": 0}, "`workers` must be a whole number of at least 1; got 0"),
    # the rest
    "a dict": ({"config": {"num_flows": 3}}, r"`config` must .*got dict.*abi.ABIConfig\(num_flows"),
    "its name": ({"encoder": "conv"}, r"`encoder` must .*config=abi.ABIConfig\(encoder=\"conv\"\)"),
    "a pair": ({"simulations": (X, X)}, "`simulations` must be what simulators.simulate or load_"),
    "one name": ({"parameter_names": "ab"}, r"`parameter_names` must .* pass \['ab'\]"),
    "a GPU": ({"device": "gpu"}, '`device` must be a device of torch, such as "cpu" or "cuda"'),
    "a number": ({"run_dir": 3}, "`run_dir` must be a path, such as 'runs/mine'; got 3"),
    "a file in its place": ({"run_dir": __file__}, "`run_dir` must be a folder; .*is a file. Name"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", FIT)
def test_a_mistake_in_a_fit_is_named_with_its_cure(mistake: str) -> None:
    changes, words = FIT[mistake]
    told(lambda: fit(**changes), words)


def test_a_simulator_that_never_ends_is_told_by_its_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probe, "_FIRST_CALL_SECONDS", 0.2)
    words = "`simulator` gave no result within timeout = 0.01 s .*Raise `timeout`, or look for"
    told(lambda: fit(simulator=ends_never, timeout=0.01), words)


ELSEWHERE: dict[str, tuple[Callable[[], object], str]] = {
    # files
    "load no file": (lambda: abi.load("gone.safetensors"), "`path`: gone.* is not there; name the"),
    "load None": (lambda: abi.load(None), "`path` must be a path.*got None"),  # type: ignore[arg-type]
    "load what is none": (lambda: abi.load(__file__), "`path`: .*Name a file that posterior.save"),
    "resume nowhere": (lambda: abi.resume("gone"), "`run_dir` gone holds no run .*name the fold"),
    "resume None": (lambda: abi.resume(None), "`run_dir` must be a path"),  # type: ignore[arg-type]
    "no report": (lambda: validation.load_report("gone.json"), "`path`: gone.json .*No such file.*"
                  "Name a file that report.save"),
    "no store": (lambda: simulators.load_store("gone"), "`store`: gone holds no store.*Name the"),
    # simulations
    "one theta": (lambda: TASK(torch.zeros(2)), r"`theta` must have .*\(2,\). .*write theta\[No"),
    "theta in words": (lambda: TASK("theta"), "`theta` must be an array or a tensor of numbers"),  # type: ignore[arg-type]
    "swapped in simulate": (lambda: simulators.simulate(X[None, :2], TASK), "`theta` must be an"),  # type: ignore[arg-type]
    "one theta at a time": (lambda: simulators.simulate(in_numpy, torch.rand(9, 2), progress=False),
                            r"`simulator` failed .* wrapped: simulators.from_function\(sim"),
    "swapped in from_function": (lambda: simulators.from_function(PRIOR, noisy),
                                 r"`f` must be .* is from_function\(f, prior\)"),
    "no task": (lambda: simulators.sample_joint(noisy, 9),  # type: ignore[arg-type]
                r"`task` must be .*got function. Make one by simulators.from_function\("),
    "a task's class": (lambda: simulators.sample_joint(simulators.TwoMoons, 9),  # type: ignore[arg-type]
                       "`task` must be a simulator with its prior; got the class TwoMoons"),
    "a prior to a command": (lambda: simulators.from_command("run {a}", PRIOR),  # type: ignore[arg-type]
                             r"`reader` must be a function.*A prior goes to abi.fit\(prior, sim"),
    # validation
    "unmatched pairs": (lambda: validation.validate(q, pairs()[0], pairs()[1][1:]),
                        "`theta` and `x` must pair row by row; got 60 and 59 rows. Drop the"),
    "sbi's order": (lambda: validation.validate(*pairs(), q), r"`x` must be .*is \(q, theta, x\)"),  # type: ignore[arg-type]
    "theta and x swapped": (lambda: validation.validate(q, pairs()[1].repeat(1, 2), pairs()[0]),
                            r"`q` must draw parameters of dimension 4.* is \(q, theta, x\)"),
    "a posterior's class": (lambda: validation.validate(abi.ABIPosterior, *pairs()),
                            "`q` is the class ABIPosterior: pass an object of it"),
    "x_o of another width": (lambda: validation.validate_at(q, *pairs(), torch.zeros(3)),
                             r"`x_o` must hold 2 .*\(3,\). Pass it as a row of x is, such as x\[0"),
    # distances
    "draws in words": (lambda: abi.msw_distance("a", torch.rand(9, 2)), "`a` must be an array or"),
    "one column": (lambda: abi.metrics.wasserstein(torch.rand(9), torch.rand(9)),
                   r"`samples` must be .*For one parameter write samples\[:, None\]"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", ELSEWHERE)
def test_a_mistake_elsewhere_is_named_with_its_cure(mistake: str) -> None:
    told(*ELSEWHERE[mistake])


def told(call: Callable[[], object], words: str) -> None:
    """Check that a call ends in one line with these words."""
    with isolated_rng(0), pytest.raises((ValueError, TypeError)) as caught:
        call()
    line = str(caught.value)
    assert "\n" not in line
    assert re.search(words, line), line


def test_a_posterior_says_how_to_ask_it(tmp_path: Path) -> None:
    posterior = quick_fit(num_simulations=300, num_rounds=1, check_fraction=0.0)
    told(lambda: posterior.log_prob(X_O[:2]), r"`theta` must .*\(2,\). For one theta write theta\[")
    told(lambda: posterior.log_prob(None), "`theta` must be an array")  # type: ignore[arg-type]
    told(lambda: posterior.sample(5), r"`sample_shape` must be a tuple .*such as \(5,\); got 5")  # type: ignore[arg-type]
    told(lambda: posterior.sample((5,), x="x"), "`x` must be an array or a tensor")  # type: ignore[arg-type]
    told(lambda: posterior.sample((5,), x=X_O[:3]), "`x` must hold 6 values an observation")
    told(lambda: posterior.save(tmp_path), "`path` must be a file; .* is a folder: add a name")
    posterior.save(tmp_path / "posterior.safetensors")
    again = abi.load(tmp_path)  # a run folder has one of that name
    assert torch.equal(again.sample((3,)), posterior.sample((3,)))
    told(lambda: again.check(50), r"`simulator` must be given.*check\(600, simulator=simulator, p")


def test_an_x_o_in_other_units_is_told_and_never_passes() -> None:
    with pytest.warns(
        UserWarning, match="`x_o` is unusual for this model .*Check the units of x_o"
    ):
        posterior = quick_fit(x_o=1_000.0 * X_O, num_simulations=600, num_rounds=1)
    assert posterior.verdict.headline.startswith("cannot tell: x_o is unusual data of this model")
    assert "wrong units" in str(posterior.verdict)


def test_ctrl_c_and_the_same_words_again_tell_how_to_go_on(tmp_path: Path) -> None:
    task = simulators.from_function(problems.Counting(most=300), PRIOR, batched=True)
    budget: dict[str, Any] = {"num_simulations": 500, "check_fraction": 0.0, "run_dir": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        quick_fit(prior=PRIOR, simulator=task, **budget)
    with pytest.raises(FileExistsError) as caught:
        quick_fit(prior=PRIOR, simulator=task, **budget)
    line = str(caught.value)
    assert f"go on with it by abi.resume({str(tmp_path)!r})" in line
    assert "\n" not in line


def test_a_misspelt_name_is_told_with_one_like_it(capsys: pytest.CaptureFixture[str]) -> None:
    for package, name, meant in ((abi, "fits", "fit"), (validation, "valdate", "validate")):
        with pytest.raises(AttributeError) as caught:
            getattr(package, name)
        sys.__excepthook__(caught.type, caught.value, None)  # as the interpreter shows it
        assert f"has no attribute '{name}'. Did you mean: '{meant}'?" in capsys.readouterr().err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "first_module.py").write_text(
        "import torch\n"
        "from torch.distributions import Independent, Uniform\n"
        "prior = Independent(Uniform(torch.zeros(2), torch.ones(2)), 1)\n"
        "def simulate(theta):\n"
        "    return theta.repeat(1, 2) + 0.1 * torch.randn(len(theta), 4)\n"
        "def q(num_samples, x):\n"
        "    return torch.randn(num_samples, len(x), 2)\n"
    )
    (tmp_path / "first_broken.py").write_text("prior = Uniform(0, 1)\n")
    files = {"x.csv": "0.3,0.7,0.3,0.7\n", "semi.csv": "0.3;0.7;0.3;0.7\n", "words.csv": "a,b\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


OWN = "--simulator first_module:simulate --prior first_module:prior"
TYPED: dict[str, str] = {
    "fit --simulator simulators:MG2": "has no 'MG2'; it offers: .*Did you mean 'MG1'",
    "fit --simulator nowhere:f": "no module named 'nowhere'; run from the folder that holds it",
    "fit --simulator first_module.py:simulate": "Write first_module:simulate",
    "fit --simulator first_module.simulate": "must be module:object.*Write first_module:simulate",
    "fit --simulator first_broken:simulate": r"cannot .*NameError: .*\(first_broken.py, line 1\)",
    "fit --simulator first_module:simulat": "Did you mean 'simulate'",
    "fit --simulator first_module:simulate": "`--prior` is needed.*--prior mymodule:prior",
    f"fit {OWN}": "`--observed` is needed.*--observed x_o.csv",
    f"fit {OWN} --observed gone.csv": "`--observed`: no file gone.csv. Numbers are read from a",
    f"fit {OWN} --observed 1,2": "`--observed`: no file 1,2. Numbers are read from a file",
    f"fit {OWN} --observed semi.csv": "`--observed`: semi.csv .*Write numbers with commas between",
    f"fit {OWN} --observed words.csv": "`--observed`: words.csv could not be read as numbers",
    f"fit {OWN} --observed first_module.py": "`--observed`: .*must end in .npy, .npz or .csv",
    "fit --simulator simulators:MG1 --observed x.csv": "`x_o` must .*got 4 values and .*of 50. P",
    "fit --simulator simulators:MG1 --num-simulations 10": "must be at least 200 .*Ask for more",
    "fit --simulator simulators:MG1 --simulations gone": "`--simulations`: there is no folder gone",
    "fit --simulator simulators:MG1 --resume": r"\(there is no such folder\); name the folder",
    f"fit {OWN} --observed x.csv --rounds 0": "`num_rounds` must be a whole number of at least 1",
    "check gone": "`path`: gone is not there; name the --out of an abi fit that has ended",
    "report gone": "`paths`: there is nothing at gone; name a run folder",
    "validate": "one of `path`, `--posterior` and `--samples` must be given.*validate runs/mine",
    "validate --posterior first_module:q --data x.csv": "must be an .npz that holds 'theta'",
    "benchmark nothing": "`NAME` must be one of",
}


@pytest.mark.parametrize("words", TYPED)
def test_a_mistyped_command_ends_with_one_line_and_status_2(
    folder: Path, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = words.split() + (["--out", "run"] if words.startswith("fit") else [])
    monkeypatch.setattr(sys, "argv", ["abi", *typed])
    with isolated_rng(0), pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err.strip()
    assert ended.value.code == 2
    assert len(said.splitlines()) == 1
    assert re.search(TYPED[words], said), said
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fitt", r"No such command 'fitt'\. Did you mean 'fit'\?"),
        ("fit --num-rounds 3", "No such option:? '?--num-rounds"),  # quoted by older typer
        ("fit --seed 1.5", "Invalid value for '--seed'"),
    ],
)
def test_a_word_that_no_command_has_points_to_the_help(
    words: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["abi", *words.split()])
    with isolated_rng(0), pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr().err
    assert ended.value.code == 2
    assert re.search(said, shown), shown
    assert "--help' for help" in shown


def test_a_picture_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    result = validation.sbc(q, *pairs(), num_samples=20)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told(result.plot, r"`plot` needs matplotlib: install abi-toolkit\[plots\]")
