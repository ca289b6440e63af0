"""What ``abi validate`` tests: a posterior, the pairs, and where the local tests look."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from torch import Tensor

from simulators import load_store
from simulators.random import child_seed
from validation.methods.together import LOCAL
from validation.run import draws_needed

from ...files.arrays import holds_array, load_array
from ...files.origin import load_instance
from ...files.run_folder import posterior_file
from ...posterior import ABIPosterior
from ...quantiles.kernel import layout_of
from ...rounds.judging import why_at_x_o_alone
from ...saved import load


def tested(
    spec: str | None,
    samples: Path | None,
    layout: str | None,
    data: Path | None,
    theta: Path | None,
    x: Path | None,
    methods: str | list[str] | None,
    num_samples: int | None,
    seed: int,
) -> tuple[Any, Any, Any, ABIPosterior | None]:
    """q, theta, x, and the fit if q is of one: its own pairs, where no others are given."""
    q = _posterior(spec, samples, layout)
    fit = q if isinstance(q, ABIPosterior) else None
    if fit is None or data is not None or theta is not None or x is not None:
        return q, *_pairs(data or samples, theta, x), fit
    if fit.answer is None:
        raise ValueError(f"`path`: {spec} answers at its x_o alone: {why_at_x_o_alone(fit)}.")
    if fit.pairs is None:
        cure = f"draw some with abi check {shlex.quote(str(spec))}, or give --data"
        raise ValueError(f"`path`: {spec} holds no check pairs; {cure}.")
    num_draws = draws_needed(methods, num_samples, len(fit.pairs.theta), fit.theta_dim)
    return *fit.check_pairs(num_draws, seed=child_seed(seed, 0)), fit


def observations(
    path: Path | None, x: Tensor, fit: ABIPosterior | None, methods: list[str] | None
) -> Tensor | None:
    """Where the local tests look: what the file holds, or x_o of the fit if one is asked for.

    Observations are (m, p) or (p,); a column of as many lines as x (n, p) has values is one.
    """
    if path is not None:
        observed = load_array(path, "--x-o")
        column = path.suffix in (".csv", ".txt") and observed.shape == (*x.shape[1:], 1)
        return observed.reshape(-1) if column else observed
    if fit is None or fit.x_o is None or not set(methods or ()) & set(LOCAL):
        return None
    return layout_of(fit.kernel).as_numbers(fit.x_o[None])[0]


def _posterior(spec: str | None, samples: Path | None, layout: str | None) -> Any:
    """The fit at a path, the posterior that was named, or the stored samples."""
    from validation import as_posterior

    if spec is not None and (":" not in spec or Path(spec).exists()):
        return load(posterior_file(Path(spec)))
    if samples is None:
        return as_posterior(load_instance(str(spec), "--posterior"), progress=True)
    parts = [load_array(samples, "--samples", key) for key in ("theta", "x", "samples")]
    weights = (
        load_array(samples, "--samples", "weights") if holds_array(samples, "weights") else None
    )
    return as_posterior(tuple(parts), layout=layout, weights=weights)  # type: ignore[arg-type]


def _pairs(data: Path | None, theta: Path | None, x: Path | None) -> tuple[Any, Any]:
    """The joint draws, from one .npz or from two files."""
    if theta is not None and x is not None:
        return load_array(theta, "--theta"), load_array(x, "--x")
    if theta is not None or x is not None or data is None:
        raise ValueError(
            "`--data` with theta and x, or `--theta` and `--x`, must be given: --data store, of "
            "abi simulate."
        )
    if data.is_dir():  # a store of abi simulate
        kept = load_store(data)
        return kept.theta, kept.x
    return load_array(data, "--data", "theta"), load_array(data, "--data", "x")
