"""The README's Python examples run, and its commands exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_there_are_examples() -> None:
    assert len(BLOCKS) >= 2


def test_python_examples_run_one_after_the_other(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(BLOCKS)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
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
            env=os.environ | {"COLUMNS": "200"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        for option in re.findall(r"--[a-z-]+", words):
            assert option in done.stdout, f"abi {command} {option}"
