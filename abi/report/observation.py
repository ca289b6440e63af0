"""Is x_o like the simulations near the answer? What a page may say of it, and when it warns first.

The p-value is conformal, by nearest neighbours (:mod:`abi.rounds.plausibility`): it compares x_o
with simulations and knows nothing of the posterior. Of a right model one x_o in a hundred has a p
of .01.
"""

from __future__ import annotations

from validation.page import Notice
from validation.swaps.words import p_text

from ..verdict.record import RARE
from .fit_page import Fit


def x_o_p_value(fit: Fit) -> float | None:
    """Of the last round, whose simulations lie nearest to the answer; None where not recorded."""
    posterior = fit.record.posterior
    last = posterior.rounds[-1].x_o_p_value
    return posterior.verdict.x_o_p_value if last is None else last


def plausible(fit: Fit) -> bool:
    """Whether x_o is known to be plausible data of the model near the answer."""
    p_value = x_o_p_value(fit)
    return p_value is not None and p_value > RARE


def doubt_of_x_o(fit: Fit) -> str:
    """Why a headline cannot tell, where x_o is not known to be plausible."""
    p_value = x_o_p_value(fit)
    if p_value is None:
        return "whether x_o is plausible data of this model was not recorded"
    return f"x_o is unusual data of this model ({p_text(p_value)})"


def x_o_notice(fit: Fit, name: str = "") -> Notice | None:
    """The warning that stands above the verdict; None where there is nothing to warn of."""
    p_value = x_o_p_value(fit)
    if p_value is None or p_value > RARE:
        return None
    return Notice(
        f"{f'{name}: ' if name else ''}x_o is unusual among {_simulations(fit)}",
        "It lies farther from its nearest neighbours than nearly all of them lie from theirs "
        f"({p_text(p_value)}); of a correct model at most {_rate(p_value)} does. Unless x_o is "
        "that one, the model is wrong, or the units or the order of its values are, and the "
        "posterior below is an extrapolation.",
    )


def x_o_line(fit: Fit) -> str | None:
    """The same as one line of evidence, where it is no warning."""
    p_value = x_o_p_value(fit)
    if p_value is None or p_value <= RARE:
        return None
    return f"x_o is not unusual among {_simulations(fit)} ({p_text(p_value)})."


def _simulations(fit: Fit) -> str:
    """What x_o was compared with."""
    if len(fit.record.posterior.rounds) == 1:
        return "the simulations from the prior"
    return "the simulations near the answer"


def _rate(p_value: float) -> str:
    """How often a correct model gives so small a p.

    >>> _rate(0.003)
    'one observation in 333'
    """
    return f"one observation in {round(1.0 / p_value):,}"
