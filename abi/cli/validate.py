"""``abi validate``: may this posterior be trusted? One p-value, JSON, pictures, an exit status."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from simulators.lazy import check_installed

from .ending import print_json
from .options import Json

_JOINT = "Pairs from prior and simulator that the posterior was not trained on: "


def _methods(incomplete: str) -> list[str]:
    """Names of tests, for the shell's completion."""
    from validation import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


def validate_command(
    path: Annotated[
        str | None, typer.Argument(help="A run folder of abi fit, or a saved posterior")
    ] = None,
    posterior: Annotated[
        str | None,
        typer.Option(
            help="module:object: an sbi posterior, a flow, a function (num_samples, x) -> draws"
        ),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            help="Draws made before, instead of a posterior: .npz with theta, x, samples (weights)"
        ),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            help="Axes of the samples: samples_first (L, n, d) or observations_first (n, L, d)"
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help=_JOINT + ".npz with theta and x, or a store")
    ] = None,
    theta: Annotated[Path | None, typer.Option(help=_JOINT + "theta (N, d)")] = None,
    x: Annotated[Path | None, typer.Option(help=_JOINT + "x (N, p)")] = None,
    x_o: Annotated[
        Path | None,
        typer.Option(
            "--x-o",
            help="Test at this observation (p,); local tests (--method) also take several, (m, p)",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            autocompletion=_methods,
            help="A test; repeat for several, or all; the panel, with one p-value, if omitted",
        ),
    ] = None,
    alpha: Annotated[float, typer.Option(help="Level at which the posterior is rejected")] = 0.05,
    num_samples: Annotated[
        int | None,
        typer.Option(help="Draws of the posterior at each x; each test's own number if omitted"),
    ] = None,
    controls: Annotated[
        bool,
        typer.Option(
            "--controls", help="Also test two wrong posteriors; takes three times as long"
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of everything random")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write the results as .json, or as a page, .html")
    ] = None,
    plots: Annotated[Path | None, typer.Option(help="Folder for a plot of each test")] = None,
    as_json: Json = False,
) -> None:
    """Test whether a posterior can be trusted. Exit status 0: not rejected, 1: rejected.

    A fit is tested on the pairs behind its verdict, unless you give others.
    """
    if out is not None and out.suffix not in (".json", ".html"):  # before the work, not after it
        raise ValueError(f"`--out` must end in .json (data) or .html (a page); got {out.name}.")
    if out is not None and out.suffix == ".html":
        check_installed(f"--out {out.name}", "matplotlib", "jinja2")
    if plots is not None:
        check_installed("--plots", "matplotlib")
    if sum(given is not None for given in (path, posterior, samples)) != 1:
        raise ValueError(
            "one of `path`, `--posterior` and `--samples` must be given, and no two: abi validate "
            "runs/mine tests a fit."
        )
    if samples is None and layout is not None:  # what would be left unread without a word
        raise ValueError("`--layout` is of `--samples`; leave it out with a posterior.")
    if data is not None and (theta is not None or x is not None):
        raise ValueError("`--data` holds theta and x; give it, or `--theta` and `--x`, not both.")

    from validation import validate, validate_at

    from ..report.validated import identity_of
    from .work.validate import observations, tested

    methods = "all" if method == ["all"] else method or None
    given = path or posterior, samples, layout, data, theta, x
    q, theta_rows, x_rows, fit = tested(*given, methods, num_samples, seed)
    here = observations(x_o, x_rows, fit, method)
    asked: dict[str, Any] = {"alpha": alpha, "num_samples": num_samples, "controls": controls}
    asked |= {"seed": seed, "progress": True}
    if here is not None and not method:
        report = validate_at(q, theta_rows, x_rows, here, **asked)
    else:
        report = validate(q, theta_rows, x_rows, methods, here, **asked)
    if as_json:
        print_json(report.to_dict())
    else:
        typer.echo(str(report))
    if out is not None:
        names = None if fit is None else fit.parameter_names
        report.save(out, parameter_names=names, of=None if fit is None else identity_of(fit))
    if plots is not None:
        report.save_plots(plots)
    raise typer.Exit(1 if report.rejects else 0)
