"""``abi check``: judge a fit by more pairs, and keep the sharper verdict with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .ending import print_json, verdict_words, warn
from .options import InPlace, Json, Progress, Strict, Timeout, Workers


def check_command(
    path: Annotated[Path, typer.Argument(help="A run folder, or a saved posterior.")],
    num_simulations: Annotated[int, typer.Option(min=1, help="Simulator calls to spend.")] = 600,
    simulator: InPlace = None,
    prior: InPlace = None,
    workers: Workers = 1,
    timeout: Timeout = None,
    progress: Progress = True,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Test the answer of a fit on more simulations, for a sharper verdict.

    The new pairs and the new verdict are added to the saved posterior and to
    summary.json; the answer itself does not change. Ctrl-C leaves everything as it was.
    """
    from simulators.running.engines import Counted, check_workers, open_engine
    from validation.posteriors.protocol import progress_bar

    from ..files.run_folder import RunFolder, posterior_file
    from ..quantiles.kernel import layout_of
    from ..rounds.judging import why_at_x_o_alone
    from ..rounds.problem import posed_again
    from ..saved import load
    from .work.named import simulator_and_prior

    check_workers(workers, timeout)
    file = posterior_file(path)
    posterior = load(file)
    if posterior.answer is None:
        raise ValueError(f"`path`: {file} cannot be checked: {why_at_x_o_alone(posterior)}.")
    origin = RunFolder.open(path).request()[3] if path.is_dir() else {"prior": "task"}
    engine = open_engine(workers, timeout)
    try:
        known = None, *simulator_and_prior(simulator, prior, origin)
        asked = posterior.x_o, posterior.parameter_names
        problem = posed_again(*known, *asked, layout=layout_of(posterior.kernel))
        with progress_bar(num_simulations, "checking the answer", progress) as advance:
            checked = posterior.checked(num_simulations, problem, Counted(engine, advance))
    except KeyboardInterrupt:
        warn(f"\nabi: interrupted; {file} is as it was")
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
        typer.echo(verdict_words(verdict, path))
    raise typer.Exit(int(strict and verdict.outcome == "fails"))
