"""A comparison of models as one file: networks, unseen pairs, and plain values."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch
from torch import nn

from simulators.given.observation import Returned
from simulators.random import isolated_rng

from ..encoders.choice import OWN_ENCODER, build_encoder
from ..encoders.layout import Layout
from ..files.parts import read_parts, write_parts
from ..files.versions import versions
from .base import Quadratic
from .classifier import Classifier, Member
from .judging import Trained, Unseen
from .pairs import Labelled

_KIND = "abi-model-comparison"


def write_comparison(path: Path, trained: Trained) -> None:
    """Write what :func:`read_comparison` reads."""
    classifier, unseen = trained.classifier, trained.unseen
    tensors = {f"members.{name}": t for name, t in classifier.members.state_dict().items()}
    tensors |= {"scale": classifier.scale, "shifts": classifier.shifts}
    tensors |= {"x_o": trained.x_o, "model_prior": trained.model_prior}
    for name in ("calibration", "check"):
        pairs: Labelled = getattr(unseen, name)
        tensors |= {f"{name}.x": pairs.x, f"{name}.model": pairs.model}
    header = {
        "names": trained.names,
        "encoder": classifier.encoder,
        "layout": asdict(classifier.layout),
        "order": classifier.order,
        "num_members": len(classifier.members),
        "losses": classifier.losses,
        "calls": unseen.calls,
        "failures": unseen.failures,
        "returned": None if trained.returned is None else asdict(trained.returned),
        "seed": trained.seed,
        "versions": versions(),
    }
    write_parts(path, _KIND, tensors, header)


def read_comparison(path: Path, own: nn.Module | None) -> Trained:
    """What :func:`write_comparison` wrote.

    Raises:
        ValueError: if the file is not a comparison, or it needs the user's encoder.
    """
    tensors, header = read_parts(path, _KIND)
    name, x_o = header["encoder"], tensors["x_o"]
    if name == OWN_ENCODER and own is None:
        raise ValueError(
            "`encoder`: the comparison used a module of yours; pass it to load as encoder=."
        )
    state = {
        key.removeprefix("members."): tensor
        for key, tensor in tensors.items()
        if key.startswith("members.")
    }
    layout, count = Layout.of_values(header["layout"]), len(header["names"])
    width = state["0.layers.0.weight"].shape[1]
    with isolated_rng(0):  # the initial weights are drawn, then overwritten
        members = nn.ModuleList()
        for _ in range(header["num_members"]):
            encoder = build_encoder(
                own if name == OWN_ENCODER and own else name, torch.zeros(2, len(x_o)), layout
            )
            order = header["order"]
            base = None if order is None else Quadratic.blank(width, count, order)
            members.append(Member(encoder, width, count, base))
    members.load_state_dict(state)
    scale, shifts = tensors["scale"], tensors["shifts"]
    classifier = Classifier(members.eval(), name, layout, scale, shifts, header["losses"])
    pairs = [Labelled(tensors[f"{part}.x"], tensors[f"{part}.model"]) for part in _PARTS]
    calls, failures = tuple(header["calls"]), tuple(header["failures"])
    about = header["returned"]
    returned = None
    if about is not None:
        returned = Returned(*(tuple(about[part]) for part in ("shape", "names", "sizes")))
    unseen = Unseen(pairs[0], pairs[1], calls, failures)
    names, prior, seed = tuple(header["names"]), tensors["model_prior"], header["seed"]
    return Trained(names, x_o, prior, classifier, unseen, returned, seed)


_PARTS = ("calibration", "check")
