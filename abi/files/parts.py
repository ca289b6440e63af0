"""The one format of files: safetensors with a JSON header, versioned, whole or not there at all.

Nothing is unpickled. A file is written beside its place and renamed into it, so that a reader finds
the old one or the new one, never half of one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from simulators.files.disk import whole_file

FORMAT_VERSION = 6


def write_parts(path: Path, kind: str, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write tensors and plain values to one file, whole or not at all."""
    from safetensors.torch import save

    text = json.dumps({"format": kind, "version": FORMAT_VERSION, **header})
    # Copies, for the format refuses weights that are shared.
    copies = {name: t.detach().clone().contiguous() for name, t in tensors.items()}
    data = save(copies, {"abi": text})
    write_bytes(path, data)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(data)


def read_parts(path: Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`write_parts` wrote.

    Raises:
        ValueError: if the file is missing, damaged, of another kind or from a newer version.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise ValueError(f"`path`: no file {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get("abi", "{}"))
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"`path`: {path} is damaged or not a safetensors file: {error}") from error
    if header.get("format") != kind:
        raise ValueError(f"`path`: {path} is not a file of kind {kind}.")
    if header["version"] > FORMAT_VERSION:
        raise ValueError(
            f"`path`: {path} has format version {header['version']}; this abi reads up to "
            f"{FORMAT_VERSION}. Install a newer abi-toolkit."
        )
    return tensors, header
