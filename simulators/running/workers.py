"""A worker process: started, given a simulator and batches, watched, and killed when it hangs.

Each worker has a pipe of its own. Pools that share one pipe and its locks among their workers
lose the pool when a worker is killed while it writes, and wait for ever for one that ends with
exit status 0; here the end of a process closes its pipe, whatever the cause, and is seen.

Workers come from Python's fork server, so they start clean and, with torch imported once in the
server, fast. They do not import the user's main script again: a script needs no
``if __name__ == "__main__"`` guard, and what it defines travels by value (``cloudpickle``).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import connection as pipes
from multiprocessing import spawn
from typing import Any

from ..base import SeededSimulator
from .batches import Batch, BatchResult, simulate_batch

_STARTING = threading.RLock()
_SLOW_TO_IMPORT = ("numba", "scipy.stats", "scipy.integrate", "pandas")


def pack(simulator: SeededSimulator) -> bytes:
    """A simulator as bytes that a worker process turns back into one.

    Raises:
        ValueError: if it holds what cannot be copied to another process.
    """
    import cloudpickle

    try:
        packed: bytes = cloudpickle.dumps(simulator)
    except Exception as error:
        raise ValueError(
            f"`simulator` must be such that it can be copied to worker processes; "
            f"{type(error).__name__}: {error}. Make open files, locks and the like inside the "
            "call, or simulate with workers=1 and no timeout."
        ) from error
    return packed


class Worker:
    """One worker process, seen from the process that gives it work."""

    def __init__(self) -> None:
        context = _context()
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=serve, args=(theirs,), name="simulations", daemon=False
        )
        with _STARTING, _without_main(), _from_daemon():
            self.process.start()
        theirs.close()

    def send(self, message: bytes | tuple[Batch, float | None]) -> None:
        """Send a packed simulator, or a batch with the seconds that a row of it may take.

        A worker that has died is found out on receiving.
        """
        with suppress(OSError):
            self.connection.send(message)

    def receive(self) -> Any:
        """The worker's answer.

        Raises:
            EOFError: if it has died.
        """
        try:
            return self.connection.recv()
        except OSError as error:
            raise EOFError from error

    def stop(self, patience: float = 0.0) -> str:
        """Kill the process, with the processes it started, and say how it ended.

        Args:
            patience: seconds to wait for it to end by itself, where it is known to be ending.
        """
        group = self.process.pid
        self.process.join(timeout=patience)
        if hasattr(os, "killpg") and group is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.connection.close()
        code = self.process.exitcode
        if code is None or code >= 0:
            return f"exit status {code}"
        return f"killed by {signal.Signals(-code).name}"


def serve(connection: Any) -> None:
    """Be a worker: load the simulator that comes, simulate the batches that come, until closed."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that gives the work decides
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # so that programs the simulator starts are killed with it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    simulator: Any = None
    warm = False
    with suppress(EOFError, OSError):
        while True:
            message = connection.recv()
            if isinstance(message, bytes):
                simulator, trouble = _unpack(message)
                warm = False
                connection.send(trouble)
                continue
            results = simulate_batch(simulator, *message)
            if not warm and _late(results):  # in their first call simulators compile
                results = simulate_batch(simulator, *message)
            warm = True
            connection.send(results)


def _late(results: list[BatchResult]) -> bool:
    """Whether a row, or a batch that is to be cut, took longer than a row may."""
    reasons = [failure.reason for result in results for failure in result.failures]
    return not results or any(reason.startswith("timeout") for reason in reasons)


def _unpack(packed: bytes) -> tuple[Any, str]:
    """A simulator and, where it cannot be had, why: usually a module the worker lacks."""
    import pickle

    try:
        return pickle.loads(packed), ""  # noqa: S301 - bytes from our own parent, never from a file
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def _end_with_parent() -> None:
    """End, with every process of the group, when the process that gives the work has ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        pipes.wait([parent.sentinel])
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
        os._exit(1)


def _context() -> Any:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # Imported once, in the server: a worker is then replaced in milliseconds. What simulators use
    # and is slow to import would else be imported anew for each simulation that ends its worker.
    used = [name for name in _SLOW_TO_IMPORT if name in sys.modules]
    context.set_forkserver_preload(["cloudpickle", __name__, *used])
    return context


@contextmanager
def _without_main() -> Iterator[None]:
    """Start processes, in this thread, that do not run the user's main script again.

    The standard library has no switch for it; what it tells a new process is trimmed instead.
    """
    prepare, thread = spawn.get_preparation_data, threading.get_ident()

    def trimmed(name: str) -> dict[str, Any]:
        data = prepare(name)
        if threading.get_ident() == thread:
            data.pop("init_main_from_name", None)
            data.pop("init_main_from_path", None)
        return data

    spawn.get_preparation_data = trimmed
    try:
        yield
    finally:
        spawn.get_preparation_data = prepare


@contextmanager
def _from_daemon() -> Iterator[None]:
    """Let a daemonic process, as distributed workers are, start workers: ours end with it."""
    config: dict[str, Any] = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    daemon = config.get("daemon", False)
    config["daemon"] = False
    try:
        yield
    finally:
        config["daemon"] = daemon
