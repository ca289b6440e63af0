"""What parses words alone loads no library of numbers, and the help is still right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import invoke
from typer.main import get_command

import abi
from abi.cli.app import _whole, app
from abi.cli.work.fit import NUM_SIMULATIONS
from abi.plan import CHECK_FRACTION

ROOT = Path(__file__).parents[3]
COMMANDS = sorted(get_command(app).commands)  # type: ignore[attr-defined]
NUMBERS = "{'torch', 'numpy', 'scipy', 'zuko', 'numba'}"
LOADED = (
    "import atexit, sys; "
    f"atexit.register(lambda: print('loaded:', sorted({NUMBERS} & set(sys.modules)))); "
)


def loaded(code: str, *words: str, **environment: str) -> tuple[str, str]:
    """What the code says, and which libraries of numbers it has loaded at its end."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED + code, *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
    )
    said, _, names = done.stdout.rpartition("loaded: ")
    return said, names.strip() or done.stderr


@pytest.mark.parametrize(
    "words",
    [(), ("--help",), ("--version",), *((name, "--help") for name in COMMANDS)],
    ids=" ".join,
)
def test_what_parses_words_alone_loads_no_library_of_numbers(words: tuple[str, ...]) -> None:
    said, names = loaded("from abi.cli.app import main; main()", *words)
    assert names == "[]"
    assert ("abi-toolkit" if "--version" in words else "Usage:") in said


@pytest.mark.parametrize(
    ("typed", "shown"), [("val", "validate"), ("fit --num-sam", "--num-samples")]
)
def test_completion_loads_no_library_of_numbers(typed: str, shown: str) -> None:
    words = ["abi", *typed.split()]
    said, names = loaded(
        "sys.argv[0] = 'abi'; from abi.cli.app import main; main()",
        _ABI_COMPLETE="complete_bash",
        COMP_WORDS=" ".join(words),
        COMP_CWORD=str(len(words) - 1),
    )
    assert (said.split(), names) == ([shown], "[]")


def test_the_package_is_imported_as_its_names_are_used() -> None:
    said, names = loaded("import abi; print(abi.__version__, dir(abi) == abi.__all__)")
    assert (said.split(), names) == ([abi.__version__, "True"], "[]")
    every = "from abi import *; import abi; print(fit is abi.fit, abi.metrics is metrics)"
    assert loaded(every)[0].split() == ["True", "True"]
    with pytest.raises(AttributeError, match="module 'abi' has no attribute 'fti'"):
        abi.fti  # type: ignore[attr-defined]  # noqa: B018


def test_the_help_of_fit_states_the_numbers_that_it_takes() -> None:
    text = " ".join(re.sub("[│╭╮╰╯─]", " ", invoke("fit", "--help").stdout).split())
    assert f"Simulator calls, at most. [{NUM_SIMULATIONS}]" in text
    assert f"Share of the calls kept for testing the answer. [{CHECK_FRACTION}]" in text


def test_the_end_of_a_file_is_no_answer() -> None:
    """Typer ends with 1 on an EOFError, which here means that a test rejects."""

    def broken() -> None:
        raise EOFError("pipe closed")

    with pytest.raises(RuntimeError, match="EOFError: pipe closed"):
        _whole(broken)()
