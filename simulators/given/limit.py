"""A limit of time for one call in this process, where the system can interrupt it.

That is the main thread of a system with interval timers, and code that comes back to Python now and
then; elsewhere the call runs as long as it takes. Simulations proper run in processes that can be
stopped (:mod:`simulators.running.processes`).
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TimeLimitError(BaseException):
    """A call took too long; no ``Exception``, so that the code that is called does not catch it."""


@contextmanager
def time_limit(seconds: float | None, more: float = 0.0) -> Iterator[None]:
    """End what runs inside after ``seconds + more``; None and infinity are no limit.

    Raises:
        TimeLimitError: in the code inside.
    """
    here = threading.current_thread() is threading.main_thread()
    if seconds is None or seconds == math.inf or not here or not hasattr(signal, "setitimer"):
        yield
        return

    def end(*_: Any) -> None:
        raise TimeLimitError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds + more)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
