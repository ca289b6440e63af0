"""Posteriors as their users write them: weighted, seeded, in float64, far from 0, in any units."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zuko
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor
from torch.distributions import Independent, Uniform

import validation
from simulators import GaussianLinear, sample_joint
from simulators.random import isolated_rng, torch_generator
from validation import ColtTraining, as_posterior
from validation.laboratory.trials import WholeTest, described
from validation.perturbations import nptbench, tree
from validation.results.report_file import load_report
from validation.scores.uniformity import permutation_p

TASK = GaussianLinear(2, 1.0, 1.0)  # theta given x is N(x / 2, 1/2)
SPREAD = 0.5**0.5
BRIEF = ColtTraining(hidden=(16,), epochs=20)
COLT = validation.METHODS["colt_identity"]


def normals(num_samples: int, x: Tensor, seed: int, width: float = SPREAD) -> Tensor:
    noise = torch.randn(num_samples, *x.shape, generator=torch_generator(seed + 1_000))
    return x / 2 + width * noise


class Protocol:
    """The protocol's signature, and an answer of any kind."""

    def __init__(self, change: Any) -> None:
        self.change = change

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Any:
        return self.change(normals(num_samples, x, seed))


class KeywordSeed:
    def sample(self, num_samples: int, x: Tensor, *, seed: int = 0) -> Tensor:
        return normals(num_samples, x, seed)


class OneAtATime:
    def sample(self, sample_shape: Any, x: Tensor, *, seed: int = 0) -> Tensor:
        return normals(int(sample_shape[0]), x[None], seed)[:, 0]


def with_default_seed(num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
    return normals(num_samples, x, seed)


def test_few_weighted_particles_keep_the_level() -> None:
    """A draw that is ranked does not meet itself among those that told the density."""
    theta, x = sample_joint(TASK, 300, seed=0)
    for num_particles in (100, 400):
        rejected = {"hpd": 0, "colt_identity": 0}
        for seed in range(8):
            particles = normals(num_particles, x, seed)
            q = as_posterior(
                (theta, x, particles),
                layout="samples_first",
                weights=torch.ones(particles.shape[:2]),
            )
            rejected["hpd"] += validation.hpd(q, theta, x, num_samples=400).p_value <= 0.01
            p = COLT(q, theta, x, num_samples=100, training=BRIEF).p_value
            rejected["colt_identity"] += p <= 0.01
        assert max(rejected.values()) <= 1, rejected


def test_weights_are_the_shares_of_the_particles() -> None:
    weights = torch.tensor([[0.0, 5.0], [1.0, 0.0], [3.0, 5.0]])
    samples = torch.arange(3.0)[:, None, None].expand(3, 2, 1)
    q = as_posterior(
        (torch.zeros(2, 1), torch.eye(2), samples), layout="samples_first", weights=weights
    )
    drawn = q.sample(400, torch.eye(2))[..., 0]
    shares = torch.stack([(drawn == k).float().mean(dim=0) for k in range(3)])
    assert torch.allclose(shares, weights / weights.sum(dim=0), atol=1 / 400)
    # One particle's draws come together: two parts of the draws share one at most.
    assert ((drawn[1:] != drawn[:-1]).sum(dim=0) == 1).all()


@pytest.mark.parametrize(
    "q", [with_default_seed, KeywordSeed(), OneAtATime(), KeywordSeed().sample]
)
def test_a_seed_with_a_default_is_given(q: Any) -> None:
    posterior = as_posterior(q, batch_size=5)
    x = torch.zeros(10, 2)
    first = posterior.sample(4, x, 1)
    assert torch.equal(first, posterior.sample(4, x, 1))
    assert not torch.equal(first, posterior.sample(4, x, 2))
    assert not torch.equal(first[:, :5], first[:, 5:])  # nor one noise a batch
    if isinstance(q, OneAtATime):
        assert len(first.reshape(4, 20).unique(dim=0)) == 4
        assert not torch.equal(first[:, 0], first[:, 1])


def test_a_flow_whose_base_is_not_normal_has_no_normal_base() -> None:
    theta, x = sample_joint(TASK, 60, seed=0)
    with isolated_rng(0):
        uniform, normal = (
            kind(2, 2, hidden_features=(8,)) for kind in (zuko.flows.NCSF, zuko.flows.NSF)
        )
    with pytest.raises(NotImplementedError, match=r"`flow`: the base of this flow is .*flow=False"):
        as_posterior(uniform).to_base(theta, x)  # type: ignore[attr-defined]
    assert as_posterior(normal).to_base(theta, x).shape == (60, 2)  # type: ignore[attr-defined]


def test_experiments_of_other_seeds_have_other_names() -> None:
    """Or cells of one would be taken for those of the other."""
    assert len({nptbench("mean_shift", seed=k).name for k in range(3)}) == 3
    assert tree(1).name != tree(2).name
    assert described(_partial(1)) != described(_partial(2))


def _partial(number: int) -> Any:
    return partial(max, number)


def test_what_float32_cannot_tell_apart_is_refused() -> None:
    theta, x = (values.double() for values in sample_joint(TASK, 50, seed=0))
    julian = 2_460_000.5 + 1e-3 * theta
    with pytest.raises(ValueError, match=r"`theta`: column 0 varies by .* subtract a constant"):
        validation.sbc(Protocol(lambda draws: draws), julian, x)
    with pytest.raises(ValueError, match=r"`x`: column 0 varies by .* subtract a constant"):
        validation.sbc(Protocol(lambda draws: draws), theta, 1e9 + x)
    assert validation.sbc(Protocol(lambda draws: draws), 1e-9 * theta, x).p_value > 0  # fine


@pytest.mark.parametrize("unit", [1e-12, 1e-8, 1e8, 1e19])
def test_the_frame_follows_any_units(unit: float) -> None:
    theta, x = sample_joint(TASK, 200, seed=0)
    units = torch.tensor([1.0, unit])

    def too_wide(num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        return units * normals(num_samples, x, seed, 1.5 * SPREAD)

    p_values = [
        COLT(q, pairs, x, num_samples=50, training=BRIEF).p_value
        for q, pairs in ((too_wide, units * theta), (_too_wide, theta))
    ]
    assert p_values[0] == pytest.approx(p_values[1], rel=1e-2)


def _too_wide(num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
    return normals(num_samples, x, seed, 1.5 * SPREAD)


def test_neighbours_are_told_apart_far_from_0() -> None:
    theta, x = sample_joint(TASK, 100, seed=0)
    far = [
        float(validation.hpd(_moved(place), theta + place, x, num_samples=100).statistic)
        for place in (0.0, 5_000.0)
    ]
    assert far[1] == pytest.approx(far[0], abs=0.02)


def _moved(place: float) -> Any:
    return lambda num_samples, x, seed=0: place + _too_wide(num_samples, x, seed)


@pytest.mark.parametrize("change", [Tensor.double, Tensor.numpy, lambda draws: draws[:, :, :1]])
def test_posteriors_of_the_protocol_are_checked_too(change: Any) -> None:
    theta, x = sample_joint(TASK, 60, seed=0)
    usable = change(torch.zeros(1, 1, 2)).shape[-1] == 2
    for test in (validation.sbc, validation.c2st, COLT):
        keywords: dict[str, Any] = {"training": BRIEF} if test is COLT else {}
        if usable:
            assert 0 < test(Protocol(change), theta, x, **keywords).p_value <= 1
        else:
            with pytest.raises(ValueError, match="`q` must draw parameters of dimension 2"):
                test(Protocol(change), theta, x, **keywords)
    with pytest.raises(ValueError, match=r"`q` \(Protocol\) must draw samples of shape"):
        validation.sbc(Protocol(lambda draws: draws.transpose(0, 1)), theta, x)


def test_a_classifier_that_gives_probabilities_gives_log_odds() -> None:
    theta, x = sample_joint(TASK, 100, seed=0)
    far = Protocol(lambda draws: draws + 50)
    result = validation.discriminative_calibration(
        far, theta, x, classifier=KNeighborsClassifier(), num_permutations=19
    )
    assert result.statistic == pytest.approx(np.log(2), abs=1e-3)  # nothing in common
    assert validation.c2st(far, theta, x, classifier=KNeighborsClassifier()).statistic == 1.0


def test_the_truth_may_lie_where_q_has_no_mass() -> None:
    theta, x = sample_joint(TASK, 200, seed=0)
    for box in (
        lambda x: Uniform(x / 2 - 1, x / 2 + 1),
        lambda x: Independent(Uniform(x / 2 - 1, x / 2 + 1), 1),
    ):
        result = validation.hpd(box, theta, x, num_samples=50)
        assert result.details["density"] == "q.log_prob"
        outside = ((theta - x / 2).abs() > 1).any(dim=1)
        # Lower than all draws: a rank below 1 of 51.
        assert bool((result.details["ranks"][outside] <= 1 / 51).all())
        assert result.p_value < 0.01


def test_few_stored_draws_are_all_used() -> None:
    theta, x = sample_joint(TASK, 200, seed=0)
    stored = (theta, x, normals(40, x, 0, 0.6 * SPREAD))
    q = as_posterior(stored, layout="samples_first")
    report = validation.validate(q, theta, x, ["sbc"])
    assert report.results[0].details["num_samples"] == 40
    assert report.results[0].p_value == validation.sbc(q, theta, x, num_samples=40).p_value
    assert validation.validate(q, theta, x).results[0].details["num_samples"] == 40
    with pytest.raises(ValueError, match="holds 40 pre-drawn"):
        validation.validate(q, theta, x, ["colt"])


@pytest.mark.parametrize(
    ("test", "keywords", "message"),
    [
        (
            "tarp",
            {"references": torch.full((60, 2), torch.nan)},
            "`references` must hold one finite",
        ),
        ("score_rank", {"num_samples": 0}, "`num_samples` must be a whole number of at least 1"),
        ("score_rank", {"num_nulls": 0}, "`num_nulls` must be a whole number of at least 1"),
        (
            "score_rank",
            {"num_neighbours": 0},
            "`num_neighbours` must be a whole number of at least 1",
        ),
        (
            "score_rank",
            {"num_train_draws": 0},
            "`num_train_draws` must be a whole number of at least 1",
        ),
        (
            "c2st",
            {"statistic": "mse", "num_nulls": 0},
            "`num_nulls` must be a whole number of at least 1",
        ),
        (
            "discriminative_calibration",
            {"num_permutations": 0},
            "`num_permutations` must be a whole",
        ),
        (
            "conformal_c2st",
            {"variant": "multiple", "fresh": max},
            "`fresh` is used by variant='uniform' alone",
        ),
    ],
)
def test_arguments_without_an_answer_are_refused(
    test: str, keywords: dict[str, Any], message: str
) -> None:
    theta, x = sample_joint(TASK, 60, seed=0)
    with pytest.raises(ValueError, match=message):
        validation.METHODS[test](Protocol(lambda draws: draws), theta, x, **keywords)


def test_an_observation_may_be_a_list() -> None:
    theta, x = sample_joint(TASK, 60, seed=0)
    q = Protocol(lambda draws: draws)
    given = [validation.score_rank(q, theta, x, x_o=x_o).p_value for x_o in ([0.0, 1.0], [[0, 1]])]
    assert given[0] == given[1]


def test_a_study_without_cells_says_so(tmp_path: Path) -> None:
    study = validation.power("sbc", nptbench("mean_shift"), [0.3], folder=tmp_path, minutes=0)
    for read in (study.to_dict, study.plot):
        with pytest.raises(ValueError, match="`minutes` left time for no cell"):
            read()


def test_without_draws_nothing_is_rejected() -> None:
    theta, x = sample_joint(TASK, 60, seed=0)
    exact = Protocol(lambda draws: draws)
    local = validation.fit_lc2st(exact, theta, x, num_nulls=19)
    with pytest.raises(ValueError, match="`num_samples` must be a whole number of at least 1"):
        local.test(torch.zeros(2), num_samples=0)
    with pytest.raises(ValueError, match="`theta_o` must hold draws"):
        local.test(torch.zeros(2), theta_o=torch.empty(0, 2))
    with pytest.raises(ValueError, match="`x_o` must hold 2 finite values"):
        local.test(torch.empty(0, 2))
    assert 0 < local.test([0.0, 1.0], num_samples=50).p_value <= 1  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a statistic is NaN"):
        permutation_p(torch.nan, torch.rand(9, generator=torch_generator(0)))


def test_a_test_that_is_named_twice_counts_once() -> None:
    theta, x = sample_joint(TASK, 100, seed=0)
    q = Protocol(lambda draws: draws)
    once, twice = (validation.validate(q, theta, x, ["sbc"] * k) for k in (1, 2))
    assert once.adjusted == twice.adjusted
    with pytest.raises(ValueError, match="`x_o` must hold 2 finite values an observation"):
        validation.validate(q, theta, x, ["lc2st"], x_o=torch.zeros(7, 5))
    with pytest.raises(ValueError, match="`x_o` is for the local tests, lc2st and local_hpd"):
        validation.validate(q, theta, x, ["sbc"], x_o=torch.zeros(2))


def test_tests_of_a_study_may_be_given_as_they_are() -> None:
    def mine(q: Any, theta: Tensor, x: Tensor, *, seed: int) -> validation.ValidationResult:
        return validation.sbc(q, theta, x, seed=seed)

    for methods in (
        mine,
        [mine],
        WholeTest("tarp", {"num_samples": 20}),
        [WholeTest("tarp"), mine],
    ):
        study = validation.power(methods, "mean_shift", [0.3], num_pairs=30, repetitions=1)
        assert set(study.methods) <= {"mine", "tarp"}
        assert all(cell.error is None for cell in study.cells)
    with pytest.raises(ValueError, match="`method` holds two tests of one name"):
        validation.power([WholeTest("tarp"), WholeTest("tarp")], "mean_shift", [0.3])


def test_a_damaged_validation_is_named(tmp_path: Path) -> None:
    theta, x = sample_joint(TASK, 60, seed=0)
    report = validation.validate(Protocol(lambda draws: draws), theta, x, ["sbc"])
    with pytest.raises(ValueError, match="`parameter_names` must name the 2 parameters; got 1"):
        report.save(tmp_path / "report.json", parameter_names=["a"])
    report.save(tmp_path / "report.json", parameter_names=["a", "b"])
    whole = load_report(tmp_path / "report.json")
    for entry in ("version", "results", "asked", "alpha"):
        damaged = {key: value for key, value in whole.items() if key != entry}
        (tmp_path / "damaged.json").write_text(json.dumps(damaged))
        with pytest.raises(ValueError, match=f"is damaged: its entry '{entry}' is missing"):
            load_report(tmp_path / "damaged.json")
    del whole["results"][0]["p_value"]
    (tmp_path / "damaged.json").write_text(json.dumps(whole))
    with pytest.raises(ValueError, match=r"results\[0\] is damaged: its entry 'p_value'"):
        load_report(tmp_path / "damaged.json")
    assert report.save_plots(str(tmp_path / "plots"))
