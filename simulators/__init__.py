"""How does data arise? Models with their priors and exact posteriors, and the runner."""

from .base import (
    Failure,
    Prior,
    SeededSimulator,
    Simulations,
    Task,
    sample_joint,
    sample_prior,
)
from .bernoulli_glm import BernoulliGLM
from .cosine import Cosine
from .custom import CustomTask, from_function
from .gaussian_linear import GaussianLinear
from .gaussian_linear_uniform import GaussianLinearUniform
from .gaussian_mixture import GaussianMixture
from .jansen_rit import JansenRit
from .lotka_volterra import LotkaVolterra
from .lynx_hare import LynxHare
from .mg1 import MG1
from .multimodal_gaussian import SLCP, MultimodalGaussian
from .runner import simulate
from .store import forget_failures, load_store
from .two_moons import TwoMoons

__all__ = [
    "MG1",
    "SLCP",
    "BernoulliGLM",
    "Cosine",
    "CustomTask",
    "Failure",
    "GaussianLinear",
    "GaussianLinearUniform",
    "GaussianMixture",
    "JansenRit",
    "LotkaVolterra",
    "LynxHare",
    "MultimodalGaussian",
    "Prior",
    "SeededSimulator",
    "Simulations",
    "Task",
    "TwoMoons",
    "forget_failures",
    "from_function",
    "load_store",
    "sample_joint",
    "sample_prior",
    "simulate",
]
