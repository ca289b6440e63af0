"""The notebooks run from top to bottom, are stored without outputs, and link to what is there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from simulators.random import isolated_rng

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # of the kernel's own libraries
@pytest.mark.moves_global_rng  # the client draws names for its connection
def test_a_notebook_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    with isolated_rng(0):
        nbformat = pytest.importorskip("nbformat")
        nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    assert any("image/png" in out.get("data", {}) for out in outputs)
    # Nothing on standard error: no warning that a reader would have to wonder about.
    assert [out["text"] for out in outputs if out.get("name") == "stderr"] == []
    assert not list(tmp_path.iterdir()), "it left files behind"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs_and_its_links_lead_somewhere(path: Path) -> None:
    stored: dict[str, Any] = json.loads(path.read_text())
    for cell in stored["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        if cell["cell_type"] == "code":
            continue
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", "".join(cell["source"])):
            assert (path.parent / target).exists(), target
