"""A fit as ArviZ data, in the groups of ArviZ's schema: one tree for 0.x and 1.x.

=========================  ======================================================  ==============
group                      what it holds                                           dimensions
=========================  ======================================================  ==============
``posterior``              draws, one variable a parameter                         chain, draw
``sample_stats``           ``lp``, the log-density of each draw                    chain, draw
``observed_data``          ``x``, the observation                                  x_dim_0
``prior``                  draws of the prior, where it is given                   chain, draw
``posterior_predictive``   simulations at the draws, where a simulator is given    chain, draw, ..
``prior_predictive``       simulations at the prior's draws, where both are        chain, draw, ..
``rounds``                 one value a round: tolerance, calls, losses ...         round
=========================  ======================================================  ==============

The rounds have a group of their own: the schema's ``sample_stats`` describes *each draw*, over
(chain, draw), and a round belongs to no draw. The schema leaves groups of other names alone, and so
do ArviZ's functions. The draws are independent, so they are one chain, and an effective sample size
is their number.

Source: the InferenceData schema specification of ArviZ.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from simulators import sample_prior, simulate
from simulators.given.observation import Observed
from simulators.given.probe import NUM_PROBES
from simulators.given.task import recognise
from simulators.lazy import check_installed
from simulators.random import child_seed, isolated_rng

from ..rounds.record import RoundRecord
from ..verdict.record import Verdict
from .versions import __version__


class Fit(Protocol):
    """As much of an :class:`~abi.ABIPosterior` as ArviZ is told."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Their d names."""
        ...

    @property
    def observation(self) -> Tensor:
        """The observation, (p,)."""
        ...

    @property
    def rounds(self) -> tuple[RoundRecord, ...]:
        """One record a round."""
        ...

    @property
    def seed(self) -> int:
        """The seed of the fit."""
        ...

    @property
    def verdict(self) -> Verdict:
        """May it be trusted?"""
        ...

    @property
    def num_simulations(self) -> int:
        """Simulator calls made."""
        ...

    def sample(self, sample_shape: Sequence[int], *, seed: int) -> Tensor:
        """Draws (n, d)."""
        ...

    def log_prob(self, theta: Tensor) -> Tensor:
        """Log density (n,), or NotImplementedError."""
        ...


def to_arviz(posterior: Fit, num_samples: int, seed: int, prior: Any, simulator: Any) -> Any:
    """InferenceData (ArviZ 0.x) or a DataTree (1.x); see :meth:`ABIPosterior.to_arviz`."""
    names = posterior.parameter_names
    theta = posterior.sample((num_samples,), seed=seed)
    groups = {"posterior": _draws(theta, names)}
    density = _density(posterior, theta)
    if density is not None:
        groups["sample_stats"] = {"lp": (("chain", "draw"), density[None])}
    if simulator is not None:
        observed = Observed.of(posterior.observation)
        simulator = recognise(simulator, theta[:NUM_PROBES], None, names, observed).simulator
        groups["posterior_predictive"] = _predictive(simulator, theta, child_seed(seed, 1))
    if prior is not None:
        drawn = sample_prior(prior, num_samples, child_seed(seed, 2))
        groups["prior"] = _draws(drawn, names)
        if simulator is not None:
            groups["prior_predictive"] = _predictive(simulator, drawn, child_seed(seed, 3))
    groups["observed_data"] = {"x": (("x_dim_0",), posterior.observation.numpy())}
    groups["rounds"] = _rounds(posterior)
    return _tree(groups, _attributes(posterior, seed))


def _tree(groups: dict[str, dict[str, Any]], attributes: dict[str, Any]) -> Any:
    """What the installed ArviZ works with, of variables {name: (dimensions, values)}."""
    check_installed("to_arviz", "arviz", "xarray")
    with isolated_rng(0), warnings.catch_warnings():
        # Importing arviz draws from a global stream, and 0.x announces 1.x.
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
        import xarray
    coordinates = {
        name: {
            dim: np.arange(1, size + 1) if dim == "round" else np.arange(size)
            for dims, values in variables.values()
            for dim, size in zip(dims, values.shape, strict=True)
        }
        for name, variables in groups.items()
    }
    sets = {
        name: xarray.Dataset(
            variables, coordinates[name], attributes if name == "posterior" else None
        )
        for name, variables in groups.items()
    }
    if int(arviz.__version__.split(".")[0]) < 1:
        return arviz.InferenceData(attrs=attributes, **sets)
    return xarray.DataTree.from_dict({"/": xarray.Dataset(attrs=attributes), **sets})


def _draws(theta: Tensor, names: tuple[str, ...]) -> dict[str, Any]:
    values = theta.numpy()
    return {name: (("chain", "draw"), values[None, :, j]) for j, name in enumerate(names)}


def _density(posterior: Fit, theta: Tensor) -> Any:
    try:
        return posterior.log_prob(theta).numpy()
    except NotImplementedError:
        return None


def _predictive(simulator: Any, theta: Tensor, seed: int) -> dict[str, Any]:
    """Simulations x (chain, draw, p); a row that failed is NaN, so that draws keep their places."""
    run = simulate(simulator, theta, seed=seed, progress=False, max_failure_fraction=1.0)
    x = torch.full((len(theta), run.x.shape[1]), torch.nan)
    x[run.index] = run.x
    return {"x": (("chain", "draw", "x_dim_0"), x.numpy()[None])}


def _rounds(posterior: Fit) -> dict[str, Any]:
    """One variable a number of the records, those of the training logs by their full names."""
    rows = [_flat(as_columns(record)) for record in posterior.rounds]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names if name != "round"}
    return {name: (("round",), _column(values)) for name, values in columns.items()}


def as_columns(record: RoundRecord) -> dict[str, Any]:
    """A record as columns of a table; None where a round says nothing.

    ``before_num_pairs``, ``before_p_value`` and ``before_largest_bias`` (in sds, as far as its
    interval allows) are what this round's pairs say of the answer before; ``moved`` is the MSW
    distance from that answer to this round's, beside ``moved_by_chance``. Its means and
    sds, a value a parameter each, are left out.
    """
    before, moved = record.before, record.moved
    values = record.to_dict()
    for name in ("before", "moved", "answer"):
        del values[name]
    return values | {
        "before_num_pairs": None if before is None else before.num_pairs,
        "before_p_value": None if before is None else before.p_value,
        "before_largest_bias": None if before is None else before.largest_bias,
        "moved": None if moved is None else moved.value,
        "moved_by_chance": None if moved is None else moved.by_chance,
    }


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            out |= _flat(value, f"{prefix}{name}_")
        elif value is None or isinstance(value, bool | int | float | str):
            out[f"{prefix}{name}"] = value
    return out


def _column(values: list[Any]) -> Any:
    """Text as it is, numbers with NaN where a round has none."""
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else str(value) for value in values])
    return np.array([np.nan if value is None else value for value in values])


def _attributes(posterior: Fit, seed: int) -> dict[str, Any]:
    """The schema's names for what made the draws, what replays them, and the verdict.

    Attributes of a netCDF file are never missing: a verdict without a p-value has NaN.
    """
    p_value = posterior.verdict.p_value
    return {
        "creation_library": "abi-toolkit",
        "creation_library_version": __version__,
        "inference_library": "abi-toolkit",
        "inference_library_version": __version__,
        "sampling_time": sum(record.seconds for record in posterior.rounds),
        "num_simulations": posterior.num_simulations,
        "verdict": posterior.verdict.headline,
        "verdict_p_value": math.nan if p_value is None else p_value,
        "fit_seed": posterior.seed,
        "draws_seed": seed,
    }
