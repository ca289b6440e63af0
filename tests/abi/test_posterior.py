"""The frozen posterior: one observation, safe files, arviz."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from fits import BY_GENERATOR, X_O, quick_fit, usual_fit

import abi
from abi.files.parts import read_parts

BRIEF = {
    kind: replace(
        config,
        potnet=replace(config.potnet, training=config.generator_training),
        wgan=replace(config.wgan, num_steps=20),
    )
    for kind, config in BY_GENERATOR.items()
}


@pytest.fixture(scope="module")
def posterior() -> abi.ABIPosterior:
    return usual_fit()


@cache
def brief(kind: str) -> abi.ABIPosterior:
    """A fit by a generator, of a moment's training."""
    return quick_fit(num_simulations=600, config=BRIEF[kind])


def test_draws_have_the_shape_asked_for(posterior: abi.ABIPosterior) -> None:
    assert posterior.sample().shape == (2,)
    assert posterior.sample((7,)).shape == (7, 2)
    assert posterior.sample((3, 4), x=X_O).shape == (3, 4, 2)
    assert posterior.sample((3,), x=X_O[None]).dtype == torch.float32


def test_the_seed_decides_the_draws(posterior: abi.ABIPosterior) -> None:
    assert torch.equal(posterior.sample((5,)), posterior.sample((5,)))
    assert not torch.equal(posterior.sample((5,), seed=1), posterior.sample((5,), seed=2))


@pytest.mark.parametrize("shape", [5, (-3,), (3.0,), None, (2, "a")])
def test_a_shape_that_is_none_is_refused(posterior: abi.ABIPosterior, shape: object) -> None:
    with pytest.raises(ValueError, match=r"`sample_shape` must be a tuple .*, such as \(5,\)"):
        posterior.sample(shape)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`seed` must be a whole number of at least 0; got None"):
        posterior.sample((5,), seed=None)  # type: ignore[arg-type]


def test_an_observation_out_of_reach_is_refused(posterior: abi.ABIPosterior) -> None:
    for call in (
        lambda x: posterior.sample((1,), x=x),
        lambda x: posterior.log_prob(X_O[None, :2], x=x),
        lambda x: posterior.sample_batched((1,), x),
    ):
        with pytest.raises(ValueError, match="the fit around x_o does not reach it"):
            call(X_O + 30.0)
        with pytest.raises(ValueError, match="`x` must hold 6 values an observation"):
            call(X_O[:3])
        with pytest.raises(ValueError, match="`x` must be finite; 1 of 1 rows hold NaN"):
            call(X_O * torch.nan)
    far = torch.stack([X_O, X_O + 30.0, X_O])
    with pytest.raises(ValueError, match=r"`x` row 1 \(1 of 3 rows\)"):
        posterior.sample_batched((4,), far)


def test_the_density_is_that_of_the_draws(posterior: abi.ABIPosterior) -> None:
    grid = torch.linspace(-2, 2, 301)
    density = posterior.log_prob(torch.cartesian_prod(grid, grid)).exp()
    cell = float(grid[1] - grid[0]) ** 2
    assert float(density.sum() * cell) == pytest.approx(1.0, abs=0.02)
    draws = posterior.sample((20_000,))
    mean = (density[:, None] * torch.cartesian_prod(grid, grid)).sum(dim=0) * cell
    torch.testing.assert_close(draws.mean(dim=0), mean, atol=0.02, rtol=0.0)
    with pytest.raises(ValueError, match=r"`theta` must have shape \(n, 2\), .*; got \(3, 3\)"):
        posterior.log_prob(torch.zeros(3, 3))


@pytest.mark.parametrize("kind", ["conditional", *BY_GENERATOR])
def test_a_loaded_posterior_is_the_saved_one(
    posterior: abi.ABIPosterior, kind: str, tmp_path: Path
) -> None:
    if kind != "conditional":
        posterior = brief(kind)
    path = tmp_path / "posterior.safetensors"
    posterior.save(path)
    loaded = abi.load(path)
    assert torch.equal(loaded.sample((50,)), posterior.sample((50,)))
    assert loaded.rounds == posterior.rounds
    assert loaded.config == posterior.config
    assert loaded.parameter_names == posterior.parameter_names
    assert loaded.num_simulations == posterior.num_simulations
    assert torch.equal(loaded.x_o, posterior.x_o)


@pytest.mark.parametrize("kind", ["potnet", "wgan"])
def test_a_fit_without_a_density_says_so_wherever_one_is_asked_for(kind: str) -> None:
    posterior = brief(kind)
    with pytest.raises(NotImplementedError, match="'flow' and 'mixture' have one"):
        posterior.log_prob(torch.zeros(1, 2))
    with pytest.raises(NotImplementedError, match="a generator with a density"):
        posterior.to_zuko()


def test_damaged_and_foreign_files_are_refused(posterior: abi.ABIPosterior, tmp_path: Path) -> None:
    path = tmp_path / "posterior.safetensors"
    posterior.save(path)
    whole = path.read_bytes()
    for damage in (whole[: len(whole) // 2], b"", pickle.dumps([1, 2])):
        path.write_bytes(damage)
        with pytest.raises(ValueError, match="damaged or not a safetensors file"):
            abi.load(path)
    with pytest.raises(ValueError, match="is not there"):
        abi.load(tmp_path / "nothing")
    quick_fit(num_simulations=200, num_rounds=1, run_dir=tmp_path / "run")
    with pytest.raises(ValueError, match="not a file of kind abi-posterior"):
        abi.load(tmp_path / "run" / "round_01.safetensors")


def test_files_from_a_newer_version_are_refused(
    posterior: abi.ABIPosterior, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "posterior.safetensors"
    posterior.save(path)
    monkeypatch.setattr("abi.files.parts.FORMAT_VERSION", 0)
    with pytest.raises(ValueError, match="Install a newer abi-toolkit"):
        read_parts(path, "abi-posterior")


@pytest.mark.moves_global_rng  # importing arviz does
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_arviz_takes_the_draws(posterior: abi.ABIPosterior) -> None:
    data = posterior.to_arviz(num_samples=25, prior=lambda n: torch.rand(n, 2))
    assert data.prior["theta_2"].shape == (1, 25)
    assert set(data.posterior.data_vars) == {"theta_1", "theta_2"}
    assert data.posterior["theta_1"].shape == (1, 25)


def test_a_round_keeps_the_means_and_sds_of_its_answer(posterior: abi.ABIPosterior) -> None:
    answer = posterior.rounds[-1].answer
    assert answer is not None
    draws = posterior.sample((2_000,), seed=9)
    mean, sd = draws.mean(dim=0), draws.std(dim=0)
    # Two means of 2,000 draws each; their sds are off by 1/sqrt(2) of that.
    error = 4 * (2 / 2_000) ** 0.5 * sd
    assert bool(((mean - torch.tensor(answer.means)).abs() < error).all())
    assert bool(((sd - torch.tensor(answer.sds)).abs() < error).all())
