"""The study of the verdict: cells kept and found again, rates added up, tables that say so."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from abi.studies.benchmark.experiment import Place
from abi.studies.benchmark.verdict import rates
from abi.studies.benchmark.verdict.cells import cells, stored
from abi.studies.benchmark.verdict.laws import FAILURES, LAWS, pairs
from abi.studies.benchmark.verdict.results import markdown, summary, truth
from abi.studies.benchmark.verdict.run import PARTS, run_verdict

JUDGED = {
    "outcome": "passes", "headline": "passes: all is well", "p_value": 0.4, "num_pairs": 70,
    "expected_c2st": 0.55, "parameters": [[-0.1, 0.1, 0.9, 1.1], [-0.1, 0.1, 0.9, 1.1]],
}  # fmt: skip


def fitted(c2st: float, expected: float, bias: float) -> dict[str, object]:
    verdict = JUDGED | {"expected_c2st": expected}
    return {
        "model": "a", "calls": 500, "observation": 0, "verdict": verdict, "further": verdict,
        "bias": [bias, 0.0], "sd_ratio": [1.0, 1.5], "c2st": c2st, "fit_seconds": 10.0,
        "judge_seconds": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("law", LAWS)
def test_a_right_q_has_the_law_of_the_truth(law: str) -> None:
    """Of z-scores by the draws' moments the mean is 0 and the variance 1, to 4 standard errors."""
    theta, _, draws = pairs(law, LAWS[law], 2_000, 200, 0)
    z = (theta - draws.mean(dim=0)) / draws.std(dim=0)
    assert bool((z.mean(dim=0).abs() < 4 / 2_000**0.5).all())
    spread = z.square()
    assert bool(((spread.mean(dim=0) - 1).abs() < 4 * spread.std(dim=0) / 2_000**0.5 + 0.02).all())


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_another_law(name: str) -> None:
    wrong = FAILURES[name]
    _, _, right = pairs(wrong.law, LAWS[wrong.law], 4, 4_000, 0)
    _, _, other = pairs(wrong.law, wrong.noise, 4, 4_000, 0)
    assert not torch.allclose(right, other)


@pytest.mark.parametrize("workers", [1, 2])
def test_cells_are_kept_and_found_again(tmp_path: Path, workers: int) -> None:
    place = Place(tmp_path, workers=workers)
    wanted = rates.wanted("level", [("gaussian", rates.RIGHT)], [30], 2, 0)
    first = cells(wanted, rates.work_panel, place)
    assert stored(wanted[0], tmp_path) == first[0]

    def never(asked: object) -> dict[str, object]:
        raise AssertionError(asked)

    assert cells(wanted, never, place) == first
    assert cells(rates.wanted("level", [("skew", rates.RIGHT)], [30], 2, 0), never, place) == []
    ((_, _, size), (count, shares)) = next(iter(rates.shares(first).items()))
    assert (size, count) == (30, 2)
    assert set(shares) >= {"panel", "sbc", "lc2st", "colt_identity", "conformal_c2st"}


def test_intervals_are_held_against_the_truth_and_expected_against_true() -> None:
    found = truth([fitted(0.6, 0.55, 0.0), fitted(0.7, 0.65, 0.3), fitted(0.8, 0.75, 0.0)])
    assert found["further"]["bias_held"] == pytest.approx(5 / 6, abs=1e-3)
    assert found["further"]["sd_ratio_held"] == 0.5
    assert found["further"]["spearman"] == 1.0
    assert found["judge_share"] == 0.1
    page = markdown(summary({**{part: [] for part in PARTS}, "fits": [fitted(0.6, 0.55, 0)]}, 0))
    assert "| a | 500 | 0 | 0.600 | 0.550 | passes | passes | 10 |" in page


def test_the_command_works_one_part(tmp_path: Path) -> None:
    values, page = run_verdict(True, ["level"], Place(tmp_path), repetitions=1)
    assert {row["num_pairs"] for row in values["level"]} == {70, 300, 600}
    assert "## Level" in page
    assert "## Power" not in page
    with pytest.raises(ValueError, match="`--part` must be in one of these names: level"):
        run_verdict(True, ["nothing"], Place(tmp_path), repetitions=1)
