"""POTNet: a network of noise trained by optimal transport, joint and coordinate by coordinate.

Between a mini-batch u_1 .. u_n of accepted theta and as many draws v_1 .. v_n of the network,

    loss = W_1(u, v) + lambda sum_j W_1(u^(j), v^(j)),
    W_1(u, v) = min over permutations s of  1/n sum_i |u_i - v_s(i)|,

the joint term an assignment, solved exactly, the marginal ones by sorting. The best assignment is
held while the loss is differentiated (the envelope theorem); there is no critic, and nothing to
keep in balance. Few points a batch make the joint term prefer draws that are too narrow, for in
many dimensions the points of two batches of one law lie far apart; the marginals have no such
preference to speak of.

Differs from the paper: lambda stays as it is instead of fading, and the layers are plain.

Source: Lu, Zhong & Wong (2025), "Efficient generative modeling via penalized optimal transport
network", the marginally-penalised Wasserstein distance; the generator of Lu & Wong (2025).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from simulators.arguments import at_least, layers, of_type, settle
from simulators.random import child_seed, torch_generator

from ...training.loop import TrainingLog, TrainingSettings, train
from ..base import Progress
from ..support import Support
from .model import PushForwardModel, noise_dim, noise_network, standardised

_LARGEST = 512  # points of one assignment, whose cost grows with their cube


@dataclass(frozen=True)
class POTNetSettings:
    """Widths of the hidden layers, lambda, and the training."""

    hidden: tuple[int, ...] = (128, 128)
    marginal_weight: float = 1.0
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(batch_size=256, max_epochs=300)
    )

    def __post_init__(self) -> None:
        settle(
            self,
            hidden=layers(),
            marginal_weight=at_least(0.0),
            training=of_type(TrainingSettings),
        )


def penalised_transport(u: Tensor, v: Tensor, marginal_weight: float) -> Tensor:
    """W_1(u, v) + lambda sum_j W_1(u^(j), v^(j)) between u (n, d) and v (n, d), a scalar.

    >>> a = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    >>> penalised_transport(a, a.flip(0) + torch.tensor([3.0, 4.0]), 1.0)
    tensor(12.)
    """
    from scipy.optimize import linear_sum_assignment

    with torch.no_grad():
        _, partner = linear_sum_assignment(
            torch.cdist(u, v, compute_mode="donot_use_mm_for_euclid_dist").cpu().numpy()
        )
    joint: Tensor = (u - v[torch.from_numpy(partner)]).norm(dim=1).mean()
    marginal: Tensor = (u.sort(dim=0).values - v.sort(dim=0).values).abs().mean(dim=0).sum()
    return joint + marginal_weight * marginal


def fit_potnet(
    theta: Tensor,
    support: Support,
    *,
    settings: POTNetSettings,
    seed: int,
    on_epoch: Progress | None = None,
) -> tuple[PushForwardModel, TrainingLog]:
    """Fit a network of noise to theta (n, d)."""
    u, center, scale = standardised(theta, support)
    network = noise_network(theta.shape[1], settings.hidden, child_seed(seed, 0))
    generator = torch_generator(child_seed(seed, 1))

    def loss(rows: Tensor) -> Tensor:
        # Held-out rows meet the same noise each time, so that the epochs can be compared.
        stream = generator if network.training else torch_generator(child_seed(seed, 2))
        noise = torch.randn(len(rows), noise_dim(theta.shape[1]), generator=stream)
        parts = [
            len(part) * penalised_transport(part, network(given), settings.marginal_weight)
            for part, given in zip(
                rows.split(_LARGEST), noise.to(rows).split(_LARGEST), strict=True
            )
        ]
        return torch.stack(parts).sum() / len(rows)

    key = child_seed(seed, 3)
    log = train(network, loss, (u,), settings.training, key, on_epoch)
    model = PushForwardModel("potnet", network, support, center, scale, settings.hidden)
    return model, log
