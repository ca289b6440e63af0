"""May this posterior be trusted? One p-value first, what is wrong below it, then test by test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor

from simulators.files.versions import installed_versions

from .controls import CONTROLS
from .results.evidence import evidence_of
from .results.notes import MethodNote, note_of
from .results.report_file import FORMAT, FORMAT_VERSION, check_of, write_report
from .results.result import ValidationResult
from .results.tables import html_table, text_table
from .swaps.words import TESTS, what_is_wrong

_PACKAGES = ("abi-toolkit", "torch", "numpy", "scipy", "sbi")
_MOST_LINES = 4
"""Of what is wrong, at the prompt."""


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What :func:`validate` found; ``print(report)`` shows it."""

    results: tuple[ValidationResult, ...]
    adjusted: tuple[float, ...]
    """P-values adjusted for the number of tests (Holm), in the order of ``results``. The panel's
    is adjusted already and stays."""
    skipped: Mapping[str, str]
    """Tests that could not be run on this posterior, and why."""
    alpha: float
    """Level at which q is rejected."""
    seed: int
    """Of everything random."""
    x: Tensor
    """The observation that local pictures are drawn at, (p,): the first x_o, or the first x."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """Numbers of pairs, parameters and draws, to repeat the tests."""
    controls: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Adjusted p-values of the same tests for posteriors that are wrong on purpose, "prior" and
    "wide"; empty without ``controls``."""
    names: Sequence[str] | None = None
    """Names of the parameters, where theta has them."""
    x_names: Sequence[str] | None = None
    """Names of the columns of x, where x has them."""

    @property
    def p_value(self) -> float:
        """The panel's p-value for "q is the posterior"; without a panel the least adjusted one."""
        panel = self._panel
        return min(self.adjusted) if panel is None else panel.p_value

    @property
    def rejects(self) -> bool:
        """Whether q is rejected: ``p_value <= alpha``."""
        return self.p_value <= self.alpha

    @property
    def rejected(self) -> tuple[str, ...]:
        """Names of the tests that reject q, with p-values adjusted for their number."""
        pairs = zip(self.results, self.adjusted, strict=True)
        return tuple(result.method for result, p in pairs if p <= self.alpha)

    @property
    def failures(self) -> tuple[str, ...]:
        """What is wrong with q and by how much, in words; empty if q is not rejected."""
        panel = self._panel
        if panel is not None and self.rejects:
            return self._wrong(panel)
        notes = ((name, note_of(name)) for name in self.rejected)
        return tuple(f"{name} rejects: it sees {note.sees}" for name, note in notes if note)

    @property
    def _panel(self) -> ValidationResult | None:
        return next((result for result in self.results if result.method == "panel"), None)

    def _wrong(self, panel: ValidationResult) -> tuple[str, ...]:
        """What the panel finds."""
        found = what_is_wrong(panel.details, self.names, self.x_names)
        p_values = panel.details["p_values"]
        least = TESTS[min(p_values, key=lambda name: p_values[name])]
        return found or (f"{least} tells q from the truth, though no one thing stands out",)

    def to_dict(self) -> dict[str, Any]:
        """The report with JSON's types."""
        rows = [
            result.to_dict()
            | {"p_value_adjusted": adjusted, "rejected": adjusted <= self.alpha}
            | asdict(note_of(result.method) or MethodNote("", "", ""))
            for result, adjusted in zip(self.results, self.adjusted, strict=True)
        ]
        return {
            "p_value": self.p_value,
            "failures": list(self.failures),
            "alpha": self.alpha,
            "seed": self.seed,
            "rejected": list(self.rejected),
            "results": rows,
            "skipped": dict(self.skipped),
            "controls": {name: dict(p_values) for name, p_values in self.controls.items()},
        }

    def __repr__(self) -> str:
        outcome = "rejected" if self.rejects else "not rejected"
        tests = ", ".join(result.method for result in self.results)
        return (
            f"Report({outcome}, p_value={self.p_value:.3g}, N={self.asked.get('num_pairs')}, "
            f"tests: {tests})"
        )

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a report is neither true nor false: read report.p_value or report.rejects."
        )

    def __str__(self) -> str:
        lines = [self._headline(), *(f"  {text}" for text in self._shown())]
        lines += [f"  {name}: {text}" for name, text in self._beside()]
        if rows := self._rows():
            table = text_table(rows, ("test alone", "p", "adjusted", "")).splitlines()
            lines += [f"  {line}" for line in table]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        rows = [("wrong", text) for text in self._shown()] + self._beside()
        rows += [(name, f"p = {p}, adjusted {adj} {mark}") for name, p, adj, mark in self._rows()]
        return html_table(rows, caption=self._headline())

    def _headline(self) -> str:
        pairs = self.asked.get("num_pairs")
        where = " at x_o" if self.asked.get("at_x_o") else ""
        said = f"p = {self.p_value:.2g} for q being the posterior{where}, {pairs:,} pairs"
        return f"{'' if self.rejects else 'not '}rejected: {said}"

    def _shown(self) -> list[str]:
        """The first of what is wrong."""
        found = list(self.failures)
        more = len(found) - _MOST_LINES
        return found if more <= 1 else [*found[:_MOST_LINES], f"and {more} more: report.failures"]

    def _beside(self) -> list[tuple[str, str]]:
        """What stands below the answer: name and line."""
        lines = []
        if (panel := self._panel) is not None:
            each = (f"{TESTS[name]} {p:.2g}" for name, p in panel.details["p_values"].items())
            lines.append(("each test of the panel", ", ".join(each)))
        for name, p_values in self.controls.items():
            each = (f"{method} p = {p:.2g}" for method, p in p_values.items())
            lines.append((CONTROLS[name], ", ".join(each)))
        return lines + [(name, f"not run: {reason}") for name, reason in self.skipped.items()]

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """Of each test that ran beside the panel: name, p-value, adjusted, whether it rejects."""
        pairs = zip(self.results, self.adjusted, strict=True)
        return [
            (
                result.method,
                f"{result.p_value:.2g}",
                f"{adjusted:.2g}",
                "rejects" if adjusted <= self.alpha else "",
            )
            for result, adjusted in pairs
            if result.method != "panel"
        ]

    def save(
        self,
        path: str | Path,
        *,
        parameter_names: Sequence[str] | None = None,
        of: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the report as one page to look at (.html), or as data (.json).

        The page is a single file that loads nothing from elsewhere. ``abi report`` makes it from
        the data too, also together with the page of a fit.

        Args:
            path: ends in .html or .json.
            parameter_names: d names for the pictures; when omitted those of theta, or theta_1, ...
            of: which fit was tested, so that a page knows whether it is the one shown beside: a
                dict with ``"calls"`` of the simulator, ``"config"`` as a dict and ``"seed"``.

        Raises:
            ValueError: if the path ends otherwise, or names or ``of`` are not as described; for
                .html, if matplotlib or jinja2 are not installed.
        """
        write_report(report_data(self, parameter_names or self.names, of), Path(path))

    def save_plots(self, folder: str | Path) -> list[Path]:
        """Write a picture of each test as PNG, of local ones at ``x``; needs matplotlib."""
        from .results.plotting import save_local_plots, save_plot

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [save_plot(result, folder / f"{result.method}.png") for result in self.results]
        return paths + save_local_plots(self.results, self.x, folder)


def report_data(
    report: Report,
    parameter_names: Sequence[str] | None = None,
    of: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The report with what each test looked at, in JSON's types.

    Raises:
        ValueError: if the names are not one a parameter, or ``of`` is not as in ``save``.
    """
    width = report.asked.get("theta_dim")
    if parameter_names is not None and width is not None and len(parameter_names) != width:
        raise ValueError(
            f"`parameter_names` must name the {width} parameters; got {len(parameter_names)} names."
        )
    data = report.to_dict()
    for row, result in zip(data["results"], report.results, strict=True):
        row["evidence"] = evidence_of(result, report.x)
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        **data,
        "asked": dict(report.asked),
        "of": None if of is None else check_of(of, "`of`"),
        "parameter_names": None if parameter_names is None else list(parameter_names),
        "versions": installed_versions(*_PACKAGES),
    }
