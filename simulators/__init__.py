"""How does data arise? Models with their priors and exact posteriors, and the runner."""

from .base import Failure, Prior, SeededSimulator, Simulations, Task, sample_joint, sample_prior
from .custom import CustomTask, from_function
from .models.bernoulli_glm import BernoulliGLM
from .models.cosine.model import Cosine
from .models.gaussian_linear import GaussianLinear
from .models.gaussian_linear_uniform import GaussianLinearUniform
from .models.gaussian_mixture import GaussianMixture
from .models.jansen_rit.model import JansenRit
from .models.lotka_volterra.model import LotkaVolterra
from .models.lynx_hare.model import LynxHare
from .models.mg1.model import MG1
from .models.multimodal_gaussian.model import SLCP, MultimodalGaussian
from .models.two_moons import TwoMoons
from .runner import simulate
from .store.folder import forget_failures, load_store

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
