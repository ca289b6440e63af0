"""What made a fit: the versions that its files carry."""

from __future__ import annotations

__version__ = "0.1.0"


def versions() -> dict[str, str]:
    """Versions of this package, Python, the platform and what the numbers depend on, by name."""
    from simulators.files.versions import installed_versions  # which brings torch

    packages = installed_versions("torch", "numpy", "scipy", "zuko", "numba")
    return {"abi-toolkit": __version__} | packages
