"""A progress bar for runs of more than a second: share done, rate, time left, failures."""

from __future__ import annotations

import threading
from typing import Any

_PATIENCE_SECONDS = 1.0


class Progress:
    """Shows how far a run is, from its second second on, where someone is there to see it.

    Args:
        total: rows of the run.
        done: rows that were there before it began.
        shown: False for a bar that never appears.
    """

    def __init__(self, total: int, done: int, shown: bool) -> None:
        self._total, self._done, self._failed = total, done, 0
        self._bar: Any = None
        self._task: Any = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(_PATIENCE_SECONDS, self._show)
        self._timer.daemon = True
        self._shown = shown and done < total and _someone_watches()

    def __enter__(self) -> Progress:
        if self._shown:
            self._timer.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._shown = False
            if self._bar is not None:
                self._bar.stop()

    def update(self, done: int, failed: int) -> None:
        """Note that ``done`` rows are there, ``failed`` of them as failures."""
        with self._lock:
            self._done, self._failed = done, failed
            if self._bar is not None:
                self._bar.update(self._task, completed=done, failed=self._failures())

    def _failures(self) -> str:
        return f", {self._failed} failed" if self._failed else ""

    def _show(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        with self._lock:
            if not self._shown:
                return
            self._bar = Bar(
                TextColumn("simulating"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[failed]}"),
                _rate_column(),
                TimeRemainingColumn(elapsed_when_finished=True),
                console=screen()[0],
            )
            self._task = self._bar.add_task(
                "", total=self._total, completed=self._done, failed=self._failures()
            )
            self._bar.start()


def screen() -> tuple[Any, bool]:
    """Where bars are drawn, and whether they can be drawn again: else one leaves an empty line.

    Standard error: standard output is for results.
    """
    from rich.console import Console

    console = Console(stderr=True)
    return console, console.is_interactive or console.is_jupyter


def _rate_column() -> Any:
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            rate = task.finished_speed or task.speed
            if not rate:
                return Text("")
            return Text(f"{rate:,.0f} /s" if rate >= 10.0 else f"{rate:.2g} /s")

    return Rate()


def _someone_watches() -> bool:
    """Whether standard error is a terminal, or this is a notebook."""
    import sys

    if sys.stderr is not None and sys.stderr.isatty():
        return True
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"
