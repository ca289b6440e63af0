"""Whether x_o could be data of the model: the level and power of the test, and who is told."""

from __future__ import annotations

import warnings
from dataclasses import replace

import problems
import pytest
import torch
from scipy.stats import binomtest
from torch import Tensor

import abi
from abi.cli.app import _say
from abi.rounds.plausibility import implausible, plausibility
from simulators import MG1, sample_joint
from simulators.random import isolated_rng

QUICK = abi.ABIConfig(num_flows=1, encoder="flat")
INSIDE, OUTSIDE = torch.full((6,), 0.5), torch.full((6,), 40.0)


def normals(num: int, seed: int) -> Tensor:
    with isolated_rng(seed):
        return torch.randn(num, 8)


@pytest.mark.parametrize("encoder", [None, "moments", "both_orders"])
def test_it_holds_its_level_where_x_o_is_data_of_the_model(encoder: str | None) -> None:
    p_values = []
    for seed in range(400):
        x = normals(100, seed)
        p_values.append(plausibility(x[1:], x[0], seed, encoder))
    for alpha in (0.05, 0.2):
        rejected = sum(p <= alpha for p in p_values)
        assert binomtest(rejected, 400, alpha, alternative="greater").pvalue > 1e-3


def test_ties_do_not_make_an_observation_strange() -> None:
    x = (normals(200, 0) > 0).float()
    assert plausibility(x[1:], x[0], 0) > 0.05
    assert plausibility(torch.ones(60, 8), torch.ones(8), 0) == 1.0


def test_an_observation_beyond_all_simulations_has_the_least_p() -> None:
    x = normals(399, 1)
    assert plausibility(x, torch.full((8,), 9.0), 0) == pytest.approx(1 / 400)
    constant = torch.cat([x, torch.ones(399, 1)], dim=1)  # always 1, and once not
    assert plausibility(constant, torch.tensor([0.0] * 8 + [2.0]), 0) == pytest.approx(1 / 400)


def test_the_moments_tell_what_the_values_hide() -> None:
    x, flat = normals(999, 2), 1e-4 * normals(1, 3)[0]  # no value is strange, their spread is
    assert plausibility(x, flat, 0) > 0.5
    assert plausibility(x, flat, 0, "moments") == pytest.approx(2 / 1_000)


def test_of_many_rows_some_are_drawn_by_the_seed() -> None:
    _, x = sample_joint(MG1(), 3_000, seed=0)
    first, again, other = (plausibility(x, MG1().observation, seed) for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize(
    "config", [QUICK, abi.ABIConfig.paper(generator="mixture", encoder="flat")]
)
def test_a_fit_warns_of_an_observation_that_no_theta_gives(config: abi.ABIConfig) -> None:
    def fit(x_o: Tensor) -> abi.ABIPosterior:
        return abi.fit(
            problems.BOX, problems.simulate, x_o, num_simulations=1_000, num_rounds=2,
            config=config, progress=False,
        )  # fmt: skip

    found = fit(INSIDE)  # a warning would be an error
    assert all(record.x_o_p_value > 0.05 for record in found.rounds)
    with pytest.warns(UserWarning, match=r"`x_o` is unusual for this model \(p = 0"):
        found = fit(OUTSIDE)
    assert found.rounds[-1].x_o_p_value < 0.01


def test_records_of_earlier_fits_are_read() -> None:
    record = abi.RoundRecord(1, 1.0, 100, 0.0, 100, 50, 100, 0, "flat", None, None, 1.0, 0.5)
    values = record.to_dict()
    assert abi.RoundRecord.from_dict(values) == record
    del values["x_o_p_value"]
    assert abi.RoundRecord.from_dict(values) == replace(record, x_o_p_value=None)
    assert implausible(None) is None


def test_the_command_line_says_a_warning_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _say
        warnings.warn("`x_o` lies outside", stacklevel=1)
    assert capsys.readouterr().err == "abi: `x_o` lies outside\n"
