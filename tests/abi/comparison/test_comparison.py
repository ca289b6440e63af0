"""Which model? Against evidences in closed form: normal items, and counts; then the record."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from model_choice import CASES, exact_counts
from torch import Tensor, nn
from torch.distributions import Independent, MultivariateNormal, Normal

import abi
from abi.comparison.pairs import parted
from simulators import sample_joint, simulate
from simulators.random import isolated_rng, torch_generator

ITEMS = 8


class Items:
    """Items with noise of sd 1 about theta, (n, 1) -> (n, 8)."""

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        rows = range(first_row, first_row + len(theta))
        noise = [torch.randn(ITEMS, generator=torch_generator(hash((seed, i)))) for i in rows]
        return theta + torch.stack(noise)


class Failing(Items):
    """The same, and NaN where theta is above 0."""

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        x = super().__call__(theta, seed, first_row=first_row)
        return torch.where(theta > 0.0, torch.nan, x)


def normal(sd: float) -> Any:
    return Independent(Normal(torch.zeros(1), torch.full((1,), sd)), 1)


SDS = {"still": 0.1, "moving": 4.0, "between": 1.0}
MODELS = {name: (normal(sd), Items()) for name, sd in SDS.items()}
TWO = {name: MODELS[name] for name in ("still", "moving")}


def log_evidence(x: Tensor, sd: float) -> float:
    """Of items (8,), theta integrated out."""
    covariance = torch.eye(ITEMS) + sd**2 * torch.ones(ITEMS, ITEMS)
    return float(MultivariateNormal(torch.zeros(ITEMS), covariance).log_prob(x))


def log_bayes_factor(x: Tensor) -> float:
    return log_evidence(x, SDS["still"]) - log_evidence(x, SDS["moving"])


def items_with_odds(odds: float) -> Tensor:
    """Items at which still has these odds against moving: their mean is searched for."""
    pattern = torch.linspace(-1.5, 1.5, ITEMS)
    low, high = 0.0, 5.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if log_bayes_factor(pattern + middle) > math.log(odds) else (
            low, middle
        )  # fmt: skip
    return pattern + low


def compare(models: Any = TWO, x_o: Any = None, **changes: Any) -> abi.ModelComparison:
    words = {"num_simulations": 600, "encoder": "moments", "progress": False, **changes}
    return abi.compare_models(models, items_with_odds(1.0) if x_o is None else x_o, **words)


@pytest.fixture(scope="module")
def found() -> abi.ModelComparison:
    return compare(num_simulations=6_000)


@pytest.fixture(scope="module")
def small() -> abi.ModelComparison:
    return compare()


@pytest.mark.parametrize("odds", [1.0, 9.0, 0.01])
def test_log_bayes_factors_of_normal_items_are_those_in_closed_form(
    found: abi.ModelComparison, odds: float
) -> None:
    at = found.at(items_with_odds(odds))
    factor = at.log_bayes_factor("still", "moving")
    # The exact value to the 95% interval's width; at 1 : 100 about 4 of the near pairs are
    # still's, so that the standard error is above half a unit.
    assert factor.low - 0.2 <= math.log(odds) <= factor.high + 0.2
    assert abs(factor.value - math.log(odds)) < (0.5 if odds > 0.1 else 1.5)
    assert at.verdict.outcome in ("passes", "cannot tell")


def test_beyond_what_pairs_can_show_it_says_at_least(found: abi.ModelComparison) -> None:
    at = found.at(items_with_odds(1e-9))
    factor = at.log_bayes_factor("moving", "still")
    near = len(found.unseen) / 4  # the most pairs that can lie near
    assert factor.high == math.inf
    assert 2.0 < factor.low <= math.log(near)
    assert "at least" in str(at)
    assert float(at.probabilities[1]) <= 1.0 - 1.0 / (1.0 + near)
    assert float(at.intervals[1, 1]) == 1.0
    assert at.to_dict()["models"]["still"]["log_bayes_factor_of_best"]["high"] is None
    json.dumps(at.to_dict())


def test_most_intervals_hold_the_exact_bayes_factor_of_counts() -> None:
    x = torch.cat([sample_joint(task, 8, seed=5)[1] for task in CASES["counts"].values()])
    found = compare(CASES["counts"], x[0], num_simulations=6_000, encoder="moments+sorted")
    factors = [found.at(row).log_bayes_factor("poisson", "geometric") for row in x]
    exact = exact_counts(x).tolist()
    held = [f.low <= value <= f.high for f, value in zip(factors, exact, strict=True)]
    assert sum(held) >= 12  # of 16 at 95% fewer than 12 have a probability below 1e-3
    even = [(f.value, value) for f, value in zip(factors, exact, strict=True) if abs(value) < 3.0]
    errors = torch.tensor([value - true for value, true in even])
    assert float(errors.square().mean().sqrt()) < 0.8


def test_of_three_models_probabilities_sum_to_one_and_factors_add_up() -> None:
    at = compare(MODELS, num_simulations=2_400)
    assert float(at.probabilities.sum()) == pytest.approx(1.0)
    exact = torch.tensor([log_evidence(at.x_o, sd) for sd in SDS.values()]).softmax(dim=0)
    # 600 pairs a model to train on and 200 unseen ones near x_o: three standard errors of a share.
    assert float((at.probabilities - exact).abs().max()) < 0.15
    values = [at.log_bayes_factor(*pair).value for pair in (
        ("still", "moving"), ("moving", "between"), ("between", "still"),
    )]  # fmt: skip
    assert sum(values) == pytest.approx(0.0, abs=1e-6)


def test_prior_probabilities_move_the_odds_and_no_evidence(small: abi.ModelComparison) -> None:
    other = compare(model_prior={"still": 3.0, "moving": 1.0})
    assert other.model_prior.tolist() == [0.75, 0.25]
    same = "still", "moving"
    assert other.log_bayes_factor(*same) == small.log_bayes_factor(*same)
    x = small.x_o[None]
    logits = [c.probabilities_at(x).log()[0] for c in (other, small)]
    moved = (logits[0][0] - logits[0][1]) - (logits[1][0] - logits[1][1])
    assert float(moved) == pytest.approx(math.log(3.0), abs=1e-5)


def test_probabilities_at_many_x_are_those_at_each(small: abi.ModelComparison) -> None:
    x = torch.stack([items_with_odds(odds) for odds in (0.5, 2.0)])
    many = small.probabilities_at(x)
    assert many.shape == (2, 2)
    assert torch.allclose(many.sum(dim=1), torch.ones(2).double())
    at = small.at(x[1])
    if all(factor.bounded for factor in at.log_bayes_factors):
        assert torch.allclose(at.probabilities, many[1], atol=1e-5)


@pytest.mark.parametrize("own", [False, True])
def test_a_file_says_the_same_and_holds_no_code(tmp_path: Path, own: bool) -> None:
    with isolated_rng(0):
        module = nn.Sequential(nn.Linear(ITEMS, 4), nn.Tanh()) if own else "moments"
    made = compare(encoder=module)
    made.save(tmp_path / "models.safetensors")
    kept = abi.ModelComparison.load(
        tmp_path / "models.safetensors", encoder=module if own else None
    )
    assert kept.to_dict() == made.to_dict()
    x = items_with_odds(3.0)
    assert str(kept.at(x)) == str(made.at(x))
    if own:
        with pytest.raises(ValueError, match="`encoder`"):
            abi.ModelComparison.load(tmp_path / "models.safetensors")
    with pytest.raises(ValueError, match="not a file of kind"):
        abi.load(tmp_path / "models.safetensors")


def test_workers_and_a_second_run_change_nothing(small: abi.ModelComparison) -> None:
    assert compare(workers=2).to_dict() == small.to_dict()
    assert compare(seed=1).to_dict() != small.to_dict()


def test_it_prints_in_ten_lines_and_draws(small: abi.ModelComparison) -> None:
    pytest.importorskip("matplotlib")
    assert len(str(small).splitlines()) <= 10
    assert "\n" not in repr(small)
    assert small.verdict.headline in repr(small)
    html = small._repr_html_()
    assert html.count("<tr>") == 3
    assert len(small.plot().axes[0].patches) == 2


def test_failures_are_counted_and_make_the_comparison_conditional() -> None:
    models = {"still": TWO["still"], "failing": (normal(4.0), Failing())}
    found = compare(models, num_simulations=1_000)
    assert found.verdict.calls == {"still": 500, "failing": 500}
    assert found.verdict.failures["still"] == 0
    assert 200 < found.verdict.failures["failing"] < 300
    assert "given success" in str(found)
    # p(x | success) of the failing one is twice what it is at theta < 0: x_o of mean 0 has it too.
    assert found.num_simulations == 1_000


def test_x_o_like_no_model_warns_and_cannot_be_told() -> None:
    with pytest.warns(UserWarning, match="unlike the data of every model"):
        found = compare(x_o=torch.linspace(-50.0, 50.0, ITEMS), num_simulations=2_400)
    assert found.verdict.outcome in ("cannot tell", "fails")
    assert max(found.verdict.x_o_p_values.values()) <= 0.01


def test_simulations_made_before_serve_without_a_call() -> None:
    made = {
        name: simulate(simulator, prior.sample((300,)), seed=1, progress=False)
        for name, (prior, simulator) in seeded_draws().items()
    }
    found = compare(num_simulations=0, simulations=made)
    assert found.num_simulations == 0
    assert len(found.unseen) > 90


def seeded_draws() -> dict[str, Any]:
    class Drawn:
        def __init__(self, sd: float):
            self.sd = sd

        def sample(self, shape: tuple[int]) -> Tensor:
            return self.sd * torch.randn(*shape, 1, generator=torch_generator(3))

    return {name: (Drawn(SDS[name]), Items()) for name in TWO}


def test_pairs_are_parted_once_each_and_models_of_the_check_are_drawn() -> None:
    rows = [torch.arange(1_000.0)[:, None], 1_000.0 + torch.arange(800.0)[:, None]]
    parts = parted(rows, 0.25, seed=0)
    together = torch.cat([parts.training.x, parts.calibration.x, parts.check.x])
    assert torch.equal(together.sort(dim=0).values[:, 0], torch.arange(1_800.0))
    first = int((parts.check.model == 0).sum())
    assert len(parts.check) == 400
    assert abs(first - 200) < 3.5 * math.sqrt(100)  # binomial with sd 10


def _wrong(**changes: Any) -> Callable[[], Any]:
    return lambda: compare(**changes)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (_wrong(models={"still": TWO["still"]}), "two or more; got 1"),
        (_wrong(models=3), "got int"),
        (_wrong(models={"a": TWO["still"], "b": 3}), "got int"),
        (_wrong(models=list(TWO.values()), names=["a", "a"]), "different ones"),
        (_wrong(models=TWO, names=["a", "b"]), "a dict brings its own"),
        (_wrong(model_prior=[1.0, 0.0]), "2 positive numbers"),
        (_wrong(model_prior={"still": 1.0}), "got still"),
        (_wrong(num_simulations=100), "has 50 simulations"),
        (_wrong(check_fraction=0.7), "`check_fraction`"),
        (_wrong(encoder="nonesuch"), "`encoder`"),
        (_wrong(x_o=torch.zeros(ITEMS, 2)), "'still'"),
        (_wrong(simulations={"other": None}), "got 'other'"),
    ],
)
def test_what_is_wrong_is_told_by_its_name(call: Callable[[], Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_another_x_must_be_as_long_and_names_must_be_known(small: abi.ModelComparison) -> None:
    with pytest.raises(ValueError, match="must hold 8 values an observation"):
        small.at(torch.zeros(3))
    with pytest.raises(ValueError, match="got 'nonesuch'"):
        small.log_bayes_factor("still", "nonesuch")


def test_without_check_pairs_it_cannot_tell() -> None:
    found = compare(check_fraction=0.0)
    assert found.verdict.outcome == "cannot tell"
    assert found.verdict.p_value is None
