"""``abi check``: judge a fit by more pairs, and keep the sharper verdict with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from simulators.running.batches import BatchResult
from simulators.running.engines import Engine, check_workers, open_engine

from ..files.origin import from_origin
from ..files.run_folder import RunFolder, posterior_file
from ..posterior import ABIPosterior, load
from ..rounds.judging import why_at_x_o_alone
from ..rounds.problem import Problem, posed_again
from .ending import InPlace, Json, Strict, print_json
from .loading import load_instance, load_prior


def check_command(
    path: Annotated[Path, typer.Argument(help="A run folder, or a saved posterior.")],
    num_simulations: Annotated[int, typer.Option(min=1, help="More simulator calls.")] = 600,
    simulator: InPlace = None,
    prior: InPlace = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that simulate.")] = 1,
    timeout: Annotated[float | None, typer.Option(help="Seconds a simulation may take.")] = None,
    progress: Annotated[bool, typer.Option(help="Show live progress.")] = True,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Judge the answer of a fit by more simulations, which no training saw.

    The saved posterior and summary.json then hold all the pairs and what they say;
    the answer itself stays as it is. Ctrl-C leaves everything as it was.
    """
    from validation.posteriors.protocol import progress_bar

    check_workers(workers, timeout)
    file = posterior_file(path)
    posterior = load(file)
    if posterior.answer is None:
        raise ValueError(f"`path`: {file} cannot be checked: {why_at_x_o_alone(posterior)}.")
    problem = _problem(path, posterior, simulator, prior)
    engine = open_engine(workers, timeout)
    try:
        with progress_bar(num_simulations, "checking the answer", progress) as advance:
            checked = posterior.checked(num_simulations, problem, _Counted(engine, advance))
    except KeyboardInterrupt:
        typer.secho(f"\nabi: interrupted; {file} is as it was", err=True, fg=typer.colors.YELLOW)
        raise typer.Exit(130) from None
    finally:
        engine.close()
    checked.save(file)
    verdict, calls = checked.verdict, checked.num_simulations
    told = {"simulator_calls": calls, "verdict": verdict.to_dict()}
    if path.is_dir():
        RunFolder(path).update_json("summary.json", told)
    if as_json:
        print_json({"posterior": str(file), **told})
    else:
        failed = f", {verdict.failures:,} of them failed" if verdict.failures else ""
        typer.echo(f"{file}: {verdict.num_calls:,} of {calls:,} calls check the answer{failed}")
        typer.echo(str(verdict))
    raise typer.Exit(int(strict and verdict.outcome == "fails"))


def _problem(
    path: Path, posterior: ABIPosterior, simulator: str | None, prior: str | None
) -> Problem:
    """Prior and simulator as named here, or as the run names them."""
    named = RunFolder.open(path).request()[3] if path.is_dir() else {"prior": "task"}
    model = load_instance(simulator, "--simulator") if simulator else _found(named, "simulator")
    own = prior is None and named["prior"] != "task"
    theta_prior = _found(named, "prior") if own else load_prior(model, prior)
    return posed_again(None, model, theta_prior, posterior.x_o, posterior.parameter_names)


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
class _Counted:
    """An engine that tells of every row that is done."""

    engine: Engine
    advance: Callable[[], None]

    @property
    def workers(self) -> int:
        return self.engine.workers

    def run(self, simulator: Any, batches: Any, timeout: Any = None) -> Iterator[BatchResult]:
        for result in self.engine.run(simulator, batches, timeout):
            for _ in range(len(result.index) + len(result.failures)):
                self.advance()
            yield result

    def close(self) -> None:
        self.engine.close()
