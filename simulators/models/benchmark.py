"""The public benchmark of simulation-based inference: ten tasks by their names there.

========================= ============ ======= ====================================================
name                      theta_dim    x_dim   exact posterior
========================= ============ ======= ====================================================
two_moons                 2            2       solved for theta, rejected outside the box
slcp                      5            8       tempered sequential Monte Carlo on one mode of four
slcp_distractors          5            100     that of slcp, given eight of the hundred values
gaussian_mixture          2            2       closed form
gaussian_linear           10           10      closed form
gaussian_linear_uniform   10           10      truncated normals
bernoulli_glm             10           10      independence Metropolis
bernoulli_glm_raw         10           100     the same, given the sums of the hundred spikes
sir                       2            10      independence Metropolis on a box cut into cells
lotka_volterra            4            20      independence Metropolis
========================= ============ ======= ====================================================

Source: Lueckmann, Boelts, Greenberg, Goncalves & Macke (2021), "Benchmarking simulation-based
inference".
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..base import Task
from .bernoulli_glm import BernoulliGLM
from .gaussian_linear import GaussianLinear
from .gaussian_linear_uniform import GaussianLinearUniform
from .gaussian_mixture import GaussianMixture
from .multimodal_gaussian.distractors import SLCPDistractors
from .multimodal_gaussian.model import SLCP
from .ode.lotka_volterra import LotkaVolterraODE
from .ode.sir import SIR
from .two_moons import TwoMoons

TASKS: Mapping[str, Task] = MappingProxyType(
    {
        "two_moons": TwoMoons(),
        "slcp": SLCP(),
        "slcp_distractors": SLCPDistractors(),
        "gaussian_mixture": GaussianMixture(),
        "gaussian_linear": GaussianLinear(),
        "gaussian_linear_uniform": GaussianLinearUniform(),
        "bernoulli_glm": BernoulliGLM(),
        "bernoulli_glm_raw": BernoulliGLM("raw"),
        "sir": SIR(),
        "lotka_volterra": LotkaVolterraODE(),
    }
)
"""The ten tasks of Lueckmann et al. (2021), each by its name there, as it is defined there."""
