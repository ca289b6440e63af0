"""``abi fit``: infer the parameters of a simulator from one observation."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .ending import can_draw, print_json, resumable, verdict_words, warn
from .options import Json, OwnPrior, Progress, Strict, Timeout, Workers

if TYPE_CHECKING:
    from torch import Tensor

    from ..posterior import ABIPosterior


def fit_command(
    simulator: Annotated[
        str | None,
        typer.Option(
            help="module:object, such as mymodule:simulate, or simulators:MG1 of this package."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "--run-dir", help="Folder for the results; a new one, except with --resume."
        ),
    ] = None,
    prior: OwnPrior = None,
    observed: Annotated[
        Path | None,
        typer.Option(
            help="The observation x_o: .npy, .npz or .csv; the simulator's default when omitted."
        ),
    ] = None,
    simulations: Annotated[
        Path | None,
        typer.Option(
            help="A store of abi simulate; the first round uses it instead of simulating."
        ),
    ] = None,
    num_simulations: Annotated[
        int | None, typer.Option(min=1, help="Simulator calls, at most. [20000]")
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Rounds that share the calls. [4; 3 below 2000 calls, 2 below 750; more if needed]"
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything random. [0]")] = None,
    check_fraction: Annotated[
        float | None,
        typer.Option(help="Share of the calls kept for testing the answer. [0.07]"),
    ] = None,
    stop_when: Annotated[
        str | None,
        typer.Option(
            help="End early: at 'passes', or at the largest bias you accept, in posterior sds."
        ),
    ] = None,
    num_samples: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Posterior draws to write.")
    ] = 10_000,
    paper: Annotated[bool, typer.Option("--paper", help="Use the algorithm as published.")] = False,
    workers: Workers = 1,
    timeout: Timeout = None,
    device: Annotated[
        str | None,
        typer.Option(help="Where the networks train, such as cuda; the CPU when omitted."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the interrupted run in OUT.")
    ] = False,
    further: Annotated[
        Path | None,
        typer.Option(
            "--continue",
            metavar="RUN_DIR",
            help="Add --num-simulations calls to the finished run in RUN_DIR.",
        ),
    ] = None,
    progress: Progress = True,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Infer the parameters of a simulator from one observation, with a verdict on the answer.

    It writes samples.csv, summary.json, rounds.csv, marginals.png and
    posterior.safetensors into the folder OUT, and a file for each round,
    from which --resume continues.
    """
    from simulators.running.engines import check_workers

    from ..course import Pace, run
    from ..pictures.fit import exact_draws
    from ..posterior import ABIPosterior
    from ..report.plotting import plot_answer
    from ..report.summary import summarise, write_answer
    from ..saved import checked_further
    from .work.fit import opened

    check_workers(workers, timeout)  # before anything is written
    words: dict[str, Any] = {
        "--simulator": simulator,
        "--prior": prior,
        "--out": out,
        "--observed": observed,
        "--simulations": simulations,
        "--num-simulations": num_simulations,
        "--rounds": rounds,
        "--seed": seed,
        "--check-fraction": check_fraction,
        "--stop-when": _bias_or_word(stop_when),
        "--paper": paper,
        "--resume": resume,
        "--continue": further,
    }
    model, folder, work = opened(words, device, timeout)
    plan, problem = work.plan, work.problem
    state = folder.last_state(plan, problem.x_o, None)
    with resumable("" if further else "--resume"):
        pace = Pace(workers, timeout, progress)
        kept = checked_further(folder.path, state, plan)
        posterior = kept or run(work, folder, state, pace, ABIPosterior.after)
        samples = posterior.sample((num_samples,), seed=posterior.seed)
        write_answer(posterior, samples, folder.path)  # before anything else may fail
        exact = exact_draws(model, problem.x_o, num_samples, _no_exact)
        told: dict[str, Any] = {"prior": prior, "simulator": simulator}
        told |= {"rounds": len(posterior.rounds), "num_simulations": plan.num_simulations}
        summary = summarise(posterior, samples, exact, told)
        folder.write_json("summary.json", summary)
        drawn = posterior, problem, samples, exact, folder.path
        picture = plot_answer(*drawn) if can_draw() else None
    if as_json:
        print_json(summary)
    else:
        _print_table(posterior, samples, exact)
        _print_verdict(posterior, folder.path, picture)
    raise typer.Exit(int(strict and posterior.verdict.outcome == "fails"))


def _bias_or_word(text: str | None) -> Any:
    """A number where it is one; what else may stand there, the plan knows."""
    try:
        return text and float(text)
    except ValueError:
        return text


def _no_exact(error: Exception) -> None:
    warn(f"no exact posterior at this x_o: {type(error).__name__}: {error}")


def _print_verdict(posterior: ABIPosterior, run_dir: Path, picture: Path | None) -> None:
    """Print the verdict, what would sharpen it, what more calls would bring, and the picture."""
    path, verdict = shlex.quote(str(run_dir)), posterior.verdict
    typer.echo(verdict_words(verdict, run_dir))
    if verdict.outcome == "cannot tell" and posterior.answer is not None:
        typer.echo(f"more pairs for the verdict: abi check {path}")
    if verdict.more_calls is not None:
        typer.echo(f"{verdict.more_calls}: abi fit --continue {path} --num-simulations 5000")
    if picture is not None:
        typer.echo(f"picture: {picture}")


def _print_table(posterior: ABIPosterior, samples: Tensor, exact: Tensor | None) -> None:
    """Print samples (n, d) in numbers, and those of the exact posterior (m, d) beside them."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..report.summary import described, mean_and_sd

    title = f"posterior after {posterior.num_simulations:,} simulator calls"
    table = Table(title=title, min_width=len(title))
    table.add_column("parameter", no_wrap=True)
    columns = []
    for name, draws in (("ABI", samples), ("exact", exact)):
        if draws is not None:
            table.add_column(f"{name} mean ± sd", no_wrap=True, justify="right")
            columns.append(described(draws, posterior.parameter_names))
    for name in posterior.parameter_names:
        # As text: in rich's markup a name such as "mass [kg]" would lose its unit.
        numbers = (mean_and_sd(column[name].mean, column[name].sd) for column in columns)
        table.add_row(Text(name), *numbers)
    Console().print(table)
