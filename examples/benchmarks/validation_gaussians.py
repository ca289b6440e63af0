"""The Gaussian family of the validation papers: the exact conditional is known.

x ~ N(1, I_m), theta | x ~ N(W1 x, |W2'x| Sigma) with Sigma_ij = 0.9^|i - j|; W1 (s, m) and W2 (m,)
standard normal and fixed by ``seed`` (Chen, Bansal & Scott 2025, Appendix C.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class GaussianFamily:
    w1: Tensor
    w2: Tensor
    factor: Tensor

    @staticmethod
    def of(x_dim: int = 3, theta_dim: int = 3, seed: int = 0) -> GaussianFamily:
        generator = torch.Generator().manual_seed(seed)
        index = torch.arange(theta_dim)
        sigma = 0.9 ** (index[:, None] - index).abs().float()
        return GaussianFamily(
            torch.randn(theta_dim, x_dim, generator=generator),
            torch.randn(x_dim, generator=generator),
            torch.linalg.cholesky(sigma),
        )

    def observe(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        return 1.0 + torch.randn(n, len(self.w2), generator=generator)

    def conditional(
        self, num_samples: int, x: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Exact draws (num_samples, n, s): the posterior under test when the null is true."""
        noise = torch.randn(num_samples, len(x), len(self.w1), generator=generator)
        spread = (x @ self.w2).abs().sqrt()[:, None]
        return x @ self.w1.T + spread * (noise @ self.factor.T)

    def joint(self, n: int, seed: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        x = self.observe(n, generator)
        return self.conditional(1, x, generator)[0], x
