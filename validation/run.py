"""Test a posterior: at all x, or at one x_o; draws shared by all tests that are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from simulators.arguments import FRACTION

from .methods.registry import METHODS
from .methods.together import LOCAL, Together, together
from .posteriors.draws import check_counts, given, only
from .posteriors.pairs.arrays import columns_of
from .posteriors.pairs.repeats import told_of_repeats
from .posteriors.protocol import progress_bar
from .report import Report
from .results.result import ValidationResult
from .scores.uniformity import holm

PANEL = ("panel",)
AT_X_O = ("panel", *LOCAL)
"""What :func:`validate_at` runs where nothing else is asked for."""


def validate(
    q: Any,
    theta: Tensor,
    x: Tensor,
    methods: str | Iterable[str] | None = None,
    x_o: Tensor | None = None,
    *,
    alpha: float = 0.05,
    num_samples: int | None = None,
    controls: bool = False,
    seed: int = 0,
    progress: bool = False,
) -> Report:
    """Is q the posterior? One exact p-value, and what is wrong in words.

    By default :func:`~validation.panel` is run, many tests with one p-value; ``methods`` names
    others, alone or beside it, whose p-values are adjusted for their number. q is sampled once at
    the pairs' x, and all tests share the draws. The pairs must not be those that q was trained on:
    on those an overfitted q looks right.

    Other Parameters:
        methods: one or several names out of :data:`METHODS`; the panel when omitted. ``"all"`` are
            all of them, and one that cannot run on this posterior is then left out with its reason.
        x_o: for the local tests, one observation (p,) or several (m, p); some of the pairs' own,
            kept out of the training, when omitted. To test at one x_o take :func:`validate_at`.
        alpha: level, in (0, 1).
        num_samples: K, draws of q an observation; each test's own number when omitted.
        controls: whether to run the same tests, with the same pairs, on two posteriors that are
            wrong on purpose: theta of other pairs in place of q's draws, and q's draws spread 1.5
            times about their mean. Tests that reject neither say nothing by not rejecting q.
            It costs their time twice more, and next to no draws of q.
        seed: of everything random.
        progress: whether to show a bar over the tests.

    Returns:
        A report: ``p_value``, ``failures`` in words, ``results`` test by test.

    Raises:
        ValueError: if a name is not a test, with those that are, or the pairs are unusable.

    q is any posterior, theta (N, d) and x (N, p) joint draws it never saw: see :mod:`validation`.
    """
    names = test_names(methods)
    if x_o is not None and not set(names) & set(LOCAL):
        raise ValueError(
            f"`x_o` is for the local tests, {' and '.join(LOCAL)}; name one, or take "
            "validate_at(q, theta, x, x_o)."
        )
    _check(alpha, num_samples)
    pairs = given(q, theta, x)
    here = None if x_o is None else pairs.observations(x_o)
    tests = together(pairs, here, num_samples, seed, names)
    names_of_both = columns_of(theta), columns_of(x)
    return _run(tests, names, methods == "all", alpha, controls, progress, names_of_both)


def validate_at(
    q: Any,
    theta: Tensor,
    x: Tensor,
    x_o: Tensor,
    methods: str | Iterable[str] | None = None,
    *,
    alpha: float = 0.05,
    num_samples: int | None = None,
    controls: bool = False,
    seed: int = 0,
    progress: bool = False,
) -> Report:
    """Is q the posterior at one x_o? One p-value of the pairs around it, and the local tests.

    The panel takes the quarter of the pairs that is nearest to x_o, so its p-value is exact where q
    is right around x_o, and only nearly so where q is right at x_o and wrong close by. Beside it
    stand L-C2ST and the local HPD test, which learn from all pairs how q errs at x_o, and how far
    each parameter's mean and sd may be off there.

    Other Parameters:
        x_o: one observation (p,).
        methods: one or several of "panel", "lc2st", "local_hpd"; all three when omitted.
        alpha: level, in (0, 1).
        num_samples: K, draws of q an observation; each test's own number when omitted.
        controls: as of :func:`validate`.
        seed: of everything random.
        progress: whether to show a bar over the tests.

    Returns:
        A report: ``p_value`` is the panel's, ``failures`` what is wrong at x_o in words.

    Raises:
        ValueError: if a name is not one of the three, or pairs or x_o are unusable.

    q is any posterior, theta (N, d) and x (N, p) joint draws it never saw: see :mod:`validation`.
    """
    names = test_names(AT_X_O if methods is None else methods)
    if not set(names) <= set(AT_X_O):
        raise ValueError(f"`methods` must be out of {', '.join(AT_X_O)} at an x_o; got {names}.")
    _check(alpha, num_samples)
    pairs = given(q, theta, x)
    here = only(pairs.observations(x_o))
    tests = together(pairs, here, num_samples, seed, names, at_x_o=True)
    names_of_both = columns_of(theta), columns_of(x)
    return _run(tests, names, False, alpha, controls, progress, names_of_both)


def _check(alpha: float, num_samples: int | None) -> None:
    FRACTION(alpha, "alpha")
    if num_samples is not None:
        check_counts(num_samples=num_samples)


def test_names(methods: str | Iterable[str] | None) -> list[str]:
    """The tests asked for, each once; text is one name."""
    if methods is None:
        return list(PANEL)
    if methods == "all":
        return list(METHODS)
    names = [methods] if isinstance(methods, str) else list(dict.fromkeys(methods))
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        raise ValueError(
            f'`methods` must be "all" or out of {", ".join(METHODS)}; got {unknown or names}.'
        )
    return names


def _run(
    tests: Together,
    names: list[str],
    leave_out: bool,
    alpha: float,
    controls: bool,
    progress: bool,
    names_of_both: tuple[list[str] | None, list[str] | None],
) -> Report:
    """The tests one after another; one that cannot run is left out or raises."""
    results: list[ValidationResult] = []
    skipped: dict[str, str] = {}
    steps = (1 + 2 * controls) * len(names)
    with told_of_repeats(), progress_bar(steps, "testing", progress) as advance:
        for name in names:
            try:
                results.append(tests.test(name))
            except (ValueError, NotImplementedError) as error:
                if not leave_out:
                    raise
                skipped[name] = str(error)
            advance()
        wrong = tests.controls([result.method for result in results], advance) if controls else {}
    if not results:
        raise ValueError(f"no test could run; the first says: {next(iter(skipped.values()))}")
    theta, x, x_o = tests.theta, tests.x, tests.x_o
    asked = {
        "num_pairs": len(x),
        "theta_dim": theta.shape[1],
        "num_samples": tests.num_samples,
        "x_o": 0 if x_o is None else len(x_o),
        "at_x_o": tests.at_x_o,
    }
    return Report(
        tuple(results),
        _adjusted(results),
        skipped,
        alpha,
        tests.seed,
        x[0] if x_o is None else x_o[0],
        asked,
        wrong,
        *names_of_both,
    )


def _adjusted(results: list[ValidationResult]) -> tuple[float, ...]:
    """P-values adjusted for the number of tests; the panel, which is the answer, has its own."""
    others = [result.p_value for result in results if result.method != "panel"]
    left = iter(holm(others) if others else [])
    return tuple(r.p_value if r.method == "panel" else next(left) for r in results)
