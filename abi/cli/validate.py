"""``abi validate``: may this posterior be trusted? One table, JSON, pictures, an exit status."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from torch import Tensor

from simulators import load_store
from simulators.random import child_seed

from ..files.run_folder import posterior_file
from ..posterior import ABIPosterior, load
from ..rounds.judging import why_at_x_o_alone
from .ending import Json, check_installed, print_json
from .loading import load_array, load_instance

_JOINT = "Joint draws from prior and simulator that the posterior was not trained on: "


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
        Path | None,
        typer.Option("--x-o", help="Of the local tests, (p,) or (m, p); that of a fit if omitted"),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", "-m", autocompletion=_methods, help="A test, or several; all if omitted"
        ),
    ] = None,
    alpha: Annotated[float, typer.Option(help="Level over all tests together")] = 0.05,
    num_samples: Annotated[int, typer.Option(help="Draws of the posterior an observation")] = 200,
    controls: Annotated[
        bool, typer.Option("--controls", help="Test what is wrong on purpose too; thrice the time")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of everything random")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write the results: .json, or .html, a page")
    ] = None,
    plots: Annotated[Path | None, typer.Option(help="Write a picture of each test here")] = None,
    as_json: Json = False,
) -> None:
    """Test a posterior; exit status 0: no test rejects it, 1: one does, 2: a mistake.

    A fit is tested on the pairs of its check where no others are given.
    """
    import validation
    from validation.methods.together import LOCAL

    from ..report.validated import identity_of

    if out is not None and out.suffix not in (".json", ".html"):  # before the work, not after it
        raise ValueError(f"`--out` must end in .json (data) or .html (a page); got {out.name}.")
    if out is not None and out.suffix == ".html":
        check_installed(f"--out {out.name}", "matplotlib", "jinja2")
    if plots is not None:
        check_installed("--plots", "matplotlib")
    if sum(given is not None for given in (path, posterior, samples)) != 1:
        raise ValueError("one of `path`, `--posterior` and `--samples` must be given, and no two.")
    _refuse_unused(samples is None, layout, data, theta, x)
    q = _posterior(path or posterior, samples, layout)
    fit = q if isinstance(q, ABIPosterior) else None
    if fit is not None and data is None and theta is None and x is None:
        q, theta_rows, x_rows = _own_pairs(fit, str(path or posterior), num_samples, seed)
    else:
        theta_rows, x_rows = _pairs(data or samples, theta, x)
    observed = None if x_o is None else _observations(x_o, x_rows)
    if observed is None and fit is not None and set(method or LOCAL) & set(LOCAL):
        observed = fit.x_o
    about: dict[str, Any] = {}
    if fit is not None:
        about = {"parameter_names": fit.parameter_names, "of": identity_of(fit)}
    report = validation.validate(
        q,
        theta_rows,
        x_rows,
        method or None,
        observed,
        alpha=alpha,
        num_samples=num_samples,
        controls=controls,
        seed=seed,
        progress=True,
    )
    if as_json:
        print_json(report.to_dict())
    else:
        typer.echo(str(report))
    if out is not None:
        report.save(out, **about)
    if plots is not None:
        report.save_plots(plots)
    raise typer.Exit(1 if report.rejected else 0)


def _refuse_unused(
    fitted: bool, layout: str | None, data: Path | None, theta: Path | None, x: Path | None
) -> None:
    """Refuse what would be left unread without a word."""
    if fitted and layout is not None:
        raise ValueError("`--layout` is of `--samples`; leave it out with a posterior.")
    if data is not None and (theta is not None or x is not None):
        raise ValueError("`--data` holds theta and x; give it, or `--theta` and `--x`, not both.")


def _own_pairs(
    fit: ABIPosterior, spec: str, num_samples: int, seed: int
) -> tuple[Any, Tensor, Tensor]:
    """q, theta and x of the check's pairs, with draws enough for the tests and their frames."""
    from validation.scores.frames import num_frame_draws

    if fit.answer is None:
        raise ValueError(f"`path`: {spec} answers at its x_o alone: {why_at_x_o_alone(fit)}.")
    if fit.pairs is None:
        cure = f"draw some with abi check {shlex.quote(spec)}, or give --data"
        raise ValueError(f"`path`: {spec} holds no check pairs; {cure}.")
    num_draws = num_samples + num_frame_draws(fit.theta_dim)
    return fit.check_pairs(num_draws, seed=child_seed(seed, 0))


def _observations(path: Path, x: Tensor) -> Tensor:
    """Observations (m, p) or (p,); a column of as many lines as x (n, p) has values is one."""
    observed = load_array(path, "--x-o")
    column = path.suffix in (".csv", ".txt") and observed.shape == (*x.shape[1:], 1)
    return observed.reshape(-1) if column else observed


def _posterior(spec: str | None, samples: Path | None, layout: str | None) -> Any:
    """The fit at a path, the posterior that was named, or the stored samples."""
    from validation import as_posterior

    if spec is not None and (":" not in spec or Path(spec).exists()):
        return load(posterior_file(Path(spec)))
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
