r"""A conditional diffusion model: EDM's preconditioned denoiser, its training, Heun's sampler.

The denoiser of noisy parameters ``y = theta + sigma n``, n ~ N(0, I), is a network F in a frame
that gives its input and its target unit variance at every noise level (Table 1, with s = 0.5):

    D(y; x, sigma) = c_skip y + c_out F(c_in y, x, ln(sigma) / 4),
    c_skip = s^2 / (sigma^2 + s^2),  c_out = sigma s / sqrt(sigma^2 + s^2),
    c_in = 1 / sqrt(sigma^2 + s^2),

trained to minimise ``E (|D - theta|^2 / c_out^2)`` over ``ln sigma ~ N(-1.2, 1.2^2)``. Sampling is
the probability-flow equation ``dy / dt = (y - D(y; x, t)) / t`` from t_0 = 80 down N levels to 0,

    t_i = (80^(1/7) + i / (N - 1) (0.002^(1/7) - 80^(1/7)))^7,  t_N = 0,

by Heun's second-order steps, the last one Euler's (Algorithm 1).

Source: Karras, Aittala, Aila & Laine (2022), "Elucidating the design space of diffusion-based
generative models". Their moving average of the weights is a learning rate that falls to 0 here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn

from simulators.arguments import POSITIVE, count, layers, settle
from simulators.random import child_seed, torch_generator

from ...posteriors.protocol import progress_bar
from ...scores.classifiers import feature_scaling
from ..kept import kept_network

_SIGMA_DATA = 0.5
_SIGMA_MAX, _SIGMA_MIN, _RHO = 80.0, 0.002, 7.0
_LOG_MEAN, _LOG_SD = -1.2, 1.2
_ROWS_AT_ONCE = 4_000


@dataclass(frozen=True)
class DiffusionTraining:
    """The denoiser and how it is trained; the defaults take 10 seconds in two dimensions."""

    hidden: tuple[int, ...] = (64, 64, 64)
    """Width of each hidden layer, SiLU between them."""
    learning_rate: float = 3e-3
    """Of Adam at the start; it falls to 0 along a cosine."""
    steps: int = 3_000
    """Of Adam."""
    batch_size: int = 1_024
    """Pairs a step, drawn with replacement."""

    def __post_init__(self) -> None:
        settle(self, hidden=layers(), learning_rate=POSITIVE, steps=count(), batch_size=count())


@dataclass(frozen=True, eq=False)
class Denoiser:
    """D(y; x, sigma), for parameters and data in standard units."""

    network: nn.Module
    """F."""
    theta_scaling: tuple[Tensor, Tensor]
    """Mean (d,), and the scale (d,) that leaves standard deviation 0.5."""
    x_scaling: tuple[Tensor, Tensor]
    """Mean (p,) and standard deviation (p,)."""

    def __call__(self, noisy: Tensor, x: Tensor, sigma: Tensor) -> Tensor:
        """The mean of theta given it with noise ``sigma``.

        Args:
            noisy: y, in standard units, (n, d).
            x: in standard units, (n, p).
            sigma: above 0, (n, 1).
        """
        total = sigma.square() + _SIGMA_DATA**2
        inputs = torch.cat([noisy / total.sqrt(), x, sigma.log() / 4], dim=1)
        out: Tensor = self.network(inputs)
        return _SIGMA_DATA**2 / total * noisy + sigma * _SIGMA_DATA / total.sqrt() * out


@dataclass(frozen=True, eq=False)
class DiffusionLaw:
    """Draws of a diffusion model that stops after some of its reverse steps."""

    denoiser: Denoiser
    levels: Tensor
    """t_0 to t_k, of which the last is the noise that is left in the draws."""

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, d) given x (n, p)."""
        shift, scale = self.denoiser.theta_scaling
        x_shift, x_scale = self.denoiser.x_scaling
        shape = (num_samples, len(x), len(shift))
        noise = torch.randn(shape, generator=torch_generator(child_seed(seed, 0)))
        standard = ((x - x_shift) / x_scale).expand(num_samples, *x.shape).flatten(0, 1)
        parts = [
            heun(partial(self._denoised, known), start, self.levels)
            for start, known in zip(
                noise.flatten(0, 1).split(_ROWS_AT_ONCE),
                standard.split(_ROWS_AT_ONCE),
                strict=True,
            )
        ]
        return torch.cat(parts).reshape(shape) * scale + shift

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Raise, for the density is not computed.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("a diffusion model offers draws only.")

    def _denoised(self, x: Tensor, noisy: Tensor, level: Tensor) -> Tensor:
        return self.denoiser(noisy, x, level.expand(len(noisy), 1))


def noise_levels(num_steps: int) -> Tensor:
    """t_0 > ... > t_N = 0 for N = ``num_steps`` reverse steps, (N + 1,).

    Raises:
        ValueError: if there are fewer than 2 steps.
    """
    if num_steps < 2:
        raise ValueError(f"`num_steps` must be at least 2; got {num_steps}.")
    first, last = _SIGMA_MAX ** (1 / _RHO), _SIGMA_MIN ** (1 / _RHO)
    rising = torch.linspace(first, last, num_steps, dtype=torch.float64) ** _RHO
    return torch.cat([rising, torch.zeros(1, dtype=torch.float64)]).float()


def heun(denoise: Callable[[Tensor, Tensor], Tensor], noise: Tensor, levels: Tensor) -> Tensor:
    """Carry N(0, I) ``noise`` (n, d), at level t_0, down the given levels.

    Args:
        denoise: (y (n, d), t ()) -> the mean of theta, (n, d).
        noise: before it is multiplied by t_0.
        levels: t_0 to t_k, falling.

    Returns:
        The draws at level t_k, (n, d).
    """
    y = levels[0] * noise
    for now, following in pairwise(levels):
        slope = (y - denoise(y, now)) / now
        ahead = y + (following - now) * slope
        if following > 0:
            corrected = (ahead - denoise(ahead, following)) / following
            ahead = y + (following - now) * (slope + corrected) / 2
        y = ahead
    return y


def fit_denoiser(
    theta: Tensor,
    x: Tensor,
    training: DiffusionTraining,
    *,
    path: Path | None,
    seed: int,
    progress: bool = False,
) -> Denoiser:
    """Train a denoiser on joint draws, or take the one that is kept at ``path``.

    Args:
        theta: parameters (N, d).
        x: their data (N, p).
        training: network and schedule.
        path: where its weights are kept; nowhere when None.
        seed: of initial weights, batches and noise.
        progress: whether to show a bar with the time left.
    """
    shift, deviation = feature_scaling(theta)
    x_shift, x_scale = feature_scaling(x)
    scale = deviation / _SIGMA_DATA
    pairs = (theta - shift) / scale, (x - x_shift) / x_scale
    layers = (theta.shape[1] + x.shape[1] + 1, *training.hidden, theta.shape[1])

    def denoiser(network: nn.Module) -> Denoiser:
        return Denoiser(network, (shift, scale), (x_shift, x_scale))

    network = kept_network(
        path,
        lambda: _network(layers),
        lambda network: _train(denoiser(network), pairs, training, seed, progress),
        child_seed(seed, 1),
    )
    return denoiser(network)


def _train(
    denoiser: Denoiser,
    pairs: tuple[Tensor, Tensor],
    training: DiffusionTraining,
    seed: int,
    progress: bool,
) -> None:
    theta, x = pairs
    optimiser = torch.optim.Adam(denoiser.network.parameters(), lr=training.learning_rate)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, training.steps)
    generator = torch_generator(child_seed(seed, 2))
    with progress_bar(training.steps, "diffusion model", progress) as advance:
        for _ in range(training.steps):
            rows = torch.randint(len(theta), (training.batch_size,), generator=generator)
            z = torch.randn(training.batch_size, 1, generator=generator)
            sigma = (_LOG_MEAN + _LOG_SD * z).exp()
            noise = torch.randn(training.batch_size, theta.shape[1], generator=generator)
            missed = denoiser(theta[rows] + sigma * noise, x[rows], sigma) - theta[rows]
            weight = (sigma.square() + _SIGMA_DATA**2) / (sigma * _SIGMA_DATA).square()
            loss = (weight * missed.square()).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            falling.step()
            advance()


def _network(layers: tuple[int, ...]) -> nn.Sequential:
    parts: list[nn.Module] = []
    for inputs, outputs in pairwise(layers):
        parts += [nn.Linear(inputs, outputs), nn.SiLU()]
    return nn.Sequential(*parts[:-1])
