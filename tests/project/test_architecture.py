"""The house: who imports whom, what an import costs, and what the wheel holds."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("abi", "simulators", "validation")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
HEAVY = {
    "sbi", "ot", "sklearn", "scipy.stats", "matplotlib", "arviz", "numba", "zuko", "pebble", "dask",
    "rich", "typer", "pandas", "safetensors", "jinja2",
}  # fmt: skip


def python(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return result.stdout


def test_import_rules_hold() -> None:
    result = subprocess.run(
        [Path(sys.executable).parent / "lint-imports"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert result.returncode == 0, result.stdout


def test_only_the_command_line_imports_all_three() -> None:
    def imported(path: Path) -> set[str]:
        tree = ast.parse(path.read_text())
        names = {n.name for x in ast.walk(tree) if isinstance(x, ast.Import) for n in x.names}
        names |= {
            x.module or "" for x in ast.walk(tree) if isinstance(x, ast.ImportFrom) and x.level == 0
        }
        return {name.split(".")[0] for name in names}

    for path in SOURCES:
        if path.is_relative_to(ROOT / "abi") and "cli" not in path.parts:
            assert "validation" not in imported(path), path


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    loaded = json.loads(
        python(f"import json, sys, {package}; print(json.dumps(list(sys.modules)))")
    )
    # torch itself brings what it brings.
    with_torch = set(
        json.loads(python("import json, sys, torch; print(json.dumps(list(sys.modules)))"))
    )
    assert HEAVY & (set(loaded) - with_torch) == set()


def test_importing_abi_costs_little_more_than_importing_torch() -> None:
    code = (
        "import time; import torch; start = time.process_time(); import abi; "
        "print(time.process_time() - start)"
    )
    python(code)  # compiles the byte code
    assert min(float(python(code)) for _ in range(3)) < 0.3


def test_the_wheel_holds_the_three_packages_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            tmp_path,
            ".",
        ],
        check=True,
        cwd=ROOT,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("abi_toolkit-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == set(PACKAGES)
    for package in PACKAGES:
        assert f"{package}/py.typed" in names
    expected = {str(path.relative_to(ROOT)) for path in SOURCES}
    expected |= {
        f"validation/page/templates/page.{kind}" for kind in ("html.j2", "css", "js")
    }  # what a report is made of
    assert expected <= set(names)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_small_rooms(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= 300, f"{len(lines)} lines: one idea a file"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert length < 50, f"{node.name}: {length} lines of body"
        assert not isinstance(node, ast.Assert), f"assert in the library, line {node.lineno}"


def test_the_version_is_stated_once() -> None:
    import tomllib

    import abi

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == abi.__version__
    cited = (ROOT / "CITATION.cff").read_text().splitlines()
    assert [line for line in cited if line.startswith("version:")] == [
        f"version: {abi.__version__}"
    ]


def test_torch_is_pinned_without_a_local_label() -> None:
    """A fresh install must take whichever build of that version its index offers."""
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert [pin for pin in pins if pin.startswith("torch==")] == ["torch==2.13.0"]
    assert all("==" in pin for pin in pins if pin and not pin.startswith("#"))
