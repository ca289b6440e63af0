"""Worker processes: what one costs that takes another's place."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import simulators


def test_a_worker_has_imported_what_simulators_are_slow_to_import(tmp_path: Path) -> None:
    """Else each simulation that hangs or kills its worker costs that import once more."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import sys, scipy.stats, torch, simulators
        def simulator(theta):
            return theta + float("scipy.stats" in sys.modules)
        print(simulators.simulate(simulator, torch.zeros(2, 1), workers=2).x.flatten().tolist())
        """)
    )
    root = Path(simulators.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(root)},
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[1.0, 1.0]\n"), done.stderr
