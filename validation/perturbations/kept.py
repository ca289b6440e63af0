"""What is dear to compute for a failure, networks and features: made once, kept in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from torch import Tensor, nn

from simulators.files.disk import whole_file
from simulators.random import isolated_rng

from ..threads import one_thread


def name_with_settings(name: str, *settings: object) -> str:
    """The name and six letters or figures that are others for other settings.

    Cells of a study, and the files kept beside them, are known by it.
    """
    return f"{name}-{hashlib.sha256(repr(settings).encode()).hexdigest()[:6]}"


def kept_tensors(path: Path | None, compute: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    """The tensors of a file, or new ones that are kept there; a damaged file is written anew.

    Args:
        path: safetensors, named after all that the tensors depend on; not kept when None.
        compute: makes them.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save

    if path is not None:
        try:
            return load_file(path)
        except (FileNotFoundError, SafetensorError):
            path.parent.mkdir(parents=True, exist_ok=True)
    tensors = compute()
    if path is not None:
        with whole_file(path) as file:
            file.write(save(tensors))
    return tensors


def kept_network(
    path: Path | None, build: Callable[[], nn.Module], fit: Callable[[nn.Module], None], seed: int
) -> nn.Module:
    """The trained network of a file, or a new one that is kept there.

    Args:
        path: as in :func:`kept_tensors`.
        build: makes the network; its initial weights come from the global stream at ``seed``.
        fit: trains it in place, on one thread.
        seed: of the initial weights.
    """
    with isolated_rng(seed):
        network = build()

    def trained() -> dict[str, Tensor]:
        with one_thread():
            fit(network)
        return network.state_dict()

    network.load_state_dict(kept_tensors(path, trained))
    return network.requires_grad_(False).eval()
