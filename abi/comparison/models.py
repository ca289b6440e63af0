"""The models to compare: their names, and each with its prior, its simulator and x_o posed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from simulators.arguments import as_tensor
from simulators.given.observation import same_values

from ..encoders.layout import PLAIN, Layout
from ..rounds.problem import Problem, pose

_FORM = '{"name": (prior, simulator), ...}'


@dataclass(frozen=True, eq=False)
class Models:
    """M models of one observation.

    Attributes:
        names: one a model.
        problems: prior, simulator and x_o of each, in one form.
    """

    names: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def x_o(self) -> Tensor:
        """The observation, (p,)."""
        return self.problems[0].x_o

    @property
    def layout(self) -> Layout:
        """What x consists of, where all simulators say the same."""
        layouts = {problem.layout for problem in self.problems}
        return layouts.pop() if len(layouts) == 1 else PLAIN


def pose_models(
    models: Any,
    x_o: Any,
    names: Sequence[str] | None,
    encoder: nn.Module | None,
    timeout: float | None,
) -> Models:
    """Check models and observation, and bring them into one form.

    Args:
        models: a dict of names and (prior, simulator), or a list of such pairs; a task, which
            brings its prior, may stand for a pair.
        x_o: the observation.
        names: of a list's models.
        encoder: the user's own, if there is one.
        timeout: seconds that a call of a plain function may take.

    Raises:
        TypeError: if ``models`` holds something else.
        ValueError: if there are fewer than two, names repeat, a prior or simulator is wrong, or
            simulators name the values of x in different orders.
    """
    if x_o is None:
        raise ValueError("`x_o` must be an observation; got None. Ask about others by at(x).")
    given, pairs = _named(models, names)
    posed = []
    for name, pair in zip(given, pairs, strict=True):
        prior, simulator = _pair(pair)
        try:
            posed.append(pose(prior, simulator, x_o, None, encoder, timeout))
        except (TypeError, ValueError) as error:
            raise type(error)(f"`models` {name!r}: {error}") from error
    for name, problem in zip(given, posed, strict=True):
        gaps = [(part.layout.gaps, part.layout.missing) for part in (problem, posed[0])]
        if gaps[0] != gaps[1]:
            raise ValueError(
                f"`models` must agree on which values can be missing; {name!r} and {given[0]!r} "
                f"do not. Wrap both by simulators.with_gaps, or neither."
            )
        if not same_values(problem.x_o, posed[0].x_o):
            raise ValueError(
                f"`models` must return the named values of x in one order; {name!r} has another "
                f"than {given[0]!r}. Reorder what one simulator returns."
            )
    return Models(given, tuple(posed))


def _named(models: Any, names: Sequence[str] | None) -> tuple[tuple[str, ...], list[Any]]:
    if isinstance(models, Mapping):
        if names is not None:
            raise ValueError("`names` are for a list of models; a dict brings its own.")
        found, pairs = tuple(map(str, models)), list(models.values())
    elif isinstance(models, list | tuple):
        pairs = list(models)
        numbered = [f"model_{number + 1}" for number in range(len(pairs))]
        found = tuple(numbered if names is None else map(str, names))
    else:
        raise TypeError(f"`models` must be {_FORM}; got {type(models).__name__}.")
    if len(pairs) < 2:
        raise ValueError(f"`models` must be two or more; got {len(pairs)}. Write {_FORM}.")
    if len(found) != len(pairs) or len(set(found)) != len(found):
        raise ValueError(
            f"`names` must be {len(pairs)} different ones, one a model; got {list(found)}."
        )
    return found, pairs


def _pair(pair: Any) -> tuple[Any, Any]:
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return pair[0], pair[1]
    if callable(pair) and hasattr(pair, "prior"):
        return pair.prior, pair
    got = f"{len(pair)} parts" if isinstance(pair, tuple | list) else type(pair).__name__
    raise TypeError(f"`models` must hold pairs (prior, simulator); got {got}. Write {_FORM}.")


def check_model_prior(model_prior: Any, names: Sequence[str]) -> Tensor:
    """Prior probabilities of the models, (M,), uniform where None.

    Args:
        model_prior: M positive numbers, or a dict of them by name; they are divided by their sum.
        names: of the models.

    Raises:
        ValueError: if they are not M positive numbers, or a name is not one of a model.
    """
    if model_prior is None:
        return torch.full((len(names),), 1.0 / len(names), dtype=torch.float64)
    if isinstance(model_prior, Mapping):
        if set(model_prior) != set(names):
            raise ValueError(
                f"`model_prior` must name the models, {', '.join(names)}; got "
                f"{', '.join(map(str, model_prior))}."
            )
        model_prior = [model_prior[name] for name in names]
    values = as_tensor(model_prior, "model_prior", torch.float64).reshape(-1)
    sound = len(values) == len(names) and bool((values > 0).all() and values.isfinite().all())
    if not sound:
        raise ValueError(
            f"`model_prior` must be {len(names)} positive numbers, one a model; got "
            f"{values.tolist()}. Leave a model that cannot be out of `models`."
        )
    return values / values.sum()
