"""L-C2ST and its relatives at single observations: levels, reuse of the null, refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from one_look import SD, TASK, exact, wrong_for_positive_x
from torch import Tensor
from torch.distributions import Normal

from simulators import sample_joint
from validation import Training, as_posterior, fit_flow_null, fit_lc2st, lc2st
from validation.methods.local import base_space
from validation.methods.local import classifier as local_classifier
from validation.posteriors.protocol import BatchedPosterior
from validation.scores.classifiers import fit_classifiers

QUICK = Training(hidden=(8,), max_epochs=8, learning_rate=1e-2, batch_size=50)
X_O = torch.tensor([[0.0, 0.0], [1.5, -1.0], [-2.0, 2.0]])


def affine_flow(scale: float) -> BatchedPosterior:
    """A flow ``theta = x / 2 + scale z``; exact for scale = SD."""
    return BatchedPosterior(
        lambda num, x: x / 2 + scale * torch.randn(num, *x.shape),
        "affine flow",
        base=lambda theta, x: (theta - x / 2) / scale,
    )


@pytest.mark.parametrize(
    ("labels", "start"), [("pairs", "shared"), ("pairs", "own"), ("pooled", "own")]
)
def test_lc2st_holds_its_level_at_one_observation_and_over_several(labels: str, start: str) -> None:
    single = several = 0
    for seed in range(100):
        theta, x = sample_joint(TASK, 60, seed)
        fitted = fit_lc2st(
            exact, theta, x, num_nulls=19, labels=labels, start=start, training=QUICK, seed=seed
        )
        single += fitted.test(X_O[1], num_samples=100).reject()
        several += fitted.test(X_O, num_samples=100).reject()
    # Binomial(100, 0.05): P(more than 13) = 0.0005.
    assert single <= 13
    assert several <= 13


def test_the_flow_version_holds_its_level_with_one_null_for_many_flows() -> None:
    rejected = 0
    for seed in range(100):
        theta, x = sample_joint(TASK, 60, seed)
        fitted = fit_lc2st(
            affine_flow(SD), theta, x, flow=True, num_nulls=19, training=QUICK, seed=seed
        )
        rejected += fitted.test(X_O[1], num_samples=100).reject()
    # Binomial(100, 0.05): P(more than 13) = 0.0005.
    assert rejected <= 13


def test_a_precomputed_null_gives_the_same_p_value_and_serves_another_flow() -> None:
    theta, x = sample_joint(TASK, 400, 0)
    training = Training(hidden=(16,), max_epochs=30, learning_rate=1e-2, batch_size=50)
    null = fit_flow_null(x, 2, num_nulls=29, training=training, seed=3)
    reuse = partial(fit_lc2st, theta=theta, x=x, flow=True, flow_null=null)
    alone = fit_lc2st(
        affine_flow(SD), theta, x, flow=True, num_nulls=29, training=training, seed=3
    ).test(X_O)
    assert reuse(affine_flow(SD)).test(X_O).p_value == alone.p_value
    assert reuse(affine_flow(0.3)).test(X_O).reject()
    with pytest.raises(ValueError, match="same observations"):
        fit_lc2st(affine_flow(SD), theta, x + 1, flow=True, flow_null=null)
    with pytest.raises(NotImplementedError, match="not a flow"):
        fit_lc2st(exact, theta, x, flow=True, flow_null=null)


def test_lc2st_finds_where_the_posterior_fails() -> None:
    theta, x = sample_joint(TASK, 1_000, 1)
    fitted = fit_lc2st(wrong_for_positive_x, theta, x, num_nulls=50)
    assert fitted.test(torch.tensor([2.0, 0.0])).p_value == pytest.approx(1 / 51)
    assert fitted.test(torch.tensor([-2.0, 0.0])).p_value > 0.05


def test_without_an_observation_lc2st_holds_some_out() -> None:
    theta, x = sample_joint(TASK, 100, 2)
    result = lc2st(exact, theta, x, num_nulls=9, num_x_o=4, training=QUICK)
    assert len(result.details["p_values"]) == 4
    assert all(any(torch.equal(row, known) for known in x) for row in result.details["x_o"])


def test_adjusted_p_values_are_never_below_the_raw_ones() -> None:
    theta, x = sample_joint(TASK, 100, 3)
    details = fit_lc2st(exact, theta, x, num_nulls=19, training=QUICK).test(X_O).details
    assert all(
        adjusted >= raw
        for raw, adjusted in zip(details["p_values"], details["p_values_adjusted"], strict=True)
    )


def test_folds_and_ensembles_average_their_networks() -> None:
    theta, x = sample_joint(TASK, 90, 4)
    for flow, q in ((False, exact), (True, affine_flow(SD))):
        fitted = fit_lc2st(
            q, theta, x, num_nulls=5, num_folds=3, num_ensemble=2, flow=flow, training=QUICK
        )
        assert len(fitted.folds) == 3
        assert 0.0 < fitted.test(X_O).p_value <= 1.0


@pytest.mark.parametrize("flow", [False, True])
def test_a_null_is_the_same_null_in_every_fold(flow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nulls drawn anew in each fold are too narrow: exact posteriors were rejected 13% of the time.

    Seen by what the networks are given: where two folds share a row, its label (or its draw of the
    base) is one and the same in all of them.
    """
    seen: list[dict[tuple[float, ...], Tensor]] = []
    module = base_space if flow else local_classifier

    def spy(features: Tensor, labels: Tensor, **keywords: Any) -> Any:
        rows = features[0, :, -2:] if flow else features
        given = features[..., :2].transpose(0, 1) if flow else labels.T
        half = len(rows) // 2  # of one class: each observation comes once
        seen.append({tuple(row.tolist()): g for row, g in zip(rows[:half], given, strict=False)})
        return fit_classifiers(features, labels, **keywords)

    monkeypatch.setattr(module, "fit_classifiers", spy)
    theta, x = sample_joint(TASK, 60, 4)
    if flow:
        fit_flow_null(x, 2, num_nulls=5, num_folds=3, training=QUICK)
    else:
        fit_lc2st(exact, theta, x, num_nulls=5, num_folds=3, training=QUICK)
    assert len(seen) == 3
    shared = seen[0].keys() & seen[1].keys()
    assert len(shared) == 20
    assert all(torch.equal(seen[0][row], seen[1][row]) for row in shared)


def test_pp_curves_are_distribution_functions_inside_the_unit_square() -> None:
    theta, x = sample_joint(TASK, 100, 5)
    curves = fit_lc2st(exact, theta, x, num_nulls=19, training=QUICK).test(X_O[0]).details["pp"]
    assert bool((curves["observed"].diff() >= 0).all())
    assert bool((curves["low"] <= curves["high"]).all())
    assert float(curves["observed"][-1]) == 1.0


@pytest.mark.moves_global_rng
def test_draws_at_x_o_can_be_given_for_a_posterior_that_is_only_samples() -> None:
    theta, x = sample_joint(TASK, 80, 6)
    stored = as_posterior((theta, x, exact(1, x)), layout="samples_first")
    fitted = fit_lc2st(stored, theta, x, num_nulls=9, training=QUICK)
    with pytest.raises(ValueError, match="not one of them"):
        fitted.test(X_O[0], num_samples=1)
    assert fitted.test(X_O[0], theta_o=exact(50, X_O[:1])[:, 0]).p_value > 0.0
    with pytest.raises(ValueError, match=r"at each of the 3 observations"):
        fitted.test(X_O, theta_o=torch.zeros(5, 2))


@pytest.mark.parametrize(
    ("keywords", "x_o", "message"),
    [
        ({"num_nulls": 0}, X_O, "`num_nulls` must be a whole number of at least 1; got 0"),
        ({"labels": "rows"}, X_O, "got 'rows'"),
        ({"start": "same"}, X_O, "got 'same'"),
        ({}, torch.zeros(3), r"2 finite values an observation; got shape \(3,\)"),
        ({}, torch.tensor([0.0, float("nan")]), "1 of its values are NaN or infinite"),
        ({"num_x_o": 45}, None, "at least 20 of the 60 pairs; got 45"),
    ],
)
def test_bad_arguments_are_refused(
    keywords: dict[str, object], x_o: Tensor | None, message: str
) -> None:
    def undrawn(x: Tensor) -> Normal:
        raise AssertionError("arguments are checked before the posterior is drawn from")

    theta, x = sample_joint(TASK, 60, 7)
    with pytest.raises(ValueError, match=message):
        lc2st(undrawn, theta, x, x_o, **({"training": QUICK, "num_nulls": 3} | keywords))


def test_the_same_seed_gives_the_same_p_value() -> None:
    theta, x = sample_joint(TASK, 60, 8)
    run = partial(lc2st, lambda x: Normal(x / 2, SD), theta, x, num_nulls=9, training=QUICK)
    assert run(seed=1).statistic == run(seed=1).statistic != run(seed=2).statistic
