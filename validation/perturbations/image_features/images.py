r"""Images that are blurred, swirled or noisy, seen through the features of a frozen network.

x is the class of an image, one-hot, and theta given x the features of a random image of that class.
The truth p has the images as they are; the estimate q has them corrupted with strength a:

======= ==========================================================================================
blur    convolved with a Gaussian of standard deviation a pixels
swirl   turned by the angle a exp(-5 rho / (log(2) R)) at rho pixels from the centre, R = the width
noise   N(0, a^2) added to every value of an image in [-1, 1], then clipped to [-3, 3]
======= ==========================================================================================

Differs from the paper: R is the width of the image, for it says "proportional to the extent"; the
noise of an image is drawn once, so that q is a corrupted data set as p is a clean one; and a
classifier sees the class one-hot, where the paper learns an embedding of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional

from simulators.random import child_seed, torch_generator

from ...posteriors.protocol import progress_bar
from ..described import described
from ..kept import kept_tensors, name_with_settings
from ..task import Failure, Law

_ROWS_AT_ONCE = 50


def blur(images: Tensor, strength: float, seed: int = 0) -> Tensor:
    """Images (n, 3, h, w) through a Gaussian of deviation ``strength`` pixels, reflected at edges.

    Nothing here is random: ``seed`` is there because :func:`noise` has one.
    """
    from scipy.ndimage import gaussian_filter

    if strength == 0:
        return images
    deviations = (0.0, 0.0, strength, strength)
    return torch.from_numpy(gaussian_filter(images.numpy(), deviations)).to(images)


def swirl(images: Tensor, strength: float, seed: int = 0) -> Tensor:
    """Images (n, 3, h, w) turned by up to ``strength`` radians at their centre; bilinear."""
    if strength == 0:
        return images
    height, width = images.shape[-2:]
    down, right = torch.meshgrid(
        torch.arange(height) - (height - 1) / 2,
        torch.arange(width) - (width - 1) / 2,
        indexing="ij",
    )
    away = torch.hypot(right, down)
    angle = torch.atan2(down, right) + strength * torch.exp(-5 * away / (math.log(2.0) * width))
    # grid_sample has the centre at 0 and the outer pixels at -1 and 1.
    at = torch.stack(
        [away * angle.cos() * 2 / (width - 1), away * angle.sin() * 2 / (height - 1)], dim=-1
    )
    grid = at.to(images).expand(len(images), -1, -1, -1)
    return functional.grid_sample(
        images, grid, mode="bilinear", padding_mode="reflection", align_corners=True
    )


def noise(images: Tensor, strength: float, seed: int = 0) -> Tensor:
    """Images (n, 3, h, w) with N(0, strength^2) on the scale from -1 to 1, clipped to [-3, 3]."""
    if strength == 0:
        return images
    drawn = torch.randn(images.shape, generator=torch_generator(child_seed(seed, 0)))
    return (images + 0.5 * strength * drawn.to(images)).clamp(-1.0, 2.0)


CORRUPTIONS: Mapping[str, tuple[Callable[[Tensor, float, int], Tensor], tuple[float, ...]]] = (
    MappingProxyType(
        {
            "blur": (blur, (0.0, 0.36, 0.37, 0.38, 0.39)),
            "swirl": (swirl, (0.0, 0.25, 0.3, 0.35, 0.4, 0.5)),
            "noise": (noise, (0.0, *(k / 1_000 for k in range(1, 9)))),
        }
    )
)
"""Name -> function (images, strength, seed) -> images, and the strengths of the paper's Table 1."""


@dataclass(frozen=True, eq=False)
class ImageLaw:
    """The features of a random image of the class that x is one-hot for."""

    features: Tensor
    """Of all images, (m, f)."""
    by_class: tuple[Tensor, ...]
    """The rows of each class."""

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, f) given x (n, classes)."""
        generator = torch_generator(child_seed(seed, 0))
        share = torch.rand(num_samples, len(x), generator=generator)
        rows = torch.empty(num_samples, len(x), dtype=torch.long)
        for known, members in enumerate(self.by_class):
            those = x.argmax(dim=1) == known
            at = (share[:, those] * len(members)).long().clamp_max(len(members) - 1)
            rows[:, those] = members[at]
        return self.features[rows]

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Raise, for a set of images has no density.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("a set of images offers draws only.")


def image_corruption(
    name: str,
    images: Tensor,
    labels: Tensor,
    features: nn.Module,
    *,
    folder: Path | str | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Failure:
    """Corrupted images in place of clean ones; the strength is that of the corruption.

    Args:
        name: in :data:`CORRUPTIONS`.
        images: (m, 3, h, w) in [0, 1], as :func:`load_cifar10` gives them.
        labels: classes 0, 1, ... of the images, (m,).
        features: images (n, 3, h, w) -> features (n, f), such as :func:`load_inception`; what is
            kept is found again by its type, its weights and its other attributes.
        folder: where features are kept and found again; nowhere when omitted.
        seed: of the noise.
        progress: whether to show a bar while features are computed.

    Raises:
        ValueError: if there is no such corruption, the images are not as described, or
            ``features`` has attributes that cannot be read.

    Source: "The surprising strength of weak classifiers for two-sample testing", Section 3.2, B.3.
    """
    if name not in CORRUPTIONS:
        raise ValueError(f"`name` must be one of {', '.join(CORRUPTIONS)}; got {name!r}.")
    _check_images(images, labels)
    labels = labels.long()
    corrupt, strengths = CORRUPTIONS[name]
    settings = (described(features, "features"), described((images, labels)), seed)
    full_name = name_with_settings(name, *settings)
    clean = name_with_settings("clean", *settings)
    # All classes below the largest, present or not, so that x has one width.
    num_classes = int(labels.max()) + 1
    by_class = tuple((labels == k).nonzero()[:, 0] for k in range(num_classes))

    def law(strength: float) -> Law:
        # One file of clean features for every corruption.
        stem = f"{full_name}-{float(strength)!r}" if strength else clean
        path = None if folder is None else Path(folder) / f"{stem}.safetensors"
        found = kept_tensors(
            path,
            lambda: {"features": _extracted(features, corrupt(images, strength, seed), progress)},
        )
        return ImageLaw(found["features"], by_class)

    def observe(n: int, seed: int) -> Tensor:
        rows = torch.randint(len(labels), (n,), generator=torch_generator(seed))
        return functional.one_hot(labels[rows], num_classes).float()

    return Failure(
        full_name,
        strengths,
        lambda strength: (law(0.0), law(strength)),
        observe,
        "The surprising strength of weak classifiers, Figure 3 and Table 1",
    )


def _extracted(features: nn.Module, images: Tensor, progress: bool) -> Tensor:
    batches = images.split(_ROWS_AT_ONCE)
    parts = []
    with torch.no_grad(), progress_bar(len(batches), "features", progress) as advance:
        for batch in batches:
            parts.append(features(batch).float())
            advance()
    return torch.cat(parts)


def _check_images(images: Tensor, labels: Tensor) -> None:
    if images.ndim != 4 or images.shape[1] != 3 or len(images) == 0:
        raise ValueError(f"`images` must have shape (m, 3, h, w); got {tuple(images.shape)}.")
    if not (float(images.min()) >= 0.0 and float(images.max()) <= 1.0):
        raise ValueError("`images` must lie in [0, 1]; divide bytes by 255.")
    if labels.shape != (len(images),):
        raise ValueError(
            f"`labels` must have one class an image, shape ({len(images)},); "
            f"got {tuple(labels.shape)}."
        )
    if labels.is_floating_point() or labels.is_complex():
        raise ValueError(f"`labels` must be whole numbers; got {labels.dtype}: use labels.long().")
    if int(labels.min()) < 0:
        raise ValueError(f"`labels` must be 0 or more; got {int(labels.min())}.")
