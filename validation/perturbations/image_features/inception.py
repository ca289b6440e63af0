"""The features of Inception-v3, from torchvision's network and a file of its weights."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from simulators.random import isolated_rng

_SIDE = 299


class InceptionFeatures(nn.Module):
    """Images (n, 3, h, w) in [0, 1] -> the 2,048 values before the last layer, (n, 2048).

    Images are brought to [-1, 1] and resized to 299 x 299, bilinearly.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Features (n, 2048)."""
        resized = functional.interpolate(
            2 * images - 1, size=(_SIDE, _SIDE), mode="bilinear", align_corners=False
        )
        features: Tensor = self.network(resized)
        return features


def load_inception(weights: Path | str) -> InceptionFeatures:
    """Inception-v3 without its last layer, in evaluation mode.

    Args:
        weights: torchvision's file, ``inception_v3_google-*.pth``; nothing is downloaded, and
            nothing in it is unpickled but tensors.

    Raises:
        ValueError: if there is no such file, if it holds other weights, or without torchvision.

    Source: Szegedy et al. (2016), "Rethinking the Inception architecture for computer vision".
    """
    path = Path(weights)
    if not path.is_file():
        raise ValueError(
            f"`weights`: no file {path}; take inception_v3_google-*.pth, which torchvision's "
            "documentation links to."
        )
    try:
        from torchvision.models import inception_v3
    except ImportError as error:
        raise ValueError(
            "`weights`: Inception-v3 needs torchvision; pip install torchvision."
        ) from error
    # The auxiliary head is in the file; in evaluation mode the network does not use it.
    with isolated_rng(0):  # initial weights are drawn, then overwritten
        network: nn.Module = inception_v3(
            weights=None, aux_logits=True, transform_input=False, init_weights=False
        )
    try:
        network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:
        raise ValueError(f"`weights`: {path} does not hold Inception-v3's weights.") from error
    network.fc = nn.Identity()
    return InceptionFeatures(network).requires_grad_(False).eval()
