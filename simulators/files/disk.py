"""Files that are on the disk whole or not at all, and folders that one run holds at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that is there whole or not at all; two processes may write one path.

    Raises:
        OSError: if it cannot be written, naming the path; nothing is left beside it.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except BaseException as error:  # such as a full disk, which half a file would keep full
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # the one that the caller knows
        raise
    force_folder(path.parent)


def force_folder(folder: Path) -> None:
    """Make new names in a folder last; a system that cannot open folders sees to it itself."""
    with suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def hold_folder(folder: Path) -> IO[str]:
    """Hold a folder for one run; the system lets go of it however the process ends."""
    lock = (folder / "lock").open("w")
    try:
        import fcntl
    except ImportError:  # Windows keeps no such locks
        return lock
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise ValueError(f"`store`: another run is writing to {folder}; wait for it.") from error
    except OSError:  # a file system without locks
        return lock
    return lock
