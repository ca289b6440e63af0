r"""The Gaussian posteriors of NPTBench, and their neighbours with heavier tails.

    x ~ N(1_m, I_m),   theta | x ~ N(W1 x, |W2'x| Sigma),   Sigma_ij = 0.9^|i - j|,

with W1 (s, m) and W2 (m,) standard normal and fixed. Every perturbation keeps the eigenvectors V of
Sigma, so in that basis each law is a product of location and scale:

    theta = c W1 x + V diag(sqrt(k |W2'x| lambda_i + e 1{i = min})) z,   z ~ N(0, I) or t_nu.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.random import child_seed, torch_generator
from simulators.summary import summary

_CORRELATION = 0.9


@dataclass(frozen=True, eq=False)
class GaussianFamily:
    """The fixed matrices, in double precision: W1 (s, m), W2 (m,), and Sigma's spectrum.

    Its eigenvalues (s,) ascend, its eigenvectors (s, s) are columns.
    """

    w1: Tensor
    w2: Tensor
    eigenvalues: Tensor
    eigenvectors: Tensor

    __repr__ = summary

    @staticmethod
    def of(x_dim: int, theta_dim: int, seed: int = 0) -> GaussianFamily:
        """The family with matrices drawn at ``seed``."""
        for argument, width in (("x_dim", x_dim), ("theta_dim", theta_dim)):
            if not hasattr(width, "__index__") or width < 1:
                raise ValueError(
                    f"`{argument}` must be a whole number of at least 1; got {width!r}; give a "
                    "pair of widths as two arguments."
                )
        generator = torch_generator(child_seed(seed, 0))
        index = torch.arange(theta_dim)
        sigma = _CORRELATION ** (index[:, None] - index).abs().double()
        return GaussianFamily(
            torch.randn(theta_dim, x_dim, generator=generator, dtype=torch.float64),
            torch.randn(x_dim, generator=generator, dtype=torch.float64),
            *torch.linalg.eigh(sigma),
        )

    def observe(self, n: int, seed: int) -> Tensor:
        """Observations N(1, I), (n, m)."""
        return 1.0 + torch.randn(n, len(self.w2), generator=torch_generator(seed))

    def mean(self, x: Tensor) -> Tensor:
        """W1 x for x (n, m): (n, s)."""
        return x.double() @ self.w1.T

    def spread(self, x: Tensor) -> Tensor:
        """|W2'x| for x (n, m): (n,)."""
        return (x.double() @ self.w2).abs()


@dataclass(frozen=True, eq=False)
class EllipticalLaw:
    """One law of the family: its location and scale changed, its tails as heavy as asked."""

    family: GaussianFamily
    mean_factor: float = 1.0
    """c: the mean is c W1 x."""
    covariance_factor: float = 1.0
    """k: the scale matrix is k |W2'x| Sigma + ..."""
    extra_variance: float = 0.0
    """e: ... + e v_min v_min'."""
    inverse_df: float = 0.0
    """1/nu of a t law; 0 for the Gaussian."""

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, s) given x (n, m)."""
        family = self.family
        generator = torch_generator(child_seed(seed, 0))
        z = torch.randn(num_samples, len(x), len(family.w1), generator=generator)
        if self.inverse_df > 0:
            z = z / self._chi(z.shape[:2], child_seed(seed, 1))[..., None]
        turned = (z * self._deviations(x).float()) @ family.eigenvectors.T.float()
        return (self.mean_factor * family.mean(x)).float() + turned

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Normalised log density, theta (K, n, s), x (n, m) -> (K, n)."""
        deviations = self._deviations(x)
        centred = theta.double() - self.mean_factor * self.family.mean(x)
        away = (centred @ self.family.eigenvectors / deviations).square().sum(dim=-1)
        volume = deviations.log().sum(dim=-1)
        return (_radial(away, theta.shape[-1], self.inverse_df) - volume).float()

    def _deviations(self, x: Tensor) -> Tensor:
        """Standard deviations along the eigenvectors, (n, s); the first is v_min's."""
        values = self.covariance_factor * self.family.spread(x)[:, None] * self.family.eigenvalues
        values[:, 0] += self.extra_variance
        return values.sqrt()

    def _chi(self, shape: torch.Size, seed: int) -> Tensor:
        """sqrt(chi^2_nu / nu) (K, n): what divides a Gaussian draw into one of t_nu.

        torch draws gamma variates from the global stream only, so numpy's do here.
        """
        import numpy as np

        df = 1.0 / self.inverse_df
        drawn = np.random.default_rng(seed).chisquare(df, size=tuple(shape)) / df
        # At nu < 1 a chi-square can underflow; the smallest float keeps the draw finite.
        return torch.from_numpy(drawn).clamp_min(1e-30).sqrt().float()


def _radial(away: Tensor, width: int, inverse_df: float) -> Tensor:
    """Log density at squared distance ``away`` of N(0, I) or t_nu in ``width`` dimensions."""
    if inverse_df == 0:
        return -0.5 * (away + width * math.log(2 * math.pi))
    df = 1.0 / inverse_df
    constant = math.lgamma((df + width) / 2) - math.lgamma(df / 2)
    constant -= 0.5 * width * math.log(df * math.pi)
    return constant - 0.5 * (df + width) * torch.log1p(away / df)
