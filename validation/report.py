"""All tests on one posterior: draws shared, p-values adjusted for their number, one table."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from simulators.arguments import FRACTION
from simulators.files.versions import installed_versions

from .methods.registry import METHODS, NOTES
from .posteriors.draws import check_counts, checked_observations, checked_pairs, drawn
from .posteriors.protocol import Posterior, progress_bar
from .posteriors.recognise import as_posterior
from .posteriors.stored_samples import StoredSamples
from .results.evidence import evidence_of
from .results.report_file import FORMAT, FORMAT_VERSION, write_report
from .results.result import ValidationResult
from .scores.frames import num_frame_draws
from .scores.uniformity import holm
from .seeds import part_seed

_LOCAL = ("lc2st", "local_hpd")
"""The tests that answer at an x_o; the others are about all x, whatever x_o they could take."""


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
        return "\n".join(lines)

    def save(self, path: str | Path, *, parameter_names: Sequence[str] | None = None) -> None:
        """Write one page to look at (.html; needs jinja2 and matplotlib), or its data (.json).

        The page is one file that loads nothing; ``abi report`` makes the same page from the data,
        also together with a fit's.

        Args:
            path: ends in .html or .json.
            parameter_names: d names for the pictures; theta_1 ... when omitted.

        Raises:
            ValueError: if the suffix is another.
        """
        write_report(report_data(self, parameter_names), Path(path))

    def save_plots(self, folder: str | Path) -> list[Path]:
        """Write each test's picture as PNG, and the local pictures at ``x``; needs matplotlib."""
        from .results.plotting import save_local_plots, save_plot

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [save_plot(result, folder / f"{result.method}.png") for result in self.results]
        return paths + save_local_plots(self.results, self.x, folder)


@dataclass(frozen=True, eq=False)
class SharedDraws(Posterior):
    """A posterior that was sampled once at the joint pairs' x, for all tests."""

    q: Any
    stored: StoredSamples

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """The stored draws where they suffice, else new ones."""
        if num_samples <= len(self.stored.samples):
            try:
                return self.stored.sample(num_samples, x)
            except ValueError:
                pass  # an x that was not drawn for
        return drawn(self.q, num_samples, x, self.stored.samples.shape[2], seed)

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """The density of the posterior, where it has one."""
        if not hasattr(self.q, "log_prob"):
            raise NotImplementedError("this posterior offers draws only, no density.")
        values: Tensor = self.q.log_prob(theta, x)
        return values

    def to_base(self, theta: Tensor, x: Tensor) -> Tensor:
        """The inverse of the flow, where it is one."""
        if not hasattr(self.q, "to_base"):
            raise NotImplementedError("this posterior is not a flow with a known inverse.")
        z: Tensor = self.q.to_base(theta, x)
        return z


def validate(
    q: Any,
    theta: Tensor,
    x: Tensor,
    methods: str | Iterable[str] | None = None,
    x_o: Tensor | None = None,
    *,
    alpha: float = 0.05,
    num_samples: int = 200,
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
        if not set(names) & set(_LOCAL):
            raise ValueError(f"`x_o` is for the local tests, {' and '.join(_LOCAL)}; add one.")
    shared, num_samples = _shared(q, theta, x, num_samples, seed)
    results: list[ValidationResult] = []
    skipped: dict[str, str] = {}
    with progress_bar(len(names), "testing", progress) as advance:
        for name in names:
            try:
                count = num_samples
                if name in ("colt", "colt_identity"):
                    frame = num_frame_draws(theta.shape[1])
                    count = max(1, min(count, len(shared.stored.samples) - frame))
                keywords = _keywords(name, shared, count, x_o)
                results.append(METHODS[name](shared, theta, x, seed=seed, **keywords))
            except (ValueError, NotImplementedError) as error:
                if methods is not None:
                    raise
                skipped[name] = str(error)
            advance()
    if not results:
        raise ValueError(f"no test could run; the first says: {next(iter(skipped.values()))}")
    adjusted = holm([result.p_value for result in results])
    here = x[0] if x_o is None else x_o[0]
    asked = {"num_pairs": len(x), "theta_dim": theta.shape[1], "num_samples": num_samples}
    asked |= {"x_o": 0 if x_o is None else len(x_o)}
    return Report(tuple(results), tuple(adjusted), skipped, alpha, seed, here, asked)


def _names(methods: str | Iterable[str] | None) -> list[str]:
    """The tests asked for, each once; text is one name."""
    if methods is None:
        return list(METHODS)
    names = [methods] if isinstance(methods, str) else list(dict.fromkeys(methods))
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        raise ValueError(f"`methods` must be out of {', '.join(METHODS)}; got {unknown or names}.")
    return names


def _shared(
    q: Any, theta: Tensor, x: Tensor, num_samples: int, seed: int
) -> tuple[SharedDraws, int]:
    """Draw once, enough for the test that needs most (CoLT's frame comes on top of K)."""
    posterior = as_posterior(q)
    needed = num_samples + num_frame_draws(theta.shape[1])
    if isinstance(posterior, StoredSamples):
        needed = min(needed, len(posterior.samples))
    samples = drawn(posterior, needed, x, theta.shape[1], part_seed(seed, 100))
    return SharedDraws(posterior, StoredSamples(x, samples)), min(num_samples, needed)


def _keywords(
    name: str, shared: SharedDraws, num_samples: int, x_o: Tensor | None
) -> dict[str, Any]:
    """What of ``num_samples`` and ``x_o`` the test takes."""
    accepted = inspect.signature(METHODS[name]).parameters
    keywords: dict[str, Any] = {}
    if name == "lc2st":
        # Its draws are read at x_o, where a posterior of stored samples has no more than these.
        if isinstance(shared.q, StoredSamples):
            keywords["num_samples"] = len(shared.q.samples)
    elif name == "discriminative_calibration":
        keywords["num_samples"] = min(10, num_samples)
    elif "num_samples" in accepted:
        keywords["num_samples"] = num_samples
    if x_o is not None and name in _LOCAL:
        keywords["x_o"] = x_o
    return keywords


def report_data(report: Report, parameter_names: Sequence[str] | None = None) -> dict[str, Any]:
    """The report with what each test looked at, in JSON's types.

    Raises:
        ValueError: if the names are not one a parameter.
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
        "parameter_names": None if parameter_names is None else list(parameter_names),
        "versions": installed_versions(*_PACKAGES),
    }
