"""The networks of CoLT: a point for every x, a metric on theta, and how they are trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from simulators.arguments import POSITIVE, choice, count, device_here, flag, layers, settle
from simulators.random import isolated_rng, torch_generator

from ..seeds import part_seed
from .classifiers import feature_scaling
from .divergences import sinkhorn_to_uniform, wasserstein_to_uniform

Embedding = Literal["full", "residual", "identity"]
"""phi of CoLT: a network; theta plus a network that starts at nothing; theta itself."""
Divergence = Literal["wasserstein", "sinkhorn"]


@dataclass(frozen=True)
class ColtTraining:
    """How the networks of CoLT are built and trained."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers of both networks, centre and embedding; the paper's."""
    learning_rate: float = 1e-5
    """Of Adam; so small that the networks do not learn single pairs by heart."""
    epochs: int = 1_000
    """Steps of Adam."""
    anchors_per_epoch: int = 100
    """Pairs in a step, a random choice of all; the paper's number."""
    draws_per_epoch: int = 25
    """Draws of q at each x in a step, a random choice of all."""
    temperature: float = 0.1
    """Width of the sigmoid that smooths the ranks, in standard deviations of the distances."""
    divergence: Divergence = "wasserstein"
    """What is maximised: how far the ranks are from uniform, measured so."""
    whiten: bool = True
    """Measure theta relative to the mean and covariance of q at each x."""
    device: str = "cpu"
    """Where the networks are, such as "cuda"; results come on the CPU."""

    def __post_init__(self) -> None:
        settle(
            self,
            hidden=layers(),
            learning_rate=POSITIVE,
            epochs=count(),
            anchors_per_epoch=count(),
            draws_per_epoch=count(),
            temperature=POSITIVE,
            divergence=choice(*get_args(Divergence)),
            whiten=flag,
            device=device_here,
        )


@dataclass(frozen=True, eq=False)
class BallNetworks:
    """The localization network theta_l and the embedding phi (None for the identity)."""

    point: nn.Sequential
    embedding: nn.Module | None
    x_shift: Tensor
    x_scale: Tensor

    def centre(self, x: Tensor) -> Tensor:
        """theta_l(x) for x (n, p): (n, d), where x is."""
        centre: Tensor = self.point((x.to(self.x_shift) - self.x_shift) / self.x_scale)
        return centre.to(x.device)

    def distances(self, theta: Tensor, centre: Tensor) -> Tensor:
        """|phi(theta) - phi(centre)| for theta (K, n, d), centre (n, d): (K, n), where theta is."""
        home, device = theta.device, self.x_shift.device
        theta, centre = theta.to(device), centre.to(device)
        if self.embedding is not None:
            theta, centre = self.embedding(theta), self.embedding(centre)
        # The square root has no gradient at zero.
        return (theta - centre).square().sum(dim=-1).clamp_min(1e-20).sqrt().to(home)


def fit_ball_networks(
    theta: Tensor,
    samples: Tensor,
    x: Tensor,
    *,
    embedding: Embedding,
    training: ColtTraining,
    seed: int,
) -> BallNetworks:
    """Maximise the divergence of the anchors' ball ranks from uniform.

    Args:
        theta: anchors (n, d), whitened or not.
        samples: draws of q at the same x, (K, n, d), in the same frame.
        x: (n, p).
        embedding: what phi is; anything but the identity is trained too.
        training: networks and schedule.
        seed: of initial weights and of the draws an epoch looks at.
    """
    width = theta.shape[1]
    with isolated_rng(seed):
        point = _network(x.shape[1], width, training.hidden)
        phi = _embedding(embedding, width, training.hidden)
    theta, samples, x = (part.to(training.device) for part in (theta, samples, x))
    point.to(training.device)  # drawn on the CPU: the same start on every device
    if phi is not None:
        phi.to(training.device)
    networks = BallNetworks(point, phi, *feature_scaling(x))
    weights = [*point.parameters(), *(phi.parameters() if phi is not None else ())]
    optimiser = torch.optim.Adam(weights, lr=training.learning_rate)
    measure = sinkhorn_to_uniform if training.divergence == "sinkhorn" else wasserstein_to_uniform
    generator = torch_generator(part_seed(seed, 1))
    for _ in range(training.epochs):
        rows = torch.randperm(len(x), generator=generator)[: training.anchors_per_epoch]
        some = torch.randperm(len(samples), generator=generator)[: training.draws_per_epoch]
        candidates = torch.cat([theta[rows][None], samples[some[:, None], rows]])
        distances = networks.distances(candidates, networks.centre(x[rows]))
        optimiser.zero_grad()
        (-measure(soft_ranks(distances, training.temperature))).backward()
        optimiser.step()
    for weight in weights:
        weight.requires_grad_(False)
    return networks


def soft_ranks(distances: Tensor, temperature: float) -> Tensor:
    """Ranks (n,) of row 0 of (1 + K, n) among the others: hard forward, sigmoid backward.

    The straight-through estimator of Bengio, Leonard & Courville (2013).
    """
    truth, others = distances[:1], distances[1:]
    spread = others.detach().std(dim=0) if len(others) > 1 else others.detach()[0]
    soft = torch.sigmoid((truth - others) / (temperature * spread).clamp_min(1e-12))
    hard = (others < truth).to(soft.dtype)
    return (hard + soft - soft.detach()).mean(dim=0)


class _Residual(nn.Module):
    """theta + net(theta), the identity at first: a metric that is sensible before it is trained."""

    def __init__(self, net: nn.Sequential) -> None:
        super().__init__()
        self.net = net
        last: nn.Linear = net[-1]  # type: ignore[assignment]  # torch types it as a Module
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, theta: Tensor) -> Tensor:
        moved: Tensor = theta + self.net(theta)
        return moved


def _embedding(kind: Embedding, width: int, hidden: tuple[int, ...]) -> nn.Module | None:
    if kind == "identity":
        return None
    net = _network(width, width, hidden)
    return _Residual(net) if kind == "residual" else net


def _network(inputs: int, outputs: int, hidden: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))
