"""Classifier tests: the batched network, the levels of the tests on it, and their refusals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from one_look import TASK, exact, prior
from torch.distributions import Normal

from simulators import sample_joint
from simulators.random import isolated_rng
from validation import (
    Training,
    c2st,
    conformal_c2st,
    conformal_multiple,
    discriminative_calibration,
)
from validation.methods.two_sample import swapped_labels
from validation.scores.classifiers import fit_classifiers
from validation.scores.stacked import Adam, Backpropagation, even_widths, forward, initial_weights
from validation.scores.uniformity import ks_uniform

QUICK = Training(hidden=(8,), max_epochs=8, learning_rate=1e-2, batch_size=50)
METHODS: dict[str, Callable[..., object]] = {
    "c2st": c2st,
    "c2st_mse": partial(c2st, statistic="mse", num_nulls=19),
    "conformal_uniform": partial(conformal_c2st, num_permutations=99),
    "conformal_uniform_fresh": partial(
        conformal_c2st, fresh=lambda n, seed: sample_joint(TASK, n, seed)
    ),
    "conformal_multiple": partial(conformal_multiple, num_permutations=99),
    "discriminative_calibration": partial(discriminative_calibration, num_permutations=99),
}


def ratio(theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Log density ratio of the exact posterior to the prior."""
    joint = Normal(x / 2, 0.5**0.5).log_prob(theta) - Normal(0, 1).log_prob(theta)
    return joint.sum(-1)


def test_networks_trained_together_equal_networks_trained_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(300, 3, generator=generator)
    labels = (torch.rand(4, 300, generator=generator) < torch.sigmoid(features[:, 0])).float()
    together = fit_classifiers(features, labels, training=QUICK, seed=1).logits(features)
    for m in range(4):
        alone = fit_classifiers(features, labels[m : m + 1], training=QUICK, seed=1)
        # Batched products sum in another order: float32 rounding over 8 epochs.
        assert torch.allclose(together[m], alone.logits(features)[0], atol=1e-3)


@pytest.mark.parametrize("layers", [(3, 7, 5, 1), (3, 10, 2), (2, 1)])
def test_the_written_out_gradients_are_those_of_torch(layers: tuple[int, ...]) -> None:
    """With one output and several, with a hidden layer and without, as many networks at once."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn((20, layers[0]), generator=generator)
    labels = (torch.rand((4, 20, layers[-1]), generator=generator) < 0.5).float()
    parameters = [part.requires_grad_() for part in initial_weights(layers, 4, 1)]
    half, values = len(layers) - 1, features.expand(4, -1, -1)
    for k in range(half):
        values = (values if k == 0 else values.relu()) @ parameters[k] + parameters[half + k]
    losses = torch.nn.functional.binary_cross_entropy_with_logits(values, labels, reduction="none")
    expected = torch.autograd.grad(losses.mean(dim=(1, 2)).sum(), parameters)
    found = Backpropagation().gradients(features, labels, [part.detach() for part in parameters])
    assert all(
        torch.allclose(mine, theirs, atol=1e-6)
        for mine, theirs in zip(found, expected, strict=True)
    )


def test_units_of_weight_0_change_nothing_and_stay_so() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn((50, 3), generator=generator)
    labels = (features[:, :1] > 0).float().expand(2, -1, -1)
    narrow = initial_weights((3, 7, 5, 1), 2, 1)
    wide = even_widths(narrow)
    assert [part.shape[2] for part in wide[:3]] == [8, 8, 1]
    for parameters in (narrow, wide):
        optimiser, steps = Adam.start(parameters, 1e-2), Backpropagation()
        for _ in range(20):
            optimiser.step(*steps.gradients(features, labels, parameters))
    assert torch.allclose(
        forward(features, narrow[:3], narrow[3:]), forward(features, wide[:3], wide[3:]), atol=1e-5
    )
    assert not wide[0][:, :, 7:].any()
    assert not wide[1][:, 7:].any()
    assert not wide[2][:, 5:].any()


def test_the_classifier_learns_the_log_odds() -> None:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(4_000, 2, generator=generator)
    labels = (torch.rand(1, 4_000, generator=generator) < torch.sigmoid(2 * features[:, 0])).float()
    logits = fit_classifiers(features, labels, seed=0).logits(features)[0]
    assert float(torch.corrcoef(torch.stack([logits, features[:, 0]]))[0, 1]) > 0.97
    slope = float((logits * features[:, 0]).mean() / features[:, 0].square().mean())
    assert 1.7 < slope < 2.3


def test_constant_columns_and_several_outputs_are_fine() -> None:
    features = torch.cat([torch.randn(60, 1, generator=torch.Generator().manual_seed(2)),
                          torch.full((60, 1), 7.0)], dim=1)  # fmt: skip
    labels = (features[:, :1] > torch.tensor([-1.0, 0.0, 1.0])).float()
    networks = fit_classifiers(features, labels.expand(2, 60, 3), training=QUICK, num_inits=2)
    values = networks.probabilities(features)
    assert values.shape == (2, 60, 3)
    assert bool(torch.isfinite(values).all())
    assert not torch.equal(values[0], values[1])


def test_swapped_labels_are_balanced_within_every_pair() -> None:
    labels = swapped_labels(50, 20, seed=0)
    assert torch.equal(labels[0], torch.cat([torch.zeros(50), torch.ones(50)]))
    assert bool((labels[:, :50] + labels[:, 50:] == 1).all())


@pytest.mark.parametrize("name", METHODS)
def test_classifier_tests_hold_their_level(name: str) -> None:
    rejected = 0
    for seed in range(150):
        theta, x = sample_joint(TASK, 60, seed)
        rejected += METHODS[name](exact, theta, x, training=QUICK, seed=seed).reject()
    # Binomial(150, 0.05): P(more than 17) = 0.0007.
    assert rejected <= 17


def test_conformal_p_values_with_fresh_calibration_are_uniform() -> None:
    p_values = []
    for seed in range(150):
        theta, x = sample_joint(TASK, 60, seed)
        result = METHODS["conformal_uniform_fresh"](exact, theta, x, training=QUICK, seed=seed)
        p_values.append(result.p_value)
    assert ks_uniform(torch.tensor(p_values))[1] > 0.001


@pytest.mark.parametrize("name", METHODS)
def test_the_prior_is_rejected_by_every_classifier_test(name: str) -> None:
    theta, x = sample_joint(TASK, 600, 0)
    assert METHODS[name](prior, theta, x).reject(0.05)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_result(name: str) -> None:
    theta, x = sample_joint(TASK, 60, 1)
    first, again, other = (
        METHODS[name](exact, theta, x, training=QUICK, seed=s) for s in (3, 3, 4)
    )
    assert (first.statistic, first.p_value) == (again.statistic, again.p_value)
    assert first.statistic != other.statistic


def test_a_useless_score_keeps_the_level_and_all_ties_are_broken_at_random() -> None:
    p_values = []
    for seed in range(200):
        theta, x = sample_joint(TASK, 40, seed)
        result = conformal_c2st(
            exact, theta, x, score=lambda t, x: torch.zeros(len(t)), seed=seed, num_permutations=59
        )
        p_values.append(result.p_value)
    # A discrete p-value on a grid of 60: below 0.05 in at most 5%; Binomial(200, 0.05) > 20: 0.001.
    assert sum(p <= 0.05 for p in p_values) <= 20


def test_any_score_is_accepted_and_bad_ones_are_refused() -> None:
    with isolated_rng(0):  # importing scikit-learn draws from Python's global stream
        from sklearn.linear_model import LogisticRegression
        from sklearn.neighbors import KNeighborsClassifier

    theta, x = sample_joint(TASK, 400, 2)
    for score in (ratio, LogisticRegression(), KNeighborsClassifier()):
        result = conformal_c2st(prior, theta, x, score=score, seed=1)
        assert 0.0 < result.p_value <= 1.0
    assert conformal_c2st(prior, theta, x, score=ratio).reject(0.01)
    assert "resampled" in result.details["calibration"]
    assert c2st(prior, theta, x, classifier=KNeighborsClassifier()).reject(0.05)
    with pytest.raises(ValueError, match=r"shape \(200,\); got \(200, 2\)"):
        conformal_c2st(exact, theta, x, score=lambda t, x: t)
    with pytest.raises(ValueError, match="200 of 200 are"):
        conformal_c2st(exact, theta, x, score=lambda t, x: t[:, 0] * float("nan"))
    with pytest.raises(TypeError, match="got float"):
        conformal_c2st(exact, theta, x, score=1.0)


def test_the_oracle_form_compares_with_the_reference_at_one_observation() -> None:
    theta, x = sample_joint(TASK, 20, 3)
    x_o = torch.tensor([0.5, -0.5])
    reference = TASK.reference_posterior(x_o, 2_000)
    same = c2st(exact, theta, x, x_o=x_o, reference=reference)
    wrong = c2st(prior, theta, x, x_o=x_o, reference=reference)
    assert not same.reject(0.01)
    assert wrong.reject(0.01)
    assert same.details["form"] == "oracle at x_o"
    with pytest.raises(ValueError, match="belong together"):
        c2st(exact, theta, x, x_o=x_o)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, x: c2st(exact, t, x, statistic="auc"), "got 'auc'"),
        (lambda t, x: conformal_c2st(exact, t, x, variant="all"), "got 'all'"),
        (
            lambda t, x: conformal_c2st(exact, t, x, num_calibration=0),
            "`num_calibration` must be a whole number of at least 1; got 0",
        ),
        (lambda t, x: conformal_c2st(exact, t, x, train_fraction=1.5), r"got 1\.5"),
        (lambda t, x: discriminative_calibration(exact, t, x, null="all"), "got 'all'"),
        (lambda t, x: c2st(exact, t[:10], x[:10]), "at least 20 pairs for this test; got 10"),
        (lambda t, x: c2st(exact, t, x, train_fraction=0.01), "leaves 1 in one part"),
        (lambda t, x: c2st(lambda n, x: torch.zeros(n, len(x), 2) / 0.0, t, x), "hold NaN"),
    ],
)
def test_bad_arguments_are_refused_with_what_came(
    call: Callable[..., object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(*sample_joint(TASK, 60, 4))
