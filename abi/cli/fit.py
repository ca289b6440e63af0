"""``abi fit``: infer the parameters of a simulator from one observation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .ending import Json, Strict, can_draw, print_json, resumable


def fit_command(
    simulator: Annotated[
        str | None,
        typer.Option(help="module:object, for example simulators:MG1 or mymodule:simulate."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "--run-dir", help="Folder for the results; it must not hold a run."),
    ] = None,
    prior: Annotated[
        str | None, typer.Option(help="module:object; the simulator's own when omitted.")
    ] = None,
    observed: Annotated[
        Path | None,
        typer.Option(help="x_o as .npy, .npz or .csv; the simulator's default when omitted."),
    ] = None,
    simulations: Annotated[
        Path | None,
        typer.Option(help="A store of abi simulate: the first round takes its rows as they are."),
    ] = None,
    num_simulations: Annotated[
        int | None, typer.Option(min=1, help="Budget of simulator calls. [20000]")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds that share the budget. [4, or 2 of a small one]")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything. [0]")] = None,
    check_fraction: Annotated[
        float | None,
        typer.Option(help="Share of the budget that checks the answer. [0.07]"),
    ] = None,
    stop_when: Annotated[
        str | None,
        typer.Option(help="passes, or a largest bias in sds: end once the answer is so good."),
    ] = None,
    num_samples: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Posterior draws to write.")
    ] = 10_000,
    paper: Annotated[bool, typer.Option("--paper", help="The algorithm as published.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes that simulate.")] = 1,
    timeout: Annotated[float | None, typer.Option(help="Seconds a simulation may take.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Where the networks train, such as cuda: the CPU.")
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
    """Infer the parameters of a simulator from one observation; a verdict ends the answer.

    OUT then holds samples.csv, summary.json, rounds.csv, marginals.png,
    posterior.safetensors, and one file a round to go on from.
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
        model, folder, work = continued(further, simulator, prior, asked, device)
    else:
        model, folder, work = opened(
            out, observed, simulations, named, asked, paper, device, resume
        )
    plan, problem = work.plan, work.problem
    state = folder.last_state(plan, problem.x_o, None)
    done = named | {"rounds": plan.num_rounds, "num_simulations": plan.num_simulations}
    with resumable("" if further else "--resume"):
        posterior = checked_further(folder.path, state, plan)
        if posterior is None:
            pace = Pace(workers, timeout, progress)
            posterior = run(work, folder, state, pace, ABIPosterior.after)
        samples = posterior.sample((num_samples,), seed=posterior.seed)
        write_answer(posterior, samples, folder.path)  # before anything else may fail
        exact = try_exact(getattr(model, "reference_posterior", None), problem.x_o, num_samples)
        summary = summarise(posterior, samples, exact, done)
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
