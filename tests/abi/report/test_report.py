"""A page says what its files show, no more; it holds everything it needs, and nothing is lost."""

from __future__ import annotations

import json
import platform
import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pages import Outline, page_for, stub
from torch import Tensor
from typer.testing import CliRunner

import abi
from abi.cli.app import app
from abi.report.fit_page import prepare
from abi.report.fit_verdict import fit_evidence, fit_verdict
from abi.report.sections.replay import NUM_FITS, fit_code, validation_code
from abi.report.sources import Wanted, read_fit
from abi.training.loop import TrainingLog
from simulators import sample_prior
from validation import Report, load_report

pytest.importorskip("matplotlib")


def test_a_page_says_the_verdict_of_its_fit_and_how_to_test_its_method(
    run_dir: Path, page: str
) -> None:
    text = Outline(page).text
    verdict = abi.load(run_dir / "posterior.safetensors").verdict
    assert verdict.headline[1:] in text
    assert "The verdict in detail" in text
    assert "validation.validate(q" in text
    assert "rejected by" not in text.lower()
    code = validation_code(read_fit(run_dir, Wanted()))
    assert max(map(len, code.splitlines())) <= 88  # fits its box
    compile(code, "report", "exec")


def test_the_lines_that_validate_fit_each_observation_with_a_seed_of_its_own(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []

    def fit(prior: Any, simulator: Any, x: Tensor, *, seed: int, **_: Any) -> Tensor:
        seeds.append(seed)
        draws: Tensor = sample_prior(prior, 1_000, seed)
        return draws

    monkeypatch.chdir(tmp_path)
    record = read_fit(run_dir, Wanted())
    setup = fit_code(record).split("posterior = ")[0]
    lines = validation_code(record).replace("abi.fit(", "fit(")
    exec(setup + "\nimport simulators, validation\n" + lines, {"fit": fit})  # the page's own
    assert len(set(seeds)) == len(seeds) == NUM_FITS
    assert (tmp_path / "validation.json").is_file()


def test_the_code_on_the_page_makes_the_same_posterior(run_dir: Path) -> None:
    record = read_fit(run_dir, Wanted(num_samples=100))
    found: dict[str, Any] = {}
    code = fit_code(record).replace("abi.fit(", "abi.fit(progress=False, *(")
    code = code.replace("prior, simulator, x_o,", "prior, simulator, x_o), **dict(")
    code = code.rsplit(")", 1)[0] + "))"
    exec(code, found)  # the code is the page's own
    assert torch.equal(found["posterior"].sample((50,)), record.posterior.sample((50,)))


def test_the_code_of_a_saved_posterior_makes_its_rounds_and_then_its_check(run_dir: Path) -> None:
    wanted = Wanted(num_samples=100)
    alone = read_fit(run_dir / "posterior.safetensors", wanted)
    pairs = alone.posterior.pairs
    assert pairs is not None
    code = fit_code(alone)
    assert f"num_simulations={400 - pairs.num_calls}," in code
    assert "check_fraction=0.0" in code
    assert code.endswith(f"posterior.check(num_simulations={pairs.num_calls})")
    run = read_fit(run_dir, wanted)
    assert "check_fraction" not in fit_code(run)
    assert run.plan is not None
    changed = replace(run, plan=replace(run.plan, check_fraction=0.2, stop_when=0.3))
    assert "check_fraction=0.2,\n    stop_when=0.3" in fit_code(changed)


def test_other_constants_are_written_as_code_too(run_dir: Path) -> None:
    record = read_fit(run_dir, Wanted(num_samples=100))
    for config in (abi.ABIConfig.paper(), abi.ABIConfig(num_slices=3)):
        changed = replace(record, posterior=replace(record.posterior, config=config))
        line = fit_code(changed).split("config = ")[1].split("\nx_o")[0]
        assert eval(line, {"abi": abi}) == config  # the code is the page's own
        assert "config=config" in validation_code(changed)


def test_the_page_loads_nothing_and_says_so_to_the_browser(page: str) -> None:
    outline = Outline(page)
    assert not re.search(r"https?:|@import|url\((?!#)", page)
    assert all("src" not in attrs for _, attrs in outline.tags)
    links = [attrs["href"] or "" for _, attrs in outline.tags if "href" in attrs]
    assert all(link.startswith(("#", "data:,")) for link in links)
    assert "default-src 'none'" in page


def test_the_page_is_sound_html_with_words_for_every_picture(page: str) -> None:
    outline = Outline(page)
    ids = [attrs["id"] for _, attrs in outline.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = {(attrs["href"] or "")[1:] for tag, attrs in outline.tags if tag == "a"}
    assert targets <= set(ids)
    for name in re.findall(r"url\(#([^)]+)\)", page):
        assert name in ids
    pictures = [attrs for _, attrs in outline.tags if attrs.get("role") == "img"]
    assert len(pictures) > 8
    assert all(re.search(r"\d", attrs["aria-label"] or "") for attrs in pictures)
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    for attrs in (attrs for tag, attrs in outline.tags if tag == "label" and "for" in attrs):
        assert attrs["for"] in ids


def test_names_are_words_whatever_they_hold() -> None:
    names = ("<script>alert(1)</script>", "$\\frac{1}$ & co")
    page = page_for(stub(2, names))
    assert "<script>alert" not in page
    assert page.count("<script>") == 1
    assert names[0] in Outline(page).text
    assert names[1] in Outline(page).text


def test_a_hundred_parameters_stay_readable(hundred: str) -> None:
    outline = Outline(hundred)
    rows = sum(1 for tag, attrs in outline.tags if attrs.get("class") == "glyph")
    panels = hundred.count('class="picture"')
    assert rows == 100
    assert panels < 70
    assert len(hundred) < 1_000_000
    assert "data-filters" in hundred


def test_ten_thousand_draws_weigh_no_more_than_a_thousand() -> None:
    record = stub(4)
    few, many = (
        len(page_for(replace(record, samples=record.posterior.sample((num,), seed=1))))
        for num in (1_000, 10_000)
    )
    assert many < 1.2 * few  # densities, not points


def test_a_simulator_that_cannot_be_imported_costs_one_line(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import problems

    monkeypatch.delattr(problems, "simulate")
    record = read_fit(run_dir, Wanted(num_samples=100))
    assert record.simulator is None
    assert record.prior is not None
    assert any("The simulator could not be imported again" in note for note in record.notes)
    text = Outline(page_for(record, num_predictive=20)).text
    assert "Not simulated: the simulator is not at hand" in text


def test_a_folder_cannot_make_a_report_call_what_it_likes(run_dir: Path, tmp_path: Path) -> None:
    from abi.files.origin import from_origin

    target = tmp_path / "made"
    origin = {"path": "os:mkdir", "arguments": {"path": str(target)}}
    with pytest.raises(ValueError, match="'os:mkdir', which is not a task"):
        from_origin({"prior": None, "simulator": origin}, object(), None)
    assert not target.exists()


def test_a_slow_simulator_is_not_run_unasked() -> None:
    from abi.report.sections.predictive import predict

    record = replace(stub(2), simulator=lambda theta: theta.repeat(1, 2)[:, :3])
    slow = tuple(replace(r, seconds=3_000.0) for r in record.posterior.rounds)
    slowly = replace(record, posterior=replace(record.posterior, rounds=slow))
    assert "a call took 30 seconds in the fit" in predict(slowly, None, 0)  # type: ignore[operator]
    found = predict(record, None, 0)
    assert not isinstance(found, str)
    assert len(found.x) == 200


def test_an_unfinished_run_is_called_unfinished(run_dir: Path, tmp_path: Path) -> None:
    for name in ("request.safetensors", "round_01.safetensors"):
        (tmp_path / name).write_bytes((run_dir / name).read_bytes())
    fit = prepare(read_fit(tmp_path, Wanted(num_samples=200)), 0, 0, "fit1")
    verdict = fit_verdict(fit)
    assert verdict.headline == "Unfinished: 1 of 2 rounds"
    assert "not the answer" in verdict.words
    assert verdict.next_step is not None
    assert f"abi.resume({str(tmp_path)!r})" in verdict.next_step.text
    (tmp_path / "round_01.safetensors").unlink()
    with pytest.raises(ValueError, match=r"no finished round yet; .* abi\.resume\("):
        read_fit(tmp_path, Wanted())


def test_a_page_tells_the_versions_that_made_the_fit(run_dir: Path, tmp_path: Path) -> None:
    posterior = tmp_path / "alone.safetensors"
    read_fit(run_dir, Wanted(num_samples=100)).posterior.save(posterior)
    for path in (run_dir, posterior):
        record = read_fit(path, Wanted(num_samples=200))
        text = Outline(page_for(record)).text
        for name, value in (
            ("abi-toolkit", abi.__version__),
            ("torch", version("torch")),
            ("python", platform.python_version()),
            ("platform", f"{platform.system()} {platform.machine()}"),
        ):
            assert f"{name} {value}" in text


def test_a_program_gets_verdict_and_contents_as_json(run_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["report", str(run_dir), "-o", str(out), "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["page"] == str(out)
    assert said["bytes"] == out.stat().st_size
    assert said["fits"] == [str(run_dir)]
    verdict = abi.load(run_dir / "posterior.safetensors").verdict
    assert said["verdict"]["headline"][1:] == verdict.headline[1:]
    assert said["validations"] == said["power_maps"] == []


def test_a_failed_simulation_is_not_called_a_bias_where_none_is_retried() -> None:
    record = stub(2)
    log = TrainingLog(1, 0.0, 0.0)
    rounds = tuple(replace(r, dropped_fraction=0.1, network=log) for r in record.posterior.rounds)
    for config, biased in ((abi.ABIConfig(), False), (abi.ABIConfig.paper(), True)):
        changed = replace(record, posterior=replace(record.posterior, rounds=rounds, config=config))
        lines = fit_evidence(prepare(changed, 0, 0, "fit1"))
        assert any("a bias of unknown size" in line for line in lines) is biased


def test_the_proposed_validation_names_rounds_only_where_they_are_not_the_default() -> None:
    record = stub(2)  # 200 calls in 2 rounds, the default of so few
    assert "num_rounds" not in validation_code(record)
    one = replace(record, posterior=replace(record.posterior, rounds=record.posterior.rounds[:1]))
    assert "num_rounds=1" in validation_code(one)


def test_a_posterior_far_from_the_exact_one_is_called_far() -> None:
    record = stub(2)
    near = replace(record, exact=torch.randn(2_000, 2, generator=torch.Generator().manual_seed(9)))
    far = replace(record, exact=2.0 + near.exact)  # type: ignore[operator]
    for given, words in ((near, "this one is close to it"), (far, "differs from it visibly")):
        fit = prepare(given, 0, 0, "fit1")
        assert words in fit_verdict(fit).words
        assert fit_verdict(fit).tone == "untested"
    assert fit.distance is not None
    # Two standard deviations apart in two dimensions: accuracy Phi(sqrt(2)) = 0.92.
    assert fit.distance.accuracy == pytest.approx(0.92, abs=0.04)
    assert fit.distance.shift == pytest.approx(2.0, abs=0.1)


def test_a_saved_report_makes_the_same_page_as_the_report(report: Report, tmp_path: Path) -> None:
    report.save(tmp_path / "direct.html", parameter_names=["speed", "angle"])
    report.save(tmp_path / "data.json", parameter_names=["speed", "angle"])
    words = ["report", str(tmp_path / "data.json"), "--out", str(tmp_path / "again.html")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    direct, again = (
        (tmp_path / name).read_text(encoding="utf-8") for name in ("direct.html", "again.html")
    )
    body = re.compile(r"<section id=\"verdict\".*</main>", re.DOTALL)
    assert body.findall(direct) == body.findall(again)
    text = Outline(direct).text
    assert "Rejected by" in text
    assert "speed" in text
    for result in report.results:
        assert f'id="test-{result.method}"' in direct
    assert load_report(tmp_path / "data.json")["rejected"] == list(report.rejected)


def test_fits_and_tests_share_a_page_only_where_they_can_belong_together(
    run_dir: Path, report: Report, tmp_path: Path
) -> None:
    report.save(tmp_path / "two.json")
    out = tmp_path / "both.html"
    done = CliRunner().invoke(
        app, ["report", str(run_dir), str(tmp_path / "two.json"), "-o", str(out)]
    )
    assert done.exit_code == 0, done.output
    text = Outline(out.read_text(encoding="utf-8")).text
    assert "Rejected by" in text
    assert "does not record the calls and constants of what it is of" in text
    data = json.loads((tmp_path / "two.json").read_text())
    data["asked"]["theta_dim"] = 3
    (tmp_path / "three.json").write_text(json.dumps(data))
    done = CliRunner().invoke(app, ["report", str(run_dir), str(tmp_path / "three.json")])
    assert "of a posterior of 3 parameters, and no fit given here" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "there is nothing at nothing; name a run folder"),
        (["words.json"], "could not be read as JSON"),
        (["."], "holds no run"),
        (["RUN", "--parameter", "speed"], "must be one of theta_1, theta_2; got speed"),
        (["RUN", "--out", "page.pdf"], "must end in .html; got page.pdf"),
        (["RUN", "--simulator", "nowhere:f"], "no module named 'nowhere'"),
        (["other.json"], "is not a saved validation"),
    ],
)
def test_mistakes_are_told_in_one_line(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "words.json").write_text("not JSON")
    done = CliRunner().invoke(app, ["report", *(str(run_dir) if w == "RUN" else w for w in words)])
    assert isinstance(done.exception, ValueError)
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)


def test_a_wrong_file_name_is_refused_before_the_tests_are_run() -> None:
    done = CliRunner().invoke(app, ["validate", "--posterior", "no:where", "--out", "table.csv"])
    assert "must end in .json (data) or .html (a page); got table.csv" in str(done.exception)


def test_a_report_is_saved_as_page_or_data_only(report: Report, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.html .* got report\.txt"):
        report.save(tmp_path / "report.txt")
    (tmp_path / "new.json").write_text('{"format": "abi-validation", "version": 99}')
    with pytest.raises(ValueError, match="version 99; this validation reads up to 3"):
        load_report(tmp_path / "new.json")


def test_colours_can_be_read_and_told_apart() -> None:
    """WCAG 2.2 AA: 4.5 for words, 3 for what a picture needs, in light and dark."""
    from validation.palette import DARK, LIGHT

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        line = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * line[0] + 0.7152 * line[1] + 0.0722 * line[2]

    def contrast(a: str, b: str) -> float:
        low, high = sorted((luminance(a), luminance(b)))
        return (high + 0.05) / (low + 0.05)

    assert set(LIGHT) == set(DARK)
    assert len(set(LIGHT.values())) == len(LIGHT)  # each colour of a picture names one role
    for colours in (LIGHT, DARK):
        for words in ("ink", "muted", "posterior"):
            for ground in ("page", "surface", "tint-bad", "tint-good", "tint-wait"):
                assert contrast(colours[words], colours[ground]) >= 4.5, (words, ground)
        for tone in ("bad", "good", "wait"):
            assert contrast(colours[tone], colours[f"tint-{tone}"]) >= 4.5
        for shade in ("heat1", "heat2", "heat3", "heat4"):
            assert contrast(colours["ink"], colours[shade]) >= 4.5, shade
        for mark in ("posterior", "prior", "reference", "observed", "c1", "c2", "c3", "c4", "c5"):
            assert contrast(colours[mark], colours["page"]) >= 3.0, mark


def test_densities_hold_all_mass_and_fold_it_at_the_ends() -> None:
    from scipy.stats import norm

    from abi.pictures.density import curve, levels_of_mass, surface

    random = np.random.default_rng(0)
    draws = random.normal(size=20_000)
    grid, density = curve(draws, (-4.0, 4.0), (-np.inf, np.inf))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=0.005)
    # Bias h^2 |f''| / 2 <= 0.003 at h = 0.12, Monte Carlo sd (f / (3.5 n h))^(1/2) = 0.007.
    assert np.abs(density - norm.pdf(grid)).max() < 0.03
    uniform = random.uniform(size=20_000)
    _, flat = curve(uniform, (0.0, 1.0), (0.0, 1.0))
    assert np.abs(flat - 1.0).max() < 0.2  # without folding the ends would be at 1/2
    both = surface(draws[:10_000], draws[10_000:], ((-4.0, 4.0), (-4.0, 4.0)))
    half, most = levels_of_mass(both, (0.5, 0.9))
    assert both[both >= half].sum() / both.sum() == pytest.approx(0.5, abs=0.03)
    assert both[both >= most].sum() / both.sum() == pytest.approx(0.9, abs=0.03)
    curve(np.ones(100), (0.0, 2.0), (-np.inf, np.inf))  # draws that are all one


@pytest.mark.parametrize("num_ranks", [50, 400])
def test_the_whole_rank_curve_stays_in_its_band_as_often_as_it_says(num_ranks: int) -> None:
    from validation.scores.bands import binomial_band

    grid, low, high = binomial_band(num_ranks, 0.1)
    ranks = np.random.default_rng(1).uniform(size=(2_000, num_ranks))
    inside = 0
    for row in ranks:
        curve = np.searchsorted(np.sort(row), grid, side="right") / num_ranks - grid
        inside += bool(((curve >= low - 1e-9) & (curve <= high + 1e-9)).all())
    # At least 0.9; 3.5 sds of a share of 2,000 are 0.024; discreteness may widen it a little.
    assert 0.9 - 0.024 < inside / 2_000 < 0.95
    ks_width = 1.22 / num_ranks**0.5
    assert (high - low)[1] < ks_width  # sharper at the ends than the other band, 2 x 1.22 n^-1/2


def test_rank_curves_are_those_of_the_ranks(report: Report) -> None:
    from validation.results.evidence import evidence_of

    result = report.results[0]
    found = evidence_of(result, report.x)["ranks"]
    assert max(abs(gap) for gap in found["gaps"]) == pytest.approx(result.statistic, abs=1e-4)
    u = result.details["ranks"][:, 0]
    middle = float((u <= 0.5).double().mean()) - 0.5
    assert found["curves"][0][100] == pytest.approx(middle, abs=1e-4)
