"""A file that was damaged is refused in one line, or it still says what it said."""

from __future__ import annotations

import random
import re
from pathlib import Path

import problems
import pytest
import torch
from fits import quick_fit
from torch import Tensor

import abi

COPIES = 300


@pytest.fixture(scope="module")
def posterior() -> abi.ABIPosterior:
    return quick_fit(num_rounds=1)


def _tensors(posterior: abi.ABIPosterior) -> dict[str, Tensor]:
    """All tensors that a file holds, by name."""
    assert posterior.pairs is not None
    assert posterior.reach is not None
    assert posterior.kernel is not None
    network = posterior.kernel.network.state_dict()  # type: ignore[attr-defined]
    region = posterior.pairs.regions[-1]
    return {
        **{f"model.{name}": value for name, value in posterior.model.state().tensors.items()},
        **{f"network.{name}": value for name, value in network.items()},
        "x_o": posterior.x_o,
        "accepted": posterior.accepted,
        "simulated": posterior.reach.simulated,
        "theta": posterior.pairs.theta,
        "x": posterior.pairs.x,
        "lower": region.lower,
        "upper": region.upper,
    }


def damaged(whole: bytes, stream: random.Random) -> bytes:
    """A copy in which a byte is another, or a piece is cut out or zeroed, or the end is missing."""
    start = stream.randrange(len(whole))
    # As likely in the few bytes of a header as in the many of the weights.
    start = start if stream.random() < 0.5 else start % 6_000
    end = min(len(whole), start + stream.randint(1, 400))
    match stream.randrange(4):
        case 0:
            other = (whole[start] + stream.randrange(1, 256)) % 256
            return whole[:start] + bytes([other]) + whole[start + 1 :]
        case 1:
            return whole[:start] + whole[end:]
        case 2:
            return whole[:start] + bytes(end - start) + whole[end:]
        case _:
            return whole[:start]


def test_a_damaged_file_is_refused_or_says_what_it_said(
    posterior: abi.ABIPosterior, tmp_path: Path
) -> None:
    path = tmp_path / "posterior.safetensors"
    posterior.save(path)
    whole, said = path.read_bytes(), _tensors(posterior)
    stream = random.Random(0)
    refused = 0
    for _ in range(COPIES):
        path.write_bytes(damaged(whole, stream))
        try:
            loaded = abi.load(path)
        except ValueError as error:
            refused += 1
            assert str(error).startswith(f"`path`: {path}")  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
            continue
        found = _tensors(loaded)
        assert found.keys() == said.keys()
        assert all(torch.equal(found[name], said[name]) for name in said)
        assert loaded.verdict == posterior.verdict
        assert loaded.rounds == posterior.rounds
    # Nearly all are: what is left fell on zeros, or into white space.
    assert refused > 0.9 * COPIES


def test_every_byte_of_the_header_counts(posterior: abi.ABIPosterior, tmp_path: Path) -> None:
    """Digits of a number, letters of a name: JSON that still reads, and says another thing."""
    path = tmp_path / "posterior.safetensors"
    posterior.save(path)
    whole = path.read_bytes()
    for before, after in (
        (b"theta_1", b"theta_7"),
        (b'\\"seed\\": 0', b'\\"seed\\": 1'),
        (b'\\"num_calls\\": 84', b'\\"num_calls\\": 48'),
        (b'\\"version\\": 25', b'\\"version\\":  6'),
    ):
        assert before in whole
        path.write_bytes(whole.replace(before, after, 1))
        with pytest.raises(ValueError, match=r"^`path`: .* do not match its digest"):
            abi.load(path)


def test_a_file_that_lost_its_digest_is_refused(
    posterior: abi.ABIPosterior, tmp_path: Path
) -> None:
    path = tmp_path / "posterior.safetensors"
    posterior.save(path)
    whole = path.read_bytes()
    assert whole.count(b'\\"digest\\"') == 1
    path.write_bytes(whole.replace(b'\\"digest\\"', b'\\"digits\\"'))
    with pytest.raises(ValueError, match=r"^`path`: .* do not match its digest"):
        abi.load(path)


def test_a_damaged_round_is_refused_before_a_call_is_made(tmp_path: Path) -> None:
    once = problems.interrupted_after(tmp_path, 1)
    with pytest.raises(KeyboardInterrupt):
        quick_fit(simulator=once, num_simulations=600, run_dir=tmp_path)
    path = tmp_path / "round_01.safetensors"
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 255
    path.write_bytes(whole)
    counting = problems.Counting()
    with pytest.raises(ValueError, match=r"^`path`: .*round_01.* do not match its digest"):
        abi.resume(tmp_path, problems.BOX, counting, progress=False)
    assert counting.calls == 0


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("request", "Take another copy of the run, or begin it anew in another folder."),
        ("round_01", "Take another copy of the run, or begin it anew in another folder."),
        ("began_with", "If prior and simulator are those of the run, remove it."),
    ],
)
def test_a_damaged_run_is_refused_with_what_to_do(tmp_path: Path, name: str, cure: str) -> None:
    once = problems.interrupted_after(tmp_path, 1)
    with pytest.raises(KeyboardInterrupt):
        quick_fit(simulator=once, num_simulations=600, run_dir=tmp_path)
    path = tmp_path / f"{name}.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=re.escape(cure)):
        abi.resume(tmp_path, problems.BOX, problems.Counting(), progress=False)
