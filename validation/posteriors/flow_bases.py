"""Maps of flows to their base, where that is N(0, I): what L-C2ST-NF works on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def sbi_to_base(estimator: Any) -> Callable[[Tensor, Tensor], Any] | None:
    """The map to the base N(0, I) of sbi's normalizing flows."""
    if estimator is None or not hasattr(estimator, "inverse_transform"):
        return None

    def to_base(theta: Tensor, x: Tensor) -> Any:
        x = x.reshape(-1, *estimator.condition_shape)
        flow: Any = getattr(estimator, "net", None)
        if hasattr(flow, "_transform"):
            # nflows: inverse_transform of sbi 0.27 leaves out the standardisation and embedding of
            # x, with which the flow was trained: what it gives is not N(0, I) under q.
            _require_normal(flow._distribution)
            return flow._transform(theta, context=flow._embedding_net(x))[0]
        if hasattr(flow, "base"):  # zuko's
            _require_normal(flow.base(None))
        try:
            return estimator.inverse_transform(theta, x)
        except AttributeError as error:  # sbi 0.24 misspells a name of its own there
            raise NotImplementedError(
                f"this version of sbi cannot invert its {type(estimator).__name__} ({error}); "
                "install a newer sbi, or test without flow=True."
            ) from error

    return to_base


def zuko_to_base(flow: Any, theta: Tensor, x: Tensor) -> Tensor:
    """The inverse of a zuko flow: theta (n, d), x (n, p) -> z (n, d)."""
    distribution = flow(x)
    _require_normal(distribution.base)
    return torch.as_tensor(distribution.transform(theta))


def _require_normal(base: Any) -> None:
    """Refuse a base of a flow that is not N(0, I): of zuko's NCSF it is uniform.

    Raises:
        NotImplementedError: if it is another.
    """
    inner = getattr(base, "base_dist", base)
    moments = getattr(inner, "loc", None), getattr(inner, "scale", None)
    if all(isinstance(value, Tensor) for value in moments):
        loc, scale = moments
        if bool((loc == 0).all()) and bool((scale == 1).all()):  # type: ignore[union-attr]
            return
    if type(base).__name__ != "StandardNormal":  # as nflows calls it
        raise NotImplementedError(
            f"`flow`: the base of this flow is {type(inner).__name__}, not N(0, I); use flow=False."
        )
