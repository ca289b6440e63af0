r"""NPTBench: six ways in which a Gaussian posterior goes wrong, and the blind prior.

With mu = W1 x and S = |W2'x| Sigma (:mod:`~validation.perturbations.gaussians.gaussian`), at
strength a:

================== =============================== =================================
failure            truth p                         estimate q
================== =============================== =================================
mean_shift         N(mu, S)                        N((1 + a) mu, S)
covariance         N(mu, S)                        N(mu, (1 + a) S)
anisotropic        N(mu, S)                        N(mu, S + a v_min v_min')
t_tails            N(mu, S)                        t_nu(mu, S), nu = 1 / a
additional_mode    N(mu, S)                        (1 - a) N(mu, S) + a N(-mu, S)
mode_collapse      (1 - a) N(mu, S) + a N(-mu, S)  N(mu, S)
blind_prior        N(mu, S)                        (1 - a) N(mu, S) + a p(theta)
================== =============================== =================================

Curved tasks send both laws through one fixed map, :mod:`~validation.perturbations.gaussians.curve`.

Differs from the paper: nu is 1 / a and not 1 / (a + epsilon), so that strength 0 is exactly p; the
blind prior of the paper is strength 1 here, and lesser strengths mix it with the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..laws import Image, Mixture
from ..task import Failure, Law
from .curve import sine_map
from .gaussian import EllipticalLaw, GaussianFamily
from .marginal import MarginalLaw

_Build = Callable[[GaussianFamily, float], tuple[Law, Law]]


def _estimate(change: Callable[[GaussianFamily, float], Law]) -> _Build:
    """Families whose truth stays the Gaussian, whatever the strength."""
    return lambda family, strength: (EllipticalLaw(family), change(family, strength))


def _two_modes(family: GaussianFamily, strength: float) -> Law:
    opposite = EllipticalLaw(family, mean_factor=-1.0)
    return Mixture(EllipticalLaw(family), opposite, strength)


_FAMILIES: Mapping[str, tuple[_Build, tuple[float, ...]]] = {
    "mean_shift": (
        _estimate(lambda family, a: EllipticalLaw(family, mean_factor=1 + a)),
        (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3),
    ),
    "covariance": (
        _estimate(lambda family, a: EllipticalLaw(family, covariance_factor=1 + a)),
        (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4),
    ),
    "anisotropic": (
        _estimate(lambda family, a: EllipticalLaw(family, extra_variance=a)),
        (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
    ),
    "t_tails": (
        _estimate(lambda family, a: EllipticalLaw(family, inverse_df=a)),
        (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
    ),
    "additional_mode": (
        _estimate(_two_modes),
        (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4),
    ),
    "mode_collapse": (
        lambda family, a: (_two_modes(family, a), EllipticalLaw(family)),
        (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
    ),
    "blind_prior": (
        _estimate(lambda family, a: Mixture(EllipticalLaw(family), MarginalLaw(family), a)),
        (0.0, 0.25, 0.5, 0.75, 1.0),
    ),
}

DIMENSIONS = ((3, 3), (10, 10), (50, 10), (100, 100))
"""(x, theta) in the paper."""


def nptbench(
    name: str, x_dim: int = 3, theta_dim: int = 3, *, curved: bool = False, seed: int = 0
) -> Failure:
    """One of the ways in which the Gaussian posteriors of NPTBench are wrong.

    Args:
        name: one of the table above.
        x_dim: m, width of x, at least 1; the paper's pairs are :data:`DIMENSIONS`.
        theta_dim: s, width of theta, at least 1.
        curved: whether theta is bent afterwards; the laws then have draws and no density.
        seed: of the fixed matrices.

    Raises:
        ValueError: if there is no failure of that name, or a width is below 1.

    Source: Chen, Bansal & Scott (2025), Section 4, Appendix C.2 (Table 1) and C.4 (Table 2).
    """
    if name not in _FAMILIES:
        raise ValueError(f"`name` must be one of {', '.join(_FAMILIES)}; got {name!r}.")
    family = GaussianFamily.of(x_dim, theta_dim, seed)
    change, strengths = _FAMILIES[name]
    bend = sine_map(theta_dim, seed) if curved else None

    def build(strength: float) -> tuple[Law, Law]:
        p, q = change(family, strength)
        return (p, q) if bend is None else (Image(p, bend), Image(q, bend))

    label = f"{name}{'_curved' if curved else ''}_{x_dim}_{theta_dim}"
    label += f"_seed_{seed}" if seed else ""  # another seed is another experiment
    source = "Chen, Bansal & Scott (2025), Table 1"
    return Failure(label, strengths, build, family.observe, source)


NPTBENCH = tuple(_FAMILIES)
"""Names that :func:`nptbench` knows, in the paper's order."""
