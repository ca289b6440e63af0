"""The spiral's diffusion model: levels, Heun's steps, training, and what a study makes of it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

from abi.cli.app import app
from validation import WholeTest, power
from validation.perturbations import DiffusionTraining, Failure, spiral
from validation.perturbations.diffusion.edm import Denoiser, heun, noise_levels
from validation.perturbations.diffusion.spiral_law import spiral_points

SMALL = DiffusionTraining(hidden=(64, 64), steps=1_000, learning_rate=5e-3)


@pytest.fixture(scope="module")
def failure() -> Failure:
    return spiral(SMALL)


def error(failure: Failure, strength: float) -> float:
    """Median distance of q's draws from the spiral's own point, theta having deviation 0.5."""
    x = failure.observe(400, 2)
    drawn = failure.at(strength).q.sample(20, x, seed=3)
    scale = 2 * spiral_points(failure.observe(20_000, 9)).std(dim=0)
    return float(((drawn - spiral_points(x)) / scale).norm(dim=-1).median())


def test_the_spiral_has_radius_x_and_turns_by_x(failure: Failure) -> None:
    x = failure.observe(2_000, 1)
    assert 1.5 * math.pi <= float(x.min()) < float(x.max()) <= 4.5 * math.pi
    # Uniform: mean 3 pi, variance (3 pi)^2 / 12; 4 standard errors of 2,000 draws.
    assert float(x.mean()) == pytest.approx(3 * math.pi, abs=4 * 3 * math.pi / 24_000**0.5)
    theta = spiral_points(x)
    assert torch.allclose(theta.norm(dim=1), x[:, 0], atol=1e-4)
    turned = torch.atan2(theta[:, 1], theta[:, 0]) - x[:, 0]
    assert torch.allclose(turned.cos(), torch.ones(2_000), atol=1e-4)


def test_levels_fall_from_80_to_0_evenly_in_their_seventh_root() -> None:
    levels = noise_levels(20)
    assert len(levels) == 21
    assert float(levels[0]) == pytest.approx(80.0)
    assert float(levels[19]) == pytest.approx(0.002)
    assert float(levels[20]) == 0.0
    gaps = (levels[:20].double() ** (1 / 7)).diff()
    assert torch.allclose(gaps, gaps[:1].expand(19), rtol=1e-4)
    with pytest.raises(ValueError, match=r"`num_steps`.*1"):
        noise_levels(1)


def test_heun_is_exact_for_a_point_and_close_for_a_normal_law() -> None:
    """A point's flow is a straight line; N(m, s^2) flows to m + (y - m) s / sqrt(s^2 + t^2)."""
    noise = torch.randn(500, 2, generator=torch.Generator().manual_seed(0))
    point = torch.tensor([1.0, -2.0])
    levels = noise_levels(20)
    for k in (15, 19, 20):
        drawn = heun(lambda y, _: point.expand_as(y), noise, levels[: k + 1])
        expected = point + levels[k] * noise + levels[0] * 0.0
        # The start lacks the mean: what is left of that is t_k / t_0 of it.
        assert torch.allclose(drawn, expected - levels[k] / levels[0] * point, atol=1e-4)

    def normal(y: Tensor, t: Tensor) -> Tensor:
        return point + (y - point) * 0.25 / (0.25 + t**2)

    start = 80.0 * noise - point
    exact = point + start * 0.5 / (0.25 + 6_400.0) ** 0.5
    errors = [
        float((heun(normal, noise, noise_levels(n)) - exact).abs().max()) for n in (10, 20, 40)
    ]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    assert errors[2] < 0.03


def test_the_preconditioning_has_unit_variance_at_every_level() -> None:
    """With a network that says nothing D = c_skip y, and c_in y has variance 1."""

    class Listens(nn.Module):
        def forward(self, inputs: Tensor) -> Tensor:
            heard.append(inputs[:, :2])
            return torch.zeros(len(inputs), 2)

    heard: list[Tensor] = []
    unit = (torch.zeros(2), torch.ones(2))
    denoiser = Denoiser(Listens(), unit, (torch.zeros(1), torch.ones(1)))
    generator = torch.Generator().manual_seed(0)
    theta, noise = (torch.randn(20_000, 2, generator=generator) for _ in range(2))
    for sigma in (0.002, 0.5, 80.0):
        level = torch.full((20_000, 1), sigma)
        noisy = 0.5 * theta + sigma * noise
        mean = denoiser(noisy, torch.zeros(20_000, 1), level)
        assert torch.allclose(mean, noisy * 0.25 / (0.25 + sigma**2), rtol=1e-5)
        assert float(heard[-1].std()) == pytest.approx(1.0, abs=0.02)


def test_more_reverse_steps_come_closer_to_the_spiral(failure: Failure) -> None:
    errors = [error(failure, a) for a in (8.0, 5.0, 4.0, 0.0)]
    assert errors == sorted(errors, reverse=True)
    # Noise of deviation t in the plane has median length t sqrt(2 log 2); at step 12 it outweighs
    # the model's own error.
    expected = float(noise_levels(20)[12]) * (2 * math.log(2.0)) ** 0.5
    assert errors[0] == pytest.approx(expected, rel=0.1)


def test_the_same_seed_gives_the_same_model_and_another_gives_another(failure: Failure) -> None:
    x = failure.observe(5, 1)
    drawn = failure.at(2.0).q.sample(3, x, seed=4)
    short = DiffusionTraining(hidden=(8,), steps=3)
    models = [spiral(short, seed=seed).at(0.0).p.sample(3, x, seed=4) for seed in (0, 0, 1)]
    assert torch.equal(models[0], models[1])
    assert not torch.equal(models[0], models[2])
    assert torch.equal(drawn, failure.at(2.0).q.sample(3, x, seed=4))
    assert torch.equal(failure.at(0.0).p.sample(3, x, 4), failure.at(0.0).q.sample(3, x, 4))


def test_a_kept_model_is_found_again_and_a_damaged_one_replaced(tmp_path: Path) -> None:
    short = DiffusionTraining(hidden=(8,), steps=3)
    x = torch.full((2, 1), 8.0)
    first = spiral(short, folder=tmp_path).at(1.0).q.sample(2, x)
    (path,) = tmp_path.iterdir()
    written = path.stat().st_mtime_ns
    assert torch.equal(spiral(short, folder=tmp_path).at(1.0).q.sample(2, x), first)
    assert path.stat().st_mtime_ns == written
    path.write_bytes(b"torn")
    assert torch.equal(spiral(short, folder=tmp_path).at(1.0).q.sample(2, x), first)
    assert path.stat().st_size > 100
    spiral(DiffusionTraining(hidden=(8,), steps=4), folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_the_level_is_kept_and_a_step_too_few_is_seen(failure: Failure) -> None:
    tests = {name: WholeTest(name, {"num_samples": 30}) for name in ("sbc", "tarp")}
    found = power(tests, failure, [0.0, 8.0], num_pairs=100, repetitions=20, seed=1)
    for name in tests:
        assert found.rate(name, 0.0).rejections <= 5  # P(more) at 0.05 is below 0.001
        assert (found.rate(name, 8.0).rate or 0.0) >= 0.8


def test_mistakes_are_named(failure: Failure) -> None:
    for strength in (0.5, 20.0):
        with pytest.raises(ValueError, match=rf"`strength`.*{strength}"):
            failure.at(strength)
    with pytest.raises(NotImplementedError, match="draws only"):
        failure.at(0.0).p.log_prob(torch.zeros(1, 2, 2), torch.full((2, 1), 8.0))


def test_the_command_trains_once_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = DiffusionTraining(hidden=(8,), steps=3)
    monkeypatch.setattr("abi.studies.benchmark.failures.diffusion.DiffusionTraining", lambda: short)
    words = ["benchmark", "diffusion", "--quick", "--test", "C2ST", "--repetitions", "1"]
    words += ["--no-progress", "--json", "--out", str(tmp_path)]
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 0, first.output
    values = json.loads(first.stdout)
    assert [rate["strength"] for rate in values["parts"][0]["rates"]] == [0, 1, 2, 3, 4, 5]
    assert len(list((tmp_path / "diffusion_cells").glob("spiral-*.safetensors"))) == 1
    assert json.loads(CliRunner().invoke(app, words).stdout) == values
