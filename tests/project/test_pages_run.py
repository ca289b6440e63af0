"""The pages that show how to do something: their blocks run and print what stands below them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CUT = "--- cut between blocks ---"
FENCED = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.DOTALL)
# Pages whose blocks can be run as they stand; the others show one call each, of a fit of yours.
PAGES = ["how_to/bring_your_own", "how_to/pictures", "how_to/toolchain", "reference/models"]


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_print_what_is_shown_below_them(page: str, tmp_path: Path) -> None:
    blocks = FENCED.findall((ROOT / f"docs/{page}.md").read_text())
    done = subprocess.run(
        [sys.executable, "-c", f"\nprint({CUT!r})\n".join(block for block, _ in blocks)],
        capture_output=True, text=True, cwd=tmp_path, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(f"{CUT}\n") == [shown for _, shown in blocks]
    assert not list(tmp_path.iterdir())
