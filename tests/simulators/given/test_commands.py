"""Programs as simulators: each run gets its values as words, and faults cost themselves."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from simulators import from_command, simulate
from simulators.given.task import recognise

THETA = torch.tensor([[0.25, 0.5], [0.75, 1.0], [0.5, 2.0]])


def program(code: str, words: str) -> str:
    """A command that runs Python code with these words."""
    return f"{shlex.quote(sys.executable)} -S -c {shlex.quote(code)} {words}"


def read_first(path: Path) -> Any:
    return float(path.read_text().split(";")[0])


def read_all(text: str) -> Any:
    return [float(word) for word in text.split()]


def count_letters(text: str) -> int:
    return len(text.strip())


def test_a_command_is_a_simulator_of_its_places() -> None:
    command = from_command("echo {beta} {gamma:.3f}, {seed}")
    assert command.parameter_names == ("beta", "gamma")
    run = simulate(command, THETA, seed=4, progress=False)
    assert torch.equal(run.x[:, :2], THETA)
    assert len(set(run.x[:, 2].tolist())) == 3
    assert torch.equal(run.x, simulate(command, THETA, seed=4, workers=2, progress=False).x)


def test_places_are_matched_with_the_names_of_the_prior() -> None:
    command = from_command("echo {beta} {gamma}")
    assert torch.equal(recognise(command, THETA).simulator(THETA, 1), THETA)
    swapped = recognise(command, THETA, ("gamma", "beta")).simulator
    assert torch.equal(swapped(THETA, 1), THETA.flip(1))
    with pytest.raises(ValueError, match="places for beta, gamma, where `prior` has a, b"):
        recognise(command, THETA, ("a", "b"))
    with pytest.raises(ValueError, match="where `prior` has 3 parameters"):
        recognise(command, THETA[:, [0, 1, 1]])


def test_no_value_or_quote_becomes_another_word() -> None:
    command = from_command("echo '{beta} ; $HOME' \"{gamma}\"", reader=str)
    assert command(beta=1.0, gamma=-2.0) == "1.0 ; $HOME -2.0\n"


@pytest.mark.parametrize("suffix", ["", ":.csv", ":.npy"])
def test_a_file_is_read_and_removed(suffix: str) -> None:
    code = (
        "import sys; out = sys.argv[2]; print(out, file=sys.stderr); "
        "open(out, 'w').write(f'{sys.argv[1]}, 2\\n3')"
    )
    if suffix == ":.npy":
        code = "import sys, numpy; numpy.save(sys.argv[2], [float(sys.argv[1]), 2, 3])"
    words = program(code, f"{{beta}} {{output{suffix}}}").replace(" -S", "")
    # Braces of the code are braces of the command.
    words = words.replace("{sys.argv[1]}", "{{sys.argv[1]}}")
    assert np.asarray(from_command(words)(beta=0.5)).tolist() == [0.5, 2.0, 3.0]


def test_a_reader_is_given_the_text_or_the_path() -> None:
    assert from_command("echo {beta}", reader=count_letters)(beta=0.25) == 4
    words = "sh -c 'echo \"{beta};x\" > {output}'"
    assert from_command(words, reader=read_first)(beta=0.25) == 0.25


def test_failures_are_told_in_the_words_of_the_program() -> None:
    words = (
        "sh -c 'test {beta} != 0.75 && echo {beta} {gamma} || (echo no convergence >&2; exit 3)'"
    )
    run = simulate(from_command(words), THETA, seed=1, progress=False)
    assert [failure.index for failure in run.failures] == [1]
    assert run.failures[0].reason == "RuntimeError: exit status 3 of sh: no convergence"
    for words, reason in {
        "echo {beta} {gamma} end": "ValueError: its output does not consist of .*'end'.*`reader`",
        "true {beta} {gamma}": "ValueError: its output is empty",
        "true {beta} {gamma} {output}": "RuntimeError: the command wrote no file {output}",
        "no-such-program {beta} {gamma}": "FileNotFoundError.*no-such-program",
    }.items():
        with pytest.raises(ValueError, match=f"failed for [23] of the [23].*{reason}"):
            simulate(from_command(words), THETA, seed=1, progress=False)


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    late = tmp_path / "late"
    words = f"sh -c 'test {{beta}} = 0.75 && sleep 3 && touch {late}; echo {{gamma}}'"
    run = simulate(from_command(words), THETA, seed=1, timeout=0.5, progress=False)
    assert [failure.reason for failure in run.failures] == ["timeout: no result within 0.5 s"]
    assert run.x[:, 0].tolist() == [0.5, 2.0]
    time.sleep(3.0)
    assert not late.exists()


def test_a_store_goes_on_with_the_same_command_and_no_other(tmp_path: Path) -> None:
    command = from_command("echo {beta} {gamma} {seed}", count_letters)
    first = simulate(command, THETA, store=tmp_path, seed=1, progress=False)
    again = simulate(
        from_command(command.command, count_letters), THETA, store=tmp_path, progress=False
    )
    assert torch.equal(first.x, again.x)
    with pytest.warns(UserWarning, match="other code"):
        simulate(from_command(command.command, read_all), THETA, store=tmp_path, progress=False)
    with pytest.raises(ValueError, match="another `simulator`"):
        simulate(from_command("echo {gamma} {beta}"), THETA, store=tmp_path, progress=False)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("model | tail {beta}", r"runs without a shell, which '\|' needs; write sh -c '"),
        ("model {} {beta}", r"must name what stands in its places, .* got \{\}"),
        ("model {0}", "must name what stands in its places"),
        ("model", "must have a place for each parameter"),
        ("model --seed {seed}", "must have a place for each parameter"),
        ("", "must have a place for each parameter"),
        ("model '{beta}", "cannot be split: No closing quotation"),
        ("model {beta", "cannot be split"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_at_once(command: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"`command` .*{words}") as caught:
        from_command(command)
    assert "\n" not in str(caught.value)


def test_a_command_in_words_is_refused_with_what_makes_one() -> None:
    with pytest.raises(TypeError, match=r"^`command` must be one text.*got list.*shlex\.join"):
        from_command(["echo", "{a}"])  # type: ignore[arg-type]
