"""CIFAR-10 from its binary files, which need no unpickling."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from simulators.arguments import count, optional

_SIDE = 32
_RECORD = 1 + 3 * _SIDE * _SIDE
_ARCHIVE = "cifar-10-binary.tar.gz"


def load_cifar10(folder: Path | str, most: int | None = None) -> tuple[Tensor, Tensor]:
    """Images (n, 3, 32, 32) in [0, 1] and their classes (n,), 0 to 9, in the order of the files.

    A record is one byte for the class and 3,072 for red, green and blue, row by row.

    Args:
        folder: with data_batch_*.bin, or their folder ``cifar-10-batches-bin``.
        most: how many records are read, all of them when omitted.

    Raises:
        ValueError: if ``most`` is below 1, if the folder has no such files or has the pickled
            version, or if a file is cut off or holds another class.

    Source: Krizhevsky (2009), the archive cifar-10-binary.tar.gz.
    """
    optional(count())(most, "most")
    folder = Path(folder)
    places = (folder, folder / "cifar-10-batches-bin")
    paths = [path for place in places for path in sorted(place.glob("data_batch_*.bin"))]
    if not paths:
        raise ValueError(f"`folder`: {_what_is_there(folder)}; unpack {_ARCHIVE} there.")
    parts: list[np.ndarray] = []
    for path in paths:
        missing = None if most is None else most - sum(len(part) for part in parts)
        if missing != 0:
            parts.append(_records(path)[:missing])
    records = np.concatenate(parts)
    pixels = torch.from_numpy(records[:, 1:].reshape(-1, 3, _SIDE, _SIDE))
    return pixels.float() / 255, torch.from_numpy(records[:, 0]).long()


def _records(path: Path) -> np.ndarray:
    values = np.fromfile(path, dtype=np.uint8)
    if len(values) == 0 or len(values) % _RECORD:
        raise ValueError(
            f"`folder`: {path} has {len(values)} bytes, not a multiple of {_RECORD}; "
            f"it is cut off: unpack {_ARCHIVE} again."
        )
    records = values.reshape(-1, _RECORD)
    if records[:, 0].max() > 9:
        raise ValueError(
            f"`folder`: {path} has class {records[:, 0].max()}, and CIFAR-10 has 0 to 9; "
            f"unpack {_ARCHIVE} again."
        )
    return records


def _what_is_there(folder: Path) -> str:
    if not folder.is_dir():
        return f"no folder {folder}"
    pickled = (folder / "data_batch_1", folder / "cifar-10-batches-py")
    if any(path.exists() for path in pickled):
        return f"{folder} has CIFAR-10's python version, which is pickled and is not read"
    return f"{folder} has no data_batch_*.bin"
