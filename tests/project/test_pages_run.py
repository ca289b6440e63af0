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
PAGES = [
    "how_to/bring_your_own",
    "how_to/cluster",
    "how_to/gaps_and_trials",
    "how_to/many_observations",
    "how_to/pictures",
    "how_to/toolchain",
    "how_to/which_model",
    "reference/models",
]
# Of dask_jobqueue, whose jobs no machine of a test runs.
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


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_print_what_is_shown_below_them(
    page: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    blocks = FENCED.findall((ROOT / f"docs/{page}.md").read_text())
    queue = tmp_path_factory.mktemp("queue")
    (queue / "dask_jobqueue.py").write_text(QUEUE)
    done = subprocess.run(
        [sys.executable, "-c", f"\nprint({CUT!r})\n".join(block for block, _ in blocks)],
        capture_output=True, text=True, cwd=tmp_path, check=False,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{queue}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(f"{CUT}\n") == [shown for _, shown in blocks]
    assert not list(tmp_path.iterdir())
