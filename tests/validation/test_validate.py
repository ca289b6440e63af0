"""`validate` and `validate_at`: one p-value, what is wrong in words, and what it costs of q."""

from __future__ import annotations

import math
import time

import pandas as pd
import pytest
import torch
from one_look import SD, TASK, exact_law
from torch import Tensor
from torch.distributions import Normal

import validation
from simulators import GaussianLinear, sample_joint
from simulators.random import isolated_rng
from validation import Report, validate, validate_at


def narrow(x: Tensor) -> Normal:
    return Normal(x / 2, SD * torch.tensor([1.0, 0.6]))


@pytest.fixture(scope="module")
def joint() -> tuple[Tensor, Tensor]:
    return sample_joint(TASK, 300, seed=1)


@pytest.fixture(scope="module")
def rejected(joint: tuple[Tensor, Tensor]) -> Report:
    return validate(narrow, *joint, seed=1)


def test_a_wrong_posterior_is_rejected_and_what_is_wrong_is_said(rejected: Report) -> None:
    assert rejected.rejects
    assert rejected.p_value == pytest.approx(1 / 500)
    assert rejected.rejected == ("panel",)
    assert rejected.failures[0].startswith("theta_2 is too narrow by ")
    assert rejected.to_dict()["failures"] == list(rejected.failures)


def test_an_exact_posterior_is_rejected_at_the_level_whichever_x_o() -> None:
    tries, rejections = 60, [0, 0]
    for seed in range(tries):
        theta, x = sample_joint(TASK, 80, seed=seed)
        rejections[0] += validate(exact_law, theta, x, seed=seed).rejects
        rejections[1] += validate_at(
            exact_law, theta, x, torch.zeros(2), "panel", seed=seed
        ).rejects
    most = 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / tries)
    assert max(rejections) / tries <= most


def test_a_posterior_that_is_wrong_at_x_o_alone_is_rejected_there_and_named() -> None:
    def wrong_above(x: Tensor) -> Normal:
        return Normal(x / 2, SD * torch.where(x[:, :1] > 1.5, 0.4, 1.0))

    theta, x = sample_joint(TASK, 1_500, seed=2)
    above, below = torch.tensor([2.5, 0.0]), torch.tensor([-2.5, 0.0])
    there = validate_at(wrong_above, theta, x, above, "panel")
    assert there.rejects
    assert any("too narrow" in text for text in there.failures)
    assert validate_at(wrong_above, theta, x, below, "panel").p_value > 5.0 * there.p_value


def test_the_local_tests_stand_beside_the_p_value_at_x_o(joint: tuple[Tensor, Tensor]) -> None:
    report = validate_at(exact_law, *joint, joint[1][0])
    assert [result.method for result in report.results] == ["panel", "lc2st", "local_hpd"]
    assert report.p_value == report.results[0].p_value
    assert "lc2st" in report.results[0].details["p_values"]
    with pytest.raises(ValueError, match="`x_o` must be one observation"):
        validate_at(exact_law, *joint, joint[1][:2])
    with pytest.raises(ValueError, match="`methods` must be out of panel, lc2st, local_hpd"):
        validate_at(exact_law, *joint, joint[1][0], "sbc")
    with pytest.raises(ValueError, match="take validate_at"):
        validate(exact_law, *joint, x_o=joint[1][0])


def test_at_the_prompt_it_is_a_line_and_printed_ten(rejected: Report) -> None:
    assert len(repr(rejected)) < 90
    lines = str(rejected).splitlines()
    assert len(lines) <= 10
    assert lines[0] == "rejected: p = 0.002 for q being the posterior, 300 pairs"
    assert "<table" in rejected._repr_html_()
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(rejected)


def test_data_frames_name_what_is_wrong(joint: tuple[Tensor, Tensor]) -> None:
    theta = pd.DataFrame(joint[0].numpy(), columns=["speed", "angle"])
    report = validate(narrow, theta, pd.DataFrame(joint[1].numpy()), seed=1)
    assert report.failures[0].startswith("angle is too narrow by ")


def test_q_is_drawn_as_often_as_the_tests_need_and_once(joint: tuple[Tensor, Tensor]) -> None:
    asked: list[int] = []

    def counted(num_samples: int, x: Tensor) -> Tensor:
        asked.append(num_samples * len(x))
        with isolated_rng(num_samples):
            return x / 2 + SD * torch.randn(num_samples, *x.shape)

    validate(counted, *joint)
    assert sum(asked) == 100 * 300
    asked.clear()
    validate(counted, *joint, ["sbc", "hpd"], num_samples=94)
    assert sum(asked) == 94 * 300


def test_named_tests_are_adjusted_for_their_number_and_all_can_be_named(
    joint: tuple[Tensor, Tensor],
) -> None:
    report = validate(narrow, *joint, ["sbc", "tarp", "hpd"], num_samples=50)
    assert report.p_value == min(report.adjusted)
    assert report.failures[0].startswith("sbc rejects: it sees marginals")
    assert validation.run.test_names("all") == list(validation.METHODS)
    with pytest.raises(ValueError, match='`methods` must be "all" or out of panel, sbc'):
        validate(exact_law, *joint, "sbx")


def test_the_same_seed_gives_the_same_answer(
    rejected: Report, joint: tuple[Tensor, Tensor]
) -> None:
    again = validate(narrow, *joint, seed=1)
    assert again.to_dict() == rejected.to_dict()


@pytest.mark.parametrize(("count", "width"), [(10, 1), (20, 40)])
def test_few_pairs_and_many_parameters_are_judged(count: int, width: int) -> None:
    theta, x = sample_joint(GaussianLinear(width, 1.0, 1.0), count, seed=3)
    report = validate(exact_law, theta, x)
    assert 0.0 < report.p_value <= 1.0
    assert report.results[0].details["num_pairs"] == count


def test_pairs_that_do_not_fit_into_memory_are_fewer_and_that_is_said() -> None:
    from validation.methods.panel import num_draws

    theta, x = sample_joint(GaussianLinear(100, 1.0, 1.0), 4_000, seed=4)
    start = time.process_time()
    result = validation.panel(exact_law, theta, x, num_swaps=19)
    assert time.process_time() - start < 60.0
    assert result.details["num_pairs"] < 4_000
    assert result.details["num_samples"] == num_draws(4_000, 100) == 25
