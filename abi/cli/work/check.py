"""What ``abi check`` asks: the problem of a fit posed again, and an engine that tells of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulators.running.batches import BatchResult
from simulators.running.engines import Engine

from ...files.origin import from_origin
from ...files.run_folder import RunFolder
from ...posterior import ABIPosterior
from ...quantiles.kernel import layout_of
from ...rounds.problem import Problem, posed_again
from .loading import load_instance, load_prior


def problem_of(
    path: Path, posterior: ABIPosterior, simulator: str | None, prior: str | None
) -> Problem:
    """Prior and simulator as named here, or as the run names them."""
    model, theta_prior = found_simulator_and_prior(path, simulator, prior)
    known = None, model, theta_prior, posterior.x_o, posterior.parameter_names
    return posed_again(*known, layout=layout_of(posterior.kernel))


def found_simulator_and_prior(
    path: Path, simulator: str | None, prior: str | None
) -> tuple[Any, Any]:
    """Both as named here, or as the run names them."""
    named = RunFolder.open(path).request()[3] if path.is_dir() else {"prior": "task"}
    model = load_instance(simulator, "--simulator") if simulator else _found(named, "simulator")
    own = prior is None and named["prior"] != "task"
    return model, _found(named, "prior") if own else load_prior(model, prior)


def _found(origin: dict[str, Any], what: str) -> Any:
    """The prior or the simulator that a run names, or what to type where it names none."""
    if origin.get(what) is None:
        spec = origin.get("named", {}).get(what) or "module:object"
        raise ValueError(
            f"`--{what}` must name the {what}, which the fit does not: --{what} {spec}."
        )
    other = object()  # is not looked for
    if what == "prior":
        return from_origin(origin, None, other)[0]
    return from_origin(origin, other, None)[1]


@dataclass(frozen=True)
class Counted:
    """An engine that tells of every row that is done."""

    engine: Engine
    advance: Callable[[], None]

    @property
    def workers(self) -> int:
        """Those of the engine."""
        return self.engine.workers

    def run(self, simulator: Any, batches: Any, timeout: Any = None) -> Iterator[BatchResult]:
        """What the engine gives, told row by row."""
        for result in self.engine.run(simulator, batches, timeout):
            for _ in range(len(result.index) + len(result.failures)):
                self.advance()
            yield result

    def close(self) -> None:
        """End the engine."""
        self.engine.close()
