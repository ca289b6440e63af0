"""The only file that touches the disk: safe formats, versions, and writes that cannot be torn.

Everything is one safetensors file: named tensors, and a header with JSON text. Nothing is
unpickled. A file is written beside its place and renamed into it, so that a reader finds the old
one or the new one, never half of one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from simulators.disk import whole_file
from simulators.random import isolated_rng

from .config import ABIConfig
from .encoders import build_encoder
from .generators.base import GenerativeModel, GeneratorState
from .generators.flow import restore_flow
from .generators.mixture import restore_mixture
from .generators.pushforward import restore_push_forward
from .kernel import OWN_ENCODER, FixedKernel, LearnedKernel
from .layout import Layout
from .posterior import ABIPosterior
from .quantiles import QuantileNetwork
from .regions import Region
from .rounds import RoundRecord, RoundState
from .versions import versions

FORMAT_VERSION = 6
_RESTORE: dict[str, Callable[[GeneratorState], GenerativeModel]] = {
    "flow": restore_flow,
    "mixture": restore_mixture,
    "potnet": restore_push_forward,
    "wgan": restore_push_forward,
}


def save_posterior(posterior: ABIPosterior, path: Path) -> None:
    """Write a posterior to ``path``."""
    model = posterior.model.state()
    tensors = _prefix("model", model.tensors)
    tensors |= {"x_o": posterior.x_o, "accepted": posterior.accepted}
    header = {
        "model": {"kind": model.kind, "values": model.values},
        "parameter_names": posterior.parameter_names,
        "rounds": [record.to_dict() for record in posterior.rounds],
        "seed": posterior.seed,
        "config": posterior.config.to_dict(),
        "versions": versions(),
    }
    write_parts(path, "abi-posterior", tensors, header)


def load(path: str | Path) -> ABIPosterior:
    """Read a posterior written by :meth:`ABIPosterior.save`.

    Args:
        path: the file.

    Raises:
        ValueError: if the file is not a posterior of this format, or is from a newer version.
    """
    tensors, header = read_parts(Path(path), "abi-posterior")
    return ABIPosterior(
        model=_restore_model(tensors, header["model"]),
        x_o=tensors["x_o"],
        parameter_names=tuple(header["parameter_names"]),
        rounds=tuple(RoundRecord.from_dict(record) for record in header["rounds"]),
        accepted=tensors["accepted"],
        seed=header["seed"],
        config=ABIConfig.from_dict(header["config"]),
    )


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


def write_parts(path: Path, kind: str, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write tensors and plain values to one file, whole or not at all."""
    from safetensors.torch import save

    text = json.dumps({"format": kind, "version": FORMAT_VERSION, **header})
    # Copies, for the format refuses weights that are shared.
    copies = {name: t.detach().clone().contiguous() for name, t in tensors.items()}
    data = save(copies, {"abi": text})
    write_bytes(path, data)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(data)


def read_parts(path: Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`write_parts` wrote.

    Raises:
        ValueError: if the file is missing, damaged, of another kind or from a newer version.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise ValueError(f"`path`: no file {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get("abi", "{}"))
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"`path`: {path} is damaged or not a safetensors file: {error}") from error
    if header.get("format") != kind:
        raise ValueError(f"`path`: {path} is not a file of kind {kind}.")
    if header["version"] > FORMAT_VERSION:
        raise ValueError(
            f"`path`: {path} has format version {header['version']}; this abi reads up to "
            f"{FORMAT_VERSION}. Install a newer abi-toolkit."
        )
    return tensors, header


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
