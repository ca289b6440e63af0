"""Draws of other people's samplers, as ArviZ holds them: InferenceData (0.x) or DataTree (1.x).

One InferenceData answers for one observation, its ``observed_data``. A list of them, one fit an
observation, is a posterior at all these x: what calibration tests of a PyMC or Stan model need.
Nothing of arviz is imported: its objects are recognised by where their classes come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .signatures import comes_from


def is_arviz(obj: Any) -> bool:
    """Whether ``obj`` is an InferenceData, a DataTree, or the dataset of a posterior group."""
    return comes_from(obj, "arviz", "xarray")


def arviz_draws(data: Any, var_names: Sequence[str] | None = None) -> Tensor:
    """The draws of all chains, (L, d): variables in their order, a vector as so many parameters.

    Raises:
        ValueError: if there is no posterior, or a variable is missing or not drawn.
    """
    group = data
    if not getattr(data, "data_vars", None):  # a tree or InferenceData, not one of its groups
        group = _group(data, "posterior", "the draws")
    names = list(group.data_vars) if var_names is None else list(var_names)
    missing = [name for name in names if name not in group.data_vars]
    if missing:
        raise ValueError(
            f"`var_names` must be variables of the posterior, {list(group.data_vars)}; "
            f"got {missing}."
        )
    columns = []
    for name in names:
        variable = group[name]
        if not {"chain", "draw"} <= set(variable.dims):
            raise ValueError(
                f"`q`: the variable {name!r} must have the dimensions chain and draw; "
                f"it has {tuple(variable.dims)}."
            )
        values = variable.transpose("chain", "draw", ...).values
        columns.append(values.reshape(values.shape[0] * values.shape[1], -1))
    return torch.from_numpy(np.concatenate(columns, axis=1)).float()


def arviz_observation(data: Any) -> Tensor:
    """What was observed, (p,): the variables of ``observed_data`` one after the other."""
    group = _group(data, "observed_data", "the observation that the draws belong to")
    values = [group[name].values.reshape(-1) for name in group.data_vars]
    return torch.from_numpy(np.concatenate(values)).float()


def _group(data: Any, name: str, what: str) -> Any:
    groups = getattr(data, "groups", ())  # a method in 0.x, a property in 1.x
    known = [str(group).strip("/") for group in (groups() if callable(groups) else groups)]
    if name not in known:
        raise ValueError(
            f"`q` must have a group {name!r}, {what}; its groups are {list(filter(None, known))}."
        )
    return data[name]
