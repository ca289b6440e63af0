"""All tests on one posterior: draws shared, p-values adjusted for their number, one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from simulators.arguments import FRACTION
from simulators.files.versions import installed_versions

from .methods.registry import METHODS, NOTES
from .methods.together import LOCAL, together
from .posteriors.draws import check_counts, checked_observations, checked_pairs
from .posteriors.protocol import progress_bar
from .posteriors.shared_draws import CONTROLS
from .results.evidence import evidence_of
from .results.report_file import FORMAT, FORMAT_VERSION, check_of, write_report
from .results.result import ValidationResult
from .scores.uniformity import holm

_PACKAGES = ("abi-toolkit", "torch", "numpy", "scipy", "sbi")


@dataclass(frozen=True, eq=False)
class Report:
    """Results of several tests of one posterior; ``print(report)`` shows the table."""

    results: tuple[ValidationResult, ...]
    adjusted: tuple[float, ...]
    """Holm-adjusted p-values, in the order of ``results``."""
    skipped: Mapping[str, str]
    """Tests that could not be run on this posterior, and why."""
    alpha: float
    seed: int
    x: Tensor
    """The observation that local pictures are drawn at: the first x_o, or the first x, (p,)."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """What is needed to repeat it: numbers of pairs, parameters and draws."""
    controls: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Holm-adjusted p-values of the same tests for posteriors that are wrong on purpose: "prior",
    "wide"; empty where :func:`validate` was not asked for them."""

    @property
    def rejected(self) -> tuple[str, ...]:
        """Names of the tests whose adjusted p-value is at most alpha."""
        pairs = zip(self.results, self.adjusted, strict=True)
        return tuple(result.method for result, p in pairs if p <= self.alpha)

    def to_dict(self) -> dict[str, Any]:
        """The report with JSON's types."""
        rows = [
            result.to_dict()
            | {
                "p_value_adjusted": adjusted,
                "rejected": adjusted <= self.alpha,
                "sees": NOTES[result.method].sees,
                "blind_to": NOTES[result.method].blind_to,
                "source": NOTES[result.method].source,
            }
            for result, adjusted in zip(self.results, self.adjusted, strict=True)
        ]
        return {
            "alpha": self.alpha,
            "seed": self.seed,
            "rejected": list(self.rejected),
            "results": rows,
            "skipped": dict(self.skipped),
            "controls": {name: dict(p_values) for name, p_values in self.controls.items()},
        }

    def __str__(self) -> str:
        lines = [f"{'test':<27}{'statistic':>10}{'p':>9}{'adjusted':>10}   sees / cannot see"]
        for result, adjusted in zip(self.results, self.adjusted, strict=True):
            mark = "*" if adjusted <= self.alpha else " "
            note = NOTES[result.method]
            lines.append(
                f"{result.method:<27}{result.statistic:>10.4g}{result.p_value:>9.2g}"
                f"{adjusted:>10.2g} {mark} {note.sees}"
            )
            lines.append(f"{'':<59}/ {note.blind_to}")
        lines += [f"{name:<27} not run: {reason}" for name, reason in self.skipped.items()]
        verdict = ", ".join(self.rejected) if self.rejected else "no test"
        lines.append(f"* rejected at {self.alpha:g} over all tests (Holm): {verdict}")
        if self.controls:
            lines.append("the same tests on what is wrong on purpose, adjusted p:")
        for name, p_values in self.controls.items():
            marks = ("*" if p <= self.alpha else "" for p in p_values.values())
            each = (
                f"{method} {p:.2g}{mark}"
                for (method, p), mark in zip(p_values.items(), marks, strict=True)
            )
            lines.append(f"  {CONTROLS[name]}: {', '.join(each)}")
        return "\n".join(lines)

    def save(
        self,
        path: str | Path,
        *,
        parameter_names: Sequence[str] | None = None,
        of: Mapping[str, Any] | None = None,
    ) -> None:
        """Write one page to look at (.html; needs jinja2 and matplotlib), or its data (.json).

        The page is one file that loads nothing; ``abi report`` makes the same page from the data,
        also together with a fit's.

        Args:
            path: ends in .html or .json.
            parameter_names: d names for the pictures; theta_1 ... when omitted.
            of: what was validated, so that a page can tell whether it is the fit beside it:
                ``"calls"`` of the simulator, ``"config"`` as a dict and, of one fit, ``"seed"``.

        Raises:
            ValueError: if the suffix is another, or names or ``of`` are not as described.
        """
        write_report(report_data(self, parameter_names, of), Path(path))

    def save_plots(self, folder: str | Path) -> list[Path]:
        """Write each test's picture as PNG, and the local pictures at ``x``; needs matplotlib."""
        from .results.plotting import save_local_plots, save_plot

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [save_plot(result, folder / f"{result.method}.png") for result in self.results]
        return paths + save_local_plots(self.results, self.x, folder)


def validate(
    q: Any,
    theta: Tensor,
    x: Tensor,
    methods: str | Iterable[str] | None = None,
    x_o: Tensor | None = None,
    *,
    alpha: float = 0.05,
    num_samples: int = 200,
    controls: bool = False,
    seed: int = 0,
    progress: bool = False,
) -> Report:
    """Run the tests on one posterior.

    q is sampled once at the pairs' x, and all tests share the draws. The pairs must not be those
    that q was trained on: on those an overfitted q looks right.

    Other Parameters:
        methods: one or several names out of :data:`METHODS`; all when omitted, and one that cannot
            run on this posterior is then left out with its reason.
        x_o: for the local tests, one observation (p,) or several (m, p); some of the pairs' own,
            kept out of the training, when omitted.
        alpha: level over all tests together, in (0, 1).
        num_samples: K, draws of q an observation.
        controls: whether to run the same tests, with the same pairs, on two posteriors that are
            wrong on purpose: theta of other pairs in place of q's draws, and q's draws spread 1.5
            times about their mean. Tests that reject neither say nothing by not rejecting q.
            It costs their time twice more, and next to no draws of q.
        seed: of everything random.
        progress: whether to show a bar over the tests.

    Raises:
        ValueError: if a name is not a test, with those that are, or the pairs are unusable.

    q is any posterior, theta (N, d) and x (N, p) joint draws it never saw: see :mod:`validation`.
    """
    names = _names(methods)
    check_counts(num_samples=num_samples)
    FRACTION(alpha, "alpha")
    theta, x = checked_pairs(theta, x, 2)
    if x_o is not None:
        x_o = checked_observations(x_o, x.shape[1])
        if not set(names) & set(LOCAL):
            raise ValueError(f"`x_o` is for the local tests, {' and '.join(LOCAL)}; add one.")
    tests = together(q, theta, x, x_o, num_samples, seed)
    results: list[ValidationResult] = []
    skipped: dict[str, str] = {}
    rounds = 1 + controls * len(CONTROLS)
    with progress_bar(rounds * len(names), "testing", progress) as advance:
        for name in names:
            try:
                results.append(tests.test(name))
            except (ValueError, NotImplementedError) as error:
                if methods is not None:
                    raise
                skipped[name] = str(error)
            advance()
        wrong = tests.controls([result.method for result in results], advance) if controls else {}
    if not results:
        raise ValueError(f"no test could run; the first says: {next(iter(skipped.values()))}")
    adjusted = holm([result.p_value for result in results])
    here = x[0] if x_o is None else x_o[0]
    asked = {"num_pairs": len(x), "theta_dim": theta.shape[1], "num_samples": tests.num_samples}
    asked |= {"x_o": 0 if x_o is None else len(x_o)}
    return Report(tuple(results), tuple(adjusted), skipped, alpha, seed, here, asked, wrong)


def _names(methods: str | Iterable[str] | None) -> list[str]:
    """The tests asked for, each once; text is one name."""
    if methods is None:
        return list(METHODS)
    names = [methods] if isinstance(methods, str) else list(dict.fromkeys(methods))
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        raise ValueError(f"`methods` must be out of {', '.join(METHODS)}; got {unknown or names}.")
    return names


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
