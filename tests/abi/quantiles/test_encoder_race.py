"""Encoders are chosen by what flows behind them say of theta held out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from fits import SMALL
from torch import Tensor, nn
from torch.distributions import Independent, Normal

import abi
from abi import ABIConfig
from abi.encoders.choice import OF_THETA, build_encoder, candidates, features_of_pairs
from abi.encoders.layout import PLAIN, Layout
from abi.encoders.of_theta import telling
from abi.files.run_folder import RunFolder
from abi.generators.support import Support
from abi.quantiles import encoder_race
from abi.quantiles.encoder_race import EncoderRace
from abi.quantiles.kernel import LearnedKernel
from abi.training.loop import TrainingSettings
from simulators import TASKS, sample_joint
from simulators.random import torch_generator

BRIEF = ABIConfig(generator_training=TrainingSettings(num_steps=800, batch_size=128, max_epochs=40))
VALUES, SUMS = 60, 3


def race_of(theta: Tensor, x: Tensor, seed: int = 0, layout: Layout = PLAIN) -> EncoderRace:
    everywhere = Support.everywhere(theta.shape[1])
    return EncoderRace(theta, x, everywhere, layout, BRIEF, seed)


@cache
def answers(num_pairs: int = 3_000) -> tuple[Tensor, Tensor, Tensor]:
    """Yes and no, 60 of them, whose logits are sums of theta; theta, x and the sums of x."""
    generator = torch_generator(1)
    design = 0.4 * torch.randn(VALUES, SUMS, generator=generator)
    theta = torch.randn(num_pairs, SUMS, generator=generator)
    x = (torch.rand(num_pairs, VALUES, generator=generator) < (theta @ design.T).sigmoid()).float()
    return theta, x, x @ design


def untold(share: float) -> None:
    """Nobody watches."""


def test_a_regression_finds_the_sums_that_matter() -> None:
    theta, x, sums = answers()
    features = build_encoder("regression", x, PLAIN, theta)(x)
    assert features.shape == (len(x), SUMS)
    both = torch.cat([features, torch.ones(len(x), 1)], dim=1)
    left = sums - both @ torch.linalg.lstsq(both, sums).solution
    assert (left.var(dim=0) < 0.05 * sums.var(dim=0)).all()  # 60 slopes from 3,000 rows


def test_a_regression_knows_the_pairs_it_was_found_from_no_better_than_others() -> None:
    """Sixty slopes of 150 rows predict their own theta well, and others' worse: the error shows."""

    def error(features: Tensor, z: Tensor) -> Tensor:
        """Mean square of what a line in its own feature leaves of each parameter, (d,)."""
        shared = ((features - features.mean(0)) * (z - z.mean(0))).mean(0)
        return z.var(dim=0) - shared**2 / features.var(dim=0)

    theta, x, _ = answers(12_000)
    own = slice(150)
    encoder = build_encoder("regression", x[own], PLAIN, theta[own])
    others = error(encoder(x[150:]), theta[150:])
    left_out = error(features_of_pairs(encoder, x[own], theta[own]), theta[own])
    assert (error(encoder(x[own]), theta[own]) < 0.75 * others).all()
    assert ((left_out / others - 1.0).abs() < 0.3).all()  # of 150 rows; 2.6 standard errors


def test_a_pair_left_out_is_seen_as_if_it_had_never_been() -> None:
    theta, x, _ = answers(200)
    encoder = build_encoder("regression", x, PLAIN, theta)
    without = build_encoder("regression", x[1:], PLAIN, theta[1:])
    left_out, whole = features_of_pairs(encoder, x, theta)[0], encoder(x)[0]
    alone = (without(x)[0] - without(x).mean(0)) / without(x).std(0)
    scale = encoder(x).mean(0), encoder(x).std(0)
    far, near = ((seen - scale[0]) / scale[1] - alone for seen in (whole, left_out))
    assert near.norm() < 0.25 * far.norm()


def test_pairs_that_a_regression_was_not_found_from_are_seen_as_any() -> None:
    theta, x, _ = answers(600)
    encoder = build_encoder("regression", x[:300], PLAIN, theta[:300])
    seen = features_of_pairs(encoder, x[300:], theta[300:])
    torch.testing.assert_close(seen, encoder(x[300:]), rtol=0.0, atol=0.0)


def test_gaps_do_not_hide_which_pairs_were_left_out() -> None:
    theta, x, _ = answers(200)
    gaps = torch.full((len(x), 1), torch.nan)
    layout = Layout(gaps=(0,))
    encoder = build_encoder("regression", torch.cat([gaps, x], dim=1), layout, theta)
    seen = features_of_pairs(encoder, torch.cat([gaps, x], dim=1), theta)
    plain = build_encoder("regression", x, PLAIN, theta)
    torch.testing.assert_close(seen, features_of_pairs(plain, x, theta))


@pytest.mark.parametrize("num_pairs", [150, 1_000])
def test_the_values_that_tell_of_theta_are_found_among_those_that_do_not(num_pairs: int) -> None:
    """Four points carry means and variances; the other ninety-two values are heavy-tailed noise."""
    task = TASKS["slcp_distractors"]
    theta, x = sample_joint(task, num_pairs, seed=0)
    place = torch.tensor([2.9, 2.9, 0.1, 0.1, 0.0])  # all four points lie near (2.9, 2.9)
    near = (task(place.expand(50, 5), seed=1) - 2.9).abs().amax(dim=0) < 0.2
    assert int(near.sum()) == 8
    assert telling(x, theta).tolist() == near.nonzero()[:, 0].tolist()


def test_values_that_say_nothing_stay_no_more_often_than_they_may() -> None:
    """At a level of .01, of 300 data sets with ties and tails; one value tells, of a square."""
    kept = 0
    for seed in range(300):
        generator = torch_generator(seed)
        z = torch.randn(80, 3, generator=generator)
        noise = torch.randn(80, 20, generator=generator)
        x = torch.cat([noise[:, :10].exp().exp(), noise[:, 10:].round()], dim=1)
        found = telling(torch.cat([x, z[:, :1] ** 2], dim=1), z).tolist()
        assert 20 in found
        kept += len(found) > 1
    assert kept <= 8  # more than that of binomial(300, .01): 1 in 200


@pytest.mark.parametrize(("num_noise", "tried"), [(5, False), (15, True)])
def test_a_selection_is_tried_where_half_of_the_values_say_nothing(
    num_noise: int, tried: bool
) -> None:
    theta = torch.randn(300, 2, generator=torch_generator(0))
    noise = torch.randn(300, num_noise + 10, generator=torch_generator(1))
    x = torch.cat([theta.repeat(1, 5) + noise[:, :10], noise[:, 10:]], dim=1)
    names = candidates(x.shape[1], PLAIN, (x, theta))
    assert ("selected" in names) == tried
    assert "selected" not in candidates(x.shape[1], PLAIN)
    if tried:
        assert build_encoder("selected", x, PLAIN, theta)(x).shape == (300, 10)


@pytest.mark.parametrize("name", OF_THETA)
def test_what_is_found_with_theta_is_filled_from_a_file(name: str) -> None:
    theta, x, _ = answers()
    x = torch.cat([x[:, ::2], x[:, ::2].flipud()], dim=1)  # half of it belongs to other theta
    encoder = build_encoder(name, x, PLAIN, theta)
    blank = build_encoder(name, torch.zeros(2, VALUES), PLAIN)
    blank.load_state_dict(encoder.state_dict())
    torch.testing.assert_close(blank(x[:5]), encoder(x[:5]), rtol=0.0, atol=0.0)


def test_a_parameter_that_does_not_vary_is_predicted_as_a_constant() -> None:
    theta, x, _ = answers()
    theta = torch.cat([theta, torch.ones(len(theta), 1)], dim=1)
    features = build_encoder("regression", x, PLAIN, theta)(x)
    assert features.isfinite().all()
    assert (features[:, -1] == features[0, -1]).all()


@pytest.mark.parametrize("num_pairs", [150, 200, 250])
def test_the_race_takes_the_sums_where_pairs_are_few_for_so_many_values(num_pairs: int) -> None:
    theta, x, _ = answers(num_pairs)
    assert race_of(theta, x).ranked(("flat", "regression"), untold, first=False)[0] == "regression"


def test_a_score_is_the_log_density_of_theta_held_out() -> None:
    """The conjugate Gaussian's: none beats it, and a flow of the x themselves comes near."""
    task = TASKS["gaussian_linear"]
    theta, x = sample_joint(task, 3_000, seed=1)
    score = race_of(theta, x).score("flat")
    # theta | x ~ N(x / 2, .05 I): mean log density, give or take .09 for 600 rows.
    exact = -5.0 * (1.0 + torch.log(torch.tensor(2.0 * torch.pi * 0.05)))
    assert float(exact) - 0.6 < score < float(exact) + 0.3
    assert score == race_of(theta, x).score("flat")
    assert score != race_of(theta, x, seed=1).score("flat")


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        (-0.05, ["sorted", "both_orders", "flat"]),
        (0.1, ["both_orders", "sorted"]),
        (0.3, ["both_orders"]),
    ],
)
def test_an_encoder_that_learns_and_leads_leaves_others_behind(
    ahead: float, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """More pairs help it most. Where it does not lead it has no start for that."""
    scores = {"flat": -1.0, "sorted": 0.0, "both_orders": ahead}
    monkeypatch.setattr(EncoderRace, "score", lambda _, name: scores[name])
    theta, x, _ = answers()
    assert race_of(theta, x).ranked(("flat", "sorted"), untold, first=True) == expected


def test_an_encoder_that_no_flow_can_be_trained_on_comes_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Overflowing(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.full((len(x), 2), torch.inf)

    def built(name: str, *about: Any) -> nn.Module:
        return Overflowing() if name == "moments" else build_encoder(name, *about)

    monkeypatch.setattr(encoder_race, "build_encoder", built)
    theta, x, _ = answers()
    race = race_of(theta[:300], x[:300])
    assert race.score("moments") == -math.inf
    assert race.ranked(("moments", "flat"), untold, first=False) == ["flat", "moments"]


@pytest.mark.parametrize("name", OF_THETA)
def test_a_fit_through_what_is_found_with_theta_is_read_from_its_files(
    name: str, tmp_path: Path
) -> None:
    theta, x, _ = answers()
    design = x[:SUMS, :12]

    def simulate(theta: Tensor) -> Tensor:
        noise = theta @ torch.linspace(-40.0, 40.0, 12 * SUMS).reshape(SUMS, 12)
        return theta @ design + noise.sin()

    prior = Independent(Normal(torch.zeros(SUMS), torch.ones(SUMS)), 1)
    fit = abi.fit(
        prior, simulate, simulate(theta[:1])[0], num_simulations=600, num_rounds=2,
        config=replace(SMALL, encoder=name), run_dir=tmp_path, progress=False,
    )  # fmt: skip
    loaded = abi.load(tmp_path / "posterior.safetensors")
    torch.testing.assert_close(loaded.log_prob(theta[:9]), fit.log_prob(theta[:9]))
    folder = RunFolder.open(tmp_path)
    plan, x_o, _, _ = folder.request()
    state = folder.last_state(plan, x_o, None)
    assert state is not None
    near, kept = simulate(theta[:20]), fit.kernel
    assert isinstance(kept, LearnedKernel)
    assert isinstance(state.kernel, LearnedKernel)
    torch.testing.assert_close(state.kernel(near), kept(near))


def test_the_race_says_how_far_it_is() -> None:
    theta, x, _ = answers()
    told: list[float] = []
    names: Sequence[str] = ("flat", "sorted")
    race = replace(race_of(theta[:200], x[:200]), layout=Layout())
    race.ranked(names, told.append, first=False)
    assert told == [0.5, 1.0]
