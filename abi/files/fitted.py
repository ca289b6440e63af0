"""Regions and generative models, to the tensors and values of a file and back."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ..generators import pool
from ..generators.base import GenerativeModel, GeneratorState, prefixed, unprefixed
from ..generators.flow import FlowModel, restore_flow
from ..generators.mixture import restore_mixture
from ..generators.push_forward.model import restore_push_forward
from ..rounds.regions.region import AnyRegion, Region, SharedRegion

_BOX = "box_"


def region_parts(region: AnyRegion, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """A region of an earlier round: its model's density inside its box."""
    state = region.model.state()
    edge, log_threshold = edge_of(region)
    tensors = prefixed(name, state.tensors | {f"{_BOX}{key}": part for key, part in edge.items()})
    return tensors, {"kind": state.kind, "values": state.values, "log_threshold": log_threshold}


def edge_of(region: AnyRegion) -> tuple[dict[str, Tensor], float | None]:
    """What a region has beside its model: its box, and a threshold, or one for each of several."""
    box = {"lower": region.lower, "upper": region.upper}
    if isinstance(region, Region):
        return box, region.log_threshold
    return box | {"contexts": region.contexts, "log_thresholds": region.log_thresholds}, None


def _with_edge(
    model: GenerativeModel, edge: dict[str, Tensor], log_threshold: float | None
) -> AnyRegion:
    """The inverse of :func:`edge_of`."""
    if log_threshold is not None:
        return Region(model, log_threshold, **edge)
    if not isinstance(model, FlowModel):
        raise ValueError("`path`: a region of several observations needs a flow; it is damaged.")
    return SharedRegion(model, **edge)


def restored_regions(
    tensors: dict[str, Tensor], each: list[dict[str, Any]]
) -> tuple[AnyRegion, ...]:
    """The regions that :func:`region_parts` told, in their order."""
    return tuple(_restored_region(tensors, f"regions.{k}", part) for k, part in enumerate(each))


def _restored_region(tensors: dict[str, Tensor], name: str, values: dict[str, Any]) -> AnyRegion:
    parts = unprefixed(name, tensors)
    names = [key for key in parts if key.startswith(_BOX)]
    edge = {key.removeprefix(_BOX): parts.pop(key) for key in names}
    return _with_edge(restored(parts, values, None), edge, values["log_threshold"])


def region_of_round(
    tensors: dict[str, Tensor], header: dict[str, Any], model: GenerativeModel
) -> tuple[AnyRegion, ...]:
    """The region of this round, if it made one."""
    edge = unprefixed("region", tensors)
    return (_with_edge(model, edge, header["log_threshold"]),) if edge else ()


def restored(
    parts: dict[str, Tensor], header: dict[str, Any], own: nn.Module | None
) -> GenerativeModel:
    """A model from what its ``state()`` told; ``own`` is the user's encoder, if there is one."""
    state = GeneratorState(header["kind"], parts, header["values"])
    match state.kind:
        case "flow":
            return restore_flow(state, own)
        case "pooled":  # new in version 10
            return pool.restore_pooled(state, own)
        case "mixture":
            return restore_mixture(state)
        case _:
            return restore_push_forward(state)
