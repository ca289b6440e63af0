"""More calls for a finished fit: exactness, what is used again, seeds, folders, and bad input."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import problems
import pytest
import torch
from fits import BY_GENERATOR, SMALL, TRAINED, quick_fit

import abi
from abi.rounds.regions.region import inside_all
from simulators import GaussianLinear, from_function, sample_prior, simulate

MEAN, SD = torch.tensor([0.5, -0.5]), 0.3 / 3**0.5
"""Of the exact posterior: three looks with sd 0.3 under a flat prior."""
CALLS = 1_500
TWO_ROUNDS = {"num_simulations": 600, "num_rounds": 2, "progress": False}


def first_fit(**changes: object) -> abi.ABIPosterior:
    return quick_fit(**({"num_simulations": 800, "config": TRAINED} | changes))


@pytest.fixture(scope="module")
def fit() -> abi.ABIPosterior:
    return first_fit()


@pytest.fixture(scope="module")
def refined(fit: abi.ABIPosterior) -> abi.ABIPosterior:
    return fit.refine(num_simulations=CALLS, num_rounds=1, progress=False)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What that first fit leaves in its folder."""
    path = tmp_path_factory.mktemp("runs") / "first"
    first_fit(run_dir=path)
    return path


@pytest.fixture
def folder(left: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(left, tmp_path / "run")


@pytest.fixture(scope="module")
def twice(fit: abi.ABIPosterior) -> abi.ABIPosterior:
    """Two further rounds in memory."""
    return fit.refine(**TWO_ROUNDS)  # type: ignore[arg-type]


def error_of(posterior: abi.ABIPosterior) -> tuple[float, float]:
    """The largest bias in exact sds, and the largest |log| of an sd over the exact one."""
    draws = posterior.sample((5_000,))
    bias = (draws.mean(dim=0) - MEAN).abs().max() / SD
    return float(bias), float((draws.std(dim=0) / SD).log().abs().max())


def test_a_refined_answer_is_near_the_exact_posterior_and_no_worse(
    fit: abi.ABIPosterior, refined: abi.ABIPosterior
) -> None:
    before, after = error_of(fit), error_of(refined)
    # 5,000 draws place a mean within .05 sds and a log sd within .03 (three standard errors).
    assert after[0] < max(before[0], 0.2) + 0.05
    assert after[1] < max(before[1], 0.2) + 0.03
    assert after[0] < 0.4
    assert after[1] < 0.3


def test_every_earlier_pair_inside_the_new_region_is_used_again(
    fit: abi.ABIPosterior, refined: abi.ABIPosterior
) -> None:
    assert fit.state is not None
    assert refined.state is not None
    assert refined.reach is not None
    first, second, third = refined.rounds
    assert (first, second.pairs) == (fit.rounds[0], fit.rounds[1].pairs)
    inside = inside_all(refined.state.regions, fit.state.theta)
    assert 50 < int(inside.sum()) < len(inside)  # the region leaves out some
    assert third.pairs == int(inside.sum()) + third.simulator_calls
    assert torch.equal(refined.state.theta[: int(inside.sum())], fit.state.theta[inside])
    assert torch.equal(refined.state.x[: int(inside.sum())], fit.state.x[inside])


def test_no_training_sees_the_pairs_of_the_new_verdict(
    fit: abi.ABIPosterior, refined: abi.ABIPosterior
) -> None:
    assert fit.pairs is not None
    assert refined.pairs is not None
    assert refined.state is not None
    for pairs in (fit.pairs, refined.pairs):
        apart = (pairs.theta[:, None] - refined.state.theta).abs().amax(dim=2)
        assert float(apart.amin()) > 0.0
    assert refined.verdict.num_calls == int(0.07 * (800 + CALLS))
    assert [part.round for part in refined.verdict.rounds] == [1, 2]
    assert "did the rounds settle?" in str(refined.verdict)


def test_the_fit_that_was_refined_is_unchanged() -> None:
    fit = quick_fit(num_simulations=400)
    draws, verdict, calls = fit.sample((100,)), fit.verdict, fit.num_simulations
    fit.refine(num_simulations=200, progress=False)
    assert torch.equal(fit.sample((100,)), draws)
    assert (fit.verdict, fit.num_simulations) == (verdict, calls)


def test_calls_are_counted_over_all_that_was_ever_made() -> None:
    counting = problems.Counting()
    task = from_function(counting, problems.BOX, batched=True)
    fit = quick_fit(simulator=task, num_simulations=300, num_rounds=1).check(100)
    once = fit.refine(num_simulations=200, num_rounds=1, progress=False)
    assert counting.calls == once.num_simulations == 600
    twice = once.refine(num_simulations=150, num_rounds=1, check_fraction=0.0, progress=False)
    assert counting.calls == twice.num_simulations == 750
    assert [record.round for record in twice.rounds] == [1, 2, 3]
    assert twice.verdict.outcome == "cannot tell"


def test_a_refined_fit_is_a_function_of_its_seed(
    fit: abi.ABIPosterior, refined: abi.ABIPosterior
) -> None:
    again, other = (
        fit.refine(num_simulations=CALLS, num_rounds=1, seed=seed, workers=2, progress=False)
        for seed in (0, 1)
    )
    assert torch.equal(again.sample((50,)), refined.sample((50,)))
    assert again.verdict == refined.verdict
    assert not torch.equal(other.sample((50,)), refined.sample((50,)))


def test_a_refined_posterior_is_the_same_after_a_trip_through_its_file(
    refined: abi.ABIPosterior, tmp_path: Path
) -> None:
    refined.save(tmp_path / "fit.safetensors")
    loaded = abi.load(tmp_path / "fit.safetensors")
    assert torch.equal(loaded.sample((50,)), refined.sample((50,)))
    assert loaded.num_simulations == refined.num_simulations == 800 + CALLS
    assert loaded.verdict == refined.verdict


def test_a_run_folder_goes_on_as_the_fit_in_memory_does(
    fit: abi.ABIPosterior, refined: abi.ABIPosterior, folder: Path
) -> None:
    whole = abi.resume(
        folder, problems.BOX, problems.simulate,
        num_simulations=CALLS, num_rounds=1, progress=False,
    )  # fmt: skip
    assert torch.equal(whole.sample((50,)), refined.sample((50,)))
    assert whole.verdict == refined.verdict
    earlier = abi.load(folder / "posterior_02.safetensors")
    assert torch.equal(earlier.sample((50,)), fit.sample((50,)))
    saved = abi.load(folder / "posterior.safetensors")
    assert torch.equal(saved.sample((50,)), refined.sample((50,)))


@pytest.mark.parametrize("at", ["the first call", "the second round", "the check"])
def test_an_interrupted_refinement_is_resumed(
    at: str, twice: abi.ABIPosterior, folder: Path
) -> None:
    most = {"the first call": 0, "the second round": 250, "the check": 520}[at]
    interrupted = problems.Counting(most)
    task = from_function(interrupted, problems.BOX, batched=True)
    with pytest.raises(KeyboardInterrupt):
        abi.resume(folder, problems.BOX, task, **TWO_ROUNDS)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="has not ended"):
        abi.resume(folder, problems.BOX, task, num_simulations=600)
    interrupted.most = math.inf
    resumed = abi.resume(folder, problems.BOX, task, progress=False)
    assert torch.equal(resumed.sample((50,)), twice.sample((50,)))
    assert resumed.num_simulations == twice.num_simulations


def test_a_folder_may_be_given_to_the_further_rounds(fit: abi.ABIPosterior, tmp_path: Path) -> None:
    asked = {"num_simulations": 300, "num_rounds": 1, "progress": False}
    made = fit.refine(run_dir=tmp_path, **asked)  # type: ignore[arg-type]
    for lost in ("posterior", "round_03"):
        (tmp_path / f"{lost}.safetensors").unlink()
        again = abi.resume(tmp_path, problems.BOX, problems.simulate, progress=False)
        assert torch.equal(again.sample((50,)), made.sample((50,)))
    with pytest.raises(FileExistsError, match="already holds a run"):
        fit.refine(run_dir=tmp_path, **asked)  # type: ignore[arg-type]


def test_a_posterior_from_a_file_goes_on_with_pairs_that_are_given(
    fit: abi.ABIPosterior, tmp_path: Path
) -> None:
    fit.save(tmp_path / "fit.safetensors")
    loaded = abi.load(tmp_path / "fit.safetensors")
    known = {"simulator": problems.simulate, "prior": problems.BOX, "progress": False}
    with pytest.raises(ValueError, match=r"holds no simulations .* abi fit --continue"):
        loaded.refine(**known)  # type: ignore[arg-type]
    pairs = simulate(problems.simulate, sample_prior(problems.BOX, 600, 1), seed=1, progress=False)
    with pytest.raises(ValueError, match="`simulator` must be given"):
        loaded.refine(simulations=pairs)
    done = loaded.refine(simulations=pairs, num_simulations=400, **known)  # type: ignore[arg-type]
    assert done.state is not None
    assert done.rounds[-1].pairs > done.rounds[-1].simulator_calls
    assert done.num_simulations == 1_200


def test_a_fit_that_passes_needs_no_more_rounds() -> None:
    fit = first_fit(num_simulations=2_000, config=abi.ABIConfig(encoder="flat"))
    done = fit.refine(num_simulations=1_200, num_rounds=3, stop_when=2.0, progress=False)
    assert len(done.rounds) == 3  # the first of three
    assert done.num_simulations < 2_000 + 1_200


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_simulations": 0}, "`num_simulations` must be a whole number of at least 1"),
        ({"num_simulations": 150, "num_rounds": 2}, "`num_simulations` must be at least 200"),
        ({"num_rounds": 0}, "`num_rounds` must be a whole number"),
        ({"seed": -1}, "`seed` must be"),
        ({"workers": 0}, "`workers` must be"),
        ({"check_fraction": 0.9}, "`check_fraction` must be"),
        ({"stop_when": "soon"}, "`stop_when` must be"),
    ],
)
def test_bad_numbers_are_refused_by_name(
    fit: abi.ABIPosterior, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as error:
        fit.refine(**changes)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_a_fit_whose_rounds_do_not_cut_the_prior_is_refused() -> None:
    generated = quick_fit(config=BY_GENERATOR["mixture"], num_simulations=400)
    with pytest.raises(ValueError, match=r"`refine`: no rounds can follow: .* at x_o alone"):
        generated.refine()
    task = GaussianLinear(1, 1.0, 1.0)
    config = abi.ABIConfig(**(vars(SMALL) | {"proposal": "generator"}))
    single = abi.fit(
        task.prior, task, torch.tensor([1.0]), num_simulations=200, num_rounds=1,
        config=config, progress=False,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"`refine`: .* proposal='generator'"):
        single.refine()


def test_pairs_of_another_width_are_refused(fit: abi.ABIPosterior) -> None:
    task = GaussianLinear(3, 1.0, 1.0)
    pairs = simulate(task, sample_prior(task.prior, 20, 1), seed=1, progress=False)
    with pytest.raises(ValueError, match="`x_o` must have as many values"):
        fit.refine(simulations=pairs)


def test_the_verdict_says_whether_more_calls_would_help(refined: abi.ABIPosterior) -> None:
    words, verdict = refined.verdict.more_calls, refined.verdict
    assert words is not None
    assert verdict.moved is not None
    helps = verdict.moved.apart or any(part.wrong for part in verdict.check.parameters)
    assert words.startswith(f"more calls would likely bring {'it nearer' if helps else 'little'}")
    for calls, bias in verdict.bias_by_calls:
        assert f"{bias:.2f} after {calls:,}" in words
    single = quick_fit(num_simulations=200, num_rounds=1).verdict
    assert single.more_calls is None
