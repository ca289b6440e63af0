"""The README's Python examples run, and its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_there_are_examples() -> None:
    assert len(BLOCKS) >= 2


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_python_examples_run(number: int, tmp_path: Path) -> None:
    """Each block runs after those before it, as a reader would type them."""
    code = "\n".join(BLOCKS[: number + 1])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr


def test_files_the_readme_points_to_exist() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_options_the_readme_shows_exist() -> None:
    for command, words in re.findall(
        r"^abi (\w+)((?: [^\n]*\\\n)*[^\n]*)$", README, flags=re.MULTILINE
    ):
        done = subprocess.run(
            [sys.executable, "-m", "abi", command, "--help"],
            capture_output=True, text=True, cwd=ROOT, check=False,
            env={"COLUMNS": "200", "PATH": ""},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        for option in re.findall(r"--[a-z-]+", words):
            assert option in done.stdout, f"abi {command} {option}"
