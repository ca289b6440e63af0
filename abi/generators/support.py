"""The prior's support: where it is known, generators live on it and never leak outside.

Each coordinate is mapped to the real line: theta = low + (high - low) Phi(z) on an interval, which
turns a uniform prior into a standard normal, theta = low + exp(z) on a half-line, and theta = z
where nothing is known. A prior that offers ``log_prob`` cuts proposals further: theta of density
zero are not simulated, but the posterior's flow may leak there. A prior that is only a sampler has
no known support; give it a ``support`` attribute (a ``torch.distributions.constraints`` interval)
if it has hard edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints

from simulators import Prior, sample_prior

from ..training.torch_settings import unvalidated

_EDGE = 1e-6  # of a box's width: nearer its ends their distance counts, for shares lose it
_FAR = 4.7  # sds: what is less far out is farther from an end than that


@dataclass(frozen=True, eq=False)
class Support:
    """A box with possibly infinite sides: ``lower`` (d,), ``upper`` (d,)."""

    lower: Tensor
    upper: Tensor

    @classmethod
    def of(cls, prior: Prior, theta_dim: int) -> Support:
        """The box that the prior declares through ``support``, or the whole space.

        Raises:
            TypeError: if what it declares is no constraint.
            ValueError: if that is not one of theta_dim parameters.
        """
        try:
            declared = getattr(prior, "support", None)
        except NotImplementedError:  # torch distributions that declare none raise
            declared = None
        if declared is not None and not isinstance(declared, constraints.Constraint):
            raise TypeError(
                "`prior`: its `support` must be a constraint, such as "
                f"torch.distributions.constraints.interval(low, high); got {declared!r}."
            )
        lower, upper = _bounds(declared, theta_dim)
        if not lower.shape == upper.shape == (theta_dim,):
            raise ValueError(
                f"`prior`: its `support` has {tuple(lower.shape)} ends for {theta_dim} parameters."
            )
        return cls(lower, upper)

    @classmethod
    def everywhere(cls, theta_dim: int) -> Support:
        """All of space."""
        return cls(torch.full((theta_dim,), -torch.inf), torch.full((theta_dim,), torch.inf))

    def to_real(self, theta: Tensor) -> Tensor:
        """Map the inside of the box to the real line, (n, d) -> (n, d)."""
        z = theta.clone()
        boxed, above, below = self._kinds()
        low, high = self.lower, self.upper
        z[:, boxed] = self._box_to_real(theta[:, boxed])
        z[:, above] = torch.log(torch.maximum(theta - low, _resolution(low)))[:, above]
        z[:, below] = torch.log(torch.maximum(high - theta, _resolution(high)))[:, below]
        return z

    def from_real(self, z: Tensor) -> Tensor:
        """The inverse of :meth:`to_real`."""
        theta = z.clone()
        boxed, above, below = self._kinds()
        low, high = self.lower, self.upper
        theta[:, boxed] = self._box_from_real(z[:, boxed])
        theta[:, above] = low[above] + torch.exp(z[:, above])
        theta[:, below] = high[below] - torch.exp(z[:, below])
        return theta

    def _box_to_real(self, theta: Tensor) -> Tensor:
        """Where theta (n, b) of parameters in a box lie on the real line.

        A prior may reach over decades: near an end, what counts is the distance from it.
        """
        low, high = self.lower[self.boxed], self.upper[self.boxed]
        share = (theta - low) / (high - low)
        z: Tensor = torch.special.ndtri(share.clamp(_EDGE, 1.0 - _EDGE))
        near = (z.abs() > _FAR).any(dim=1)
        if near.any():
            below, above = share[near], (high - theta[near]) / (high - low)
            at_low = torch.special.ndtri(below.maximum(_nearest(low, high)))
            at_high = -torch.special.ndtri(above.maximum(_nearest(high, low)))
            z[near] = z[near].where(below > _EDGE, at_low).where(above > _EDGE, at_high)
        return z

    def _box_from_real(self, z: Tensor) -> Tensor:
        """The inverse of :meth:`_box_to_real`."""
        low, high = self.lower[self.boxed], self.upper[self.boxed]
        theta: Tensor = low + (high - low) * torch.special.ndtr(z)
        near = (z.abs() > _FAR).any(dim=1)
        if near.any():
            # Far out torch's float32 distribution function is 0; its logarithm is exact.
            below, above = (torch.special.log_ndtr(side).exp() for side in (z[near], -z[near]))
            at_low = low + (high - low) * below.maximum(_nearest(low, high))
            at_high = high - (high - low) * above.maximum(_nearest(high, low))
            theta[near] = theta[near].where(below > _EDGE, at_low).where(above > _EDGE, at_high)
        return theta

    def log_jacobian(self, z: Tensor) -> Tensor:
        """Log of |d theta / d z|, (n, d) -> (n,)."""
        boxed, above, below = self._kinds()
        normal = -0.5 * z**2 - 0.5 * torch.log(torch.tensor(2.0 * torch.pi))
        log_width = torch.log((self.upper - self.lower)[boxed])
        out = (normal[:, boxed] + log_width).sum(dim=1)
        return out + z[:, above].sum(dim=1) + z[:, below].sum(dim=1)

    def contains(self, theta: Tensor) -> Tensor:
        """Whether each row lies in the box, (n, d) -> (n,)."""
        return ((theta >= self.lower) & (theta <= self.upper)).all(dim=1)

    @property
    def boxed(self) -> Tensor:
        """Which parameters are bounded on both sides, (d,)."""
        return torch.isfinite(self.lower) & torch.isfinite(self.upper)

    def _kinds(self) -> tuple[Tensor, Tensor, Tensor]:
        has_low, has_high = torch.isfinite(self.lower), torch.isfinite(self.upper)
        return self.boxed, has_low & ~has_high, ~has_low & has_high


def allowed(prior: Prior, support: Support, theta: Tensor) -> Tensor:
    """Whether each row has positive prior density, as far as the prior can tell, (n, d) -> (n,)."""
    inside = support.contains(theta)
    if hasattr(prior, "log_prob") and inside.any():
        inside[inside.clone()] = prior_log_prob(prior, theta[inside]) > -torch.inf
    return inside


def has_density(prior: Any) -> bool:
    """Whether the prior's ``log_prob`` can be called; distributions of torch may declare none."""
    if not hasattr(prior, "log_prob"):
        return False
    try:
        with unvalidated():  # a mixture asks its parts about each other's draws
            prior.log_prob(sample_prior(prior, 2, seed=0))
    except NotImplementedError:
        return False
    return True


@dataclass(frozen=True)
class _SamplerPrior:
    """A prior that inherits a ``log_prob`` it does not have, without it."""

    prior: Any

    @property
    def support(self) -> Any:
        """That of the prior."""
        return self.prior.support

    def sample(self, sample_shape: Any, /) -> Tensor:
        """Draw (n, d)."""
        return torch.as_tensor(self.prior.sample(sample_shape))


def without_inherited_density(prior: Prior) -> Prior:
    """A prior as it is, or as a sampler where its ``log_prob`` cannot be called."""
    return _SamplerPrior(prior) if hasattr(prior, "log_prob") and not has_density(prior) else prior


def prior_log_prob(prior: Any, theta: Tensor) -> Tensor:
    """Log density of a prior that has one, at theta (n, d) inside its box -> (n,).

    A prior that refuses theta outside its support by a ValueError has no density there.
    """
    if len(theta) == 0:
        return torch.empty(0)
    try:
        with unvalidated():
            value = torch.as_tensor(prior.log_prob(theta)).detach().float()
    except ValueError:
        if len(theta) == 1:
            return torch.full((1,), -torch.inf)
        return torch.cat([prior_log_prob(prior, part) for part in theta.tensor_split(2)])
    # A distribution with a batch shape gives one density a coordinate: they multiply.
    value = value.reshape(len(theta), -1).sum(dim=1)
    return torch.where(value.isnan(), -torch.inf, value)


def _resolution(end: Tensor) -> Tensor:
    """The least distance from an end (d,) that float32 can tell from none."""
    return (0.5 * torch.finfo(torch.float32).eps * end.abs()).clamp(min=1e-30)


def _nearest(end: Tensor, other: Tensor) -> Tensor:
    """The least distance from an end of a box (b,) that is kept, of its width."""
    return (2.0 * _resolution(end) / (other - end).abs()).clamp_max(_EDGE)


def _bounds(support: Any, theta_dim: int) -> tuple[Tensor, Tensor]:
    """Ends (d,) of a constraint of torch.distributions, infinite where it has none."""
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    if hasattr(support, "cseq"):  # parameters with priors of their own, one after the other
        lengths = getattr(support, "lengths", [1] * len(support.cseq))
        parts = [_bounds(c, n) for c, n in zip(support.cseq, lengths, strict=True)]
        return torch.cat([low for low, _ in parts]), torch.cat([high for _, high in parts])
    # Whole numbers are taken for the intervals around them.
    margin = 0.5 if getattr(support, "is_discrete", False) else 0.0
    lower = torch.as_tensor(getattr(support, "lower_bound", -torch.inf), dtype=torch.float32)
    upper = torch.as_tensor(getattr(support, "upper_bound", torch.inf), dtype=torch.float32)
    if lower.ndim > 1:  # a mixture, whose components have ends of their own: the outermost
        lower, upper = lower.flatten(0, -2).amin(dim=0), upper.flatten(0, -2).amax(dim=0)
    return _ends(lower - margin, theta_dim), _ends(upper + margin, theta_dim)


def _ends(value: Tensor, theta_dim: int) -> Tensor:
    """One end for all parameters, or one of each."""
    return value.reshape(1).repeat(theta_dim) if value.numel() == 1 else value.clone()
