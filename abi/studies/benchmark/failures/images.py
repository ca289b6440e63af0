"""Figure 3 of the conformal paper: corrupted images through the features of Inception-v3."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from validation import TrainedScore, Training
from validation.perturbations import (
    CORRUPTIONS,
    Failure,
    image_corruption,
    load_cifar10,
    load_inception,
)

from ..experiment import Part, Place
from .trials import by_weakness, score_tests


def image_parts(quick: bool) -> list[Part]:
    """A part a corruption, classifiers trained and weakened; quick: 1,000 images, 2 strengths."""
    num_images, num_pairs, repetitions = (1_000, 256, 10) if quick else (10_000, 1_024, 64)
    parts = []
    for name, (_, strengths) in CORRUPTIONS.items():
        chosen = strengths[:: len(strengths) - 1] if quick else strengths
        failure = partial(_failure, name, num_images, chosen)
        sizes = (num_pairs, repetitions, 1)
        label, tests = f"images,{name}", _tests(quick)
        parts.append(Part(label, failure, tests, chosen, *sizes, needs_images=True))
    return parts


def _failure(name: str, num_images: int, strengths: tuple[float, ...], place: Place) -> Failure:
    """The corruption of the first images of the archive."""
    folder = place.images or Path()
    images, labels = load_cifar10(folder, num_images)
    weights = sorted(folder.glob("inception_v3*.pth")) or [folder / "inception_v3_google-*.pth"]
    inception = load_inception(weights[-1])
    failure = image_corruption(
        name, images, labels, inception, folder=place.cells, progress=place.progress
    )
    # Features are computed here, once; the processes that work the cells find them.
    for strength in strengths:
        failure.at(strength)
    return failure


def _tests(quick: bool) -> dict[str, Any]:
    network = Training(hidden=(256, 128), learning_rate=1e-3 if quick else 1e-4)
    kinds = score_tests(20)
    del kinds["C2ST, exact"]
    return by_weakness(kinds, (0.0, 0.95), partial(TrainedScore, training=network))
