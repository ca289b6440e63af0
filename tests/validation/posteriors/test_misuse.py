"""What is near a posterior but none is refused in one line that says what to pass."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest
import torch
import zuko
from scipy import stats
from torch.distributions import Independent, Normal

import validation
from simulators import GaussianLinear, sample_joint
from simulators.random import isolated_rng
from validation import as_posterior

X = torch.zeros(4, 2)


def flow(context: int) -> Any:
    with isolated_rng(0):
        return zuko.flows.MAF(2, context, hidden_features=(8,))


class Joint:
    """Draws of theta and x together, as a model of p(theta, x) gives them."""

    def sample(self, num_samples: int, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(num_samples, len(x), 4)


NEAR_MISSES = {
    "a zuko distribution at one x": (lambda: flow(2)(X[0]), "one distribution .* the flow itself"),
    "an unconditional flow": (lambda: flow(0), "a zuko MAF without a context.* context="),
    "a distribution of torch": (lambda: Independent(Normal(X, 1.0), 1), "a function x -> distr"),
    "its bound sample": (lambda: Normal(X, 1.0).sample, "a function x -> distribution"),
    "a frozen distribution of scipy": (lambda: stats.norm(0, 1), r"lambda x: scipy.stats.norm\(x"),
    "a newer one": (stats.Normal, "one scipy distribution"),
    "one of many variables": (lambda: stats.multivariate_normal([0, 0]), "one scipy distribution"),
    "a data frame": (lambda: pd.DataFrame({"a": [1.0]}), "an array of samples"),
    "a class": (lambda: Joint, "the class Joint: pass an object"),
    "nothing": (lambda: None, "got NoneType"),
}


def check_line(error: pytest.ExceptionInfo[BaseException], words: str) -> None:
    message = str(error.value)
    assert message.startswith("`q`")
    assert "\n" not in message
    assert re.search(words, message), message


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses_are_refused(name: str) -> None:
    build, words = NEAR_MISSES[name]
    with pytest.raises(TypeError) as error:
        as_posterior(build())
    check_line(error, words)


@pytest.mark.filterwarnings("ignore")
def test_what_sbi_has_besides_posteriors_is_refused(sbi_trainers: dict[str, Any]) -> None:
    inference = pytest.importorskip("sbi.inference")
    with isolated_rng(0):
        potential = sbi_trainers["NRE"].build_posterior().potential_fn
    near_misses = [
        (inference.NPE, "the class NPE_C, not a posterior: .*build_posterior"),
        (inference.DirectPosterior, "the class DirectPosterior, not a posterior"),
        (sbi_trainers["NPE"], "an sbi trainer .NPE_C.*build_posterior"),
        (sbi_trainers["NLE"], "an sbi trainer .NLE_A.*build_posterior"),
        (inference.MCABC(lambda theta: theta, sbi_trainers["NPE"]._prior), "PerObservation"),
        (potential.ratio_estimator, "does not draw.*build_posterior"),
        (sbi_trainers["NPSE"]._neural_net, "does not draw.*build_posterior"),
        (potential, "does not draw.*build_posterior"),
    ]
    for near_miss, words in near_misses:
        with pytest.raises(TypeError) as error:
            as_posterior(near_miss)
        check_line(error, words)


@pytest.mark.filterwarnings("ignore")
def test_a_method_stands_for_its_posterior(sbi_posteriors: dict[str, Any]) -> None:
    posterior = sbi_posteriors["direct"].posterior
    drawn = as_posterior(posterior).sample(5, X, 1)
    for method in (posterior.sample, posterior.sample_batched):
        assert torch.equal(as_posterior(method).sample(5, X, 1), drawn)


@pytest.mark.parametrize(
    ("q", "words"),
    [
        (lambda num_samples, x: None, "returned None. End it with return"),
        (lambda x: None, "returned None"),
        (lambda num_samples, x: {"theta": 1}, "returned dict. Return one tensor"),
        (lambda x: x, r"returned Tensor. To return samples, take \(num_samples, x\)"),
        (lambda x: stats.multivariate_normal(x[0]), "a distribution at one x"),
    ],
)
def test_what_returns_no_samples_says_what_it_returned(q: Any, words: str) -> None:
    with pytest.raises(TypeError) as error:
        as_posterior(q).sample(5, X)
    check_line(error, words)


def test_draws_of_theta_and_x_together_are_refused() -> None:
    theta, x = sample_joint(GaussianLinear(2, 1.0, 1.0), 60, seed=0)
    with pytest.raises(ValueError, match="`q` must draw parameters of dimension 2") as error:
        validation.sbc(Joint(), theta, x)
    check_line(error, "draws have 4")


class BasicWorkflow:
    """As BayesFlow's, by the name of its module."""


BasicWorkflow.__module__ = "bayesflow.workflows.basic_workflow"


def test_a_workflow_of_bayesflow_is_refused_with_the_line_to_write() -> None:
    with pytest.raises(TypeError) as error:
        as_posterior(BasicWorkflow())
    check_line(error, r"conditions=\{'x': x.numpy\(\)\}, seed=seed\)\['theta'\], layout=")


def test_x_of_another_width_than_a_network_takes_is_told() -> None:
    with pytest.raises(ValueError, match="which its network does not take") as error:
        as_posterior(flow(2)).sample(5, torch.zeros(4, 3))
    check_line(error, r"x of shape \(4, 3\), which its network does not take")
