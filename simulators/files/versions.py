"""The versions that a result carries so that it can be made again."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version


def installed_versions(*packages: str) -> dict[str, str]:
    """Versions of Python and of those packages that are installed, and the kind of machine."""
    found = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # imported from a folder instead of installed
            continue
    return found
