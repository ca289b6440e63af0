"""The verdict on the command line: fit prints it, check sharpens it, validate takes its pairs."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import problems
import pytest
import torch
from commands import invoke, refused
from fits import BY_GENERATOR, X_O, quick_fit

import abi
import abi.cli.fit
import abi.course
from abi.cli.ending import verdict_words
from abi.files.parts import read_parts
from abi.files.run_folder import RunFolder
from abi.plan import CHECK_FRACTION, Plan
from abi.report.summary import summarise
from abi.rounds.problem import pose
from abi.verdict.judge import verdict_of
from abi.verdict.record import Check, Verdict
from simulators.random import child_seed

FAILS = Verdict("fails", "fails: theta_1 is too narrow by 20 to 40%", Check(90, p_value=0.001))
MODULE = """
import problems
prior, simulate = problems.BOX, problems.simulate

def stopped(theta):
    raise KeyboardInterrupt

class Own:
    prior = problems.BOX
    def __call__(self, theta):
        return simulate(theta)
"""
PROBLEM = ("--simulator", "problems:simulate", "--prior", "problems:prior")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a fit leaves in its folder."""
    path = tmp_path_factory.mktemp("kept") / "run"
    posterior = quick_fit(prior=problems.prior, run_dir=path)
    posterior.save(path / "posterior.safetensors")
    summary = summarise(posterior, posterior.sample((100,)), None, {})
    RunFolder.open(path).write_json("summary.json", summary)
    return path


@pytest.fixture
def folder(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with that run, and a module beside it."""
    shutil.copytree(kept, tmp_path / "run")
    (tmp_path / "verdict_module.py").write_text(MODULE)
    np.savetxt(tmp_path / "x_o.csv", X_O[None].numpy(), delimiter=",")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def generated() -> abi.ABIPosterior:
    """A fit whose generator knows the posterior at x_o alone."""
    return quick_fit(config=BY_GENERATOR["mixture"], num_simulations=800)


def summary_of(run: str = "run") -> dict[str, Any]:
    values: dict[str, Any] = json.loads(Path(run, "summary.json").read_text())
    return values


def saved_without_pairs(path: str) -> None:
    """The run's posterior as a fit without a check leaves it."""
    fit = abi.load("run/posterior.safetensors")
    replace(fit, pairs=None, verdict=quick_verdict("no check pairs were kept")).save(path)


def quick_verdict(reason: str) -> Verdict:
    return Verdict("cannot tell", f"cannot tell: {reason}", Check(0))


def saved_by_version_6(path: str) -> None:
    """The run's posterior without all that version 7 added."""
    from safetensors.torch import save_file

    tensors, header = read_parts(Path("run/posterior.safetensors"), "abi-posterior")
    for name in ("verdict", "kernel", "regions", "pairs"):
        del header[name]
    header["version"] = 6
    del header["model"]["values"]["encoders"]
    older = ("model.", "x_o", "accepted")
    kept = {
        name: tensor
        for name, tensor in tensors.items()
        if name.startswith(older) and not name.startswith("model.encoders.")
    }
    save_file(kept, path, {"abi": json.dumps(header)})


def test_check_adds_pairs_to_a_run_and_leaves_the_answer_as_it_is(folder: Path) -> None:
    before, kept = abi.load("run/posterior.safetensors"), summary_of()
    done = invoke("check", "run", "--num-simulations", "60", "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    after = abi.load("run/posterior.safetensors")
    assert said == {
        "posterior": "run/posterior.safetensors",
        "simulator_calls": before.num_simulations + 60,
        "verdict": json.loads(json.dumps(after.verdict.to_dict())),
    }
    assert before.pairs is not None
    assert after.pairs is not None
    assert after.num_simulations == said["simulator_calls"]
    assert len(after.pairs.x) == len(before.pairs.x) + 60
    assert torch.equal(after.pairs.x[:-60], before.pairs.x)
    assert torch.equal(after.sample((50,)), before.sample((50,)))
    changed = {"simulator_calls": said["simulator_calls"], "verdict": said["verdict"]}
    assert summary_of() == kept | changed
    # A progress bar counts the calls; it changes none of them.
    again = before.check(60, simulator=problems.simulate, prior=problems.prior)
    assert again.verdict == after.verdict


def test_check_prints_the_verdict_and_what_it_rests_on(folder: Path) -> None:
    done = invoke("check", "run", "--num-simulations", "40")
    assert done.exit_code == 0, done.output
    posterior = abi.load("run/posterior.safetensors")
    assert verdict_words(posterior.verdict, Path("run")) in done.stdout
    calls = f"{posterior.verdict.num_calls} of {posterior.num_simulations:,} calls check the answer"
    assert calls in done.stdout


def test_a_terminal_is_told_commands(tmp_path: Path) -> None:
    """What a verdict advises in Python is a command there, on the folder that was named."""
    run, lone = tmp_path / "my run", tmp_path / "mine.safetensors"
    run.mkdir()
    few = verdict_of(Check(7), x_o_p_value=0.4, num_calls=9, failures=2)
    assert "posterior.check(600) makes more" in str(few)
    for path in (run, lone):
        assert f"; `abi check {shlex.quote(str(path))} --num-simulations 600` makes more" in (
            verdict_words(few, path)
        )
    leaning = quick_verdict("no check sees beyond it; posterior.refine() does")
    assert f"; `abi fit --continue '{run}' --num-sim" in verdict_words(leaning, run)
    assert verdict_words(leaning, lone) == str(leaning)  # no rounds follow a file


def test_failed_simulations_of_a_check_are_counted_and_cost_nothing_else(folder: Path) -> None:
    done = invoke("check", "run", "--num-simulations", "80", "--simulator", "problems:some_nan")
    assert done.exit_code == 0, done.output
    posterior = abi.load("run/posterior.safetensors")
    assert 0 < posterior.verdict.failures < 80
    assert f", {posterior.verdict.failures} of them failed" in done.stdout


def test_a_saved_file_is_checked_by_the_simulator_that_is_named(folder: Path) -> None:
    shutil.copy("run/posterior.safetensors", "mine.safetensors")
    assert "`--simulator` must name the simulator" in refused("check", "mine.safetensors")
    line = refused("check", "mine.safetensors", "--simulator", "problems:simulate")
    assert "`--prior` is needed" in line
    kept = Path("run/posterior.safetensors").read_bytes()
    more = ("--num-simulations", "40")
    assert invoke("check", "mine.safetensors", *PROBLEM, *more).exit_code == 0
    calls = abi.load("mine.safetensors").num_simulations
    # A class brings a prior of its own.
    done = invoke("check", "mine.safetensors", "--simulator", "verdict_module:Own", *more)
    assert done.exit_code == 0, done.output
    assert abi.load("mine.safetensors").num_simulations == calls + 40
    assert Path("run/posterior.safetensors").read_bytes() == kept


def test_a_run_of_objects_without_a_path_says_what_to_name(folder: Path) -> None:
    run = RunFolder.open("run")
    plan, x_o, names, _ = run.request()
    problem = pose(problems.BOX, problems.simulate, x_o, names)
    begun = RunFolder.create("objects", problem, plan, {"prior": None, "simulator": None})
    shutil.copy("run/posterior.safetensors", begun.path)
    assert "`--simulator` must name the simulator" in refused("check", "objects")
    line = refused("check", "objects", "--simulator", "problems:simulate")
    assert "`--prior` must name the prior" in line
    more = ("--num-simulations", "30")
    done = invoke("check", "objects", "--simulator", "verdict_module:simulate",
                  "--prior", "verdict_module:prior", *more)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert not (begun.path / "summary.json").exists()


def test_an_interrupted_check_leaves_the_fit_as_it_was(folder: Path) -> None:
    kept = {path.name: path.read_bytes() for path in Path("run").iterdir()}
    done = invoke("check", "run", "--simulator", "verdict_module:stopped")
    assert done.exit_code == 130
    assert "interrupted; run/posterior.safetensors is as it was" in done.stderr
    assert {path.name: path.read_bytes() for path in Path("run").iterdir()} == kept


def test_what_cannot_be_checked_is_refused_in_one_line(
    folder: Path, generated: abi.ABIPosterior
) -> None:
    assert "`path`: nowhere is not there; name the --out" in refused("check", "nowhere")
    Path("run/posterior.safetensors").rename("whole.safetensors")
    assert "`path`: run holds no finished fit" in refused("check", "run")
    assert "`path`: run holds no finished fit" in refused("validate", "run")
    Path("whole.safetensors").rename("run/posterior.safetensors")
    generated.save("generated.safetensors")
    for command in ("check", "validate"):
        line = refused(command, "generated.safetensors")
        assert "its generator knows the posterior at x_o alone" in line
    saved_by_version_6("old.safetensors")
    assert abi.load("old.safetensors").sample((3,)).shape == (3, 2)
    for command in ("check", "validate"):
        assert "of an earlier version, which kept no encoders" in refused(
            command, "old.safetensors"
        )
    Path("run/posterior.safetensors").write_bytes(b"nothing")
    assert "is damaged" in refused("check", "run")


def test_a_summary_that_is_none_is_named(folder: Path) -> None:
    Path("run/summary.json").write_text("[]")
    assert "is no summary of a run" in refused("check", "run", "--num-simulations", "30")
    # The pairs are kept all the same.
    assert abi.load("run/posterior.safetensors").verdict.num_calls > 30


@pytest.mark.parametrize("words", [("run",), ("--posterior", "run")])
def test_a_run_is_validated_on_the_pairs_of_its_check(folder: Path, words: tuple[str, ...]) -> None:
    done = invoke("validate", *words, "-m", "sbc", "-m", "hpd", "--num-samples", "60", "--json")
    assert done.exit_code in (0, 1), done.exception
    report = json.loads(done.stdout)
    assert [row["method"] for row in report["results"]] == ["sbc", "hpd"]
    assert done.exit_code == (1 if report["rejected"] else 0)
    # The flows' own density orders the draws.
    assert report["results"][1]["details"]["density"] == "q.log_prob"
    posterior = abi.load("run/posterior.safetensors")
    assert posterior.pairs is not None
    assert len(report["results"][1]["details"]["ranks"]) <= len(posterior.pairs.x)


def test_local_tests_of_a_fit_are_at_its_own_observation(folder: Path) -> None:
    shutil.copy("run/posterior.safetensors", "mine.safetensors")
    done = invoke("validate", "mine.safetensors", "-m", "local_hpd", "--num-samples", "60",
                  "--out", "report.json")  # fmt: skip
    assert done.exit_code in (0, 1), done.exception
    report = json.loads(Path("report.json").read_text())
    fit = abi.load("mine.safetensors")
    assert torch.allclose(torch.tensor(report["results"][0]["details"]["x_o"]), X_O[None])
    assert report["parameter_names"] == ["theta_1", "theta_2"]
    assert report["of"]["calls"] == fit.num_simulations
    assert report["of"]["seed"] == fit.seed
    np.savetxt("far.csv", 50.0 + X_O[None].numpy(), delimiter=",")
    line = refused("validate", "run", "-m", "lc2st", "--x-o", "far.csv", "--num-samples", "60")
    assert "`x_o` lies far outside of all x" in line


def test_lc2st_of_a_fit_is_trained_on_its_pairs_and_read_at_x_o(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def tell(q: Any, theta: torch.Tensor, x: torch.Tensor, *words: Any, **options: Any) -> Any:
        asked.update(q=q, theta=theta, x=x, x_o=words[1])
        raise ValueError("seen")

    monkeypatch.setattr("validation.validate", tell)
    refused("validate", "run", "-m", "lc2st", "--num-samples", "60")
    q, theta, x = asked["q"], asked["theta"], asked["x"]
    fit = abi.load("run/posterior.safetensors")
    kept, kept_theta, kept_x = fit.check_pairs(60, seed=child_seed(0, 0))
    assert torch.equal(theta, kept_theta)
    assert torch.equal(x, kept_x)
    assert torch.equal(asked["x_o"], X_O)
    # At the pairs' x the draws are cut to the answer's middle, as the pairs are.
    assert torch.equal(q.sample(60, x), kept.sample(60, x))
    # At x_o they are the fit's own: their mean over 2,000 lies within 4 s.e. of its draws' mean.
    here, answer = q.sample(2_000, X_O[None])[:, 0], fit.sample((2_000,), seed=7)
    error = 4 * answer.std(dim=0) * (2 / 2_000) ** 0.5
    assert bool(((here.mean(dim=0) - answer.mean(dim=0)).abs() < error).all())


def test_a_fit_is_validated_on_the_pairs_that_are_given(folder: Path) -> None:
    fit = abi.load("run/posterior.safetensors")
    pairs, answer = fit.pairs, fit.answer
    assert pairs is not None
    assert answer is not None
    near = [doubt is None for doubt in answer.reach.doubts(answer.q, pairs.x)]
    np.savez("near.npz", theta=pairs.theta[near].numpy(), x=pairs.x[near].numpy())
    words = ("validate", "run", "-m", "sbc", "--num-samples", "60", "--data")
    done = invoke(*words, "near.npz")
    assert done.exit_code in (0, 1), done.exception
    np.savez("far.npz", theta=pairs.theta.numpy(), x=50.0 + pairs.x.numpy())
    assert "the fit around x_o does not reach it" in refused(*words, "far.npz")


def test_a_fit_without_pairs_is_told_how_to_get_some(folder: Path) -> None:
    saved_without_pairs("bare file.safetensors")
    line = refused("validate", "bare file.safetensors", "-m", "sbc")
    assert "holds no check pairs; draw some with abi check 'bare file.safetensors'" in line


def test_one_posterior_is_validated_at_a_time(folder: Path) -> None:
    for words in ((), ("run", "--posterior", "m:q"), ("run", "--samples", "s.npz")):
        assert "must be given, and no two" in refused("validate", *words)
    assert "`--layout` is of `--samples`" in refused("validate", "run", "--layout", "l")
    assert "`path`: mien is not there" in refused("validate", "mien")


def test_a_failing_verdict_is_a_status_on_request_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = abi.load("run/posterior.safetensors")
    failing = replace(fit, verdict=FAILS)
    monkeypatch.setattr(abi.ABIPosterior, "checked", lambda *words, **options: failing)
    monkeypatch.setattr(abi.course, "run", lambda *words: failing)
    monkeypatch.setattr(abi.cli.fit, "can_draw", lambda: False)
    again = ("fit", *PROBLEM, "--out", "run", "--resume", "--num-samples", "50")
    for words in (("check", "run"), again):
        assert invoke(*words).exit_code == 0
        done = invoke(*words, "--strict")
        assert done.exit_code == 1
        assert FAILS.headline in done.stdout
        assert invoke(*words, "--strict", "--json").exit_code == 1
        assert summary_of()["verdict"]["outcome"] == "fails"
    unsure = replace(fit, verdict=quick_verdict("too few pairs"))
    monkeypatch.setattr(abi.course, "run", lambda *words: unsure)
    done = invoke(*again, "--strict")
    assert done.exit_code == 0
    assert "more pairs for the verdict: abi check run" in done.stdout


def test_a_report_of_one_fit_advises_commands(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"warnings": [], "headline": "Cannot tell: only few; posterior.check(600) makes more"}
    made = {"verdict": told, "bytes": 10}
    monkeypatch.setattr("abi.report.assemble.write_page", lambda *words: made)
    assert "`abi check run --num-simulations 600` makes more" in invoke("report", "run").stdout


def test_going_on_with_a_checked_run_keeps_the_pairs_that_were_added(folder: Path) -> None:
    again = ("fit", *PROBLEM, "--out", "run", "--resume", "--num-samples", "50", "--no-progress")
    before = abi.load("run/posterior.safetensors").verdict
    assert invoke(*again).exit_code == 0
    assert abi.load("run/posterior.safetensors").verdict == before
    assert invoke("check", "run", "--num-simulations", "40").exit_code == 0
    checked = abi.load("run/posterior.safetensors").verdict
    assert checked.num_calls == before.num_calls + 40
    done = invoke(*again)
    assert done.exit_code == 0, done.output
    assert verdict_words(checked, Path("run")) in done.stdout
    assert abi.load("run/posterior.safetensors").verdict == checked
    assert summary_of()["verdict"]["num_calls"] == checked.num_calls


@pytest.fixture
def planned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Plan]:
    """The plan that the words of a fit make."""
    plans = []

    def stop(work: Any, *rest: Any) -> None:
        plans.append(work.plan)
        raise ValueError("planned")

    monkeypatch.setattr(abi.course, "run", stop)

    def plan(*words: str) -> Plan:
        assert refused("fit", *PROBLEM, "--observed", "x_o.csv", *words) == "planned"
        return plans[-1]

    return plan


def test_a_fit_keeps_the_share_for_its_check_that_abi_fit_keeps(
    planned: Callable[..., Plan],
) -> None:
    assert planned("--out", "a").check_fraction == CHECK_FRACTION
    plan = planned("--out", "b", "--check-fraction", "0.2", "--stop-when", "0.3")
    assert (plan.check_fraction, plan.stop_when) == (0.2, 0.3)
    assert planned("--out", "c", "--stop-when", "passes").stop_when == "passes"
    # The algorithm as published knows no x but its own: nothing could be checked.
    paper = planned("--out", "d", "--paper", "--check-fraction", "0.2")
    assert paper.check_fraction == 0.0
    # The same words go on.
    again = planned("--out", "d", "--paper", "--check-fraction", "0.2", "--resume")
    assert again.check_fraction == 0.0
    assert planned("--out", "b", "--stop-when", "0.3", "--resume").check_fraction == 0.2
    for option, value, began in (
        ("--check-fraction", "0.1", "0.2"),
        ("--stop-when", "passes", "0.3"),
        ("--stop-when", "0.5", "0.3"),
    ):
        line = refused("fit", *PROBLEM, "--out", "b", "--resume", option, value)
        assert line.startswith(f"`{option}`: the run began with {began}; got {value}. Leave it out")
    assert "began with none; got passes" in refused(
        "fit", *PROBLEM, "--out", "a", "--resume", "--stop-when", "passes"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--check-fraction", "0.7"), "`check_fraction` must be in [0, 1/2]; got 0.7"),
        (("--stop-when", "enough"), "`stop_when` must be \"passes\", a largest bias"),
        (("--stop-when", "-0.2"), "got -0.2"),
        (("--stop-when", "nan"), "got nan"),
    ],
)  # fmt: skip
def test_shares_and_ends_that_are_none_are_refused(
    folder: Path, words: tuple[str, ...], message: str
) -> None:
    line = refused("fit", *PROBLEM, "--observed", "x_o.csv", "--out", "new", *words)
    assert message in line
    assert not Path("new").exists()


def test_more_calls_are_added_to_a_run_that_has_ended(folder: Path) -> None:
    before = abi.load("run/posterior.safetensors")
    words = ("fit", "--continue", "run", *PROBLEM, "--rounds", "1", "--num-samples", "50")
    assert "`--num-simulations` is needed: the run in run has ended" in refused(*words)
    done = invoke(*words, "--num-simulations", "300", "--json")
    assert done.exit_code == 0, done.output
    after = abi.load("run/posterior.safetensors")
    assert json.loads(done.stdout)["simulator_calls"] == after.num_simulations
    assert after.num_simulations == before.num_simulations + 300
    assert len(after.rounds) == len(before.rounds) + 1
    earlier = abi.load("run/posterior_02.safetensors")
    assert torch.equal(earlier.sample((20,)), before.sample((20,)))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "other"), "`--out` cannot be changed by --continue"),
        (("--paper",), "`--paper` cannot be changed by --continue"),
        (("--observed", "x_o.csv"), "`--observed` cannot be changed by --continue"),
    ],
)
def test_a_run_that_goes_on_is_not_told_what_it_knows(
    folder: Path, words: tuple[str, ...], message: str
) -> None:
    said = refused("fit", "--continue", "run", *PROBLEM, "--num-simulations", "300", *words)
    assert message in said


def test_a_new_run_needs_a_simulator_and_a_folder() -> None:
    assert "`--simulator` is needed" in refused("fit", "--out", "run")
    assert "`--out` is needed" in refused("fit", *PROBLEM)
