"""Is this installation sound? Versions, paths, threads, GPU, disk; ``abi doctor`` prints them."""

from __future__ import annotations

import os
import platform
import re
import shutil
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .files.versions import __version__

UNINSTALLED = (
    "abi-toolkit is imported from a folder in which it is not installed, so that nothing tells "
    "what it needs; run pip install in that folder."
)
SHADOWED = (
    "the packages do not share one parent folder; another distribution shadows one of them. "
    "Install abi-toolkit in a fresh environment."
)
_EXTRAS = {
    "plots": "pictures, pages of reports, posterior.to_arviz",
    "distributed": "runs on a dask cluster",
}
_LEAST_DISK_GIB = 1.0


def examine() -> dict[str, Any]:
    """What is installed and where, with JSON's types; ``problems`` is empty if all is well."""
    import torch

    packages = package_folders()
    needed = required("abi-toolkit")
    versions = {name: _version(name) for name in (*needed, *optional())}
    free = shutil.disk_usage(".").free / 2**30
    problems = [
        f"{name} is missing; install abi-toolkit again, in a fresh environment."
        for name in needed
        if versions[name] is None
    ]
    if not needed:
        problems.append(UNINSTALLED)
    if shadowed(packages):
        problems.append(SHADOWED)
    if free < _LEAST_DISK_GIB:
        problems.append(f"{free:.1f} GiB of disk are free here; a run needs about 1 GiB.")
    return {
        "abi-toolkit": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: str(folder) for name, folder in packages.items()},
        "versions": versions,
        "threads": {
            "cores": os.cpu_count(),
            "torch": torch.get_num_threads(),
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
        },
        "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        "free_disk_gib": round(free, 1),
        "problems": problems,
    }


def package_folders() -> dict[str, Path]:
    """Where the three packages are imported from: others ship packages of these names."""
    found = (find_spec(name) for name in ("abi", "simulators", "validation"))
    return {spec.name: Path(str(spec.origin)).parent for spec in found if spec is not None}


def shadowed(packages: dict[str, Path]) -> bool:
    """Whether the packages come from more than one place."""
    return len({folder.parent for folder in packages.values()}) > 1


def required(distribution: str, extra: str | None = None) -> list[str]:
    """Names of what a distribution asks for, or an extra of it; nothing if it is not installed."""
    try:
        lines = requires(distribution) or []
    except PackageNotFoundError:
        return []
    names: list[str] = []
    for line in lines:
        what, _, when = line.partition(";")
        asked = re.findall(r"extra == ['\"](.+?)['\"]", when)
        if asked == ([] if extra is None else [extra]):
            name, *extras = re.findall(r"[\w.-]+", re.split(r"[<>=!~@ ]", what)[0])
            names += [name, *(part for inner in extras for part in required(name, inner))]
    return names


def optional() -> dict[str, str]:
    """What the extras ask for, and what for."""
    return {
        name: f"{purpose}; pip install abi-toolkit[{extra}]"
        for extra, purpose in _EXTRAS.items()
        for name in required("abi-toolkit", extra)
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
