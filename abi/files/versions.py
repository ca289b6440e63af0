"""What made a fit: the versions that its files carry."""

from __future__ import annotations

from simulators.files.versions import installed_versions

__version__ = "0.1.0"


def versions() -> dict[str, str]:
    """Versions of this package, Python, the platform and what the numbers depend on, by name."""
    packages = installed_versions("torch", "numpy", "scipy", "zuko", "numba")
    return {"abi-toolkit": __version__} | packages
