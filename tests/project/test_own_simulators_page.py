"""Pages whose blocks run and print what stands below them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CUT = "--- cut between blocks ---"


@pytest.mark.parametrize("name", ["bring_your_own", "many_observations"])
def test_the_blocks_print_what_is_shown_below_them(name: str, tmp_path: Path) -> None:
    page = (ROOT / f"docs/{name}.md").read_text()
    found = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, flags=re.DOTALL)
    assert len(found) == page.count("```python") >= 4
    code = f"\nprint({CUT!r})\n".join(block for block, _ in found)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(f"{CUT}\n") == [shown for _, shown in found]
    assert not list(tmp_path.iterdir())
