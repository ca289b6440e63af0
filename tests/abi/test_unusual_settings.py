"""Settings of the wrong kind or size are refused where they are made, by name; plain ones kept."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from one_look import TASK, exact
from torch import Tensor

import abi
import validation
from abi import installation
from abi.cli import doctor
from abi.generators.flow_network import FlowSettings
from abi.generators.push_forward.potnet import POTNetSettings
from abi.generators.push_forward.wgan import WGANSettings
from abi.training.loop import TrainingSettings
from simulators import sample_joint
from simulators.random import as_count
from validation import ColtTraining, Training
from validation.laboratory.trained_tests import ScoreTest, TrainedColt
from validation.perturbations.diffusion.edm import DiffusionTraining
from validation.perturbations.sphere_law import FlowTraining

NETWORKS = (Training, ColtTraining, TrainingSettings, FlowSettings, POTNetSettings, WGANSettings,
            DiffusionTraining, FlowTraining)  # fmt: skip
SETTINGS = (*NETWORKS, abi.ABIConfig, TrainedColt)

COUNTS = {
    Training: ("batch_size", "max_epochs", "patience"),
    ColtTraining: ("epochs", "anchors_per_epoch", "draws_per_epoch"),
    TrainingSettings: ("batch_size", "num_steps", "max_epochs", "least_epochs"),
    FlowSettings: ("num_bins",),
    WGANSettings: ("critic_steps", "num_steps", "batch_size"),
    DiffusionTraining: ("steps", "batch_size"),
    FlowTraining: ("num_transforms", "num_pairs", "batch_size"),
    abi.ABIConfig: (
        "num_levels", "max_retries", "min_accepted", "num_flows", "max_components",
        "pairs_per_round",
    ),
    TrainedColt: ("num_samples",),
    ScoreTest: ("num_calibration", "num_permutations"),
}  # fmt: skip
RATES = {
    Training: ("learning_rate",),
    ColtTraining: ("learning_rate", "temperature"),
    TrainingSettings: ("learning_rate",),
    WGANSettings: ("learning_rate",),
    DiffusionTraining: ("learning_rate",),
    FlowTraining: ("learning_rate",),
    abi.ABIConfig: ("kappa",),
}
CHOICES = {
    Training: ("stop_on",),
    ColtTraining: ("divergence",),
    abi.ABIConfig: ("encoder", "proposal", "generator", "adjustment"),
    TrainedColt: ("embedding",),
}
FLAGS = {
    ColtTraining: ("whiten",),
    abi.ABIConfig: ("redraw_directions", "standardize", "fine_tune", "reuse_simulations"),
}


def fields(table: dict[Any, tuple[str, ...]]) -> list[Any]:
    pairs = [(kind, name) for kind, names in table.items() for name in names]
    return [pytest.param(*pair, id=f"{pair[0].__name__}.{pair[1]}") for pair in pairs]


def make(kind: Any, **values: Any) -> Any:
    return kind(**({"kind": "uniform"} if kind is ScoreTest else {}), **values)


def refused(kind: Any, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^`{name}` must be ") as error:
        make(kind, **{name: value})
    assert f"got {value!r}" in str(error.value)


# --- one rule for each kind -----------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -3, 2.0, 2.5, "3", True, math.nan, math.inf, [2]])
@pytest.mark.parametrize(("kind", "name"), fields(COUNTS))
def test_a_count_is_a_whole_number(kind: Any, name: str, value: Any) -> None:
    refused(kind, name, value)


@pytest.mark.parametrize(("kind", "name"), fields(COUNTS))
def test_a_count_of_numpy_or_torch_is_kept_as_an_int(kind: Any, name: str) -> None:
    for value in (np.int64(3), torch.tensor(3)):
        kept = getattr(make(kind, **{name: value}), name)
        assert type(kept) is int
        assert kept == 3


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "0.1", None, True])
@pytest.mark.parametrize(("kind", "name"), fields(RATES))
def test_a_rate_is_positive_and_finite(kind: Any, name: str, value: Any) -> None:
    refused(kind, name, value)


@pytest.mark.parametrize("value", [0.0, 1.0, 1.5, -0.1, math.nan, "half", None])
@pytest.mark.parametrize("kind", [Training, TrainingSettings, WGANSettings])
def test_a_validation_fraction_leaves_rows_on_both_sides(kind: Any, value: Any) -> None:
    refused(kind, "validation_fraction", value)


@pytest.mark.parametrize("value", ["foo", None, 3, ["loss"]])
@pytest.mark.parametrize(("kind", "name"), fields(CHOICES))
def test_a_choice_is_one_of_those_there_are(kind: Any, name: str, value: Any) -> None:
    refused(kind, name, value)


@pytest.mark.parametrize("value", ["no", 1, None])
@pytest.mark.parametrize(("kind", "name"), fields(FLAGS))
def test_a_flag_is_true_or_false(kind: Any, name: str, value: Any) -> None:
    refused(kind, name, value)


HIDDEN = [kind for kind in (*NETWORKS, abi.ABIConfig) if kind is not TrainingSettings]


@pytest.mark.parametrize("value", [64, (0,), (64, -1), (64.0,), ("64",), None, "64"])
@pytest.mark.parametrize("kind", HIDDEN)
def test_hidden_layers_have_whole_widths(kind: Any, value: Any) -> None:
    refused(kind, "hidden", value)


@pytest.mark.parametrize("kind", HIDDEN)
def test_a_list_of_widths_is_kept_as_a_tuple(kind: Any) -> None:
    assert make(kind, hidden=[8, np.int64(4)]) == make(kind, hidden=(8, 4))


def test_networks_without_hidden_layers_are_linear_but_for_the_papers() -> None:
    theta, x = sample_joint(TASK, 60, seed=1)
    linear = Training(hidden=(), max_epochs=3)
    assert 0.0 < validation.c2st(exact, theta, x, training=linear).p_value <= 1.0
    balls = ColtTraining(hidden=(), epochs=3)
    assert 0.0 < validation.colt(exact, theta, x, num_samples=9, training=balls).p_value <= 1.0
    refused(abi.ABIConfig, "hidden", ())


@pytest.mark.parametrize("kind", [Training, ColtTraining, TrainingSettings])
@pytest.mark.parametrize("value", ["nonsense", 3.5, None])
def test_a_device_is_one_that_torch_knows(kind: Any, value: Any) -> None:
    refused(kind, "device", value)


@pytest.mark.parametrize("kind", [Training, ColtTraining])
def test_the_device_of_a_test_is_here(kind: Any) -> None:
    with pytest.raises(ValueError, match="`device` 'cuda:99' is not to be had here"):
        kind(device="cuda:99")
    assert kind(device=torch.device("cpu")).device == "cpu"


@pytest.mark.parametrize("name", ["network_training", "generator_training", "potnet"])
def test_every_device_of_a_fit_is_looked_for_before_anything_is_spent(name: str) -> None:
    """Where it is set it need not be here: a file may come from another machine."""
    part: Any = TrainingSettings(device="cuda:99")
    config = abi.ABIConfig(**{name: POTNetSettings(training=part) if name == "potnet" else part})
    assert abi.ABIConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    with pytest.raises(ValueError, match="`device` 'cuda:99' is not to be had here"):
        abi.fit(TASK.prior, never, TASK.observation, num_simulations=400, config=config)


# --- constants of a fit ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("order", value) for value in (math.inf, math.nan, "a", 0.5)),
        *(("growth", value) for value in (math.inf, math.nan, "a", 0.5)),
        *(("num_slices", value) for value in (None, -1, 2.5)),
        *((name, "a") for name in ("mixing", "trim", "accept_fraction", "tolerances")),
        *(("tolerances", value) for value in (0.5, (1.0, 2.0), (1.0, 0.0), (math.nan,), ("a",))),
        *((name, {"a": 1}) for name in ("flow", "potnet", "wgan")),
        *((name, None) for name in ("network_training", "generator_training", "flow")),
        ("pairs_per_round", -5),
        ("max_components", None),
    ],
)  # fmt: skip
def test_a_constant_of_the_wrong_kind_is_refused(name: str, value: Any) -> None:
    refused(abi.ABIConfig, name, value)


def test_tolerances_may_stay_the_same_and_begin_without_a_bound() -> None:
    assert abi.ABIConfig(tolerances=[math.inf, 2, 2]).tolerances == (math.inf, 2.0, 2.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (TrainingSettings, "weight_decay", -1.0),
        (TrainingSettings, "weight_decay", math.nan),
        (FlowSettings, "num_bins", 1),
        (FlowSettings, "num_transforms", -1),
        (POTNetSettings, "marginal_weight", math.inf),
        (POTNetSettings, "training", None),
        (WGANSettings, "penalty", math.nan),
    ],
)
def test_settings_of_a_network_are_in_range(kind: Any, name: str, value: Any) -> None:
    refused(kind, name, value)


@pytest.mark.parametrize("kind", SETTINGS)
def test_the_defaults_obey_the_rules_and_are_kept_as_they_are(kind: Any) -> None:
    given = {name: default for name, default in asdict(kind()).items() if default is not None}
    plain = {name: value for name, value in given.items() if not isinstance(value, dict)}
    assert kind(**plain) == kind()


def test_constants_of_numpy_fit_into_a_file() -> None:
    config = abi.ABIConfig(num_flows=np.int64(2), kappa=np.float32(0.5), fine_tune=np.bool_(True))  # type: ignore[arg-type]
    assert json.loads(json.dumps(config.to_dict()))["kappa"] == 0.5


@pytest.mark.parametrize("proposal", ["truncated", "generator"])
def test_too_few_pairs_a_round_are_named(proposal: Any) -> None:
    config = abi.ABIConfig(pairs_per_round=10, proposal=proposal)
    with pytest.raises(ValueError, match=r"`pairs_per_round`: 10 calls left 10 pairs .* ask for"):
        abi.fit(
            TASK.prior, TASK, TASK.observation, num_simulations=400, num_rounds=1, config=config,
            progress=False,
        )  # fmt: skip


@pytest.mark.parametrize("changes", [{"num_simulations": True}, {"num_rounds": 2.0}, {"seed": 1.0}])
def test_the_budget_and_the_seed_of_a_fit_are_whole_numbers(changes: dict[str, Any]) -> None:
    (name,) = changes
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at least"):
        abi.fit(TASK.prior, never, TASK.observation, **{"num_simulations": 400} | changes)


def test_what_is_no_count_is_told_with_its_kind() -> None:
    with pytest.raises(ValueError, match=r"`n` must be a whole number of at least 1; got 0\.$"):
        as_count(0, "n", 1)
    with pytest.raises(ValueError, match=r"at least 0; got 2\.0, a float\. Write 2\.$"):
        as_count(2.0, "n")


# --- arguments of the tests -----------------------------------------------------------------------


def never(theta: Tensor) -> Tensor:
    raise AssertionError("the simulator was called")


def asked_too_early(num_samples: int, x: Tensor) -> Tensor:
    raise AssertionError("q was sampled")


@pytest.mark.parametrize("value", [0, -60, 10.5, "3", None, True])
@pytest.mark.parametrize(
    ("name", "argument"),
    [
        *((name, "num_samples") for name in ("sbc", "tarp", "hpd", "colt", "local_hpd")),
        ("discriminative_calibration", "num_samples"),
        ("c2st", "num_nulls"),
        ("conformal_c2st", "num_permutations"),
        ("local_hpd", "num_nulls"),
        ("lc2st", "num_x_o"),
        ("panel", "num_swaps"),
        ("panel", "num_samples"),
        ("validate", "num_samples"),
    ],
)
def test_a_test_refuses_counts_that_are_none(name: str, argument: str, value: Any) -> None:
    if value is None and name in ("panel", "validate") and argument == "num_samples":
        pytest.skip("there it is each test's own number")
    theta, x = sample_joint(TASK, 60, seed=1)
    keywords = {"statistic": "mse"} if name == "c2st" else {}
    with pytest.raises(ValueError, match=f"`{argument}` must be a whole number of at least 1; got"):
        getattr(validation, name)(exact, theta, x, **keywords, **{argument: value})


def test_a_bare_name_is_one_test() -> None:
    theta, x = sample_joint(TASK, 60, seed=1)
    report = validation.validate(exact, theta, x, "sbc")
    assert [result.method for result in report.results] == ["sbc"]
    assert report.adjusted == validation.validate(exact, theta, x, ["sbc"]).adjusted
    with pytest.raises(ValueError, match=r'`methods` must be "all" or out of .*; got \[.scb.\]'):
        validation.validate(exact, theta, x, "scb")


@pytest.mark.parametrize("name", ["local_hpd", "score_rank", "panel", "validate_at"])
@pytest.mark.parametrize(
    "x_o", [torch.zeros(0, 2), torch.zeros(3), [[0.0, math.nan]], torch.zeros(2, 3)]
)
def test_an_observation_is_looked_at_before_q_is_sampled(name: str, x_o: Any) -> None:
    theta, x = sample_joint(TASK, 60, seed=1)
    with pytest.raises(ValueError, match="`x_o` must hold 2 finite values an observation"):
        getattr(validation, name)(asked_too_early, theta, x, x_o=x_o)


# --- the doctor -----------------------------------------------------------------------------------


def test_the_doctor_looks_for_all_that_the_project_asks_for() -> None:
    import tomllib

    path = Path(__file__).parents[2] / "pyproject.toml"
    project = tomllib.loads(path.read_text())["project"]
    assert len(installation.required("abi-toolkit")) == len(project["dependencies"])
    versions = installation.examine()["versions"]
    assert {"joblib", "jinja2", "arviz", "distributed", "scikit-learn"} <= versions.keys()
    assert None not in versions.values()


def test_a_package_of_an_extra_that_is_missing_is_no_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(installation, "_version", lambda name: None if name == "jinja2" else "1")
    found = installation.examine()
    assert found["problems"] == []
    doctor._print(found)
    assert "jinja2         not installed: pictures" in capsys.readouterr().out


def test_the_doctor_says_when_nothing_tells_what_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installation, "requires", unknown)
    assert installation.examine()["problems"] == [installation.UNINSTALLED]
