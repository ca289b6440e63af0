"""Honest fits of models whose posterior is known: does the verdict say how wrong they are?

The same fits without check pairs, all calls to training, say what those pairs cost.

Each is a fit with its own check pairs, and more of them drawn afterwards, as ``posterior.check``
draws them. Its bias and sd ratios at x_o, from exact draws, are set beside the verdict's intervals,
and its C2ST against exact draws (sbibm's classifier) beside the expected one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

import simulators
from simulators import sample_joint
from simulators.random import child_seed

from .... import metrics
from ....posterior import ABIPosterior
from ....rounds.judging import judge_answer
from ....sampler import fit
from ....verdict.record import Verdict
from .cells import Asked, Worked

MODELS: Mapping[str, Callable[[], Any]] = {
    "two_moons": simulators.TwoMoons,
    "gaussian_mixture": simulators.GaussianMixture,
    "gaussian_linear": lambda: simulators.GaussianLinear(10, 0.1, 0.1),
    "gaussian_linear_uniform": simulators.GaussianLinearUniform,
    "bernoulli_glm": simulators.BernoulliGLM,
    "multimodal_gaussian": simulators.MultimodalGaussian,
    "mg1": simulators.MG1,
    "cosine": simulators.Cosine,
}
MORE = 600
"""Calls of the further check."""
_NUM_DRAWS = 4_000  # of the answer and of the exact posterior, for moments
_NUM_C2ST = 1_500


def wanted(
    part: str, budgets: Sequence[int], observations: Sequence[int], seed: int
) -> list[dict[str, Any]]:
    """One cell a model, budget and observation."""
    return [
        {"part": part, "model": model, "calls": calls, "observation": k, "seed": seed}
        for k in observations
        for calls in budgets
        for model in MODELS
    ]


def work_fit(asked: Asked) -> Worked:
    """Fit, judge, judge further, and compare with the exact posterior."""
    started = time.process_time()
    task, posterior = _fitted(asked)
    fit_seconds = time.process_time() - started
    judge_seconds = _seconds_of_judging(posterior)
    started = time.process_time()
    further = posterior.check(MORE)
    check_seconds = time.process_time() - started
    exact = task.reference_posterior(posterior.x_o, _NUM_DRAWS, seed=1)
    draws = posterior.sample((_NUM_DRAWS,), seed=1)
    unit = draws.std(dim=0)
    return {
        "verdict": _kept(posterior.verdict),
        "further": _kept(further.verdict),
        "bias": ((draws.mean(dim=0) - exact.mean(dim=0)) / unit).tolist(),
        "sd_ratio": (unit / exact.std(dim=0)).tolist(),
        "c2st": metrics.c2st(draws[:_NUM_C2ST], exact[:_NUM_C2ST]),
        "fit_seconds": round(fit_seconds, 1),
        "check_seconds": round(check_seconds, 2),
        "judge_seconds": round(judge_seconds, 2),
    }


def work_price(asked: Asked) -> Worked:
    """The C2ST of the same fit without check pairs."""
    task, posterior = _fitted(asked, check_fraction=0.0)
    exact = task.reference_posterior(posterior.x_o, _NUM_C2ST, seed=1)
    return {"c2st": metrics.c2st(posterior.sample((_NUM_C2ST,), seed=1), exact)}


def _fitted(asked: Asked, **options: Any) -> tuple[Any, ABIPosterior]:
    """The model, and its fit to an observation drawn from prior and simulator."""
    torch.set_num_threads(1)
    task = MODELS[asked["model"]]()
    seed = child_seed(asked["seed"], asked["observation"])
    x_o = sample_joint(task, 1, seed=seed)[1][0]
    calls, own = asked["calls"], seed % 1_000
    posterior = fit(
        task.prior, task, x_o, num_simulations=calls, seed=own, progress=False, **options
    )
    return task, posterior


def _seconds_of_judging(posterior: ABIPosterior) -> float:
    """CPU seconds that the verdict of a fit took, its pairs given."""
    if (answer := posterior.answer) is None or posterior.pairs is None:
        return 0.0
    started = time.process_time()
    judge_answer(answer, posterior.pairs, posterior.verdict.seed)
    return time.process_time() - started


def _kept(verdict: Verdict) -> dict[str, Any]:
    """What of a verdict the tables need."""
    check = verdict.check
    return {
        "outcome": verdict.outcome,
        "headline": verdict.headline,
        "p_value": check.p_value,
        "num_pairs": check.num_pairs,
        "expected_c2st": check.expected_c2st,
        "parameters": [
            [part.bias_low, part.bias_high, part.sd_ratio_low, part.sd_ratio_high]
            for part in check.parameters
        ],
    }
