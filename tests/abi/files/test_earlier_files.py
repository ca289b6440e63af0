"""Files of format version 6, written here as that version wrote them: no encoders, no verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import problems
import pytest
import torch
from fits import X_O, quick_fit, usual_fit
from safetensors.torch import save
from torch import Tensor

import abi
from abi.files.parts import read_parts
from abi.files.same_model import FILE
from abi.rounds.record import RoundRecord
from simulators import from_function

REASON = "its file is of an earlier version, which kept no encoders; fit again"


def write_version_6(
    path: Path, kind: str, tensors: dict[str, Tensor], header: dict[str, Any]
) -> None:
    """What ``write_parts`` did before it took a digest."""
    text = json.dumps({"format": kind, "version": 6, **header})
    path.write_bytes(save({name: t.contiguous() for name, t in tensors.items()}, {"abi": text}))


def _model(tensors: dict[str, Tensor], header: dict[str, Any]) -> tuple[dict[str, Tensor], Any]:
    """A model's parts without its encoders."""
    kept = {name: t for name, t in tensors.items() if not name.startswith("model.encoders.")}
    values = {name: v for name, v in header["model"]["values"].items() if name != "encoders"}
    return kept, {"kind": header["model"]["kind"], "values": values}


def _record(values: dict[str, Any]) -> dict[str, Any]:
    """A round's record without what rounds say of each other."""
    return {name: value for name, value in values.items() if name not in ("before", "moved")}


def as_version_6(path: Path) -> None:
    """Write a posterior again as version 6 did."""
    tensors, header = read_parts(path, "abi-posterior")
    kept, model = _model(tensors, header)
    kept = {name: t for name, t in kept.items() if name in ("x_o", "accepted") or "model." in name}
    kept = {name: t for name, t in kept.items() if not name.startswith(("regions.", "network."))}
    names = ("parameter_names", "seed", "config", "versions")
    old = {"model": model, "rounds": [_record(values) for values in header["rounds"]]}
    old |= {name: header[name] for name in names}
    write_version_6(path, "abi-posterior", kept, old)


def as_version_6_run(folder: Path) -> None:
    """Write a run's files again as version 6 did."""
    for path in sorted(folder.glob("round_*.safetensors")):
        tensors, header = read_parts(path, "abi-round")
        kept, model = _model(tensors, header)
        old = {name: header[name] for name in ("tolerance", "kernel", "log_threshold")}
        old |= {"model": model, "records": [_record(values) for values in header["records"]]}
        write_version_6(path, "abi-round", kept, old)
    (folder / FILE).unlink(missing_ok=True)  # it kept nothing to tell its model by
    path = folder / "request.safetensors"
    tensors, header = read_parts(path, "abi-request")
    left_out = ("format", "version", "check_fraction", "stop_when")
    old = {name: value for name, value in header.items() if name not in left_out}
    write_version_6(path, "abi-request", tensors, old)


@pytest.fixture(scope="module")
def posterior() -> abi.ABIPosterior:
    return usual_fit()


@pytest.fixture
def earlier(posterior: abi.ABIPosterior, tmp_path: Path) -> abi.ABIPosterior:
    """The same posterior, read from a file of version 6."""
    path = tmp_path / "posterior.safetensors"
    posterior.save(path)
    as_version_6(path)
    assert read_parts(path, "abi-posterior")[1].keys() == {
        "format", "version", "model", "parameter_names", "rounds", "seed", "config", "versions",
    }  # fmt: skip
    return abi.load(path)


def test_an_earlier_posterior_has_the_same_draws_and_density(
    posterior: abi.ABIPosterior, earlier: abi.ABIPosterior
) -> None:
    draws = posterior.sample((50,))
    assert torch.equal(earlier.sample((50,)), draws)
    assert torch.equal(earlier.sample((50,), x=X_O), draws)
    assert torch.equal(earlier.log_prob(draws), posterior.log_prob(draws))
    assert earlier.parameter_names == posterior.parameter_names
    assert earlier.config == posterior.config
    assert [record.tolerance for record in earlier.rounds] == [
        record.tolerance for record in posterior.rounds
    ]
    made = sum(record.simulator_calls for record in posterior.rounds)
    assert earlier.num_simulations == made


def test_the_verdict_of_an_earlier_posterior_says_what_its_file_lacks(
    posterior: abi.ABIPosterior, earlier: abi.ABIPosterior
) -> None:
    verdict = earlier.verdict
    assert verdict.outcome == "cannot tell"
    assert "the file is of an earlier version, which kept no check pairs" in verdict.headline
    assert verdict.p_value is None
    assert verdict.x_o_p_value == posterior.verdict.x_o_p_value  # that much it knew
    assert "earlier version" in repr(earlier)
    with pytest.raises(ValueError, match="`check_pairs`: cannot tell: the file is of an earlier"):
        earlier.check_pairs()


def test_an_earlier_posterior_refuses_other_x_with_the_reason(earlier: abi.ABIPosterior) -> None:
    for ask in (
        lambda: earlier.sample((5,), x=X_O + 0.01),
        lambda: earlier.sample_batched((5,), X_O[None]),
        lambda: earlier.log_prob(X_O[None, :2], X_O + 0.01),
    ):
        with pytest.raises(ValueError, match="`x` must be the observation of the fit") as caught:
            ask()
        assert REASON in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=f"`check`: the answer cannot be checked: {REASON}"):
        earlier.check(50, simulator=problems.simulate, prior=problems.BOX)


def test_an_earlier_posterior_is_saved_in_the_new_format(
    earlier: abi.ABIPosterior, tmp_path: Path
) -> None:
    earlier.save(tmp_path / "again.safetensors")
    again = abi.load(tmp_path / "again.safetensors")
    assert again.verdict == earlier.verdict
    assert torch.equal(again.sample((20,)), earlier.sample((20,)))
    with pytest.raises(ValueError, match=REASON):
        again.sample((5,), x=X_O + 0.01)


def test_records_of_earlier_rounds_are_read_without_what_they_did_not_have(
    posterior: abi.ABIPosterior,
) -> None:
    old = RoundRecord.from_dict(_record(posterior.rounds[-1].to_dict()))
    assert old.before is None
    assert old.moved is None
    assert old.tolerance == posterior.rounds[-1].tolerance


def test_an_earlier_run_resumes_to_the_answer_it_would_have_had(tmp_path: Path) -> None:
    """It kept no calls for a check: the rounds share all of them, as they did."""
    whole = quick_fit(num_rounds=2, check_fraction=0.0)
    interrupted, counting = problems.interrupted_after(tmp_path, 1), problems.Counting()
    with pytest.raises(KeyboardInterrupt):
        quick_fit(simulator=interrupted, num_rounds=2, check_fraction=0.0, run_dir=tmp_path)
    as_version_6_run(tmp_path)
    task = from_function(counting, problems.BOX, batched=True)
    resumed = abi.resume(tmp_path, problems.BOX, task, progress=False)
    assert counting.calls == whole.rounds[-1].simulator_calls
    assert torch.equal(resumed.sample((50,)), whole.sample((50,)))
    assert resumed.num_simulations == whole.num_simulations == 1_200
    assert resumed.verdict.outcome == "cannot tell"
    # Its last round is of this version: asked elsewhere it answers, and can be checked.
    near = X_O + 0.05
    assert torch.equal(resumed.sample((5,), x=near), whole.sample((5,), x=near))
    assert resumed.check(40).verdict.num_calls == 40


def test_an_earlier_run_that_was_done_gives_its_answer_without_a_call(tmp_path: Path) -> None:
    fit = quick_fit(num_rounds=2, num_simulations=600, run_dir=tmp_path)
    as_version_6_run(tmp_path)
    again = abi.resume(tmp_path, problems.BOX, problems.all_nan, progress=False)
    assert torch.equal(again.sample((20,)), fit.sample((20,)))
    assert again.verdict.outcome == "cannot tell"
    with pytest.raises(ValueError, match=REASON):
        again.sample((5,), x=X_O + 0.01)
