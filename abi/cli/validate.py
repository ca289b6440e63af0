"""``abi validate``: may this posterior be trusted? One table, JSON, pictures, an exit status."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from torch import Tensor

from simulators import load_store

from .ending import Json, check_installed, print_json
from .loading import load_array, load_instance

_JOINT = "Joint draws from prior and simulator that the posterior was not trained on: "


def _methods(incomplete: str) -> list[str]:
    """Names of tests, for the shell's completion."""
    from validation import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


def validate_command(
    posterior: Annotated[
        str | None,
        typer.Option(help="module:object: an sbi posterior, a flow, (num_samples, x) -> samples"),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(help="In place of a posterior: .npz with theta, x, samples (and weights)"),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            help="Of the samples: samples_first (L, n, d) or observations_first (n, L, d)"
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help=_JOINT + ".npz with theta and x, or a store")
    ] = None,
    theta: Annotated[Path | None, typer.Option(help=_JOINT + "theta (N, d)")] = None,
    x: Annotated[Path | None, typer.Option(help=_JOINT + "x (N, p)")] = None,
    x_o: Annotated[
        Path | None, typer.Option("--x-o", help="Observations for the local tests, (p,) or (m, p)")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            autocompletion=_methods,
            help="A test, or several; all if omitted",
        ),
    ] = None,
    alpha: Annotated[float, typer.Option(help="Level over all tests together")] = 0.05,
    num_samples: Annotated[int, typer.Option(help="Draws of the posterior an observation")] = 200,
    seed: Annotated[int, typer.Option(help="Of everything random")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write the results: .json, or .html, a page")
    ] = None,
    plots: Annotated[Path | None, typer.Option(help="Write a picture of each test here")] = None,
    as_json: Json = False,
) -> None:
    """Test a posterior; exit status 0: no test rejects it, 1: one does, 2: a mistake."""
    import validation

    if out is not None and out.suffix not in (".json", ".html"):  # before the work, not after it
        raise ValueError(f"`--out` must end in .json (data) or .html (a page); got {out.name}.")
    if out is not None and out.suffix == ".html":
        check_installed(f"--out {out.name}", "matplotlib", "jinja2")
    if plots is not None:
        check_installed("--plots", "matplotlib")
    _refuse_unused(posterior, layout, data, theta, x)
    q = _posterior(posterior, samples, layout)
    theta_rows, x_rows = _pairs(data or samples, theta, x)
    observed = None if x_o is None else _observations(x_o, x_rows)
    report = validation.validate(
        q,
        theta_rows,
        x_rows,
        method or None,
        observed,
        alpha=alpha,
        num_samples=num_samples,
        seed=seed,
        progress=True,
    )
    if as_json:
        print_json(report.to_dict())
    else:
        typer.echo(str(report))
    if out is not None:
        report.save(out)
    if plots is not None:
        report.save_plots(plots)
    raise typer.Exit(1 if report.rejected else 0)


def _refuse_unused(
    spec: str | None, layout: str | None, data: Path | None, theta: Path | None, x: Path | None
) -> None:
    """Refuse what would be left unread without a word."""
    if spec is not None and layout is not None:
        raise ValueError("`--layout` is of `--samples`; leave it out with `--posterior`.")
    if data is not None and (theta is not None or x is not None):
        raise ValueError("`--data` holds theta and x; give it, or `--theta` and `--x`, not both.")


def _observations(path: Path, x: Tensor) -> Tensor:
    """Observations (m, p) or (p,); a column of as many lines as x (n, p) has values is one."""
    observed = load_array(path, "--x-o")
    column = path.suffix in (".csv", ".txt") and observed.shape == (*x.shape[1:], 1)
    return observed.reshape(-1) if column else observed


def _posterior(spec: str | None, samples: Path | None, layout: str | None) -> Any:
    """The posterior that was named, or the stored samples."""
    from validation import as_posterior

    if (spec is None) == (samples is None):
        raise ValueError("`--posterior` or `--samples` must be given, and not both.")
    if samples is None:
        return as_posterior(load_instance(str(spec), "--posterior"), progress=True)
    parts = [load_array(samples, "--samples", key) for key in ("theta", "x", "samples")]
    weights = load_array(samples, "--samples", "weights") if _holds(samples, "weights") else None
    return as_posterior(tuple(parts), layout=layout, weights=weights)  # type: ignore[arg-type]


def _pairs(data: Path | None, theta: Path | None, x: Path | None) -> tuple[Any, Any]:
    """The joint draws, from one .npz or from two files."""
    if theta is not None and x is not None:
        return load_array(theta, "--theta"), load_array(x, "--x")
    if theta is not None or x is not None or data is None:
        raise ValueError("`--data` with theta and x, or `--theta` and `--x`, must be given.")
    if data.is_dir():  # a store of abi simulate
        kept = load_store(data)
        return kept.theta, kept.x
    return load_array(data, "--data", "theta"), load_array(data, "--data", "x")


def _holds(path: Path, key: str) -> bool:
    """Whether an .npz has this array."""
    import numpy as np

    with np.load(path, allow_pickle=False) as arrays:
        return key in arrays.files
