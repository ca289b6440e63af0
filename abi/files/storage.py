"""Posteriors and the states of a fit, to files and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from simulators.random import isolated_rng

from ..config import ABIConfig
from ..encoders.choice import build_encoder
from ..encoders.layout import Layout
from ..generators.base import GenerativeModel, GeneratorState
from ..generators.flow import restore_flow
from ..generators.mixture import restore_mixture
from ..generators.pushforward import restore_push_forward
from ..quantiles.kernel import OWN_ENCODER, FixedKernel, LearnedKernel
from ..quantiles.network import QuantileNetwork
from ..rounds.record import RoundRecord, RoundState
from ..rounds.regions import Region
from .parts import read_parts, write_parts
from .versions import versions

_RESTORE: dict[str, Callable[[GeneratorState], GenerativeModel]] = {
    "flow": restore_flow,
    "mixture": restore_mixture,
    "potnet": restore_push_forward,
    "wgan": restore_push_forward,
}


def write_posterior(
    path: Path,
    *,
    model: GenerativeModel,
    x_o: Tensor,
    parameter_names: tuple[str, ...],
    rounds: tuple[RoundRecord, ...],
    accepted: Tensor,
    seed: int,
    config: ABIConfig,
) -> None:
    """Write the fields of an :class:`~abi.ABIPosterior` to ``path``."""
    state = model.state()
    tensors = _prefix("model", state.tensors) | {"x_o": x_o, "accepted": accepted}
    header = {
        "model": {"kind": state.kind, "values": state.values},
        "parameter_names": parameter_names,
        "rounds": [record.to_dict() for record in rounds],
        "seed": seed,
        "config": config.to_dict(),
        "versions": versions(),
    }
    write_parts(path, "abi-posterior", tensors, header)


def read_posterior(path: Path) -> dict[str, Any]:
    """The fields that :func:`write_posterior` wrote, by their names.

    Raises:
        ValueError: if the file is not a posterior of this format, or is from a newer version.
    """
    tensors, header = read_parts(path, "abi-posterior")
    return {
        "model": _restore_model(tensors, header["model"]),
        "x_o": tensors["x_o"],
        "parameter_names": tuple(header["parameter_names"]),
        "rounds": tuple(RoundRecord.from_dict(record) for record in header["rounds"]),
        "accepted": tensors["accepted"],
        "seed": header["seed"],
        "config": ABIConfig.from_dict(header["config"]),
    }


def save_state(state: RoundState, path: Path) -> None:
    """Write where the algorithm stands after a round."""
    model = state.model.state()
    tensors = _prefix("model", model.tensors)
    tensors |= {"theta": state.theta, "x": state.x, "accepted": state.accepted}
    header: dict[str, Any] = {
        "model": {"kind": model.kind, "values": model.values},
        "tolerance": state.tolerance,
        "records": [record.to_dict() for record in state.records],
        "kernel": None,
        "log_threshold": None,
    }
    if state.regions:
        region = state.regions[-1]
        header["log_threshold"] = region.log_threshold
        tensors |= {"region.lower": region.lower, "region.upper": region.upper}
    if isinstance(state.kernel, LearnedKernel):
        tensors |= _prefix("network", dict(state.kernel.network.state_dict()))
        header["kernel"] = {
            "encoder": state.kernel.encoder,
            "rivals": list(state.kernel.rivals),
            **asdict(state.kernel.layout),
        }
    write_parts(path, "abi-round", tensors, header)


def load_state(
    path: Path, x_o: Tensor, config: ABIConfig, fixed: FixedKernel | None, own: nn.Module | None
) -> RoundState:
    """Read the state after a round, but for the regions of the rounds before.

    A fixed distance is a function and an encoder of the user's is code: both are given again.
    """
    tensors, header = read_parts(path, "abi-round")
    model = _restore_model(tensors, header["model"])
    return RoundState(
        kernel=fixed or _restore_kernel(tensors, header, x_o, config, own),
        tolerance=header["tolerance"],
        model=model,
        theta=tensors["theta"],
        x=tensors["x"],
        accepted=tensors["accepted"],
        records=tuple(RoundRecord.from_dict(record) for record in header["records"]),
        regions=_restore_region(tensors, header, model),
    )


def _restore_region(
    tensors: dict[str, Tensor], header: dict[str, Any], model: GenerativeModel
) -> tuple[Region, ...]:
    """The region of this round, if it made one."""
    if header["log_threshold"] is None:
        return ()
    box = tensors["region.lower"], tensors["region.upper"]
    return (Region(model, header["log_threshold"], *box),)


def _restore_kernel(
    tensors: dict[str, Tensor],
    header: dict[str, Any],
    x_o: Tensor,
    config: ABIConfig,
    own: nn.Module | None,
) -> LearnedKernel:
    version, header = header["version"], header["kernel"]
    name = header["encoder"]
    if name == "both_orders" and version < 6:
        raise ValueError(
            "`run_dir`: its rounds have an earlier form of the encoder both_orders, which this abi "
            "cannot take up; begin the run again."
        )
    layout = Layout(header["item_dim"], header.get("num_series", 1))  # new in version 5
    if name == OWN_ENCODER and own is None:
        raise ValueError("`encoder`: the run used a module of yours; give it to abi.resume again.")
    with isolated_rng(0):  # the initial weights are drawn, then overwritten
        encoder = build_encoder(own or name, torch.zeros(2, len(x_o)), layout)
        network = _restore_network(_unprefix("network", tensors), config, encoder)
    # Before version 4 one learned encoder at most was tried again.
    rivals = header["rivals"] if "rivals" in header else [header["rival"]]
    return LearnedKernel(
        network, name, layout, x_o, config.order, config.mixing, tuple(filter(None, rivals))
    )


def _restore_model(tensors: dict[str, Tensor], header: dict[str, Any]) -> GenerativeModel:
    parts = _unprefix("model", tensors)
    return _RESTORE[header["kind"]](GeneratorState(header["kind"], parts, header["values"]))


def _restore_network(
    tensors: dict[str, Tensor], config: ABIConfig, encoder: nn.Module
) -> QuantileNetwork:
    theta_dim, num_features = len(tensors["theta_center"]), tensors["layers.0.weight"].shape[1]
    network = QuantileNetwork(
        torch.zeros(2, theta_dim),
        encoder,
        num_features,
        tensors["directions"],
        tensors["levels"],
        config.hidden,
        standardize=False,
    )
    network.load_state_dict(tensors)
    network.eval()
    return network


def _prefix(name: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{name}.{key}": tensor for key, tensor in tensors.items()}


def _unprefix(name: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    start = f"{name}."
    return {key[len(start) :]: t for key, t in tensors.items() if key.startswith(start)}
