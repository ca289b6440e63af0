"""``abi reproduce``: cells that resume, scores that are those of abi.metrics, rows that refuse."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import invoke

from abi import baselines, metrics
from abi.cli.app import main
from abi.studies.engine.cells import Cell, CellFolder
from abi.studies.engine.study import FLOOR, planned
from abi.studies.engine.tables import mean
from abi.studies.reproduce import experiment, methods
from abi.studies.reproduce import run as command
from abi.studies.reproduce.choice import EXPERIMENTS
from abi.studies.reproduce.intractable import CountedPopulations
from abi.studies.reproduce.methods import Method
from abi.studies.reproduce.reproductions import NAMES, reproduction
from simulators import sample_prior
from simulators.random import isolated_rng

WORDS = ("reproduce", "gaussian", "--quick", "--budgets", "200")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(command, "_QUICK_SAMPLES", 60)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Methods and classifiers that cost nothing in the place of all, and what was fitted."""
    made: list[tuple[str, int]] = []

    class Shifted:
        num_simulations, by_round = 7, ()

        def sample(self, shape: tuple[int, ...], *, seed: int = 0) -> torch.Tensor:
            return 6.0 + torch.randn(*shape, 1, generator=torch.Generator().manual_seed(seed))

        def at(self, x_o: torch.Tensor) -> Shifted:
            return self

    def fake(name: str, amortised: bool = False) -> Method:
        def fit(x_o: torch.Tensor, budget: int, seed: int) -> Shifted:
            made.append((name, seed))
            if name == "breaks":
                raise RuntimeError("out of order")
            if name == "refuses":
                raise ValueError("`prior` must have log_prob. Use another.")
            return Shifted()

        return Method(fit, {"name": name}, amortised)

    known = {n: fake(n, n == "once") for n in ("good", "once", "breaks", "refuses")}
    monkeypatch.setattr(experiment, "methods_for", lambda problem, num_samples: known)
    cheap = dict.fromkeys(("w1", "normalised_w1", "c2st", "c2st_rf"), 0.5)
    monkeypatch.setattr(experiment, "distances", lambda samples, exact: cheap)
    return made


def reproduce(*words: str) -> Any:
    done = invoke(*WORDS, "--no-progress", "--json", *words)
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


def test_the_experiments_of_the_command_are_those_that_exist() -> None:
    assert tuple(EXPERIMENTS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_method_is_offered_for_every_model(name: str) -> None:
    offered = methods.methods_for(reproduction(name), 10)
    assert {"abi", "abi_paper", "snpe_1", *baselines.METHODS} <= set(offered)
    generators = {*methods.PAPER_GENERATORS, methods.UNCOUNTED} - {"abi_paper"}
    assert (generators <= set(offered)) == (name != "gaussian")  # the appendix has no generator
    json.dumps({key: method.settings for key, method in offered.items()})
    assert offered["snpe"].settings["num_rounds"] == reproduction(name).rounds
    amortised = {key for key, method in offered.items() if method.amortised}
    assert amortised == {"snpe_1", "snle_1", "abc_ss", "wgan_gp"}


def test_the_published_algorithm_is_shown_what_its_rivals_are_shown() -> None:
    for name in NAMES:
        problem = reproduction(name)
        offered = methods.methods_for(problem, 10)
        if "encoder" in offered["snpe"].settings and name != "gaussian":
            for generator in (*methods.PAPER_GENERATORS, methods.UNCOUNTED):
                assert offered[generator].settings["config"]["encoder"] == problem.encoder
        raw = methods.RAW in offered
        assert raw == (problem.encoder != "flat")
        assert not raw or offered[methods.RAW].settings["config"]["encoder"] == "flat"


def test_a_study_goes_on_where_it_was(folder: Path, fits: list[tuple[str, int]]) -> None:
    first = reproduce("--methods", "good,once", "--observations", "0,1")
    assert sorted(fits) == [("good", 0), ("good", 0), ("once", 0)]
    assert reproduce("--methods", "good,once", "--observations", "0,1") == first
    assert len(fits) == 3
    wider = reproduce("--methods", "good", "--observations", "0,1", "--seeds", "0,1")
    assert fits[3:] == [("good", 1), ("good", 1)]
    assert [row["cells"] for row in wider["rows"]] == [2, 4]  # the floor, and good
    assert not list(folder.rglob("*.part"))


def test_another_budget_version_or_setting_is_another_cell(
    folder: Path, fits: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce("--methods", "good")
    reproduce("--methods", "good", "--budgets", "300")
    assert len(fits) == 2
    kept = CellFolder(folder, {"versions": {"abi-toolkit": "0.1.0"}})
    cell = Cell("gaussian", 0, 0, "good", 200)
    kept.keep(cell, {"encoder": "flat"}, {"samples": torch.zeros(3, 1)})
    assert kept.find(cell, {"encoder": "flat"}) == cell
    assert kept.find(cell, {"encoder": "sorted"}) is None
    later = CellFolder(folder, {"versions": {"abi-toolkit": "0.2.0"}})
    assert later.find(cell, {"encoder": "flat"}) is None
    monkeypatch.setattr(experiment, "_PACKAGES", ("torch",))
    reproduce("--methods", "good")
    assert len(fits) == 3


def test_a_refusal_is_an_answer_and_what_broke_is_tried_again(
    folder: Path, fits: list[tuple[str, int]]
) -> None:
    rows = {r["method"]: r["verdict"] for r in reproduce("--methods", "breaks,refuses")["rows"]}
    assert rows["refuses"] == "refuses: `prior` must have log_prob"
    assert rows["breaks"] == "breaks: RuntimeError: out of order"
    reproduce("--methods", "breaks,refuses")
    assert sorted(fits) == [("breaks", 0), ("breaks", 0), ("refuses", 0)]
    table = Path("runs/reproduce/gaussian.md").read_text()
    assert "| refuses | 0 of 1 | ValueError: `prior` must have log_prob |" in table


def test_no_fit_begins_after_the_time_is_up(folder: Path, fits: list[tuple[str, int]]) -> None:
    earlier = folder / "runs" / "reproduce" / "gaussian.md"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("of an earlier run")
    done = invoke(*WORDS, "--methods", "good", "--minutes", "0")
    assert "`--minutes`: 0 left time for nothing, and no cell is kept" in str(done.exception)
    assert fits == []
    assert earlier.read_text() == "of an earlier run"


def test_scores_are_those_of_abi_metrics_on_the_draws_kept(folder: Path) -> None:
    """One true run of the cheapest methods: the published warm-up needs no budget."""
    values = reproduce("--methods", "rejection_abc", "--seeds", "0,1")
    kept = experiment.Experiment(
        reproduction("gaussian"),
        CellFolder(Path("runs/reproduce/gaussian_cells"), experiment.context(60)),
        60,
    )
    exact = kept.exact(0)
    assert exact is not None
    found = []
    for seed in (0, 1):
        cell = Cell("gaussian", 0, seed, "rejection_abc", 200)
        samples = kept.draws(cell)["samples"]
        stored = next(c for c in values["cells"] if (c["method"], c["seed"]) == (cell.method, seed))
        found.append(metrics.wasserstein(samples, exact))
        assert stored["scores"]["w1"] == pytest.approx(found[-1], abs=1e-5)
        for name, distance in (
            ("mmd_squared", metrics.mmd_squared(samples, exact)),
            ("w2", metrics.wasserstein(samples, exact, order=2)),
        ):
            assert stored["scores"][name] == pytest.approx(distance, abs=1e-5)
        # In one dimension no slice is another, and the augmented distance is the plain one.
        assert stored["scores"]["sliced"] == pytest.approx(found[-1], rel=1e-3)
        ratio = float(metrics.sd_ratio(samples, exact)[0])
        assert stored["scores"]["sd_ratio_1"] == pytest.approx(ratio, abs=1e-5)
    (row,) = [row for row in values["rows"] if row["method"] == "rejection_abc"]
    assert row["scores"]["w1"]["value"] == pytest.approx(sum(found) / 2, abs=1e-5)
    floor = kept.draws(Cell("gaussian", 0, 0, FLOOR, 0))["samples"]
    assert row["scores"]["w1"]["floor"] == pytest.approx(
        metrics.wasserstein(floor, exact), abs=1e-5
    )
    table = Path("runs/reproduce/gaussian.md").read_text()
    assert f"| rejection_abc | 2 | {sum(found) / 2:.3f} +- " in table
    assert "Quick setting, 1 observation, 2 seeds; not run: abi, abi_paper, " in table
    assert "| method | W2 | sliced W1 | MSW | MMD² |" in table
    assert f"| sd | {float(exact.std(dim=0)):.3g} |" in table
    assert f"bandwidth is the median distance of these draws, {_median_gap(exact):.3g} in" in table
    assert Path("runs/reproduce/gaussian.png").stat().st_size > 5_000
    near = metrics.normalised_wasserstein(floor[:500], exact[:500])
    assert kept.floor_by_round(0) == pytest.approx(near)


def _median_gap(draws: torch.Tensor) -> float:
    return float(torch.pdist(draws).median())


def test_thirty_paths_at_the_truth_are_drawn_of_series_whose_truth_is_known(folder: Path) -> None:
    values = invoke("reproduce", "cosine", "--quick", "--methods", "rejection_abc", "--no-progress")
    assert values.exit_code == 0, values.output
    pictures = {path.name for path in Path("runs/reproduce").glob("*.png")}
    assert pictures == {"cosine.png", "cosine-predictive.png", "cosine-trajectories.png"}


def test_abi_is_drawn_beside_the_adversarial_network_from_close_by(folder: Path) -> None:
    """Figures 2 and 7, where the exact posterior is known."""
    from abi.studies.reproduce.pictures.drawing import draw_all

    task = reproduction("gaussian").task
    study = experiment.Experiment(reproduction("gaussian"), CellFolder(folder, {}), 60)
    draws = task.reference_posterior(task.observation, 60, seed=0)
    details = {"rounds": [{"tolerance": 1.0, "accepted": 9, "pairs": 9}], "w1_by_round": [0.5]}
    cells = [Cell("gaussian", 0, 0, name, 200, details=details) for name in ("abi", "wgan_gp")]
    kept = {"samples": draws, "round_01": draws.clone()}
    study.folder.keep(cells[0], study.settings(cells[0]), kept)
    study.folder.keep(cells[1], study.settings(cells[1]), kept)
    assert {path.name for path in draw_all(study, cells[1:], folder)} == {"gaussian.png"}
    assert "gaussian-close.png" in {path.name for path in draw_all(study, cells, folder)}


def test_a_tolerance_is_drawn_only_of_methods_that_cut_by_it() -> None:
    from abi.studies.reproduce.pictures.rounds import _told

    def cell(accepted: int) -> tuple[Cell, dict[str, Any]]:
        records = [{"tolerance": 1.0 / t, "accepted": accepted, "pairs": 10} for t in (1, 2)]
        details = {"rounds": records, "w1_by_round": [0.5, 0.4]}
        return Cell("x", 0, 0, "abi", 100, details=details), {}

    told = _told({"keeps": cell(10), "cuts": cell(3)}, torch.zeros(2, 1))
    assert [list(by_method) for by_method in told.values()] == [["cuts"], ["keeps", "cuts"]]
    assert _told({"keeps": cell(10)}, None) == {}


def test_intervals_are_over_observations_or_else_over_seeds() -> None:
    def cell(observation: int, seed: int, value: float) -> Cell:
        return Cell("m", observation, seed, "a", 1, scores={"w1": value})

    assert mean([cell(0, 0, 1.0)], "w1").half is None
    over_seeds = mean([cell(0, 0, 1.0), cell(0, 1, 3.0)], "w1")
    over_data = mean([cell(0, 0, 1.0), cell(1, 0, 3.0)], "w1")
    assert over_seeds == over_data
    assert over_seeds.half == pytest.approx(12.706, abs=1e-3)  # t with one degree, sd sqrt(2)
    floors = {("m", 0): cell(0, 0, 0.5)}
    assert mean([cell(0, 0, 1.0), cell(0, 1, 3.0)], "w1", floors).value == 1.5


def test_a_plan_that_is_cut_is_balanced() -> None:
    cells = planned(["a", "b"], lambda m: ["x", "y"], lambda m: [10], [0], [0, 1])
    assert [c.method for c in cells] == ["floor"] * 2 + ["x", "y"] * 4
    assert [(c.seed, c.model) for c in cells[2::2]] == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nobody",), "`NAME` must be one of gaussian, multimodal"),
        (("gaussian", "--methods", "abi,magic"), "`--methods` must be among abi, abi_paper"),
        (("gaussian", "--seeds", "one"), "`--seeds` must be whole numbers with commas"),
        (("gaussian", "--observations", "21"), "`--observations` must be from 0 to 20"),
        (("gaussian", "--budgets", "0"), "`--budgets` must be at least 1"),
    ],
)
def test_a_mistake_is_one_line(
    folder: Path,
    words: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["abi", "reproduce", *words])
    with isolated_rng(0), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_prior_without_density_is_told_by_who_runs_and_who_refuses(folder: Path) -> None:
    words = ("reproduce", "intractable-prior", "--quick", "--budgets", "300", "--no-progress")
    refusing = "snle,smc_abc,wabc,snpe"
    done = invoke(*words, "--methods", f"rejection_abc,{refusing}")
    assert done.exit_code == 0, done.output
    table = done.stdout.partition("## Without a prior density")[2]
    assert "| rejection_abc |  | runs |" in table
    for method in refusing.split(","):
        assert (
            f"| {method} | {'' if method == 'smc_abc' else 'no'} | refuses: `prior` must" in table
        )


def test_the_prior_of_counted_populations_is_a_sampler_whose_posterior_is_exact() -> None:
    task = CountedPopulations()
    assert not hasattr(task.prior, "log_prob")
    assert torch.equal(sample_prior(task.prior, 5, 1), sample_prior(task.prior, 5, 1))
    draws = task.reference_posterior(task.observation, 400, seed=3)
    # Importance sampling: other draws of the prior, weighted by the likelihood.
    theta = sample_prior(task.prior, 20_000, seed=5)
    x_o = task.observation.reshape(4, 2)
    log_weight = -0.5 * ((x_o[None] - theta[:, None]) ** 2).sum(dim=(1, 2)) / 0.25
    weight = log_weight.double().softmax(dim=0)
    exact = weight @ theta.double()
    sd = (weight @ (theta.double() - exact) ** 2).sqrt()
    error = sd * (1 / 400 + (weight**2).sum()) ** 0.5
    assert ((draws.double().mean(dim=0) - exact).abs() < 4.0 * error).all()


def test_scores_without_an_exact_posterior_know_what_they_should(folder: Path) -> None:
    from abi.studies.reproduce.scores import against_truth

    generator = torch.Generator().manual_seed(0)
    samples = torch.randn(4_000, 2, generator=generator)
    found = against_truth(
        samples, torch.tensor([0.0, 9.0]), 3.0 * samples, samples[:, :1].repeat(1, 4),
        torch.tensor([0.0, 1.0, 2.0, 0.5]),
    )  # fmt: skip
    assert found["truth_inside"] == 0.5
    assert found["predicted_inside"] == 0.75
    assert found["mean_error"] == pytest.approx(3.0, rel=0.05)
    assert found["spread"] == pytest.approx(1 / 3, rel=1e-3)
