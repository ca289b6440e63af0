r"""Weak classifiers: a trained network on its way back to the random one it started from.

    psi_b = (1 - b) psi_trained + b psi_start,   b in [0, 1].

Source: "The surprising strength of weak classifiers for two-sample testing", Sections 3.1 and B.3.
"""

from __future__ import annotations

import torch

from ..scores.classifiers import Classifiers
from ..scores.stacked import initial_weights
from ..seeds import part_seed


def weakened(network: Classifiers, weakness: float, seed: int) -> Classifiers:
    """Interpolate one trained network and the weights it was given before training.

    Args:
        network: of :func:`~validation.scores.classifiers.fit_classifiers`, trained from one start.
        weakness: b; 0 leaves it as trained, 1 gives back the start.
        seed: the one it was trained with.

    Raises:
        ValueError: if ``weakness`` lies outside [0, 1].
    """
    if not 0.0 <= weakness <= 1.0:
        raise ValueError(f"`weakness` must lie in [0, 1]; got {weakness}.")
    layers = (network.weights[0].shape[1], *(weight.shape[2] for weight in network.weights))
    start = initial_weights(layers, 1, part_seed(seed, 1))
    trained = [*network.weights, *network.biases]
    mixed = [
        torch.lerp(value, first.to(value), weakness)
        for value, first in zip(trained, start, strict=True)
    ]
    half = len(network.weights)
    return Classifiers(tuple(mixed[:half]), tuple(mixed[half:]), network.shift, network.scale)
