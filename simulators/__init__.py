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
from .custom import CustomTask, from_function
from .gaussian_linear import GaussianLinear
from .mg1 import MG1
from .multimodal_gaussian import MultimodalGaussian
from .runner import simulate
from .store import forget_failures, load_store

__all__ = [
    "MG1",
    "CustomTask",
    "Failure",
    "GaussianLinear",
    "MultimodalGaussian",
    "Prior",
    "SeededSimulator",
    "Simulations",
    "Task",
    "forget_failures",
    "from_function",
    "load_store",
    "sample_joint",
    "sample_prior",
    "simulate",
]
