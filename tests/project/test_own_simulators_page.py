"""The page on simulators of one's own: its blocks run and print what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/bring_your_own.md").read_text()
CUT = "--- cut between blocks ---"


def test_the_blocks_print_what_is_shown_below_them(tmp_path: Path) -> None:
    found = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(found) == PAGE.count("```python") >= 4
    code = f"\nprint({CUT!r})\n".join(block for block, _ in found)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(f"{CUT}\n") == [shown for _, shown in found]
    assert not list(tmp_path.iterdir())
