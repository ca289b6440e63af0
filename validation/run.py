"""Test a posterior: at all x, or at one x_o; draws shared by all tests that are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from simulators.arguments import FRACTION

from .methods.registry import METHODS
from .methods.together import LOCAL, Together, draws_of, together
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
    """Is q the posterior? One exact p-value, and in words what is wrong.

    By default it runs :func:`~validation.panel`, several tests with one p-value over all. Draws of
    q are made once at each x and shared by all tests.

    Args:
        q: the posterior under test, as :func:`~validation.as_posterior` takes it.
        theta: parameters drawn from the prior, (N, d), that q was not trained on: on pairs that it
            was, an overfitted q looks right.
        x: one simulation for each row of theta, (N, p).
        methods: one or several names out of :data:`METHODS`, in place of the panel; their p-values
            are adjusted for their number. ``"all"`` runs every test, and leaves out, with the
            reason, those that this q does not allow.
        x_o: for the local tests among them, one observation (p,) or several (m, p). When omitted,
            some of the pairs' own. For one x_o of yours take :func:`validate_at`.
        alpha: level at which q is rejected, in (0, 1).
        num_samples: K, draws of q at each x; each test's own number when omitted.
        controls: run the same tests on two posteriors that are wrong on purpose as well: theta of
            other pairs in place of q's draws, and q's draws spread out 1.5 times. Where the tests
            do not reject these, it means little that they do not reject q. Takes three times as
            long.
        seed: of everything random.
        progress: show a progress bar.

    Returns:
        A :class:`Report`: ``p_value``, ``failures`` in words, ``results`` test by test.

    Raises:
        TypeError: if q is no posterior, or theta or x are no numbers. The message says what to
            pass.
        ValueError: if a name is not a test, or the pairs are too few, do not match or are not
            finite.
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
    """Is q the posterior at one observation x_o? One p-value, and how far q may be off there.

    The panel of tests looks at the quarter of the pairs that is nearest to x_o. Its p-value is
    exact if q is right around x_o; where q is right at x_o and wrong close by, it may reject. Two
    local tests stand beside it, L-C2ST and HPD, which learn from all pairs how q errs at x_o. The
    report also says how far each parameter's mean and standard deviation may be off at x_o.

    Args:
        q: the posterior under test, as :func:`~validation.as_posterior` takes it.
        theta: parameters drawn from the prior, (N, d), that q was not trained on.
        x: one simulation for each row of theta, (N, p).
        x_o: the observation, (p,).
        methods: one or several of "panel", "lc2st", "local_hpd"; all three when omitted.
        alpha: level at which q is rejected, in (0, 1).
        num_samples: K, draws of q at each x; each test's own number when omitted.
        controls: run the tests on two posteriors that are wrong on purpose as well, as for
            :func:`validate`.
        seed: of everything random.
        progress: show a progress bar.

    Returns:
        A :class:`Report`; ``p_value`` is the panel's, ``failures`` says what is wrong at x_o.

    Raises:
        TypeError: if q is no posterior, or theta, x or x_o are no numbers.
        ValueError: if a name is not one of the three, or pairs or x_o cannot be used.
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


def draws_needed(
    methods: str | Iterable[str] | None, num_samples: int | None, pairs: int, width: int
) -> int:
    """Draws of q at each x that :func:`validate` makes: those of the test that takes most.

    Args:
        methods: as of :func:`validate`, as is the next.
        num_samples: draws of q at each x.
        pairs: their number N.
        width: parameters d.
    """
    return max(draws_of(name, num_samples, pairs, width) for name in test_names(methods))


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
