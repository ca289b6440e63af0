"""The accuracy study keeps what it has, trains amortised fits once, and drops nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

FOLDER = Path(__file__).parents[3] / "examples" / "paper"


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(FOLDER))
    import accuracy

    fits: list[tuple[str, int]] = []

    def fake(name: str) -> Any:
        def fit(model: str, x_o: torch.Tensor, budget: int, seed: int) -> Any:
            fits.append((name, seed))
            if name == "smc_abc":
                raise ValueError("no density")
            return SimpleNamespace(
                sample=lambda shape, seed: torch.zeros(*shape, 2),
                at=lambda x: SimpleNamespace(sample=lambda shape, seed: torch.ones(*shape, 2)),
                num_simulations=budget,
                details={},
            )

        return fit

    monkeypatch.setattr(accuracy, "METHODS", {n: fake(n) for n in ("abi", "snpe_1", "smc_abc")})
    monkeypatch.setattr(accuracy, "exact_draws", lambda model, x_o, seed: torch.zeros(5, 2))
    monkeypatch.setattr(
        accuracy,
        "measure",
        lambda a, b: dict.fromkeys(("w1", "normalised_w1", "c2st", "c2st_rf"), float(a.mean())),
    )
    accuracy.fits = fits
    yield accuracy
    for name in ("accuracy", "accuracy_results"):
        sys.modules.pop(name, None)


def run(study: Any, monkeypatch: pytest.MonkeyPatch, out: Path, *more: str) -> list[dict[str, Any]]:
    command = ["accuracy.py", "--models", "TwoMoons", "--observations", "0", "1", "--seeds", "0"]
    monkeypatch.setattr(sys, "argv", [*command, "--out", str(out), *more])
    study.main()
    cells: list[dict[str, Any]] = json.loads(out.read_text())["cells"]
    return cells


def test_a_study_goes_on_where_it_was(
    study: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "study.json"
    cells = run(study, monkeypatch, out)
    assert len(cells) == 2 * (3 + 1)  # three methods and the floor, at two observations
    made = len(study.fits)
    assert run(study, monkeypatch, out) == cells
    assert len(study.fits) == made
    assert len(run(study, monkeypatch, out, "--seeds", "0", "1")) == 2 + 2 * 2 * 3
    assert not list(tmp_path.glob("*.new"))


def test_an_amortised_fit_is_trained_once_for_all_observations(
    study: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cells = run(study, monkeypatch, tmp_path / "study.json")
    assert study.fits.count(("snpe_1", 0)) == 1
    assert study.fits.count(("abi", 0)) == 2
    read = [c for c in cells if c["method"] == "snpe_1"]
    assert [c["observation"] for c in read] == [0, 1]
    assert all(c["scores"]["w1"] == 1.0 for c in read)  # of the posterior read at x_o


def test_a_method_that_fails_is_a_row_with_its_reason(
    study: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "study.json"
    cells = run(study, monkeypatch, out)
    assert {c["error"] for c in cells if c["method"] == "smc_abc"} == {"ValueError: no density"}
    table = out.with_suffix(".md").read_text()
    assert "| smc_abc | 0 of 2 | ValueError: no density |" in table
    assert "| abi | 2 | 0.000 +- 0.000 | 0.000 +- 0.000 |" in table
    assert "| smc_abc | failed |" in table


def test_the_overview_ranks_those_that_saw_every_observation(
    study: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "study.json"
    run(study, monkeypatch, out, "--methods", "snpe_1")
    run(study, monkeypatch, out, "--methods", "abi", "--observations", "1")
    overview = out.with_suffix(".md").read_text().split("##")[0]
    assert "| snpe_1 | **1.00** |" in overview
    assert "| abi | 0.00 (1) |" in overview


def test_abi_is_set_beside_each_method_at_the_same_observations(study: Any) -> None:
    """By hand: 0.5, 0.7 and 0.9 below at three observations, the rival's two seeds averaged."""
    import accuracy_results

    def cell(method: str, observation: int, w1: float, seed: int = 0) -> Any:
        scores = dict.fromkeys(("w1", "normalised_w1", "c2st", "c2st_rf"), w1)
        return accuracy_results.Cell("M", observation, seed, method, 10_000, scores)

    rows = [cell("abi", k, 0.1) for k in range(3)]
    for k, gap in enumerate((0.5, 0.7, 0.9)):
        rows += [cell("snpe_1", k, 0.1 + gap + s, seed) for seed, s in enumerate((-0.1, 0.1))]
    rows += [cell("snpe_2", 0, 5.0), cell("exact_particles", 0, 0.0)]
    text = accuracy_results.page(rows)
    assert "| snpe_1 | -0.70 +- 0.50 |" in text  # 4.303 x 0.2 / sqrt(3)
    paired = text[text.index("W1 of ABI less") : text.index("## M")]
    assert "snpe_2" not in paired  # of one observation
    assert "exact_particles" not in paired
    assert "| exact_particles | 0.00 |" in text  # ranks nobody out
    assert "| abi | **0.10** |" in text


def test_particles_of_the_exact_posterior_are_as_many_as_those_of_a_population(study: Any) -> None:
    study.exact_draws = lambda model, x_o, seed: torch.arange(400.0)[:, None]
    draws = study.exact_particles("TwoMoons", torch.zeros(2), 10_000, 0).sample((5_000,), seed=0)
    assert sorted(set(draws.ravel().tolist())) == [float(value) for value in range(100)]


def test_no_cell_begins_after_the_time_is_up(
    study: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "study.json"
    out.write_text('{"cells": []}')
    assert run(study, monkeypatch, out, "--minutes", "0") == []
    assert study.fits == []
