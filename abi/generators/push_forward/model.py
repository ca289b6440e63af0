"""Networks that turn noise into theta: a law with draws and no density.

    u = G(n),   n ~ N(0, I_k),   theta = S(m + s u),

with S the map from the real line to the prior's support (:mod:`abi.generators.support`), m and s
the mean and standard deviation of the theta it was fitted to, there. What G was trained by is
another matter: :mod:`.potnet` and :mod:`.wgan` both leave such a network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from simulators.random import isolated_rng, torch_generator
from simulators.summary import summary

from ...training.relu import relu_network
from ..base import GeneratorState, units, unprefixed
from ..support import Support

NOISE_PER_PARAMETER = 2  # as many as theta would do; more let separate modes part sooner


class Conditioned(nn.Module):
    """A ReLU network of values and, where it has an embedding, of features of x beside them.

    Args:
        widths: of the values, the hidden layers and the output.
        embedding: x (n, p) -> features (n, k), trained along; None where there is no x.
        num_features: k.
        seed: of the initial weights.
    """

    def __init__(
        self,
        widths: Sequence[int],
        embedding: nn.Module | None = None,
        num_features: int = 0,
        *,
        seed: int,
    ):
        super().__init__()
        self.embedding = embedding
        with isolated_rng(seed):
            self.layers = relu_network((widths[0] + num_features, *widths[1:]))

    def forward(self, values: Tensor, x: Tensor | None = None) -> Tensor:
        """Map values (n, m), and x (n, p) where there is one, to the output (n, d)."""
        if self.embedding is not None:
            values = torch.cat([values, self.embedding(x)], dim=1)
        out: Tensor = self.layers(values)
        return out


def noise_dim(theta_dim: int) -> int:
    """Values of noise k that a draw of theta (d,) is made from."""
    return NOISE_PER_PARAMETER * theta_dim


def standardised(theta: Tensor, support: Support) -> tuple[Tensor, Tensor, Tensor]:
    """Put theta (n, d) on the real line as u = (z - centre) / scale: u (n, d), (d,) and (d,)."""
    z = support.to_real(theta)
    center, scale, _ = units(z)
    return (z - center) / scale, center, scale


def energy_score(network: nn.Module, noise: Tensor, u: Tensor, x: Tensor | None = None) -> Tensor:
    """The mean energy score of the network's draws at rows it was not trained on, a scalar.

        ES = E |G(n, x) - u| - 1/2 E |G(n, x) - G(n', x)|

    is least, in expectation, where the draws given x have the law of u given x: it judges location,
    spread and dependence together and needs no density.

    Args:
        network: (noise, x) -> u.
        noise: (m, n, k), m draws a row, m even.
        u: held-out rows, (n, d).
        x: what they are given, (n, p).

    Source: Gneiting & Raftery (2007), Section 4.3.
    """
    many = None if x is None else x.repeat(len(noise), 1)
    draws = network(noise.flatten(0, 1), many).reshape(len(noise), *u.shape)
    first, second = draws.chunk(2)
    score: Tensor = (draws - u).norm(dim=2).mean() - 0.5 * (first - second).norm(dim=2).mean()
    return score


@dataclass(frozen=True, eq=False)
class PushForwardModel:
    """A fitted network of noise; ``kind`` names what it was trained by."""

    kind: str
    network: Conditioned
    support: Support
    center: Tensor
    scale: Tensor
    hidden: tuple[int, ...]

    __repr__ = summary

    @torch.no_grad()
    def sample(self, num_samples: int, seed: int) -> Tensor:
        """Draw (num_samples, d)."""
        shape = num_samples, noise_dim(len(self.center))
        u = self.network(
            torch.randn(shape, generator=torch_generator(seed), dtype=self.center.dtype)
        )
        return self.support.from_real(u * self.scale + self.center)

    def log_prob(self, theta: Tensor) -> Tensor:
        """There is none.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            f"The generator {self.kind!r} draws theta and has no density; 'flow' and 'mixture' "
            "have one."
        )

    def state(self) -> GeneratorState:
        """Weights, scaling and support."""
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {"center": self.center, "scale": self.scale}
        tensors |= {"lower": self.support.lower, "upper": self.support.upper}
        return GeneratorState(self.kind, tensors, {"hidden": self.hidden})


def restore_push_forward(state: GeneratorState) -> PushForwardModel:
    """The model behind a state."""
    tensors, hidden = state.tensors, tuple(state.values["hidden"])
    network = noise_network(len(tensors["center"]), hidden, seed=0)
    network.load_state_dict(unprefixed("network", tensors))
    support = Support(tensors["lower"], tensors["upper"])
    return PushForwardModel(
        state.kind, network.eval(), support, tensors["center"], tensors["scale"], hidden
    )


def noise_network(theta_dim: int, hidden: tuple[int, ...], seed: int) -> Conditioned:
    """An untrained network, noise (n, k) -> u (n, d)."""
    return Conditioned((noise_dim(theta_dim), *hidden, theta_dim), seed=seed)
