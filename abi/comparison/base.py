r"""A logistic regression on features, their squares and products: what a network begins from.

    l_m(f) = a_m + b_m . phi(f),   phi(f) = (f_j, f_j^2, f_j f_k)

It is exact where log p(x | m) is quadratic in the features, as it is for normal data of known
variance, and there it needs a tenth of the pairs that a network needs. Products are left out where
the pairs are few for so many, squares where they are fewer still. A ridge keeps what the pairs do
not tell near 0.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

_PAIRS_A_TERM = 40  # of training
_STEPS = 60
_RIDGE = 1.0  # of a coefficient of a column with sd 1, beside the sum of losses


class Quadratic(nn.Module):
    """Logits (n, M) from features (n, k), found by :func:`fitted`; a network does not move them."""

    center: Tensor
    scale: Tensor
    weights: Tensor

    def __init__(self, center: Tensor, scale: Tensor, weights: Tensor, order: int):
        super().__init__()
        self.register_buffer("center", center)
        self.register_buffer("scale", scale)
        self.register_buffer("weights", weights)
        self.order = order

    def forward(self, features: Tensor) -> Tensor:
        """Map features (n, k) to logits (n, M)."""
        columns = (expanded(features, self.order) - self.center) / self.scale
        logits: Tensor = columns @ self.weights[1:] + self.weights[0]
        return logits

    @staticmethod
    def blank(num_features: int, count: int, order: int) -> Quadratic:
        """One of the right shapes, for the weights of a file."""
        width = expanded(torch.zeros(1, num_features), order).shape[1]
        ones = torch.ones(width)
        return Quadratic(torch.zeros(width), ones, torch.zeros(1 + width, count), order)


def expanded(features: Tensor, order: int) -> Tensor:
    """phi(f): the features (order 0), their squares too (1), their products too (2)."""
    parts = [features]
    if order > 0:
        parts.append(features.square())
    if order > 1:
        row, column = torch.triu_indices(features.shape[1], features.shape[1], 1)
        parts.append(features[:, row] * features[:, column])
    return torch.cat(parts, dim=1)


def affordable(num_features: int, num_pairs: int) -> int:
    """The largest order for which there are enough pairs a term."""
    terms = num_features, 2 * num_features, num_features * (num_features + 3) // 2
    return max((k for k in (1, 2) if _PAIRS_A_TERM * terms[k] <= num_pairs), default=0)


def fitted(features: Tensor, model: Tensor, weights: Tensor, shares: Tensor) -> Quadratic:
    """Fit to features of models.

    Args:
        features: what is seen of x, (n, k).
        model: the number of the model that made it, (n,).
        weights: of the pairs, (n,).
        shares: log share of each model among them, (M,).
    """
    order = affordable(features.shape[1], len(features))
    columns = expanded(features, order)
    center, scale = columns.mean(dim=0), columns.std(dim=0)
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    columns = (columns - center) / scale
    values = torch.zeros(1 + columns.shape[1], len(shares), requires_grad=True)
    optimizer = torch.optim.LBFGS([values], max_iter=_STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        logits = columns @ values[1:] + values[0] + shares
        losses = cross_entropy(logits, model, reduction="none")
        penalty = _RIDGE / 2 * values[1:].square().sum()
        total = ((weights * losses).sum() + penalty) / len(features)
        total.backward()
        return total.detach()

    optimizer.step(closure)
    return Quadratic(center, scale, values.detach(), order)
