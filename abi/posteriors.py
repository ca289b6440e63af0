"""The answers of one fit to several observations: a posterior with a verdict for each."""

from __future__ import annotations

import shutil
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import overload

import torch
from torch import Tensor, nn

from simulators.arguments import as_path
from simulators.random import child_seed
from simulators.running.engines import Engine
from validation.results.tables import html_table, text_table
from validation.swaps.words import p_text
from validation.words import plural

from .files.run_folder import POSTERIORS
from .files.storage import read_posterior
from .generators.conditional import ConditionalFlows
from .plan import Plan
from .posterior import ABIPosterior
from .quantiles.kernel import LearnedKernel
from .rounds.judging import moments
from .rounds.plausibility import plausibility
from .rounds.problem import Problem
from .rounds.record import RoundState
from .verdict.record import ALPHA, RARE, Verdict

_PLAUSIBLE = 5  # key of the fit's seed
_HEADER = ["observation", "verdict", "p", "largest bias", "C2ST", "p of x_o"]


@dataclass(frozen=True, eq=False, repr=False)
class Posteriors(Sequence[ABIPosterior]):
    """Posteriors at several observations, as :func:`abi.fit_many` gives them, in their order.

    A sequence: ``posteriors[0]`` is an :class:`ABIPosterior` like any other, and
    ``print(posteriors)`` a table of their verdicts.

    Attributes:
        each: the posteriors.
    """

    each: tuple[ABIPosterior, ...]

    @classmethod
    def after(cls, state: RoundState, plan: Plan, problem: Problem) -> Posteriors:
        """The answers that rounds leave, not yet checked.

        Warns:
            UserWarning: if some observations are unlike the data that the model simulates.
        """
        several = problem.several
        rows = problem.x_o[None] if several is None else several
        each = tuple(
            ABIPosterior.after(read_at(state, x_o, plan, row), plan, problem.at(x_o))
            for row, x_o in enumerate(rows)
        )
        found = cls(each)
        if found.unusual:
            warnings.warn(_doubt(found.unusual, len(each)), stacklevel=5)
        return found

    @property
    def x_o(self) -> Tensor:
        """The observations, (K, p)."""
        return torch.stack([posterior.observation for posterior in self.each])

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """D names."""
        return self.each[0].parameter_names

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Of each posterior."""
        return tuple(posterior.verdict for posterior in self.each)

    @property
    def num_simulations(self) -> int:
        """Simulator calls made in all: those that are shared, and those of every verdict."""
        shared = sum(record.simulator_calls for record in self.each[0].rounds)
        return shared + sum(verdict.num_calls for verdict in self.verdicts)

    @property
    def p_value(self) -> float | None:
        """One p-value of all posteriors being right: the least of theirs, times their number.

        None where none of them was judged.
        """
        known = [p for verdict in self.verdicts if (p := verdict.p_value) is not None]
        return min(1.0, len(known) * min(known)) if known else None

    @property
    def unusual(self) -> list[int]:
        """Places of observations that are unlike the simulated data: p of x_o of .01 or less."""
        each = enumerate(self.verdicts)
        return [k for k, v in each if v.x_o_p_value is not None and v.x_o_p_value <= RARE]

    def checked(
        self, num_calls: int, problem: Problem, engine: Engine, slow_dir: Path | None = None
    ) -> Posteriors:
        """The posteriors tested, each on its share of the calls."""
        ends = [num_calls * k // len(self) for k in range(len(self) + 1)]
        checked = [
            posterior.checked(
                ends[k + 1] - ends[k],
                problem.at(posterior.observation),
                engine,
                None if slow_dir is None else slow_dir / str(k),
            )
            if ends[k + 1] > ends[k] else posterior
            for k, posterior in enumerate(self.each)
        ]  # fmt: skip
        return Posteriors(tuple(checked))

    def save(self, path: str | Path) -> None:
        """Write a folder with a file for each, ``001.safetensors`` and so on; no pickle.

        A folder of that name that holds posteriors is replaced once the new one is whole.
        """
        folder = as_path(path, "path")
        whole = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(whole, ignore_errors=True)
        whole.mkdir(parents=True)
        for number, posterior in enumerate(self.each, 1):
            posterior.save(whole / f"{number:03d}.safetensors")
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)

    @classmethod
    def load(cls, path: str | Path, *, encoder: nn.Module | None = None) -> Posteriors:
        """Read what :meth:`save` wrote, or the answers of a finished run folder.

        Args:
            path: the folder, or the ``run_dir`` of an :func:`abi.fit_many` that has ended.
            encoder: the ``encoder`` module that the fit was given, if any.

        Raises:
            ValueError: if there are none, or one is damaged.
        """
        folder = as_path(path, "path")
        folder = folder / POSTERIORS if (folder / POSTERIORS).is_dir() else folder
        files = sorted(folder.glob("[0-9]*.safetensors"))
        if not files:
            raise ValueError(
                f"`path`: {folder} holds no posteriors; name a folder that posteriors.save wrote, "
                "or the run_dir of an abi.fit_many that has ended."
            )
        return cls(tuple(ABIPosterior(**read_posterior(file, encoder)) for file in files))

    @overload
    def __getitem__(self, index: int) -> ABIPosterior: ...

    @overload
    def __getitem__(self, index: slice) -> Posteriors: ...

    def __getitem__(self, index: int | slice) -> ABIPosterior | Posteriors:
        return Posteriors(self.each[index]) if isinstance(index, slice) else self.each[index]

    def __len__(self) -> int:
        return len(self.each)

    def __repr__(self) -> str:
        return f"Posteriors at {self._counted}"

    def __str__(self) -> str:
        return f"{text_table(self._rows, _HEADER)}\n{self._footing}"

    def _repr_html_(self) -> str:
        return f"{html_table(self._rows, _HEADER)}<p>{escape(self._footing)}</p>"

    @property
    def _counted(self) -> str:
        counts = Counter[str](verdict.outcome for verdict in self.verdicts)
        words = {"passes": "pass", "fails": "fail", "cannot tell": "cannot tell"}
        outcomes = ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts[key])
        calls = plural(self.num_simulations, "simulator call")
        return f"{plural(len(self), 'observation')}, {calls}: {outcomes}"

    @property
    def _footing(self) -> str:
        p_value = self.p_value
        if p_value is None or len(self) == 1:
            return self._counted
        chance = ALPHA * len(self)
        return (
            f"{self._counted}. All of them right? {p_text(p_value)} (least of {len(self)}, "
            f"corrected). Each fails by chance in {ALPHA:.0%}: {chance:.2g} of {len(self)}."
        )

    @property
    def _rows(self) -> list[list[str]]:
        rows = []
        for number, verdict in enumerate(self.verdicts, 1):
            bias = verdict.check.largest_bias
            c2st = verdict.check.expected_c2st
            numbers = (verdict.p_value, bias, c2st, verdict.x_o_p_value)
            cells = ["-" if value is None else f"{value:.2g}" for value in numbers]
            rows.append([str(number), verdict.outcome, *cells])
        return rows


def read_at(state: RoundState, x_o: Tensor, plan: Plan, row: int) -> RoundState:
    """A final state of all observations as that of one of them, (p,): its model is read there.

    Raises:
        TypeError: if its model is no conditional flow, which :func:`abi.fit_many` never fits.
    """
    q, kernel = ConditionalFlows.of(state.model), state.kernel
    if q is None or not isinstance(kernel, LearnedKernel):
        raise TypeError("`state` must hold flows of theta given x, and a learned kernel.")
    model, layout = q.at(x_o), kernel.layout
    seed = child_seed(plan.seed, 0, _PLAUSIBLE, row)
    record = replace(
        state.records[-1],
        x_o_p_value=plausibility(state.x, x_o, seed, kernel.encoder, layout),
        answer=moments(model),
    )
    records = (*state.records[:-1], record)
    return replace(state, model=model, kernel=replace(kernel, x_o=x_o), records=records)


def _doubt(places: Sequence[int], number: int) -> str:
    some = ", ".join(str(place + 1) for place in places[:5]) + (", ..." if len(places) > 5 else "")
    return (
        f"`observations`: {len(places)} of {number} are unusual for this model (number {some}): "
        "check their units, the order of their values and the model; their answers are an "
        "extrapolation unless they are just rare."
    )
