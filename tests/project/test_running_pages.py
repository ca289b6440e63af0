"""How-to pages: their blocks run one after another and print what they show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CUT = "--- cut between blocks ---"
QUEUE = '''
from distributed import LocalCluster


class SLURMCluster(LocalCluster):
    """Jobs of this machine, asked for as those of a queue are."""

    def __init__(self, queue, cores, processes, memory, walltime):
        super().__init__(
            n_workers=0, threads_per_worker=2, processes=False, protocol="tcp",
            dashboard_address=":0",
        )

    def scale(self, jobs):
        super().scale(min(jobs, 1))
'''


@pytest.mark.parametrize("page", ["bring_your_own", "cluster", "pictures"])
def test_the_blocks_print_what_is_shown_below_them(
    page: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = (ROOT / f"docs/{page}.md").read_text()
    found = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, flags=re.DOTALL)
    assert len(found) == text.count("```python") >= 3
    code = f"\nprint({CUT!r})\n".join(block for block, _ in found)
    queue = tmp_path_factory.mktemp("queue")
    (queue / "dask_jobqueue.py").write_text(QUEUE)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{queue}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(f"{CUT}\n") == [shown for _, shown in found]
    assert not list(tmp_path.iterdir())
