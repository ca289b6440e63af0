"""``abi report``: fits, validations and power maps on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simulators.lazy import check_installed

from .ending import print_json, verdict_words
from .options import InPlace, Json, Seed


def report_command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Run folders, saved posteriors (.safetensors), saved validations and power maps "
            "(.json)."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    simulator: InPlace = None,
    prior: InPlace = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(help="A parameter to draw in full; repeat for several."),
    ] = None,
    num_samples: Annotated[
        int | None,
        typer.Option(
            min=100, help="Posterior draws; when omitted 10,000, or 2,000 with 100 parameters."
        ),
    ] = None,
    num_predictive: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Simulations at posterior draws: 0, or at least 20; 200 when omitted, fewer if "
            "slow.",
        ),
    ] = None,
    reference: Annotated[
        bool, typer.Option(help="Draw the exact posterior where the simulator knows it.")
    ] = True,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write one page that shows fits and validations: open it in any browser, print it, send it.

    The exit status is 0 whatever the verdict; --json prints the verdict and its evidence.
    """
    from ..files.origin import load_instance
    from ..pictures.predicted import LEAST
    from ..report.assemble import write_page
    from ..report.sources import Wanted

    check_installed("abi report", "matplotlib", "jinja2")
    if num_predictive is not None and 0 < num_predictive < LEAST:
        raise ValueError(
            f"`--num-predictive` must be 0, for none, or at least {LEAST}; got {num_predictive}."
        )

    wanted = Wanted(
        num_samples,
        seed,
        None if prior is None else load_instance(prior, "--prior"),
        None if simulator is None else load_instance(simulator, "--simulator"),
        reference,
    )
    made = write_page(paths, out, title, tuple(parameter or ()), wanted, num_predictive)
    if as_json:
        print_json(made)
        return
    for line in (*made["verdict"]["warnings"], made["verdict"]["headline"]):
        typer.echo(verdict_words(line, paths[0]) if len(paths) == 1 else line)
    typer.echo(f"{out}: {made['bytes'] / 1e6:.2f} MB")
