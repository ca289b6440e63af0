"""What made a fit: the versions that its files carry."""

from __future__ import annotations

from simulators.versions import installed_versions


def versions() -> dict[str, str]:
    """Versions of this package, Python, the platform and what the numbers depend on, by name."""
    from . import __version__

    packages = installed_versions("torch", "numpy", "scipy", "zuko", "numba")
    return {"abi-toolkit": __version__} | packages
