"""Networks of the laboratory's posteriors: trained once, kept in the study's folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from torch import nn

from simulators.disk import whole_file
from simulators.random import isolated_rng

from ..threads import one_thread


def name_with_settings(name: str, *settings: object) -> str:
    """The name and six letters or figures that are others for other settings.

    Cells of a study, and the file of a network, are known by it.
    """
    return f"{name}-{hashlib.sha256(repr(settings).encode()).hexdigest()[:6]}"


def kept_network(
    path: Path | None, build: Callable[[], nn.Module], fit: Callable[[nn.Module], None], seed: int
) -> nn.Module:
    """The trained network of a file, or a new one that is kept there.

    Training runs on one thread. A file that is damaged, or holds another network, is written anew.

    Args:
        path: safetensors, named after all that the weights depend on; not kept when None.
        build: makes the network; its initial weights come from the global stream at ``seed``.
        fit: trains it in place.
        seed: of the initial weights.
    """
    with isolated_rng(seed):
        network = build()
    if path is None or not _restored(network, path):
        with one_thread():
            fit(network)
        if path is not None:
            _keep(network, path)
    return network.requires_grad_(False).eval()


def _restored(network: nn.Module, path: Path) -> bool:
    """Whether the file was there, and its weights are now the network's."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        network.load_state_dict(load_file(path))
    except (FileNotFoundError, SafetensorError, RuntimeError):
        return False
    return True


def _keep(network: nn.Module, path: Path) -> None:
    from safetensors.torch import save

    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(save(network.state_dict()))
