"""Commands given unusual words, names and units: answered rightly, or refused in one line."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest
import torch
from commands import invoke, refused
from pages import Outline, stub

import validation
from abi.pictures.style import legend_below
from abi.plan import Plan
from abi.report.assemble import page_of
from abi.report.fit_page import Fit, prepare
from abi.report.plotting import plot_marginals
from abi.report.sections.posterior import summary_table
from abi.report.sections.predictive import predict
from abi.report.sources import Wanted, read_fit
from abi.report.summary import mean_and_sd
from simulators import load_store
from simulators.random import isolated_rng
from validation.page import Written, render
from validation.page.joint_verdict import verdict_over
from validation.page.method_sections import method_section
from validation.words import measured

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.usefixtures("small_fits")
MODULE = """
import torch
from torch.distributions import Independent, Uniform

prior = Independent(Uniform(torch.zeros(2), torch.ones(2)), 1)
other_prior = Independent(Uniform(-torch.ones(2), torch.ones(2)), 1)

def simulate(theta):
    return theta.repeat(1, 2) + 0.1 * torch.randn(len(theta), 4)

def other(theta):
    return theta.repeat(1, 2) + 0.2 * torch.randn(len(theta), 4)

class Brings:
    prior = prior
    parameter_names = ("mass [kg]", "rate [/s]")

    def __call__(self, theta):
        return simulate(theta)

    def reference_posterior(self, x_o, num_samples, seed=0):
        raise ValueError("no chain at this x_o")
"""
_MINUS = "\N{MINUS SIGN}"
OWN = ("--simulator", "unusual_module:simulate", "--prior", "unusual_module:prior")
SMALL = ("--observed", "o.csv", "--num-simulations", "400", "--rounds", "1", "--no-progress",
         "--num-samples", "200")  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "unusual_module.py").write_text(MODULE)
    (tmp_path / "o.csv").write_text("0.3,0.7,0.35,0.65\n")
    (tmp_path / "p.csv").write_text("0.3,0.7,0.35,0.75\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def saved(rejects: tuple[bool, ...], methods: tuple[str, ...] = ("c2st", "sbc")) -> dict[str, Any]:
    """A validation as its file holds it."""
    rows = [
        {
            "method": name, "statistic": 0.5, "p_value": 0.01 if no else 0.5, "rejected": no,
            "p_value_adjusted": 0.02 if no else 1.0, "sees": "a", "blind_to": "b", "source": "c",
            "seed": 0, "details": {},
        }
        for name, no in zip(methods, rejects, strict=True)
    ]  # fmt: skip
    return {
        "format": "abi-validation", "version": 1, "alpha": 0.05, "seed": 0, "skipped": {},
        "p_value": min(r["p_value_adjusted"] for r in rows), "failures": [],
        "rejected": [r["method"] for r in rows if r["rejected"]], "results": rows,
        "asked": {"num_pairs": 100, "theta_dim": 2}, "parameter_names": None, "versions": {},
    }  # fmt: skip


def test_a_run_goes_on_with_what_it_began_with_only(folder: Path) -> None:
    begun = invoke("fit", *OWN, *SMALL, "--out", "run")
    assert begun.exit_code == 0, begun.output
    samples = (folder / "run" / "samples.csv").read_text()
    again = invoke("fit", *OWN, *SMALL, "--out", "run", "--resume")
    assert again.exit_code == 0, again.output
    assert (folder / "run" / "samples.csv").read_text() == samples
    on = ("--out", "run", "--resume")
    for option, value in (("--num-simulations", "900"), ("--rounds", "2"), ("--seed", "3")):
        line = refused("fit", *OWN, *on, option, value)
        assert line.startswith(f"`{option}`: the run began with ")
        assert f"; got {value}." in line
    assert "`--observed`: the run began with another x_o" in refused(
        "fit", *OWN, *on, "--observed", "p.csv"
    )
    assert "`--paper`: the run began with other" in refused("fit", *OWN, *on, "--paper")
    for option, name in (("--simulator", "other"), ("--prior", "other_prior")):
        line = refused("fit", *OWN, *on, option, f"unusual_module:{name}")
        assert line.startswith(f"`{option}`: the run began with unusual_module:")
        assert f"got unusual_module:{name}." in line
    assert (folder / "run" / "samples.csv").read_text() == samples


def test_a_class_that_was_named_is_kept_by_its_name(folder: Path) -> None:
    """Its exact sampler breaks too, and its names are markup to rich: the answer is kept."""
    words = ("fit", "--simulator", "unusual_module:Brings", *SMALL, "--out", "run")
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    assert "no exact posterior at this x_o: ValueError: no chain at this x_o" in done.stderr
    assert "mass [kg]" in done.stdout
    assert "rate [/s]" in done.stdout
    assert json.loads((folder / "run" / "summary.json").read_text())["exact"] is None
    assert invoke(*words, "--resume").exit_code == 0
    line = refused("fit", *OWN, "--out", "run", "--resume")
    assert "began with unusual_module:Brings; got unusual_module:simulate" in line
    notes = read_fit(folder / "run", Wanted(num_samples=100)).notes
    assert any("give --simulator unusual_module:Brings" in note for note in notes)
    from unusual_module import Brings  # type: ignore[import-not-found]

    record = read_fit(folder / "run", Wanted(num_samples=100, simulator=Brings()))
    assert record.exact is None
    assert any("could not be drawn from: no chain at this x_o." in note for note in record.notes)


def test_a_fit_is_kept_where_no_picture_can_be_drawn(
    folder: Path, without_matplotlib: None
) -> None:
    done = invoke("fit", *OWN, *SMALL, "--out", "run")
    assert done.exit_code == 0, done.output
    assert "no pictures: install abi-toolkit[plots]" in done.stderr
    assert "picture:" not in done.stdout
    assert (folder / "run" / "summary.json").exists()
    assert not (folder / "run" / "marginals.png").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("report", "run"),
        ("validate", "--samples", "s.npz", "--plots", "p"),
        ("validate", "--samples", "s.npz", "--out", "x.html"),
    ],
)
def test_pages_and_pictures_are_refused_at_the_start_where_none_can_be_made(
    folder: Path, without_matplotlib: None, words: tuple[str, ...]
) -> None:
    assert "needs matplotlib: install abi-toolkit[plots]" in refused(*words)


def test_one_draw_has_no_spread_and_its_json_is_json(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = invoke("fit", *OWN, *SMALL, "--num-samples", "1", "--out", "run", "--json")
    assert done.exit_code == 0, done.output

    def no_constant(name: str) -> None:
        raise AssertionError(name)

    said = json.loads(done.stdout, parse_constant=no_constant)
    assert said["posterior"]["theta_1"]["sd"] is None


@pytest.mark.parametrize(
    ("mean", "sd", "words"),
    [
        (3.9671, 0.0731, "3.967 ± 0.073"),
        (2.9741, 0.1239, "2.974 ± 0.124"),
        (2e-10, 1.6e-11, f"2.00e{_MINUS}10 ± 1.6e{_MINUS}11"),
        (2024.0012, 0.00018, "2024.00120 ± 0.00018"),
        (1.0000123e9, 1.8e4, "1.000012e9 ± 18,000"),
        (0.5, None, "0.5"),
    ],
)
def test_the_table_shows_two_digits_of_the_spread_at_least(
    mean: float, sd: float | None, words: str
) -> None:
    assert mean_and_sd(mean, sd) == words


@pytest.mark.parametrize(("centre", "scale"), [(2024.0, 0.018), (1e9, 3e4), (2e-10, 1.6e-11)])
def test_a_page_shows_the_digits_in_which_quantiles_differ(centre: float, scale: float) -> None:
    record = stub(2)
    draws = centre + scale * record.samples.double()
    narrow = replace(record, samples=draws, prior=None)
    marginals = narrow.marginals
    row = summary_table(marginals, len(draws)).rows[0]
    cells = [cell for cell in row[2:7] if isinstance(cell, Written)]
    assert len(cells) == 5
    mean, _, low, median, high = cells
    assert len({low.words, median.words, high.words}) == 3
    assert low.order < median.order < high.order
    assert float(mean.words.replace(",", "").replace(_MINUS, "-")) == pytest.approx(
        mean.order, abs=scale / 50
    )
    page = render(page_of([prepare(narrow, 0, 0, "fit1")] * 2, [], None, ()))
    assert f'data-value="{low.order}"' in page
    caption = f"{measured(marginals[0].mean, scale, 2)} ± {measured(marginals[0].sd, scale, 2)}"
    assert Outline(page).text.count(caption) >= 3  # side by side, and under each density


def test_names_are_no_formulae(tmp_path: Path) -> None:
    draws = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    path = plot_marginals(draws, ("$\\bm{\\theta}$", "x$^{2$"), tmp_path / "names.png")
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("inches", "columns"), [(1.5, 1), (5.0, None), (40.0, 9)])
def test_a_legend_is_no_wider_than_its_figure(inches: float, columns: int | None) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(inches, 3.0), layout="constrained")
    lines = figure.subplots().plot(np.zeros((2, 9)))
    legend_below(figure, lines, [f"a method's name, {part}" for part in range(9)])
    (legend,) = figure.legends
    figure.draw_without_rendering()
    places = {round(text.get_window_extent().x0) for text in legend.get_texts()}
    assert columns in (None, len(places))
    if columns != 1:  # one column is as narrow as it gets
        assert legend.get_window_extent().width <= figure.bbox.width


def fits(*done: tuple[str, int]) -> list[Fit]:
    """Fits of two rounds by name, and the rounds that were run."""
    record = stub(2)
    plan = Plan(400, 2, 0, record.posterior.config)
    return [
        prepare(
            replace(
                record, name=name, plan=plan,
                posterior=replace(record.posterior, rounds=record.posterior.rounds[:rounds]),
            ), 0, 0, f"fit{i}",
        )
        for i, (name, rounds) in enumerate(done)
    ]  # fmt: skip


def test_an_unfinished_fit_is_named_among_others() -> None:
    both = fits(("whole", 2), ("cut", 1))
    page = page_of(both, [], None, ())
    assert page.verdict.headline == "Unfinished: cut"
    assert "cut was interrupted after 1 of 2 rounds" in page.verdict.words
    assert "unfinished: 1 of 2 rounds" in Outline(render(page)).text
    passed, failed = saved((False, False)), saved((True, False))
    assert page_of(both, [("a", passed)], None, ()).verdict.headline == "Unfinished: cut"
    verdict = page_of(both, [("a", failed)], None, ()).verdict
    assert verdict.headline == "Rejected by 1 of 2 tests"
    assert "cut was interrupted" in verdict.words
    whole = page_of(fits(("a", 2), ("b", 2)), [], None, ()).verdict
    assert (whole.tone, whole.headline) == ("untested", "Cannot tell for a and b")


def test_the_verdict_over_several_validations_does_not_depend_on_their_order() -> None:
    seen = {name: {"c2st": 0.001, "sbc": 1.0} for name in ("prior", "wide")}
    bad, good = ("bad", saved((True, True))), ("good", saved((False, False)) | {"controls": seen})
    blind = ("blind", saved((False, False), ("tarp", "sbc")))
    verdict = verdict_over([good, bad, ("worse", saved((True, False)))])
    assert verdict.headline == "Rejected in 2 of 3 validations: 3 of 6 tests"
    assert "not the true one in bad and worse" in verdict.words
    for tests, tone in (
        ([bad, good, blind], "rejected"),
        ([good, blind], "untested"),
        ([good, good], "not-rejected"),
    ):
        for order in (tests, tests[::-1]):
            assert verdict_over(order).tone == tone
    assert verdict_over([good, blind]).headline == "Not rejected in 2 validations: 4 tests"
    assert "would pass the tests of blind" in verdict_over([good, blind]).words
    assert page_of([], [good, bad], None, ()).verdict.headline.startswith("Rejected in 1 of 2")


def test_the_mass_beyond_an_accuracy_is_its_p_value() -> None:
    from scipy.stats import hypergeom

    total, called, of_p, hits = 60, 28, 30, 18
    accuracy = (hits + (total - of_p) - (called - hits)) / total
    p_value = float(hypergeom.sf(hits - 1, total, called, of_p))
    details = {"num_test": total, "num_called_p": called, "num_p": of_p}
    row = saved((False,), ("c2st",))["results"][0]
    row |= {"statistic": accuracy, "p_value": p_value, "details": details}
    (figures,) = (b for b in method_section(row, ["a"], 0.05, "k").blocks if b.kind == "figures")
    alt = figures.figures[0].alt
    assert f"{p_value:.1%} of the null distribution" in alt
    far = int(hypergeom.ppf(0.95, total, called, of_p))
    assert f"95% point is {(far + (total - of_p) - (called - far)) / total:.4g}." in alt


def damaged(folder: Path, **changes: Any) -> str:
    """What abi report says of a validation with other entries; None drops one."""
    data = {k: v for k, v in (saved((True, False)) | changes).items() if v is not Ellipsis}
    (folder / "v.json").write_text(json.dumps(data))
    return refused("report", "v.json")


def test_damaged_validations_and_maps_are_refused_in_one_line(folder: Path) -> None:
    assert "its entry 'versions' is missing" in damaged(folder, versions=...)
    assert "names 1 of 2 parameters" in damaged(folder, parameter_names=["a"])
    assert "must be a list of names" in damaged(folder, parameter_names=[1, 2])
    assert "the result of no test" in damaged(folder, results=[], rejected=[])
    map_ = {"format": "power_map", "version": 1, "tests": ["t"], "failures": ["f"]}
    for cells, words in (({"f": 3}, "'f' must map tests"), ({"f": {"t": 2}}, "must hold 'stre")):
        (folder / "m.json").write_text(json.dumps(map_ | {"cells": cells}))
        assert words in refused("report", "m.json")
    (folder / "v.json").write_text(json.dumps(saved((True, False))))
    line = refused("report", "v.json", "--parameter", "theta_99")
    assert "`--parameter` draws a parameter of a fit" in line


def test_few_predictions_are_refused_and_failed_ones_are_counted(folder: Path) -> None:
    assert "`--num-predictive` must be 0, for none, or at least 20; got 5" in refused(
        "report", "run", "--num-predictive", "5"
    )
    wide = replace(stub(2), simulator=lambda theta: theta.repeat(1, 2))
    assert "got 3 values and simulations of 4" in str(predict(wide, 20, 0))
    failing = replace(
        stub(2),
        simulator=lambda theta: torch.where(theta[:, :1] > 2.0, torch.ones(3), torch.nan),
    )
    assert "of 30 simulations gave a usable result, and the bands need 20" in str(
        predict(failing, 30, 0)
    )


def test_one_column_is_a_table_of_one_parameter(folder: Path) -> None:
    random = np.random.default_rng(0)
    theta = random.normal(size=(80, 1))
    np.savetxt("t1.csv", theta)
    np.savetxt("x1.csv", theta + random.normal(size=(80, 1)))
    (folder / "exact_module.py").write_text(
        "import torch\ndef exact(num_samples, x):\n"
        "    return x / 2 + 0.5**0.5 * torch.randn(num_samples, len(x), 1)\n"
    )
    done = invoke("validate", "--posterior", "exact_module:exact", "--theta", "t1.csv",
                  "--x", "x1.csv", "-m", "sbc", "--json")  # fmt: skip
    assert done.exit_code in (0, 1), done.exception
    assert json.loads(done.stdout)["results"][0]["method"] == "sbc"


def test_an_observation_may_be_a_line_or_a_column(folder: Path) -> None:
    from abi.cli.work.validate import observations

    x = torch.zeros(5, 3)
    for text, shape in (("1,2,3\n", (1, 3)), ("1\n2\n3\n", (3,)), ("1,2,3\n4,5,6\n", (2, 3))):
        (folder / "x_o.csv").write_text(text)
        assert observations(Path("x_o.csv"), x, None, None).shape == shape


def test_stored_samples_are_drawn_without_the_picture_that_needs_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with isolated_rng(0):
        theta = torch.randn(60, 2)
        x = theta + torch.randn(60, 2)
        samples = x / 2 + 0.5**0.5 * torch.randn(200, 60, 2)
    q = validation.as_posterior((theta, x, samples), layout="samples_first")
    brief = validation.ColtTraining(hidden=(8,), epochs=3, draws_per_epoch=5)
    monkeypatch.setattr("validation.methods.localization.ColtTraining", lambda: brief)
    report = replace(validation.validate(q, theta, x, ["colt"]), x=torch.tensor([9.0, 9.0]))
    assert [path.name for path in report.save_plots(folder / "pictures")] == ["colt.png"]


def test_options_that_would_not_be_read_are_refused(folder: Path) -> None:
    both = ("--samples", "s.npz", "--theta", "t.csv", "--x", "x.csv", "--data", "nofile.npz")
    assert "give it, or `--theta` and `--x`, not both" in refused("validate", *both)
    line = refused("validate", "--posterior", "m:q", "--layout", "samples_first", "--data", "d.npz")
    assert "`--layout` is of `--samples`" in line


def test_a_store_says_which_options_it_was_begun_with(folder: Path) -> None:
    words = ("simulate", *OWN, "--out", "store", "--num-simulations")
    assert invoke(*words, "50").exit_code == 0
    assert "`--num-simulations`: store was begun with 50; got 80." in refused(*words, "80")
    assert "`--seed`: store was begun with another" in refused(*words, "50", "--seed", "1")
    assert invoke(*words, "50").exit_code == 0


def test_simulations_run_on_a_cluster_that_is_named_by_its_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("simulate", "--simulator", "simulators:TwoMoons", "--num-simulations", "40")
    with isolated_rng(0):
        cluster = distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        )
    there = invoke(*words, "--workers", cluster.scheduler_address, "--out", "there")
    here = invoke(*words, "--out", "here")
    with isolated_rng(0):
        cluster.close()
    assert there.exit_code == here.exit_code == 0
    assert torch.equal(load_store("there").x, load_store("here").x)


@pytest.mark.parametrize("workers", ["0", "-2", "many", "1.5"])
def test_workers_are_a_number_or_an_address(workers: str) -> None:
    words = ("fit", "--simulator", "simulators:TwoMoons", "--out", "nowhere")
    result = invoke(*words, "--workers", workers)
    assert result.exit_code == 2
    assert "neither a whole number" in result.output
