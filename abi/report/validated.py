"""Is a validation of the fit beside it? What it recorded of itself against what the fit holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from validation.words import listing

from ..posterior import ABIPosterior
from .sources import FitRecord

Relation = Literal["this fit", "its method", "another", "not recorded"]
_MOST_NAMED = 3


@dataclass(frozen=True)
class Belonging:
    """How a validation stands to a fit, and why it does not belong to it where it does not."""

    relation: Relation
    why: str = ""

    @property
    def counts(self) -> bool:
        """Whether it tells of the fit: it has the fit's calls and constants."""
        return self.relation in ("this fit", "its method")


def identity_of(posterior: ABIPosterior) -> dict[str, Any]:
    """What ``Report.save(..., of=...)`` writes down of a validation of this very fit."""
    return {
        "calls": posterior.num_simulations,
        "seed": posterior.seed,
        "config": posterior.config.to_dict(),
    }


def belonging(data: Mapping[str, Any], record: FitRecord) -> Belonging:
    """Whether a saved validation is of this fit, of others with its calls and constants, or else.

    The calls are those asked for or made, with the check's or without: a later check adds some.
    """
    of, posterior = data.get("of"), record.posterior
    if of is None or "calls" not in of or "config" not in of:
        return Belonging("not recorded", "does not record the calls and constants of what it is of")
    differs = []
    least = sum(part.simulator_calls for part in posterior.rounds)
    most = posterior.num_simulations
    if record.plan is not None:
        most = max(most, record.plan.num_simulations)
    if not least <= of["calls"] <= most:
        differs.append(f"{of['calls']:,} simulator calls, not {most:,}")
    if names := _different(of["config"], posterior.config.to_dict()):
        shown = names[:_MOST_NAMED]
        rest = len(names) - len(shown)
        differs.append(f"other constants ({', '.join(shown)}{f' and {rest} more' if rest else ''})")
    if differs:
        return Belonging("another", f"is of fits with {listing(differs)}")
    return Belonging("this fit" if of.get("seed") == posterior.seed else "its method")


def _different(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of the constants in which two configs differ, as JSON has them."""
    one, other = (json.loads(json.dumps(dict(config))) for config in (one, other))
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
