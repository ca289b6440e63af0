"""A validation on the disk: JSON that pages are drawn from, or the page itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulators.arguments import as_path
from simulators.lazy import check_installed

FORMAT = "abi-validation"
FORMAT_VERSION = 3  # 2: no p-value over all, no failures in words
_NUMBER = int | float
_ENTRIES: Mapping[str, Any] = {
    "alpha": _NUMBER, "seed": int, "rejected": list, "results": list,
    "skipped": dict, "asked": dict, "versions": dict,
}  # fmt: skip
_OF_A_TEST: Mapping[str, Any] = {
    "method": str, "statistic": _NUMBER, "p_value": _NUMBER, "p_value_adjusted": _NUMBER,
    "rejected": bool, "sees": str, "blind_to": str, "source": str, "seed": int,
}  # fmt: skip


def write_report(data: Mapping[str, Any], path: Path) -> None:
    """Write the data of a report as the path's suffix says."""
    if path.suffix == ".json":
        text = json.dumps(data, separators=(",", ":"), allow_nan=False) + "\n"
    elif path.suffix in (".html", ".htm"):
        check_installed(f"save {path.name}", "matplotlib", "jinja2")
        from ..page import render
        from ..page.validation_page import validation_page

        text = render(validation_page(data, "Validation of a posterior"))
    else:
        raise ValueError(f"`path` must end in .html (a page) or .json (its data); got {path.name}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def load_report(path: str | Path) -> dict[str, Any]:
    """Read the data that :meth:`Report.save` or ``abi validate --out`` wrote as .json.

    Args:
        path: the file.

    Raises:
        ValueError: if the file is not a saved report, or is from a newer version.
    """
    path = as_path(path, "path")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(
            f"`path`: {path} could not be read as JSON: {why}. Name a file that report.save or "
            "abi validate --out wrote."
        ) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(
            f"`path`: {path} is not a saved validation; make one with report.save('{path.name}') "
            "or abi validate --out."
        )
    _check(data, {"version": int}, f"`path`: {path}")
    if data["version"] > FORMAT_VERSION:
        raise ValueError(
            f"`path`: {path} has format version {data['version']}; this validation reads up to "
            f"{FORMAT_VERSION}. Install a newer abi-toolkit."
        )
    _check(data, _ENTRIES, f"`path`: {path}")
    if not data["results"]:
        raise ValueError(f"`path`: {path} is damaged: it holds the result of no test.")
    for place, row in enumerate(data["results"]):
        _check(row, _OF_A_TEST, f"`path`: {path}: results[{place}]")
    _check_names(data, f"`path`: {path}")
    _check_controls(data.setdefault("controls", {}), f"`path`: {path}")
    data.setdefault("p_value", min(row["p_value_adjusted"] for row in data["results"]))
    data.setdefault("failures", [])
    _check(data, {"p_value": _NUMBER, "failures": list}, f"`path`: {path}")
    if data.setdefault("of", None) is not None:
        check_of(data["of"], f"`path`: {path}: `of`")
    return data


def check_of(of: Any, where: str) -> dict[str, Any]:
    """What was validated, in JSON's types: the calls, the seed and the constants of a fit.

    Raises:
        ValueError: if it is another thing.
    """
    kinds = {"calls": int, "seed": int | None, "config": dict}
    wrong = not isinstance(of, Mapping) or not of or not set(of) <= set(kinds)
    if wrong or any(not isinstance(of[name], kinds[name]) for name in of):
        found = dict(of) if isinstance(of, Mapping) else of
        raise ValueError(
            f'{where} must map "calls" to a number, "config" to a dict and, of one fit, "seed" to '
            f"its seed; got {str(found)[:80]}."
        )
    plain: dict[str, Any] = json.loads(json.dumps(dict(of)))
    return plain


def _check_controls(controls: Any, where: str) -> None:
    """Refuse what is not p-values by test by posterior."""
    rows = controls.values() if isinstance(controls, dict) else [None]
    if any(
        not isinstance(row, dict) or not all(isinstance(p, _NUMBER) for p in row.values())
        for row in rows
    ):
        raise ValueError(f"{where} is damaged: `controls` must hold p-values by test.")


def _check_names(data: Mapping[str, Any], where: str) -> None:
    """Refuse names that are not one a parameter."""
    names, width = data.get("parameter_names"), data["asked"].get("theta_dim")
    if names is None:
        return
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{where} is damaged: `parameter_names` must be a list of names.")
    if width is not None and len(names) != width:
        raise ValueError(
            f"{where} is damaged: `parameter_names` names {len(names)} of {width} parameters."
        )


def _check(found: Any, entries: Mapping[str, Any], where: str) -> None:
    """Refuse what a page could not be drawn from."""
    for name, kind in entries.items():
        if not isinstance(found, dict) or not isinstance(found.get(name), kind):
            raise ValueError(
                f"{where} is damaged: its entry {name!r} is missing or of a wrong type."
            )
