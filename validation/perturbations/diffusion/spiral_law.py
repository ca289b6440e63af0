r"""The spiral: a diffusion model that stops a few reverse steps too early.

    x ~ U[1.5 pi, 4.5 pi],   theta = (x cos x, x sin x),

so that the exact posterior is a point. A diffusion model
(:mod:`~validation.perturbations.diffusion.edm`) learns it from 32,768 pairs. The truth p is not
that point but what the model draws after all its 20 reverse steps, the best it has; the estimate q
is what it draws after 20 - a of them. There a perfect model would leave noise t_(20 - a), in units
in which theta has standard deviation 0.5:

====== ====== ====== ====== ====== ====== ======
a      0      1      2      3      4      5
noise  0      0.002  0.007  0.018  0.045  0.099
====== ====== ====== ====== ====== ====== ======

Where our model's own error is larger than the noise, the last steps are hard to tell apart.

The paper does not say how theta is scaled nor what network it has: theta has standard deviation 0.5
here, which EDM's constants are made for, and the network is a small one.
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor

from simulators.random import child_seed, torch_generator

from ..kept import name_with_settings
from ..task import Failure, Law
from .edm import DiffusionLaw, DiffusionTraining, fit_denoiser, noise_levels

_NUM_STEPS = 20
_NUM_PAIRS = 32_768


def spiral_points(x: Tensor) -> Tensor:
    """(x cos x, x sin x) for x (..., 1): (..., 2)."""
    return torch.cat([x * x.cos(), x * x.sin()], dim=-1)


def spiral(
    training: DiffusionTraining | None = None,
    *,
    folder: Path | str | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Failure:
    """The spiral with a diffusion model; its strength is the number of steps that q leaves out.

    Args:
        training: of the model, which takes 10 seconds of one core by default.
        folder: where the trained model is kept and found again; nowhere when omitted.
        seed: of the model and its training pairs.
        progress: whether to show a bar while it is trained.

    Raises:
        ValueError: from the failure's ``at``, if a strength is no whole number of steps, or all.

    Source: Chen, Bansal & Scott (2025), Appendices C.3 and D.4, Figures 4 and 7.
    """
    training = training or DiffusionTraining()
    x = _observe(_NUM_PAIRS, child_seed(seed, 0))
    name = name_with_settings("spiral", training, seed)
    path = None if folder is None else Path(folder) / f"{name}.safetensors"
    denoiser = fit_denoiser(spiral_points(x), x, training, path=path, seed=seed, progress=progress)
    levels = noise_levels(_NUM_STEPS)

    def build(strength: float) -> tuple[Law, Law]:
        if strength != round(strength) or strength >= _NUM_STEPS:
            raise ValueError(
                f"`strength` counts reverse steps here, 0 to {_NUM_STEPS - 1}; got {strength}."
            )
        early = levels[: len(levels) - round(strength)]
        return DiffusionLaw(denoiser, levels), DiffusionLaw(denoiser, early)

    return Failure(
        name,
        (0.0, 1.0, 2.0, 3.0, 4.0, 5.0),
        build,
        _observe,
        "Chen, Bansal & Scott (2025), Figures 4 and 7",
    )


def _observe(n: int, seed: int) -> Tensor:
    return math.pi * (1.5 + 3.0 * torch.rand(n, 1, generator=torch_generator(seed)))
