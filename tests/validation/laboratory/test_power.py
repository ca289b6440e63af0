"""The laboratory: rates with intervals, cells that resume, the same result however it is worked."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from scipy.stats import binomtest
from typer.testing import CliRunner

from abi.cli import ending
from abi.cli.app import app
from validation import (
    ColtTraining,
    FixedScore,
    PowerStudy,
    ScoreTest,
    TrainedColt,
    TrainedScore,
    Training,
    ValidationResult,
    WholeTest,
    power,
)
from validation.laboratory.rates import clopper_pearson
from validation.laboratory.weak import weakened
from validation.perturbations import LinearScore
from validation.scores.classifiers import fit_classifiers

CHEAP = {"sbc": WholeTest("sbc", {"num_samples": 50}), "hpd": WholeTest("hpd", {"num_samples": 50})}
SMALL = Training(hidden=(32, 32), max_epochs=40, patience=10)
BALLS = ColtTraining(hidden=(32, 32), learning_rate=1e-3, epochs=60)


def p_values(study: PowerStudy) -> list[tuple[float, ...]]:
    return [cell.p_values for cell in study.cells]


def always_raises(q: object, theta: object, x: object, *, seed: int = 0) -> ValidationResult:
    raise ValueError("this test cannot\nrun here")


@pytest.fixture(scope="module")
def study() -> PowerStudy:
    return power(CHEAP, "covariance", [0.0, 0.4, 3.0], repetitions=60, seed=1)


def test_the_level_is_kept_and_power_grows_with_strength(study: PowerStudy) -> None:
    for method in CHEAP:
        none, some, much = (study.rate(method, strength) for strength in study.strengths)
        assert none.interval[0] <= 0.05
        assert none.rejections <= 9  # P(more than 9 of 60 at 0.05) is below 0.001
        assert some.rate is not None
        assert some.rate >= (none.rate or 0.0)
        assert much.rate == 1.0


def test_the_smallest_strength_seen_is_named(study: PowerStudy) -> None:
    assert study.smallest_strength("sbc") == 3.0
    with pytest.raises(ValueError, match=r"`power` must lie in \[0, 1\]; got 80"):
        study.smallest_strength("sbc", power=80)
    with pytest.raises(ValueError, match=r"'colt' at 3"):
        study.rate("colt", 3.0)


@pytest.mark.parametrize("rejections", [0, 3, 20])
def test_intervals_are_clopper_and_pearsons(rejections: int) -> None:
    exact = binomtest(rejections, 20).proportion_ci(0.95)
    assert clopper_pearson(rejections, 20) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_cells_are_found_again_and_missing_ones_are_worked(tmp_path: Path) -> None:
    settings = {"repetitions": 5, "num_seeds": 2, "seed": 3}
    whole = power(CHEAP, "mean_shift", [0.0, 0.3], folder=tmp_path, **settings)
    files = sorted(tmp_path.glob("*.json"))
    assert len(files) == 8
    before = {path: path.stat().st_mtime_ns for path in files}
    files[0].unlink()
    files[1].write_text("{ torn")
    again = power(CHEAP, "mean_shift", [0.0, 0.3], folder=tmp_path, **settings)
    assert p_values(again) == p_values(whole)
    untouched = [path for path in files[2:] if path.stat().st_mtime_ns == before[path]]
    assert untouched == files[2:]
    other = power(CHEAP, "mean_shift", [0.0], folder=tmp_path, **(settings | {"seed": 4}))
    assert p_values(other)[0] != p_values(whole)[0]


def test_a_larger_study_takes_up_the_seeds_of_a_smaller_one(tmp_path: Path) -> None:
    one = power(CHEAP, "covariance", [0.8], repetitions=4, folder=tmp_path)
    two = power(CHEAP, "covariance", [0.8], repetitions=4, num_seeds=2, folder=tmp_path)
    assert p_values(two)[0] == p_values(one)[0]
    assert len(list(tmp_path.glob("*.json"))) == 4
    assert two.rate("sbc", 0.8).standard_error is not None


def test_two_workers_give_what_one_gives() -> None:
    tests = CHEAP | {"c2st": WholeTest("c2st", {"training": SMALL})}
    one = power(tests, "covariance", [0.0, 0.8], repetitions=4, seed=2)
    two = power(tests, "covariance", [0.0, 0.8], repetitions=4, seed=2, workers=2)
    assert p_values(one) == p_values(two)
    assert [cell.method for cell in one.cells] == [cell.method for cell in two.cells]


def test_a_study_without_time_is_of_what_is_kept(tmp_path: Path) -> None:
    sizes = {"num_seeds": 2, "repetitions": 3, "folder": tmp_path}
    whole = power("sbc", "covariance", [0.0, 0.8], **sizes)
    both = power(["sbc", "tarp"], "covariance", [0.0, 0.4, 0.8], minutes=0.0, **sizes)
    assert p_values(both) == p_values(whole)
    assert (both.methods, both.strengths) == (("sbc",), (0.0, 0.8))
    one_more = power("tarp", "covariance", [0.4], **sizes)
    both = power(["sbc", "tarp"], "covariance", [0.0, 0.4, 0.8], minutes=0.0, **sizes)
    assert both.rate("tarp", 0.4) == one_more.rate("tarp", 0.4)
    assert both.rate("sbc", 0.4).rate is None
    assert both.smallest_strength("tarp", power=0.0) == 0.4
    assert both.plot() is not None
    assert power("sbc", "covariance", [0.2], minutes=0.0).cells == ()


def test_a_test_that_raises_costs_its_cell_alone(tmp_path: Path) -> None:
    tests = {"sbc": CHEAP["sbc"], "broken": always_raises}
    found = power(tests, "covariance", [0.0], repetitions=3, folder=tmp_path)
    rate = found.rate("broken", 0.0)
    assert rate.errors == ("ValueError: this test cannot run here",)
    assert rate.rate is None
    assert found.rate("sbc", 0.0).repetitions == 3
    json.dumps(found.to_dict(), allow_nan=False)


def test_tests_trained_once_hold_their_level_and_have_power() -> None:
    tests = {
        "colt": TrainedColt("full", 50, BALLS),
        "uniform": TrainedScore(ScoreTest("uniform", 20), training=SMALL),
        "multiple": TrainedScore(ScoreTest("multiple", num_permutations=99), training=SMALL),
        "c2st": TrainedScore(ScoreTest("c2st"), training=SMALL),
        "c2st_normal": TrainedScore(ScoreTest("c2st_normal"), training=SMALL),
    }
    found = power(tests, "covariance", [0.0, 3.0], num_pairs=150, repetitions=20, seed=5)
    for name in tests:
        assert found.rate(name, 0.0).rejections <= 5  # P(more) at 0.05 is below 0.001
        assert (found.rate(name, 3.0).rate or 0.0) >= 0.8, name


def test_a_moved_boundary_costs_c2st_its_power_and_the_conformal_test_none() -> None:
    """Figure 1 of the conformal paper, at 100 points and a shift of 2."""
    tests = {
        f"{kind}, {shift}": FixedScore(ScoreTest(kind, 50), LinearScore(0.5, shift))
        for kind in ("uniform", "c2st_normal")
        for shift in (0.0, 2.0)
    }
    found = power(tests, "bivariate", [0.5], num_pairs=100, repetitions=60, seed=1)
    rates = {name: found.rate(name, 0.5).rate or 0.0 for name in tests}
    assert rates["uniform, 2.0"] == pytest.approx(rates["uniform, 0.0"], abs=0.1)
    assert rates["c2st_normal, 0.0"] > 0.5
    assert rates["c2st_normal, 2.0"] < 0.35


def test_a_weak_classifier_lies_between_its_start_and_its_end() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(200, 3, generator=generator)
    labels = (features[:, 0] > 0).float()
    network = fit_classifiers(features, labels[None], training=SMALL, seed=4)
    assert torch.equal(weakened(network, 0.0, 4).logits(features), network.logits(features))
    still = Training(hidden=(32, 32), max_epochs=1, learning_rate=1e-30)  # no weight feels that
    untrained = fit_classifiers(features, labels[None], training=still, seed=4)
    start = weakened(network, 1.0, 4)
    assert torch.allclose(start.logits(features), untrained.logits(features), atol=1e-6)
    with pytest.raises(ValueError, match=r"`weakness`.*1\.2"):
        weakened(network, 1.2, 4)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"`method`.*'sbcc'"):
        power("sbcc", "covariance")
    with pytest.raises(TypeError, match=r"`method`.*int"):
        power({"one": 1}, "covariance")
    with pytest.raises(ValueError, match=r"`strengths`.*-1"):
        power("sbc", "covariance", [-1.0])
    with pytest.raises(ValueError, match=r"`repetitions`.*0"):
        power("sbc", "covariance", repetitions=0)


def test_pictures_of_one_order_give_a_test_one_colour(study: PowerStudy) -> None:
    names = list(study.methods)
    colours = []
    for order in (names, names[::-1]):
        ax = study.plot(order=order)
        colours.append([line.get_color() for line in ax.get_legend().get_lines()])
    assert colours[0] == colours[1][::-1]


def test_power_is_drawn(study: PowerStudy) -> None:
    ax = study.plot()
    assert ax.get_xlabel() == "strength"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(CHEAP)


def test_the_command_line_runs_resumes_and_prints_json(tmp_path: Path) -> None:
    words = ["benchmark", "blind-prior", "--quick", "--part", "3,3", "--repetitions", "2"]
    words += ["--test", "SBC", "--test", "C2ST", "--num-seeds", "1", "--no-progress"]
    words += ["--out", str(tmp_path)]
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 0, first.output
    assert "| C2ST | 1 |" in first.output
    values = json.loads((tmp_path / "blind-prior.json").read_text())
    (part,) = values["parts"]
    blind = next(r for r in part["rates"] if (r["method"], r["strength"]) == ("SBC", 1.0))
    assert blind["paper"] == [0.052, 0.004]
    assert math.isfinite(blind["seconds"])
    assert (tmp_path / "blind-prior.png").stat().st_size > 10_000
    again = CliRunner().invoke(app, [*words, "--json"])
    assert json.loads(again.stdout) == values


def test_the_command_line_names_what_it_knows() -> None:
    unknown = CliRunner().invoke(app, ["benchmark", "nothing"])
    assert "`NAME`" in str(unknown.exception)
    for option, word in (("--part", "bush"), ("--test", "bush"), ("--strength", "7")):
        wrong = CliRunner().invoke(app, ["benchmark", "tree", option, word])
        assert f"`{option}`" in str(wrong.exception)


@pytest.mark.parametrize("words", [["tree", "--quick", "--test", "SBC"], ["lc2st"]])
def test_without_matplotlib_there_are_tables(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "find_spec", lambda name: None)
    few = ["--minutes", "0"] if words == ["lc2st"] else ["--repetitions", "1", "--no-progress"]
    result = CliRunner().invoke(app, ["benchmark", *words, *few, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "abi-toolkit[plots]" in result.stderr
    assert (tmp_path / f"{words[0]}.md").is_file()
    assert not list(tmp_path.glob("*.png"))


def test_the_command_line_shows_what_is_kept_and_begins_nothing_without_time(
    tmp_path: Path,
) -> None:
    words = ["benchmark", "nptbench", "--quick", "--test", "SBC", "--no-progress"]
    words += ["--out", str(tmp_path), "--json"]
    early = CliRunner().invoke(app, [*words, "--minutes", "0"])
    assert "`--minutes`: 0 left time for nothing" in str(early.exception)
    some = CliRunner().invoke(app, [*words, "--part", "covariance,flat", "--strength", "0.6"])
    kept = CliRunner().invoke(app, [*words, "--minutes", "0"])
    (one,), (all_of_it,) = (json.loads(run.stdout)["parts"] for run in (some, kept))
    assert all_of_it["rates"] == one["rates"]
    assert one["cells"] == {"asked": 1, "worked": 1}
    assert all_of_it["cells"] == {"asked": 3, "worked": 1}


def test_the_command_line_works_some_strengths_alone(tmp_path: Path) -> None:
    words = ["benchmark", "nptbench", "--quick", "--part", "covariance,flat", "--test", "SBC"]
    words += ["--strength", "0.6", "--no-progress", "--out", str(tmp_path), "--json"]
    result = CliRunner().invoke(app, words)
    (part,) = json.loads(result.stdout)["parts"]
    assert [rate["strength"] for rate in part["rates"]] == [0.6]
