"""The benchmark of local tests: its cells, its level where q is right, its verdicts, its words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scipy import stats
from torch.distributions import Normal
from typer.testing import CliRunner

from abi.cli.app import app
from abi.studies.benchmark.choice import named
from abi.studies.benchmark.experiment import Place
from abi.studies.benchmark.local import run
from abi.studies.benchmark.local.agreement import agreement, agreement_lines
from abi.studies.benchmark.local.cells import LocalCell, recipe
from abi.studies.benchmark.local.claims import (
    CLAIMS,
    Claim,
    above,
    alike,
    at_least,
    controlled,
    falling_power,
)
from abi.studies.benchmark.local.estimate import estimate, from_base
from abi.studies.benchmark.local.judges import JUDGES, Question
from abi.studies.benchmark.local.parts import TASKS, GainPart, LocalPart, Sizes, parts
from abi.studies.benchmark.local.parts import agreement as agreement_part
from abi.studies.benchmark.local.study import LocalStudy, study
from simulators import GaussianLinear, JansenRit, sample_joint
from simulators.random import isolated_rng
from validation import as_posterior

pytest.importorskip("sbi")

SIZES = Sizes(num_x_o=2, num_nulls=19, num_samples=50, num_ranked=10, patience=5)
TINY = LocalPart(
    "two-moons", TASKS["two-moons"], (50, 60), (40, 60), 60, 2, sizes=SIZES, max_epochs=2
)
GAINS = GainPart(
    "jansen-rit", JansenRit("spectrum"), num_train=150, num_cal=100, num_samples=100, num_nulls=19,
    num_transforms=2, max_epochs=2,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tiny study is kept."""
    place = tmp_path_factory.mktemp("study")
    _work(place, list(JUDGES))
    return place


def _work(place: Path, methods: list[str], part: LocalPart = TINY) -> LocalStudy:
    with isolated_rng(0):  # importing sbi draws from numpy's global stream
        (found,) = study([part], methods, Place(place))
    return found


def test_every_test_is_asked_at_every_point_and_none_fails(folder: Path) -> None:
    found = _work(folder, list(JUDGES))
    assert found.errors == []
    # Power at three points, type I error at two, for each of five tests.
    assert len(found.rates()) == 25
    assert found.num_asked == len(found.cells) == 50
    for rate in found.rates():
        assert rate.runs == 2
        assert rate.decisions == 4
        assert rate.interval[0] <= rate.rate <= rate.interval[1]


def test_cells_are_kept_and_only_what_is_missing_or_damaged_is_worked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    first = _work(folder, ["L-C2ST"])
    lost, torn = sorted(folder.glob("two-moons--L-C2ST--*.json"))[:2]
    lost.unlink()
    torn.write_text("{")
    again = _work(folder, ["L-C2ST"])
    after = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert {path for path in after if after[path] != before[path]} == {lost, torn}
    assert [c.p_values for c in again.cells] == [c.p_values for c in first.cells]
    # A larger study takes up what a smaller one has in common with it.
    larger = replace(TINY, repetitions=3)
    monkeypatch.setitem(JUDGES, "L-C2ST", lambda question: ([0.0], [1.0]))  # type: ignore[index]
    found = _work(folder, ["L-C2ST"], larger)
    assert [c.p_values for c in found.cells if c.repetition < 2] == [
        c.p_values for c in first.cells
    ]


def test_an_error_costs_its_cell_and_is_told(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in folder.glob("*.safetensors"):
        (tmp_path / path.name).write_bytes(path.read_bytes())

    def broken(question: Question) -> tuple[list[float], list[float]]:
        raise ValueError("two\nlines")

    monkeypatch.setitem(JUDGES, "L-C2ST", broken)  # type: ignore[index]
    found = _work(tmp_path, ["L-C2ST"])
    assert found.errors == ["two-moons, L-C2ST: ValueError: two lines"]
    assert found.rates() == []


def test_an_estimate_that_is_read_again_draws_the_same(folder: Path, tmp_path: Path) -> None:
    how = recipe(TINY, 60, 0, 0)
    with isolated_rng(0):
        trained = as_posterior(estimate(TINY.task, how, tmp_path))
        read = as_posterior(estimate(TINY.task, how, tmp_path))
        kept = as_posterior(estimate(TINY.task, how, folder))
    x = sample_joint(TINY.task, 5, seed=1)[1]
    draws = trained.sample(20, x, 3)
    assert torch.equal(draws, read.sample(20, x, 3))
    assert torch.equal(draws, kept.sample(20, x, 3))


def test_base_draws_are_mapped_to_where_the_flow_came_from(folder: Path) -> None:
    flow = estimate(TINY.task, recipe(TINY, 60, 0, 0), folder)
    z = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
    x_o = torch.tensor([-0.3, 0.4])
    theta = from_base(flow, z, x_o)
    back = as_posterior(flow).to_base(theta, x_o.expand(30, -1))
    assert torch.allclose(back, z, atol=1e-3)


@pytest.mark.parametrize(("spread", "exact"), [(0.5**0.5, False), (1.0, True)])
def test_the_oracle_keeps_its_level_where_q_is_the_truth(spread: float, exact: bool) -> None:
    q = as_posterior(lambda x: Normal(x / 2, spread))
    task = GaussianLinear(2, 1.0, 1.0)
    sizes = Sizes(2, num_nulls=19, num_samples=60, patience=3)
    p_values = [
        p
        for seed in range(25)
        for p in JUDGES["oracle C2ST"](Question(task, q, exact, 60, seed, sizes))[1]
    ]
    rejections = sum(p <= 0.1 for p in p_values)
    assert stats.binomtest(rejections, len(p_values), 0.1, "greater").pvalue > 1e-3


@pytest.mark.parametrize("name", ["oracle C2ST", "L-C2ST", "local HPD"])
def test_a_posterior_far_too_wide_is_rejected(name: str) -> None:
    q = as_posterior(lambda x: Normal(x / 2, 2.5))
    sizes = Sizes(2, num_nulls=39, num_samples=300, num_ranked=30, patience=10)
    question = Question(GaussianLinear(2, 1.0, 1.0), q, False, 300, 5, sizes)
    assert max(JUDGES[name](question)[1]) <= 0.05


def _study_of(rejected: dict[tuple[str, int, int, bool], float]) -> LocalStudy:
    """Twenty runs at ten observations, with a given share rejected at each point."""
    cells = []
    for (method, train, cal, exact), share in rejected.items():
        p_values = tuple(0.01 if k < round(10 * share) else 0.5 for k in range(10))
        cells += [
            LocalCell("p", method, train, cal, exact, r, 0, 0, "", (0.1,) * 10, p_values, 1.0)
            for r in range(20)
        ]
    part = replace(TINY, num_trains=(100, 1_000), num_cals=(500, 2_000), num_train=1_000)
    return LocalStudy(part, tuple(dict.fromkeys(point[0] for point in rejected)), tuple(cells), 0)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (above("a", "b", "N_cal", ""), "agrees"),
        (above("b", "a", "N_cal", ""), "differs"),
        (above("a", "a", "N_cal", ""), "open"),
        (above("a", "c", "N_cal", ""), "not measured"),
        (at_least("a", 0.4), "not measured"),  # with fewer pairs than the paper has
        (alike("a", "b", ""), "differs"),
        (alike("a", "a", ""), "agrees"),
        (falling_power("a"), "differs"),
        (falling_power("b"), "agrees"),
        (controlled("a"), "agrees"),
        (controlled("b"), "differs"),
    ],
)
def test_verdicts_follow_the_intervals(claim: Claim, verdict: str) -> None:
    found = _study_of(
        {
            ("a", 100, 2_000, False): 0.5, ("a", 1_000, 2_000, False): 0.9,
            ("b", 100, 2_000, False): 0.9, ("b", 1_000, 2_000, False): 0.2,
            ("a", 1_000, 2_000, True): 0.0, ("b", 1_000, 2_000, True): 0.4,
        }
    )  # fmt: skip
    assert claim.judge(found).verdict == verdict


def test_the_paper_s_statements_are_on_tests_and_tasks_that_exist() -> None:
    assert set(CLAIMS) == set(TASKS)
    labels = [part.label for part in parts(quick=False)]
    compared = [f"agreement,{label}" for label in TASKS]
    assert labels == [*TASKS, *compared, "jansen-rit", "one-class"]
    assert {part.label for part in parts(quick=True)} <= set(labels)


def test_the_command_writes_tables_and_pictures_and_takes_up_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "parts", lambda quick: (TINY, GAINS))
    words = ["benchmark", "lc2st", "--quick", "--no-progress", "--test", "L-C2ST-NF"]
    words += ["--repetitions", "1", "--out", str(tmp_path)]
    with isolated_rng(0):
        first = CliRunner().invoke(app, words)
    assert first.exit_code == 0, first.output
    for name in ("lc2st.png", "lc2st_jansen_rit.png", "lc2st_jansen_rit_pairs.png"):
        assert (tmp_path / name).stat().st_size > 10_000
    values = json.loads((tmp_path / "lc2st.json").read_text())
    assert [part["label"] for part in values["parts"]] == ["two-moons"]
    assert values["parts"][0]["cells"] == {"worked": 5, "asked": 5}
    gains = values["jansen_rit"]
    assert [row["gain"] for row in gains["gains"]] == list(GAINS.gains)
    assert all(row["null_low"] <= row["null_high"] for row in gains["gains"])
    assert "| L-C2ST-NF |" in (tmp_path / "lc2st.md").read_text()
    with isolated_rng(0):
        again = CliRunner().invoke(app, [*words, "--json"])
    assert json.loads(again.stdout) == values


def test_agreement_is_with_the_oracle_at_the_same_observations() -> None:
    """The mean is wrong where x is positive: the statistics rise and fall together."""
    q = as_posterior(lambda x: Normal(x / 2 + 0.4 * x.clamp_min(0), 0.5**0.5))
    task = GaussianLinear(2, 1.0, 1.0)
    own = LocalPart("linear", task, (1_000,), (2_000,), 1_000, 1)
    own = replace(own, sizes=Sizes(num_samples=500, num_ranked=20, patience=10))
    part = agreement_part(own, 20)
    assert part.points() == [(1_000, 2_000, False)]
    question = Question(task, q, False, 2_000, 5, part.sizes)
    asked = ("oracle C2ST", "L-C2ST")
    cells = []
    for name in asked:
        found, p_values = map(tuple, JUDGES[name](question))
        own_cell = LocalCell(part.label, name, 1_000, 2_000, False, 0, 0, 0, "")
        cells.append(replace(own_cell, statistics=found, p_values=p_values, seconds=3.0))
    values = agreement(LocalStudy(part, asked, tuple(cells), len(cells)))
    (row,) = values["correlations"]
    assert row["r"] > 0.5
    assert row["interval"][0] < row["r"] < row["interval"][1]
    assert row["p_value"] < 0.01
    # The oracle trains for each of the twenty observations, the other once for all.
    seconds = {one["test"]: one["seconds"] for one in values["seconds"]}
    assert seconds == {"oracle C2ST": 0.15, "L-C2ST": 3.0}
    assert "| 1000 | L-C2ST |" in "\n".join(agreement_lines(values))


def test_only_some_estimates_are_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = agreement_part(TINY, 5)
    monkeypatch.setattr(run, "parts", lambda quick: (TINY, compared))
    words = ["benchmark", "lc2st", "--part", "agreement", "--no-progress", "--out", str(tmp_path)]
    with isolated_rng(0):
        result = CliRunner().invoke(app, [*words, "--num-train", "50", "--json"])
    assert result.exit_code == 0, result.output
    (one,) = json.loads(result.stdout)["agreements"]
    assert {row["num_train"] for row in one["correlations"]} == {50}
    assert len(one["correlations"][0]["statistics"][0]) == 5
    assert (tmp_path / "lc2st_agreement.png").stat().st_size > 10_000
    wrong = CliRunner().invoke(app, [*words, "--num-train", "51"])
    assert "`--num-train` must be among 50, 60" in str(wrong.exception)


def test_no_minutes_begin_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "parts", lambda quick: (TINY, GAINS))
    words = ["benchmark", "lc2st", "--minutes", "0", "--out", str(tmp_path), "--json"]
    result = CliRunner().invoke(app, words)
    values = json.loads(result.stdout)
    assert values["parts"][0]["cells"]["worked"] == 0
    assert values["jansen_rit"] is None
    assert list((tmp_path / "lc2st_cells").iterdir()) == []


def test_a_word_that_is_a_name_stands_for_it_alone() -> None:
    names = ["slcp", "agreement,slcp", "agreement,two-moons"]
    assert named(names, ["slcp"], "--part") == ["slcp"]
    assert named(names, ["agreement"], "--part") == names[1:]
    assert named(names, ["two", "slcp"], "--part") == ["slcp", "agreement,two-moons"]
    assert named(names, None, "--part") == names


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("lc2st", ["--part", "three-moons"], "`--part` must be in one of these names: two-moons"),
        ("lc2st", ["--test", "nothing"], "`--test` must be in one of these names: oracle C2ST"),
        ("tree", ["--num-train", "100"], "`--num-train`"),
    ],
)
def test_mistakes_are_named_in_one_line(name: str, words: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["benchmark", name, *words])
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
