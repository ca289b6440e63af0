"""Which model? The way of a comparison: simulate each, train, calibrate, check, judge at x_o."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from torch import Tensor, nn

from simulators import Simulations
from simulators.arguments import number
from simulators.random import as_count, as_seed, child_seed
from simulators.running.engines import Workers, check_workers, open_engine
from validation.threads import one_thread

from ..training.torch_settings import usual_torch
from .classifier import check_encoder, train_classifier
from .judging import Trained, Unseen
from .models import check_model_prior, pose_models
from .pairs import given_of, parted, simulate_models
from .result import ModelComparison

_FRACTION = number("in [0, 1/2]", lambda value: 0.0 <= value <= 0.5)


def compare_models(
    models: Mapping[str, Any] | Sequence[Any],
    x_o: Any,
    *,
    num_simulations: int = 10_000,
    model_prior: Sequence[float] | Mapping[str, float] | Tensor | None = None,
    seed: int = 0,
    check_fraction: float = 0.15,
    encoder: str | nn.Module = "auto",
    simulations: Mapping[str, Simulations] | Sequence[Simulations] | None = None,
    names: Sequence[str] | None = None,
    workers: Workers = 1,
    timeout: float | None = None,
    progress: bool = True,
) -> ModelComparison:
    r"""Infer which of several models made one observation, and judge the answer.

        p(m | x_o) = p(m) p(x_o | m) / sum_k p(k) p(x_o | k)

    Each model gets the same number of simulations, with theta from its prior, so that p(x | m) is
    the evidence: theta is integrated out. Networks learn to tell from x which model made it, which
    gives ratios of evidences; these are calibrated, and tested, on pairs that none of them saw. One
    round serves every x: see :meth:`ModelComparison.at`.

    Args:
        models: two or more: a dict of names and (prior, simulator), or a list of such pairs. Both
            take every form that :func:`fit` takes, and x of all models has the same values. A
            task of :mod:`simulators` may stand for a pair.
        x_o: the observation, as for :func:`fit`.
        num_simulations: simulator calls in all, failed ones included, shared equally by the models.
        model_prior: prior probability of each model, as a list or by name; equal ones when omitted.
            It need not have decided how often each was simulated: evidences do not depend on it.
        seed: whole number of at least 0. The same arguments and seed give the same comparison, with
            any number of workers.
        check_fraction: share of the pairs, in [0, 1/2], kept for testing the probabilities. Without
            them (0) the verdict cannot tell.
        encoder: what the networks see of x: a name that ``ABIConfig.encoder`` takes, "auto" for the
            one that predicts best, or your own torch module x (n, p) -> features (n, k).
        simulations: pairs made before, with theta drawn from the prior: a dict by model, or a list
            of one a model. They are used beside the calls, of which there may be 0 then.
        names: of the models of a list; model_1, ... when omitted.
        workers: processes that simulate at the same time, or a cluster, as for :func:`fit`.
        timeout: seconds after which a simulation counts as failed.
        progress: show a progress bar.

    Returns:
        The probabilities of the models at ``x_o``, Bayes factors with intervals, and a verdict.

    Raises:
        TypeError, ValueError: if an argument is not as described, or a model is left with too few
            simulations. The message names the argument and what to do.

    Warns:
        UserWarning: if ``x_o`` is unlike the data of every model; probabilities then say little.

    Failed simulations are left out. All probabilities are then conditional on a simulation
    succeeding.

    Source: Pudlo et al. (2016), Bioinformatics 32, and Radev et al. (2021), "Amortized Bayesian
    model comparison", for models by classifiers of simulated data.
    """
    check_workers(workers, timeout)
    num_simulations = as_count(num_simulations, "num_simulations")
    seed = as_seed(seed)
    check_fraction = _FRACTION(check_fraction, "check_fraction")
    own = encoder if isinstance(encoder, nn.Module) else None
    if own is None:
        check_encoder(encoder)
    posed = pose_models(models, x_o, names, own, timeout)
    prior = check_model_prior(model_prior, posed.names)
    given = given_of(simulations, posed.names)
    with one_thread(), usual_torch(), closing(open_engine(workers, timeout)) as engine:
        made = simulate_models(posed, num_simulations, given, engine, child_seed(seed, 1), progress)
        parts = parted(made.x, check_fraction, child_seed(seed, 2))
        classifier = train_classifier(
            parts.training, parts.calibration, posed.layout, encoder, child_seed(seed, 3)
        )
        lost = tuple(map(len, made.failures))
        unseen = Unseen(parts.calibration, parts.check, made.calls, lost)
        returned = posed.problems[0].returned
        found = Trained(posed.names, posed.x_o, prior, classifier, unseen, returned, seed)
        comparison = ModelComparison.of(found)
    if comparison.verdict.rare:
        warnings.warn(
            "`x_o` is unlike the data of every model: the most probable one may still be wrong. "
            "Check the units of x_o, the order of its values, and the models.",
            stacklevel=2,
        )
    return comparison
