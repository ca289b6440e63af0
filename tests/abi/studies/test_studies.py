"""The page on lynx and hares, and the study of cost: they resume, and say what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import simulators

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def lynx_hare(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, its fits replaced by draws of the prior that take no time."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "lynx_hare", raising=False)
    import lynx_hare

    made: list[int] = []

    def fit(prior: Any, task: Any, x_o: torch.Tensor, **keywords: Any) -> Any:
        made.append(keywords["num_simulations"])
        draws = simulators.sample_prior(task.prior, 1_000, keywords["seed"] % 1000)
        return SimpleNamespace(
            num_simulations=keywords["num_simulations"],
            sample=lambda shape, seed: draws[: shape[0]],
            save=lambda path: path.write_text("kept"),
        )

    def load(path: Path) -> Any:
        return SimpleNamespace(sample=lambda shape: simulators.sample_prior(task.prior, *shape, 0))

    task = simulators.LynxHare()
    monkeypatch.setattr(lynx_hare.abi, "fit", fit)
    monkeypatch.setattr(lynx_hare.abi, "load", load)
    monkeypatch.setattr(lynx_hare, "SIZES", {"quick": (300, 200, 5)})
    monkeypatch.setattr(lynx_hare, "DRAWS", 150)
    monkeypatch.setattr(
        lynx_hare, "exact_draws", lambda folder: simulators.sample_prior(task.prior, 300, 1)
    )
    lynx_hare.made = made
    return lynx_hare


def test_the_page_on_lynx_and_hares_is_made_and_goes_on_where_it_was(
    lynx_hare: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ["--quick", "--out", str(tmp_path), "--work", str(tmp_path / "work")]
    monkeypatch.setattr(sys, "argv", ["lynx_hare.py", *words])
    lynx_hare.main()
    assert lynx_hare.made == [300, *[200] * 5]
    result = json.loads((tmp_path / "lynx_hare.json").read_text())
    assert (tmp_path / "lynx_hare.png").stat().st_size > 50_000
    assert result["validation_fits"] == {"number": 5, "calls": 200}
    # Draws of the prior against draws of the prior.
    assert result["against_exact"]["c2st"]["value"] == pytest.approx(0.5, abs=0.15)
    assert result["calibration"]["sbc"]["p_value"] > 1e-3
    (tmp_path / "work" / "sbc_200_003.npy").unlink()
    lynx_hare.main()
    assert lynx_hare.made[6:] == [200]


def test_cycle_and_balance_follow_from_the_rates(lynx_hare: Any) -> None:
    theta = torch.tensor([[0.5, 0.025, 0.8, 0.02, 30.0, 5.0, 0.2, 0.2]])
    found = {name: float(values) for name, values in lynx_hare.read_off(theta).items()}
    assert found["hares in balance"] == pytest.approx(40.0)
    assert found["lynx in balance"] == pytest.approx(20.0)
    assert found["cycle (years)"] == pytest.approx(9.935, abs=1e-3)


@pytest.fixture
def cost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The study of cost, its fits replaced."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "benchmarks"))
    monkeypatch.delitem(sys.modules, "abi_cost", raising=False)
    import abi_cost

    made: list[dict[str, Any]] = []

    def run(setting: dict[str, Any]) -> dict[str, Any]:
        made.append(setting)
        seconds = setting["num_simulations"] / 100
        stages = dict.fromkeys(abi_cost.STAGES, 0.1 * seconds)
        return {"setting": setting, "cpu_seconds": seconds, "peak_mib": 7.0, "stages": stages}

    monkeypatch.setattr(abi_cost, "run", run)
    monkeypatch.setattr(abi_cost, "fit", lambda setting: None)
    monkeypatch.setattr(sys, "argv", ["abi_cost.py", "--out", str(tmp_path / "cost.json")])
    abi_cost.made = made
    return abi_cost


def test_a_study_of_cost_varies_one_factor_at_a_time_and_resumes(
    cost: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cost.main()
    count = 1 + sum(map(len, cost.FACTORS.values()))
    assert len(cost.made) == count
    for setting in cost.made[1:]:
        assert sum(setting[name] != value for name, value in cost.BASE.items()) == 1
    text = (tmp_path / "cost.md").read_text()
    assert "| num_simulations | 4,000 | 40.0 | 4.00 | 7 | 10% |" in text
    assert text.index("| num_simulations | 500 |") < text.index("| num_simulations | 1,000 |")
    cost.main()
    assert len(cost.made) == count
    monkeypatch.setattr(cost, "versions", lambda *names: {"abi-toolkit": "another"})
    cost.main()
    assert len(cost.made) == 2 * count


def test_the_stages_of_a_fit_are_functions_that_exist(cost: Any) -> None:
    root = Path(cost.abi.__file__).parent
    for function, file in cost.STAGES.values():
        assert any(f"def {function}(" in path.read_text() for path in root.rglob(file))
