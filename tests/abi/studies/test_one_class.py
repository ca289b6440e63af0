"""Figure 1 of the L-C2ST paper: statistics of two normals, their level, and cells that are kept."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from abi.studies.benchmark.experiment import Place
from abi.studies.benchmark.local.one_class import (
    STATISTICS,
    OneClassPart,
    bayes_statistics,
    one_class_lines,
    one_class_study,
)
from simulators.random import isolated_rng

PART = OneClassPart("one-class", num_points=60, num_nulls=19, repetitions=60, scales=(1.0, 1.6))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("one_class")
    _work(place)
    return place


def _work(folder: Path, begin: bool = True, seed: int = 0) -> dict | None:  # type: ignore[type-arg]
    return one_class_study(PART, Place(folder, seed, end=None if begin else 0.0))


@pytest.mark.parametrize("scale", [0.6, 1.3, 2.0])
def test_accuracies_of_the_best_classifier_are_those_of_the_chi_square(scale: float) -> None:
    # p is denser where |theta|^2 lies below the edge, for a q that is wider; above, for a narrower.
    edge = 4 * math.log(scale) / (1 - scale**-2)
    inside_p, inside_q = 1 - math.exp(-edge / 2), 1 - math.exp(-edge / 2 / scale**2)
    hits_p, hits_q = (inside_p, 1 - inside_q) if scale > 1 else (1 - inside_p, inside_q)
    found = bayes_statistics(scale)
    assert found[:2] == pytest.approx([(hits_p + hits_q) / 2, hits_q], abs=1e-4)


def test_mse_of_the_best_classifier_is_a_ratio_of_integrals() -> None:
    scale = 1.5

    def d(t: float) -> float:
        return 1 / (1 + math.exp(-(2 * math.log(scale) - t / 2 * (1 - scale**-2)) * -1))

    from scipy.integrate import quad

    own = quad(lambda t: (d(t) - 0.5) ** 2 * math.exp(-t / 2) / 2, 0, 80)[0]
    other = quad(lambda t: (d(t) - 0.5) ** 2 * math.exp(-t / 2 / scale**2) / 2 / scale**2, 0, 200)[
        0
    ]
    assert bayes_statistics(scale)[2:] == pytest.approx([(own + other) / 2, other], abs=1e-4)


def test_at_equal_widths_no_classifier_is_better_than_chance() -> None:
    assert np.array_equal(bayes_statistics(1.0), [0.5, 0.5, 0.0, 0.0])


def test_the_level_is_kept_and_one_class_s_accuracy_is_blind_to_what_its_mse_sees(
    folder: Path,
) -> None:
    found = _work(folder, begin=False)
    assert found is not None
    level, wide = (row["power"] for row in found["rows"])
    for name in STATISTICS:
        count = round(level[name]["rate"] * PART.repetitions)
        assert stats.binomtest(count, PART.repetitions, 0.05, "greater").pvalue > 1e-3
    assert wide["MSE of class 0"]["rate"] > 0.8
    assert wide["accuracy of class 0"]["rate"] < 0.2
    assert [claim["verdict"] for claim in found["claims"]] == ["agrees", "agrees"]
    assert "| 1.6 | " in "\n".join(one_class_lines(found))


def test_scales_are_kept_and_only_what_is_missing_or_damaged_is_worked(folder: Path) -> None:
    first = _work(folder, begin=False)
    torn = next(folder.glob("*--1.6--*.json"))
    torn.write_text("{")
    assert _work(folder, begin=False) is None
    with isolated_rng(3):  # whatever the global streams hold
        assert _work(folder) == first
    assert _work(folder, begin=False, seed=1) is None
