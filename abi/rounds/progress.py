"""Live progress of a fit: one bar with round, calls, pairs and time left.

Of tolerance, pairs kept and theta given up it tells what was at work in the round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulators.running.progress import screen

from .record import RoundRecord

# Share of a round's time that its phases take, about: only the time left depends on them.
_PHASES = {
    "proposing": 0.1,
    "simulating": 0.1,
    "judging the round before": 0.05,
    "training the quantile network": 0.2,
    "fitting the generator": 0.4,
    "learning the likelihood": 0.1,
    "finding the region": 0.05,
}


class FitProgress:
    """Shows a fit on the terminal; silent when ``shown`` is False.

    Used as a context manager. On a screen that cannot be redrawn, one line a round is printed. How
    many rounds there will be is told where it is ``settled``: a fit may choose as it goes.
    """

    def __init__(self, num_rounds: int, num_simulations: int, shown: bool, settled: bool = True):
        self._num_rounds, self._num_simulations = num_rounds, num_simulations
        self._settled = settled
        self._bar: Any = _make_bar() if shown else None
        self._task: Any = None
        self._round = 1
        self._calls = 0

    def __enter__(self) -> FitProgress:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("starting", total=self._num_rounds, state="")
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def resume(self, records: tuple[RoundRecord, ...]) -> None:
        """Count the rounds that an earlier run finished."""
        self._round = len(records) + 1
        self._calls = sum(record.simulator_calls for record in records)

    def expect(self, num_rounds: int) -> None:
        """So many rounds in all: a fit may add some, or find that fewer will do."""
        self._num_rounds = num_rounds
        if self._bar is not None:
            self._bar.update(self._task, total=num_rounds)

    def phase(self, name: str) -> Callable[[float], None]:
        """A function that is told the share of this phase that is done.

        What comes after the last round, its check, has no share of one.
        """
        if name not in _PHASES:
            self._show(name, 0.0, self._calls)
            return lambda share: None
        names = list(_PHASES)
        before = sum(_PHASES[earlier] for earlier in names[: names.index(name)])

        def advance(share: float) -> None:
            self._show(name, before + share * _PHASES[name], self._calls)

        advance(0.0)
        return advance

    def calls(self, made: int) -> None:
        """Simulator calls of this round so far."""
        share = made / max(1, self._num_simulations // self._num_rounds)
        share = _PHASES["proposing"] + min(1.0, share) * _PHASES["simulating"]
        self._show("simulating", share, self._calls + made)

    def finish(self, record: RoundRecord) -> None:
        """A round is over: print its line."""
        self._calls += record.simulator_calls
        self._round = record.round + 1
        if self._bar is not None:
            lost = f"  failed {record.failures:,}" if record.failures else ""
            if record.dropped_fraction and record.selected:
                lost += f"  dropped {record.dropped_fraction:.1%} of theta"
            self._bar.console.print(
                f"{self._named(record.round)}  "
                f"calls {self._calls:,}/{self._num_simulations:,}  "
                f"{_pairs(record)}{lost}  {record.seconds:.0f} s",
                highlight=False,
                soft_wrap=True,
            )

    def _named(self, number: int) -> str:
        known = self._settled or number == self._num_rounds  # the last one says so
        return f"round {number}/{self._num_rounds}" if known else f"round {number}"

    def _show(self, phase: str, share: float, calls: int) -> None:
        if self._bar is None:
            return
        self._bar.update(
            self._task,
            completed=self._round - 1 + share,
            description=f"{self._named(self._round)}  {phase}",
            state=f"calls {calls:,}/{self._num_simulations:,}",
        )


def _pairs(record: RoundRecord) -> str:
    """What the round trained on; its tolerance where that left something out."""
    if not record.selected:
        return f"pairs {record.pairs:,}"
    return f"pairs {record.accepted:,} of {record.pairs:,} within {record.tolerance:.3g}"


def _make_bar() -> Any:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console, redrawn = screen()
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[state]}"),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not redrawn,
    )
