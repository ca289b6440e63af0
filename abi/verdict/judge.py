"""From candidates to a check, and from a check to a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from simulators.random import child_seed, torch_generator
from validation.controls import spread
from validation.swaps.candidates import Candidates
from validation.swaps.deviations import Deviation, deviations, expected_c2st
from validation.swaps.panel import panel
from validation.swaps.words import TESTS, p_text, wrong_words
from validation.words import listing

from .record import (
    ALPHA,
    RARE,
    Check,
    Distance,
    Outcome,
    RoundCheck,
    Verdict,
    control_words,
    edge_words,
)

LEAST_PAIRS = 20
"""Fewer judge nothing."""
LARGEST_BIAS, LARGEST_RATIO = 0.5, 1.5
"""What a pass may leave open: a bias in sds, and an sd's ratio to the true one."""
_FEW_PAIRS = 200  # that an answer wrong on purpose is tried on first
_STAYS = 0.8  # of an interval's width, where more pairs do not help
MORE_CALLS = 600
"""More calls that a verdict without an answer speaks of."""
_MORE = f"posterior.check({MORE_CALLS})"


def judge(
    candidates: Candidates,
    names: tuple[str, ...],
    members: Tensor | None,
    seed: int,
    *,
    left_out: int = 0,
    controls: bool = True,
) -> Check:
    """Judge an answer by pairs that it has not seen.

    Args:
        candidates: of the pairs.
        names: of the parameters.
        members: of each flow's draws at x_o the mean, in sds of q there, and the log of their sd
            over q's, (M, d, 2).
        seed: of the tests.
        left_out: pairs whose x the answer does not reach.
        controls: whether to run the panel on the prior and on a wider answer, too.
    """
    if candidates.num_pairs < LEAST_PAIRS:
        return Check(candidates.num_pairs, left_out)
    tested = panel(candidates, child_seed(seed, 0))
    wrong = _controls(candidates, seed) if controls else {}
    parts = deviations(candidates, names, members)
    return Check(
        candidates.num_pairs,
        left_out,
        tested.p_value,
        tested.p_values,
        parts,
        wrong,
        None if candidates.distance is None else expected_c2st(parts[: len(names)], members),
    )


def verdict_of(
    check: Check,
    *,
    x_o_p_value: float | None,
    num_calls: int,
    failures: int,
    rounds: tuple[RoundCheck, ...] = (),
    moved: Distance | None = None,
    marginals: Distance | None = None,
    edge: float | None = None,
    everywhere: bool = False,
    seed: int = 0,
) -> Verdict:
    """What a check, and what else is known of the fit, allow to say."""
    outcome, headline = _outcome(check, x_o_p_value, num_calls, edge, everywhere)
    return Verdict(
        outcome,
        headline,
        check,
        x_o_p_value,
        num_calls,
        failures,
        rounds,
        moved,
        marginals,
        edge,
        seed,
        everywhere,
    )


def untold(reason: str, x_o_p_value: float | None = None) -> Verdict:
    """The verdict where nothing could be checked, and why."""
    return Verdict("cannot tell", f"cannot tell: {reason}", Check(0), x_o_p_value)


def _outcome(
    check: Check,
    x_o_p_value: float | None,
    num_calls: int,
    edge: float | None,
    everywhere: bool,
) -> tuple[Outcome, str]:
    rare = x_o_p_value is not None and x_o_p_value <= RARE
    unusual = f"cannot tell: x_o is unusual data of this model (p = {x_o_p_value or 0.0:.2g})"
    few = f"{check.num_pairs} check pairs can be used, and {LEAST_PAIRS} are needed"
    if check.p_value is None and rare:
        return "cannot tell", f"{unusual}, and only {few}; check the units of x_o first"
    if check.p_value is None:
        return "cannot tell", f"cannot tell: only {few}; {_MORE} makes more"
    if check.rejects:
        return "fails", _fails(check, check.p_value, everywhere)
    doubt = None
    if rare:
        doubt = f"{unusual}; around it the answer is not rejected (p = {check.p_value:.2g})"
    elif edge is not None:
        doubt = (
            f"cannot tell: {edge_words(edge)}, and no check sees beyond it; posterior.refine() does"
        )
    if doubt is not None:
        return "cannot tell", doubt
    missed = [control_words(n, everywhere) for n, p in check.controls.items() if p > ALPHA]
    if missed or not all(map(resolved, check.parameters)):
        return "cannot tell", f"cannot tell: {_unseen(check, missed, num_calls)}"
    return "passes", _passes(check, check.p_value)


def resolved(part: Deviation) -> bool:
    """Whether a parameter's intervals leave no large error open."""
    ratios = part.sd_ratio_low >= 1.0 / LARGEST_RATIO and part.sd_ratio_high <= LARGEST_RATIO
    return part.largest_bias <= LARGEST_BIAS and ratios


def _fails(check: Check, p_value: float, everywhere: bool) -> str:
    wrong = [part for part in check.parameters if part.wrong]
    if wrong:
        return f"fails: {wrong_words(max(wrong, key=lambda part: part.size))}"
    least = min(check.p_values, key=lambda name: check.p_values[name])
    if least == "rest_of_x":
        return (
            f"fails: x tells more about the parameters than the answer uses ({p_text(p_value)} "
            "over all tests): it may be right on average and far off at one x; try more calls "
            "or another encoder"
        )
    like, one = ("all x", "one x") if everywhere else ("data like x_o", "x_o itself")
    bias = max(part.largest_bias for part in check.parameters)
    return (
        f"fails: rejected, most strongly by {TESTS[least]} ({p_text(p_value)} over all tests); the "
        f"intervals do not show in which way: on average over {like} a mean may be off by up to "
        f"{bias:.2f} sd, and at {one} by more"
    )


def _passes(check: Check, p_value: float) -> str:
    return f"passes: {p_text(p_value)} over {len(check.p_values)} tests; {_bounds(check)}"


def _bounds(check: Check) -> str:
    """What the intervals leave open."""
    bias = max(part.largest_bias for part in check.parameters)
    low = min(part.sd_ratio_low for part in check.parameters)
    high = max(part.sd_ratio_high for part in check.parameters)
    where = "over data like x_o " if "lc2st" in check.p_values else ""  # else all x are asked about
    return (
        f"{where}no mean is off by more than {bias:.2f} sd, and sds are {low:.2f} to {high:.2f} "
        "times the true ones"
    )


def _unseen(check: Check, missed: list[str], num_calls: int) -> str:
    """Why what is not rejected does not pass: what would go unseen, or is left open."""
    pairs = f"with {check.num_pairs} check pairs"
    even = f"{pairs} even {listing(missed)} would go unseen; {_MORE} makes more"
    parts = [part for part in check.parameters if not resolved(part)]
    if not parts:
        return even
    part = max(parts, key=lambda part: part.half_width)
    after = part.half_width_after(1.0 + MORE_CALLS / max(1, num_calls))
    if after > _STAYS * part.half_width:
        return (
            f"not rejected (p = {check.p_value:.2g}), but the flows of the fit disagree about "
            f"{part.name}: {_left_open(part)}; fit again with more calls; more check pairs "
            "would not tell"
        )
    if part.half_width > LARGEST_BIAS:
        return (
            f"{pairs} a bias below {part.half_width:.2g} sd would go unseen; {_MORE} would show "
            f"one of {after:.2g}"
        )
    if missed:
        return even
    return f"{pairs} {part.name} is left open: {_left_open(part)}; {_MORE} makes more"


def _left_open(part: Deviation) -> str:
    """The large error of a parameter that its intervals allow."""
    if part.largest_bias > LARGEST_BIAS:
        return f"its mean may be off by {part.largest_bias:.2g} sd"
    return f"its sd may be {part.sd_ratio_low:.2g} to {part.sd_ratio_high:.2g} times the true one"


def _controls(candidates: Candidates, seed: int) -> dict[str, float]:
    """The panel's p-values of two answers that are wrong on purpose."""
    key = child_seed(seed, 0)
    return {
        "prior": _p_value_of(lambda some: _prior(some, child_seed(seed, 1)), candidates, key),
        "wide": _p_value_of(_wider, candidates, key),
    }


def _p_value_of(
    wrong: Callable[[Candidates], Candidates], candidates: Candidates, seed: int
) -> float:
    """The panel's p-value of a wrong answer, by a few of the pairs where these see it."""
    few = candidates.rows(torch.arange(min(_FEW_PAIRS, candidates.num_pairs)))
    p_value = panel(wrong(few), seed).p_value
    if p_value <= ALPHA or few.num_pairs == candidates.num_pairs:
        return p_value
    return panel(wrong(candidates), seed).p_value


def _prior(candidates: Candidates, seed: int) -> Candidates:
    """The prior cut to the region as an answer: at each x, theta of other pairs."""
    theta, truth = candidates.theta, candidates.truth
    shape = theta.shape[:2]
    step = torch.randint(1, shape[1], shape, generator=torch_generator(seed))
    other = (torch.arange(shape[1]) + step) % shape[1]
    drawn = truth[other]
    drawn[candidates.true, torch.arange(shape[1])] = truth
    return replace(candidates, theta=drawn, log_q=None)


def _wider(candidates: Candidates) -> Candidates:
    """The answer spread out about its mean at each x."""
    drawn = spread(candidates.theta)
    drawn[candidates.true, torch.arange(candidates.num_pairs)] = candidates.truth
    return replace(candidates, theta=drawn, log_q=None)
