"""A result at the prompt: one line for ``repr``, ten at most for ``print``, never its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

import numpy as np
from torch import Tensor

from ..swaps.words import what_is_wrong
from .notes import note_of
from .tested import Tested

_LEVEL = 0.05
_COUNTS = {
    "num_train": "pairs to train on",
    "num_calibration_set": "pairs to calibrate",
    "num_test": "pairs to test",
    "num_samples": "draws of q at each x",
}
_TOLD = {*_COUNTS, "num_pairs", "p_values", "p_value_kind", "findings", "deviations", "x_o"}
"""Entries of ``details`` that have a row, or a place in one, of their own."""
_MOST_VALUES, _MOST_COORDINATES = 6, 4
_WIDEST, _WIDEST_VALUE = 88, 28


def one_line(result: Tested) -> str:
    """``ValidationResult('sbc', statistic=0.0912, p_value=0.31, seed=0, N=200, K=1000)``."""
    parts = [
        repr(result.method),
        f"statistic={result.statistic:.4g}",
        f"p_value={result.p_value:.3g}",
        f"seed={result.seed}",
    ]
    num_pairs, num_samples = _num_pairs(result.details), result.details.get("num_samples")
    parts += [] if num_pairs is None else [f"N={num_pairs}"]
    parts += [] if num_samples is None else [f"K={num_samples}"]
    return f"ValidationResult({', '.join(parts)})"


def title(result: Tested) -> str:
    """What was tested, and at how many x_o where it was at some."""
    x_o = result.details.get("x_o")
    if x_o is None:
        return f"{result.method}, a test of q(theta | x) = p(theta | x)"
    several = getattr(x_o, "ndim", 1) == 2 and len(x_o) > 1
    where = f"{len(x_o):,} x_o" if several else "one x_o"
    return f"{result.method}, a test of q(theta | x_o) = p(theta | x_o) at {where}"


def result_rows(result: Tested) -> list[tuple[str, str]]:
    """What the result says, as rows of a name and a line, nine at most."""
    details, note = result.details, note_of(result.method)
    kind = details.get("p_value_kind")
    rows = [
        ("statistic", f"{result.statistic:.4g}{_under_the_null(result.null_statistics)}"),
        ("p-value", p_sentence(result.p_value) + (f" ({kind})" if kind else "")),
        ("unadjusted", _each_alone(details.get("p_values", ()))),
        ("wrong", _what_is_wrong(result)),
    ]
    if note is not None:
        rows += [("sees", note.sees), ("cannot see", note.blind_to), ("source", note.source)]
    rows += [
        ("from", ", ".join([*_counts(details), f"seed {result.seed}"])),
        ("details", _summary({k: v for k, v in details.items() if k not in _TOLD})),
    ]
    return [(name, shorten(text, _WIDEST, placeholder=" ...")) for name, text in rows if text]


def p_sentence(p_value: float, alpha: float = _LEVEL) -> str:
    """The p-value and what it says of the null, which is never that it holds.

    >>> p_sentence(0.31), p_sentence(0.001, 0.01)
    ('0.31: not rejected at .05', '0.001: rejected at .01')
    """
    level = f"{alpha:g}".removeprefix("0")
    return f"{p_value:.3g}: {'' if p_value <= alpha else 'not '}rejected at {level}"


def coordinates(point: Tensor) -> str:
    """One point, (d,), by its first coordinates.

    >>> import torch
    >>> coordinates(torch.arange(9.0))
    '(0, 1, 2, 3, ... 9 in all)'
    """
    shown = [f"{value:.3g}" for value in point[:_MOST_COORDINATES].tolist()]
    more = [f"... {len(point)} in all"] if len(point) > _MOST_COORDINATES else []
    return f"({', '.join(shown + more)})"


def _num_pairs(details: Mapping[str, Any]) -> int | None:
    """N, where the details tell it: as such, by the parts of a split, or by one rank a pair."""
    if "num_pairs" in details:
        return int(details["num_pairs"])
    if "num_train" in details:
        parts = ("num_train", "num_calibration_set", "num_test")
        return sum(int(details.get(part, 0)) for part in parts)
    if "ranks" in details and "num_test" not in details:
        return len(details["ranks"])
    return None


def _under_the_null(null: Tensor | None) -> str:
    """What chance gives, to read the statistic by."""
    if null is None or not len(null):
        return ""
    most = float(np.quantile(null.detach().cpu().double().numpy(), 1 - _LEVEL))
    return f"; under the null below {most:.4g} in {1 - _LEVEL:.0%} of {len(null):,}"


def _each_alone(p_values: Sequence[float] | Mapping[str, float]) -> str:
    """The p-values behind the one, which is adjusted for how many they are."""
    if len(p_values) < 2:
        return ""
    if isinstance(p_values, Mapping):
        ordered = sorted(p_values.items(), key=lambda item: item[1])
        return ", ".join(f"{name} {p:.2g}" for name, p in ordered)
    if len(p_values) <= _MOST_VALUES:
        return ", ".join(f"{p:.2g}" for p in p_values)
    least = min(range(len(p_values)), key=lambda place: p_values[place])
    return f"the least of {len(p_values):,} is {p_values[least]:.2g}, number {least + 1}"


def _what_is_wrong(result: Tested) -> str:
    """The clearest finding of a test that says what is wrong, and how many more there are."""
    if result.p_value > _LEVEL:
        return ""
    found = what_is_wrong(result.details)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return found[0] + more if found else ""


def _counts(details: Mapping[str, Any]) -> list[str]:
    num_pairs = _num_pairs(details)
    split = "num_test" in details
    whole = [] if split or num_pairs is None else [f"{num_pairs:,} pairs"]
    told = [f"{details[key]:,} {words}" for key, words in _COUNTS.items() if key in details]
    return whole + told


def _summary(details: Mapping[str, Any]) -> str:
    """Shapes of arrays, sizes of what holds several values, single values as they are."""
    return ", ".join(f"{name} {_summarised(value)}" for name, value in details.items())


def _summarised(value: Any) -> str:
    if isinstance(value, Tensor | np.ndarray):
        return str(tuple(value.shape))
    if isinstance(value, Mapping | list | tuple):
        return f"[{len(value)}]"
    if isinstance(value, bool | int | str):
        return shorten(str(value), _WIDEST_VALUE, placeholder=" ...")
    return f"{value:.4g}" if isinstance(value, float) else type(value).__name__
