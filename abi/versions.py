"""What made a result: the versions that a file carries so that it can be made again."""

from __future__ import annotations

import platform
from importlib.metadata import version

_PACKAGES = ("torch", "numpy", "scipy", "zuko", "numba")


def versions() -> dict[str, str]:
    """Versions of this package, Python, the platform and what the numbers depend on, by name."""
    from . import __version__

    own = {
        "abi-toolkit": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    return own | {name: version(name) for name in _PACKAGES}
