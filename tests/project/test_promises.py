"""What docs/reference/stability.md, pyproject.toml and the forge's files promise holds."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from abi.files.parts import FORMAT_VERSION as OF_FITS
from simulators.store.folder import Manifest
from validation.results.report_file import FORMAT_VERSION as OF_REPORTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/stability.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*")
}
JOBS = [
    pytest.param(job, id=f"{name}-{title}")
    for name, workflow in WORKFLOWS.items()
    for title, job in workflow["jobs"].items()
]
PUBLIC = ("abi", "abi.baselines", "abi.metrics", "simulators", "validation")
NAMES = [(package, n) for package in PUBLIC for n in importlib.import_module(package).__all__]


@pytest.mark.parametrize(("package", "name"), NAMES, ids=".".join)
def test_a_public_name_exists_and_says_what_it_is(package: str, name: str) -> None:
    named = getattr(importlib.import_module(package), name)
    if inspect.ismodule(named) or inspect.isclass(named) or inspect.isroutine(named):
        assert len(named.__doc__ or "") > 20


def test_the_page_names_the_formats_of_today() -> None:
    assert f"| saved posterior, rounds of a run | {OF_FITS} | 2 to {OF_FITS}" in PAGE
    assert f"| saved validation | {OF_REPORTS} | 1 to {OF_REPORTS}" in PAGE
    assert f"| store of simulations | {Manifest.version} | {Manifest.version} |" in PAGE


def test_every_python_that_is_claimed_is_tested() -> None:
    start = "Programming Language :: Python :: "
    claimed = [c.removeprefix(start) for c in PROJECT["classifiers"] if c.startswith(start + "3.")]
    jobs = WORKFLOWS["tests"]["jobs"]
    for job in ("tests", "smoke"):
        assert jobs[job]["strategy"]["matrix"]["python"][: len(claimed)] == claimed
    assert PROJECT["requires-python"] == f">={claimed[0]}"
    assert f"Python {claimed[0]} to {claimed[-1]}" in PAGE


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_short_of_rights_and_runs_make_targets_that_exist(job: dict[str, Any]) -> None:
    targets = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert job["timeout-minutes"] <= 60
    assert set(job.get("permissions", {})) <= {"id-token"}
    for step in job["steps"]:
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v1)", step["uses"])
        elif step["run"].startswith("make"):
            assert step["run"].split()[1] in targets
        else:
            assert step["name"] == "The tag names the version"


@pytest.mark.parametrize("workflow", WORKFLOWS.values(), ids=WORKFLOWS)
def test_a_workflow_reads_and_nothing_else(workflow: dict[str, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    assert "concurrency" in workflow


def test_publishing_needs_no_token() -> None:
    job = WORKFLOWS["publish"]["jobs"]["publish"]
    assert job["environment"] == "pypi"
    assert job["permissions"] == {"id-token": "write"}
    (step,) = [s for s in job["steps"] if "pypi-publish" in s.get("uses", "")]
    assert step["with"] == {"attestations": True}


def test_every_dependency_has_a_lowest_version_and_every_pin_meets_it() -> None:
    pins = dict(
        line.lower().replace("-", "_").split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    )
    extras = PROJECT["optional-dependencies"].values()
    for needed in (*PROJECT["dependencies"], *(one for extra in extras for one in extra)):
        if needed.startswith(PROJECT["name"]):
            continue
        name, lowest = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", needed).groups()  # type: ignore[union-attr]
        assert _parts(pins[name.lower().replace("-", "_")]) >= _parts(lowest), name


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
