"""The house: who imports whom, what an import costs, and what the wheel holds."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("abi", "simulators", "validation")
ORDER = ("abi", "validation", "simulators")
ROOMS = sorted(
    str(path.parent.relative_to(ROOT))
    for package in PACKAGES
    for path in (ROOT / package).rglob("__init__.py")
)
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


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_a_room_is_no_crowd_and_says_what_lives_there(room: str) -> None:
    inside = [p for p in (ROOT / room).glob("*.py") if p.stem not in ("__init__", "__main__")]
    assert len(inside) <= 12
    assert ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text()))


def test_the_page_on_architecture_names_every_room_and_no_other() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    listed = re.findall(r"^- `([\w/]+)`:", page, re.MULTILINE)
    assert listed == sorted(listed, key=lambda room: (ORDER.index(room.split("/")[0]), room))
    assert set(listed) == set(ROOMS) - set(PACKAGES)
    for path in re.findall(r"`((?:abi|simulators|validation|tests|docs)/[\w/.]+)`", page):
        assert (ROOT / path).exists(), path


def test_the_picture_of_the_house_has_its_rooms_and_no_other() -> None:
    tops = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts[:2])
        for path in SOURCES
        if path.parent.parent != ROOT or path.stem not in ("__init__", "__main__")
    }
    drawn = re.findall(r"<title>([\w.]+):", (ROOT / "docs/rooms.svg").read_text())
    assert sorted(drawn) == sorted(name for name in tops if name.count(".") == 1)


def test_tab_shows_what_a_user_needs_and_no_more() -> None:
    import abi

    assert set(dir(abi)) == set(abi.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    loaded = json.loads(
        python(f"import json, sys; from {package} import *; print(json.dumps(list(sys.modules)))")
    )
    # torch itself brings what it brings.
    with_torch = set(
        json.loads(python("import json, sys, torch; print(json.dumps(list(sys.modules)))"))
    )
    assert HEAVY & (set(loaded) - with_torch) == set()


def test_importing_abi_costs_little_more_than_importing_torch() -> None:
    # One pass of the garbage collector over torch's objects falls on whoever imports next.
    code = (
        "import gc, time; gc.disable(); zero = time.process_time(); import torch; "
        "one = time.process_time(); "
        "from abi import *; print((time.process_time() - one) / (one - zero))"
    )
    python(code)  # compiles the byte code
    assert min(float(python(code)) for _ in range(5)) < 0.3


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that is built from it."""
    out = tmp_path_factory.mktemp("built")
    building = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, "."]
    subprocess.run(building, check=True, cwd=ROOT, capture_output=True)
    return out


def test_the_wheel_holds_the_three_packages_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("abi_toolkit-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == set(PACKAGES)
    for package in PACKAGES:
        assert f"{package}/py.typed" in names
    expected = {str(path.relative_to(ROOT)) for path in SOURCES}
    expected |= {
        f"validation/page/templates/page.{kind}" for kind in ("html.j2", "css", "js")
    }  # what a report is made of
    assert expected <= set(names)


def test_the_sdist_is_small_and_has_no_kept_results(built: Path) -> None:
    (sdist,) = built.glob("abi_toolkit-*.tar.gz")
    assert sdist.stat().st_size <= 3_000_000
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    assert not [name for name in names if "/examples/" in name and name.endswith((".json", ".png"))]
    assert any(name.endswith("tests/conftest.py") for name in names)


def test_installed_commands_find_all_they_read_outside_the_checkout(
    built: Path, tmp_path: Path
) -> None:
    (wheel,) = built.glob("abi_toolkit-*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    (tmp_path / "mine.py").write_text(
        "import torch\n\n"
        "def posterior(x):\n    return torch.distributions.Normal(x / 2, 0.05**0.5)\n"
    )

    def command(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "abi", *words], capture_output=True, text=True,
            cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path / "site")}, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert str(tmp_path / "site") in command("--version")
    task = ("--simulator", "simulators:GaussianLinear")
    command("simulate", *task, "--num-simulations", "60", "--out", "store")
    words = ("--posterior", "mine:posterior", "--data", "store", "-m", "sbc")
    command("validate", *words, "--out", "validation.json")
    command("report", "validation.json", "--out", "page.html")
    assert "</html>" in (tmp_path / "page.html").read_text()


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
