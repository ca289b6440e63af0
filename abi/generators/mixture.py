"""A mixture of Gaussians on the prior's support, fitted by EM; its size is chosen by BIC.

With one component on an unbounded support this is moment matching, the generator of Lu & Wong
(2025), Appendix C.1.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from simulators.random import child_seed, isolated_rng
from simulators.summary import summary

from ..training.torch_settings import unvalidated
from .base import GeneratorState, units
from .support import Support

_MAX_SEED = (1 << 32) - 1  # scikit-learn's limit


@dataclass(frozen=True, eq=False)
class MixtureModel:
    """Weights (k,), means (k, d) and Cholesky factors (k, d, d) on the real line."""

    weights: Tensor
    means: Tensor
    factors: Tensor
    support: Support

    __repr__ = summary

    @unvalidated()
    def sample(self, num_samples: int, seed: int) -> Tensor:
        """Draw (num_samples, d)."""
        with isolated_rng(seed):
            return self.support.from_real(self._distribution().sample((num_samples,)))

    @unvalidated()
    def log_prob(self, theta: Tensor) -> Tensor:
        """Log density at theta (n, d) -> (n,), -inf outside the support."""
        out = torch.full((len(theta),), -torch.inf, dtype=self.means.dtype)
        inside = self.support.contains(theta)
        z = self.support.to_real(theta[inside])
        out[inside] = self._distribution().log_prob(z) - self.support.log_jacobian(z)
        return out

    def state(self) -> GeneratorState:
        """Weights, moments and support."""
        tensors = {"weights": self.weights, "means": self.means, "factors": self.factors}
        tensors |= {"lower": self.support.lower, "upper": self.support.upper}
        return GeneratorState("mixture", tensors, {})

    def _distribution(self) -> MixtureSameFamily:
        parts = MultivariateNormal(self.means, scale_tril=self.factors)
        return MixtureSameFamily(Categorical(self.weights), parts)


def fit_mixture(theta: Tensor, support: Support, *, max_components: int, seed: int) -> MixtureModel:
    """Fit mixtures of 1 .. max_components Gaussians to theta (n, d) and keep the best by BIC."""
    z = support.to_real(theta).double()
    _, spread, _ = units(z)
    most = max(1, min(max_components, len(theta) // (5 * theta.shape[1])))
    with isolated_rng(seed):  # importing scikit-learn moves Python's global stream
        best = _best_by_bic((z / spread).numpy(), most, seed)
    factors = torch.linalg.cholesky(torch.from_numpy(best.covariances_))
    return MixtureModel(
        torch.from_numpy(best.weights_).float(),
        (torch.from_numpy(best.means_) * spread).float(),
        (spread[:, None] * factors).float(),
        support,
    )


def _best_by_bic(standard: NDArray[np.float64], most: int, seed: int) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    candidates = []
    for count in range(1, most + 1):
        candidate = GaussianMixture(count, random_state=child_seed(seed, count) % _MAX_SEED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # BIC judges what EM reached
            candidates.append(candidate.fit(standard))
    return min(candidates, key=lambda candidate: candidate.bic(standard))


def restore_mixture(state: GeneratorState) -> MixtureModel:
    """The model behind a state."""
    tensors = state.tensors
    support = Support(tensors["lower"], tensors["upper"])
    return MixtureModel(tensors["weights"], tensors["means"], tensors["factors"], support)
