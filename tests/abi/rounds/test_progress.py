"""What a fit prints at the end of a round means something in the form that ran."""

from __future__ import annotations

from dataclasses import replace

import pytest

import abi
from abi.rounds.progress import FitProgress

pytest.importorskip("rich.progress")  # whose import moves a global stream
RECORD = abi.RoundRecord(1, 1.7, 100, 0.0, 100, 100, 100, 0, "flat", None, None, 2.0)


def printed(record: abi.RoundRecord, capsys: pytest.CaptureFixture[str]) -> str:
    with FitProgress(2, 1_000, shown=True) as shown:
        shown.finish(record)
    return next(line for line in capsys.readouterr().err.splitlines() if "calls" in line).strip()


def test_a_round_that_kept_all_pairs_prints_no_tolerance(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed(RECORD, capsys) == "round 1/2  calls 100/1,000  pairs 100  2 s"
    lost = replace(RECORD, proposed=110, simulator_calls=110, failures=10, dropped_fraction=1 / 11)
    assert printed(lost, capsys) == "round 1/2  calls 110/1,000  pairs 100  failed 10  2 s"


def test_a_round_that_selects_prints_by_what(capsys: pytest.CaptureFixture[str]) -> None:
    some = replace(RECORD, accepted=40)
    assert "pairs 40 of 100 within 1.7" in printed(some, capsys)
    again = replace(RECORD, simulator_calls=400, dropped_fraction=0.125)
    line = printed(again, capsys)
    assert "pairs 100 of 100 within 1.7" in line
    assert "dropped 12.5% of theta" in line


def test_rounds_that_the_fit_may_add_are_not_counted_ahead(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with FitProgress(2, 1_000, shown=True, settled=False) as shown:
        shown.finish(RECORD)
        assert "round 1  calls 100/1,000" in capsys.readouterr().err
        shown.expect(3)
        shown.finish(replace(RECORD, round=2))
        shown.finish(replace(RECORD, round=3))
    printed = capsys.readouterr().err
    assert "round 2  calls" in printed
    assert "round 3/3  calls" in printed  # the last one knows
