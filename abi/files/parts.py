"""The one format of files: safetensors with a JSON header, versioned, whole or not there at all.

Nothing is unpickled. A file is written beside its place and renamed into it, so that a reader finds
the old one or the new one, never half of one. A digest of names, values and header tells a file
that was damaged later.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from torch import Tensor

from simulators.files.disk import whole_file

FORMAT_VERSION = 25
"""Since 7 a file carries a digest of what it holds, and a posterior its encoders and verdict."""


OF_A_RUN = "Take another copy of the run, or begin it anew in another folder."
"""The cure of a damaged file that belongs to a run folder."""
_OLDEST = 2  # version 1 had other flows, and no release wrote it
_DIGESTED = 7  # the first version with a digest


def write_parts(path: Path, kind: str, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write tensors and plain values to one file, whole or not at all."""
    from safetensors.torch import save

    # Copies, for the format refuses weights that are shared.
    copies = {name: t.detach().clone().contiguous() for name, t in tensors.items()}
    whole = {"format": kind, "version": FORMAT_VERSION, **header}
    digest = _digest(copies, whole)
    data = save(copies, {"abi": json.dumps(whole | {"digest": digest})})
    write_bytes(path, data)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, and its folder.

    Raises:
        ValueError: if a folder is in its place.
    """
    if path.is_dir():
        raise ValueError(f"`path` must be a file; {path} is a folder: add a name in it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(data)


def read_parts(
    path: Path, kind: str, cure: str = "Name a file that posterior.save wrote."
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`write_parts` wrote.

    Args:
        path: the file.
        kind: what it must be of.
        cure: what to do where it is damaged, for the error.

    Raises:
        ValueError: if the file is missing, damaged, of another kind, from a newer version or
            from version 1, which is no longer read.
    """
    from safetensors import safe_open

    if not path.is_file():
        raise ValueError(f"`path`: no file {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get("abi", "{}"))
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        digest = header.pop("digest", None)
        broken = digest is not None and digest != _digest(tensors, header)
    except Exception as error:  # a damaged file may fail anywhere in the library that reads it
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"`path`: {path} is damaged or not a safetensors file: {reason}. {cure}"
        ) from error
    newer = header.get("version", 0) > FORMAT_VERSION
    if broken or (digest is None and not newer and header.get("version", 0) >= _DIGESTED):
        raise ValueError(
            f"`path`: {path} is damaged or not a safetensors file: its contents do not match its "
            "digest. Take another copy of it."
        )
    if header.get("format") != kind:
        raise ValueError(f"`path`: {path} is not a file of kind {kind}.")
    if newer:
        raise ValueError(
            f"`path`: {path} has format version {header['version']}; this abi reads up to "
            f"{FORMAT_VERSION}. Install a newer abi-toolkit."
        )
    if header.get("version", 0) < _OLDEST:
        raise ValueError(
            f"`path`: {path} has format version {header.get('version')}; this abi reads "
            f"{_OLDEST} to {FORMAT_VERSION}. Fit again."
        )
    return tensors, header


def _digest(tensors: dict[str, Tensor], header: dict[str, Any]) -> str:
    """SHA-256 of all that a file says, whatever the order."""
    sha = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        sha.update(tensor.numpy().tobytes())
    return sha.hexdigest()
