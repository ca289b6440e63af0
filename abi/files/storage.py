"""Posteriors and the states of a fit, to files and back."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from simulators.random import isolated_rng

from ..config import ABIConfig
from ..encoders.choice import OWN_ENCODER, build_encoder
from ..encoders.layout import Layout
from ..generators.base import GenerativeModel, prefixed, unprefixed
from ..generators.flow import FlowModel
from ..generators.held import held_from, held_parts
from ..quantiles.kernel import FixedKernel, Kernel, LearnedKernel
from ..quantiles.network import QuantileNetwork
from ..rounds.checks import CheckPairs, region_model
from ..rounds.reach import Reach
from ..rounds.record import RoundRecord, RoundState
from ..rounds.regions.region import Region, narrowed
from ..verdict.judge import untold
from ..verdict.record import Verdict
from .fitted import edge_of, region_of_round, region_parts, restored, restored_regions
from .parts import OF_A_RUN, read_parts, write_parts
from .versions import versions


def write_posterior(
    path: Path,
    *,
    model: GenerativeModel,
    x_o: Tensor | None,
    parameter_names: tuple[str, ...],
    rounds: tuple[RoundRecord, ...],
    accepted: Tensor,
    seed: int,
    config: ABIConfig,
    verdict: Verdict,
    kernel: Kernel | None,
    reach: Reach | None,
    pairs: CheckPairs | None,
) -> None:
    """Write the fields of an :class:`~abi.ABIPosterior` to ``path``."""
    state = model.state()
    at = kernel.x_o if x_o is None and isinstance(kernel, LearnedKernel) else x_o
    tensors = prefixed("model", state.tensors) | {"accepted": accepted}
    tensors |= {} if at is None else {"x_o": at}
    header: dict[str, Any] = {
        "model": {"kind": state.kind, "values": state.values},
        "parameter_names": parameter_names,
        "amortised": x_o is None,
        "rounds": [record.to_dict() for record in rounds],
        "seed": seed,
        "config": config.to_dict(),
        "versions": versions(),
        "verdict": verdict.to_dict(),
        "kernel": None,
        "regions": [],
        "pairs": None,
    }
    if isinstance(kernel, LearnedKernel):
        tensors |= _kernel_tensors(kernel)
        header["kernel"] = _kernel_values(kernel)
    if reach is not None:
        tensors["simulated"] = reach.simulated
        for number, region in enumerate(reach.regions):
            part, values = region_parts(region, f"regions.{number}")
            tensors |= part
            header["regions"].append(values)
    if pairs is not None:
        tensors |= {"pairs.theta": pairs.theta, "pairs.x": pairs.x}
        header["pairs"] = {"num_calls": pairs.num_calls, "failures": pairs.failures}
        for own in pairs.regions[-1:]:  # none where the fit is amortised
            edge, header["pairs"]["log_threshold"] = edge_of(own)
            tensors |= prefixed("pairs", edge)
    write_parts(path, "abi-posterior", tensors, header)


def read_posterior(path: Path, own: nn.Module | None = None) -> dict[str, Any]:
    """The fields that :func:`write_posterior` wrote, by their names.

    Args:
        path: the file.
        own: the user's encoder, where the fit had one.

    Raises:
        ValueError: if the file is not a posterior of this format, or is from a newer version.
    """
    tensors, header = read_parts(path, "abi-posterior")
    model = _restore_model(tensors, header["model"], own)
    config, x_o = ABIConfig.from_dict(header["config"]), tensors["x_o"]
    fields = {
        "model": model,
        "x_o": None if header.get("amortised") else x_o,  # new in version 9
        "parameter_names": tuple(header["parameter_names"]),
        "rounds": tuple(RoundRecord.from_dict(record) for record in header["rounds"]),
        "accepted": tensors["accepted"],
        "seed": header["seed"],
        "config": config,
    }
    if "verdict" not in header:  # before version 7
        return fields | {"verdict": untold(_EARLIER, fields["rounds"][-1].x_o_p_value)}
    fields["verdict"] = Verdict.from_dict(header["verdict"])
    if (about := header["kernel"]) is None or (about["encoder"] == OWN_ENCODER and own is None):
        return fields
    fields["kernel"] = _restore_kernel(tensors, header, x_o, config, own)
    if "simulated" in tensors:
        regions = restored_regions(tensors, header["regions"])
        fields["reach"] = Reach(regions, tensors["simulated"])
        if (about := header["pairs"]) is not None:
            if "log_threshold" in about:
                box = tensors["pairs.lower"], tensors["pairs.upper"]
                own_part = Region(region_model(model), about["log_threshold"], *box)
                regions = (*regions, own_part)
            fields["pairs"] = CheckPairs(
                tensors["pairs.theta"], tensors["pairs.x"], regions,
                about["num_calls"], about["failures"],
            )  # fmt: skip
    return fields


_EARLIER = "the file is of an earlier version, which kept no check pairs; fit again"


def save_state(state: RoundState, path: Path) -> None:
    """Write where the algorithm stands after a round.

    With all its regions where they are not those of the rounds before and its own.
    """
    model = state.model.state()
    tensors = prefixed("model", model.tensors)
    tensors |= {"theta": state.theta, "x": state.x, "accepted": state.accepted}
    if state.past is not None:
        tensors |= {"past.theta": state.past[0], "past.x": state.past[1]}
    header: dict[str, Any] = {
        "model": {"kind": model.kind, "values": model.values},
        "tolerance": state.tolerance,
        "records": [record.to_dict() for record in state.records],
        "kernel": None,
        "log_threshold": None,
        "final": state.final,
        "regions": None,
    }
    if isinstance(state.model, FlowModel):  # a region of the answer may be asked for
        held, header["held"] = held_parts(state.model.held)
        tensors |= prefixed("held", held)
    region = state.regions[-1] if state.regions else None
    if state.whole:
        header |= {"reopened": state.reopened, "left": len(state.left)}
        whole = enumerate((*state.regions, *state.left))
        parts = [region_parts(narrowed(part), f"regions.{k}") for k, part in whole]
        header["regions"] = [values for _, values in parts]
        for part, _ in parts:
            tensors |= part
    elif region is not None and region.model is state.model:  # a round may make no region
        edge, header["log_threshold"] = edge_of(region)
        tensors |= prefixed("region", edge)
    if isinstance(state.kernel, LearnedKernel):
        tensors |= _kernel_tensors(state.kernel)
        header["kernel"] = _kernel_values(state.kernel)
    write_parts(path, "abi-round", tensors, header)


def load_state(
    path: Path, x_o: Tensor, config: ABIConfig, fixed: FixedKernel | None, own: nn.Module | None
) -> RoundState:
    """Read the state after a round, but for the regions of the rounds before.

    A fixed distance is a function and an encoder of the user's is code: both are given again.
    """
    tensors, header = read_parts(path, "abi-round", OF_A_RUN)
    model = _restore_model(tensors, header["model"], own)
    if isinstance(model, FlowModel) and header.get("held"):  # new in version 9, as are whole states
        held = held_from(unprefixed("held", tensors), header["held"])
        model = replace(model, held=held)
    whole = header.get("regions")
    regions = region_of_round(tensors, header, model)
    num_left = header.get("left", 0)  # new in version 16
    if whole is not None:
        regions = restored_regions(tensors, whole)
    num_own = len(regions) - num_left
    there = "past.theta" in tensors  # new in version 22
    past = (tensors["past.theta"], tensors["past.x"]) if there else None
    return RoundState(
        kernel=fixed or _restore_kernel(tensors, header, x_o, config, own),
        tolerance=header["tolerance"],
        model=model,
        theta=tensors["theta"],
        x=tensors["x"],
        accepted=tensors["accepted"],
        records=tuple(RoundRecord.from_dict(record) for record in header["records"]),
        regions=regions[:num_own],
        final=header.get("final", False),  # new in version 7
        reopened=header.get("reopened", whole is not None),
        left=regions[num_own:],
        past=past,
    )


def _kernel_tensors(kernel: LearnedKernel) -> dict[str, Tensor]:
    return prefixed("network", dict(kernel.network.state_dict()))


def _kernel_values(kernel: LearnedKernel) -> dict[str, Any]:
    return {"encoder": kernel.encoder, "rivals": list(kernel.rivals), **asdict(kernel.layout)}


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
    layout = Layout.of_values(header)
    if name == OWN_ENCODER and own is None:
        raise ValueError("`encoder`: the run used a module of yours; pass it to abi.resume.")
    with isolated_rng(0):  # the initial weights are drawn, then overwritten
        encoder = build_encoder(own or name, torch.zeros(2, len(x_o)), layout)
        network = _restore_network(unprefixed("network", tensors), config, encoder)
    # Before version 4 one learned encoder at most was tried again.
    rivals = header["rivals"] if "rivals" in header else [header["rival"]]
    return LearnedKernel(
        network, name, layout, x_o, config.order, config.mixing, tuple(filter(None, rivals))
    )


def _restore_model(
    tensors: dict[str, Tensor], header: dict[str, Any], own: nn.Module | None
) -> GenerativeModel:
    return restored(unprefixed("model", tensors), header, own)


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
