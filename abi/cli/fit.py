"""``abi fit``: infer the parameters of a simulator from one observation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .ending import Json, Strict, Timeout, Workers, can_draw, print_json, resumable


def fit_command(
    simulator: Annotated[
        str | None,
        typer.Option(help="module:object: mymodule:simulate, or simulators:MG1 of this package."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "--run-dir", help="Folder for the results; new, but for --resume."),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="module:object, such as mymodule:prior; the simulator's own when omitted."
        ),
    ] = None,
    observed: Annotated[
        Path | None,
        typer.Option(
            help="The observation x_o: .npy, .npz or .csv; the simulator's default when omitted."
        ),
    ] = None,
    simulations: Annotated[
        Path | None,
        typer.Option(help="A store of abi simulate, for the first round to use."),
    ] = None,
    num_simulations: Annotated[
        int | None, typer.Option(min=1, help="Most simulator calls to make. [20000]")
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(help="Rounds that share the calls. [4; 3 below 2000, 2 below 750; or more]"),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything random. [0]")] = None,
    check_fraction: Annotated[
        float | None,
        typer.Option(help="Share of the calls kept for testing the answer. [0.07]"),
    ] = None,
    stop_when: Annotated[
        str | None,
        typer.Option(help="End early: passes, or the largest bias to bear, in posterior sds."),
    ] = None,
    num_samples: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Posterior draws to write.")
    ] = 10_000,
    paper: Annotated[bool, typer.Option("--paper", help="Use the algorithm as published.")] = False,
    workers: Workers = 1,
    timeout: Timeout = None,
    device: Annotated[
        str | None, typer.Option(help="Where the networks train, such as cuda. [the CPU]")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in OUT.")] = False,
    further: Annotated[
        Path | None,
        typer.Option(
            "--continue",
            metavar="RUN_DIR",
            help="Add --num-simulations calls to the run in RUN_DIR, which has ended.",
        ),
    ] = None,
    progress: Annotated[bool, typer.Option(help="Show live progress.")] = True,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Infer the parameters of a simulator from one observation, with a verdict on the answer.

    The folder OUT then holds samples.csv, summary.json, rounds.csv,
    marginals.png, posterior.safetensors, and a file for each round,
    from which --resume goes on.
    """
    from simulators.running.engines import check_workers

    from ..course import Pace, run
    from ..posterior import ABIPosterior
    from ..report.summary import summarise, write_answer
    from .work.continued import check_no_new_run, continued
    from .work.fit import draw, opened, print_next_steps, print_table, try_exact
    from .work.resumed import checked_further

    check_workers(workers, timeout)  # before anything is written
    named = {"prior": prior, "simulator": simulator}
    asked: dict[str, Any] = {
        "--num-simulations": num_simulations,
        "--rounds": rounds,
        "--seed": seed,
    }
    asked |= {"--check-fraction": check_fraction, "--stop-when": _bias_or_word(stop_when)}
    if further is not None:
        others = {"--out": out, "--observed": observed, "--simulations": simulations}
        check_no_new_run(others | {"--paper": paper, "--resume": resume})
        model, folder, work = continued(further, simulator, prior, asked, device, timeout)
    else:
        model, folder, work = opened(
            out, observed, simulations, named, asked, paper, device, timeout, resume
        )
    plan, problem = work.plan, work.problem
    state = folder.last_state(plan, problem.x_o, None)
    with resumable("" if further else "--resume"):
        posterior = checked_further(folder.path, state, plan)
        if posterior is None:
            pace = Pace(workers, timeout, progress)
            posterior = run(work, folder, state, pace, ABIPosterior.after)
        samples = posterior.sample((num_samples,), seed=posterior.seed)
        write_answer(posterior, samples, folder.path)  # before anything else may fail
        exact = try_exact(getattr(model, "reference_posterior", None), problem.x_o, num_samples)
        done = {"rounds": len(posterior.rounds), "num_simulations": plan.num_simulations}
        summary = summarise(posterior, samples, exact, named | done)
        folder.write_json("summary.json", summary)
        picture = draw(folder.path, posterior, problem, samples, exact) if can_draw() else None
    if as_json:
        print_json(summary)
    else:
        print_table(samples, exact, posterior)
        typer.echo(str(posterior.verdict))
        print_next_steps(posterior, folder.path)
        if picture is not None:
            typer.echo(f"picture: {picture}")
    raise typer.Exit(int(strict and posterior.verdict.outcome == "fails"))


def _bias_or_word(text: str | None) -> Any:
    """A number where it is one; what else may stand there, the plan knows."""
    try:
        return text and float(text)
    except ValueError:
        return text
