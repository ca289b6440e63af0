"""Models compared where a value of x_o was not measured: the evidence of what was, exactly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm
from torch import Tensor

import abi
from simulators import with_gaps

NAN = float("nan")
X_O = [2.0, NAN, 3.0]


def looks(theta: Tensor) -> Tensor:
    """Three looks at one number."""
    return theta + torch.randn(len(theta), 3)


MODELS = {"near": ({"mean": norm(0, 1)}, looks), "far": ({"mean": norm(0, 3)}, looks)}


def exact(x: list[float]) -> float:
    """Log Bayes factor of "near" over "far" by what was measured."""
    seen = np.array([value for value in x if value == value])
    laws = (multivariate_normal(cov=np.eye(len(seen)) + v) for v in (1.0, 9.0))
    near, far = (law.logpdf(seen) for law in laws)
    return float(near - far)


@pytest.fixture(scope="module")
def found() -> abi.ModelComparison:
    return abi.compare_models(MODELS, X_O, num_simulations=3_000, progress=False)


def test_what_was_measured_decides(found: abi.ModelComparison) -> None:
    odds = found.log_bayes_factor("near", "far")
    assert odds.low is not None
    assert odds.high is not None
    assert odds.low < exact(X_O) < odds.high
    assert odds.value == pytest.approx(exact(X_O), abs=0.6)


def test_other_observations_lack_the_same(found: abi.ModelComparison) -> None:
    there = found.at([0.5, NAN, 0.2]).log_bayes_factor("near", "far")
    assert there.value == pytest.approx(exact([0.5, NAN, 0.2]), abs=0.6)
    hidden = found.at([0.5, 7.0, 0.2]).log_bayes_factor("near", "far")
    assert hidden == there  # what stands in the gap does not matter
    with pytest.raises(ValueError, match="`x` must be finite; 1 of 1 rows hold NaN"):
        found.at([NAN, 0.0, 0.2])


def test_models_say_the_same_of_gaps() -> None:
    mixed = MODELS | {"far": (MODELS["far"][0], with_gaps(looks))}
    with pytest.raises(ValueError, match="must agree on which values can be missing; 'far'"):
        abi.compare_models(mixed, X_O, num_simulations=400, progress=False)
