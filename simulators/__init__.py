"""How does data arise? Models with their priors and exact posteriors, and the runner."""

from typing import TYPE_CHECKING

from .lazy import lazily

if TYPE_CHECKING:
    from .base import Failure, Prior, SeededSimulator, Simulations, Task
    from .gaps.mechanism import with_gaps
    from .gaps.trials import trials
    from .given.command import from_command
    from .given.priors import sample_prior
    from .given.task import CustomTask, from_function, sample_joint
    from .models.benchmark import TASKS
    from .models.bernoulli_glm import BernoulliGLM
    from .models.cosine.model import Cosine
    from .models.gaussian_linear import GaussianLinear
    from .models.gaussian_linear_uniform import GaussianLinearUniform
    from .models.gaussian_mixture import GaussianMixture
    from .models.jansen_rit.model import JansenRit
    from .models.lotka_volterra.model import LotkaVolterra
    from .models.lynx_hare.model import LynxHare
    from .models.mg1.model import MG1
    from .models.multimodal_gaussian.distractors import SLCPDistractors
    from .models.multimodal_gaussian.model import SLCP, MultimodalGaussian
    from .models.ode.lotka_volterra import LotkaVolterraODE
    from .models.ode.sir import SIR
    from .models.two_moons import TwoMoons
    from .runner import simulate
    from .store.folder import forget_failures, load_store
else:  # a fit of your own simulator needs none of the models
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "BernoulliGLM": "models.bernoulli_glm",
            "Cosine": "models.cosine.model",
            "CustomTask": "given.task",
            "Failure": "base",
            "GaussianLinear": "models.gaussian_linear",
            "GaussianLinearUniform": "models.gaussian_linear_uniform",
            "GaussianMixture": "models.gaussian_mixture",
            "JansenRit": "models.jansen_rit.model",
            "LotkaVolterra": "models.lotka_volterra.model",
            "LotkaVolterraODE": "models.ode.lotka_volterra",
            "LynxHare": "models.lynx_hare.model",
            "MG1": "models.mg1.model",
            "MultimodalGaussian": "models.multimodal_gaussian.model",
            "Prior": "base",
            "SIR": "models.ode.sir",
            "SLCP": "models.multimodal_gaussian.model",
            "SLCPDistractors": "models.multimodal_gaussian.distractors",
            "SeededSimulator": "base",
            "Simulations": "base",
            "TASKS": "models.benchmark",
            "Task": "base",
            "TwoMoons": "models.two_moons",
            "forget_failures": "store.folder",
            "from_command": "given.command",
            "from_function": "given.task",
            "load_store": "store.folder",
            "sample_joint": "given.task",
            "sample_prior": "given.priors",
            "simulate": "runner",
            "trials": "gaps.trials",
            "with_gaps": "gaps.mechanism",
        },
    )

__all__ = [
    "MG1",
    "SIR",
    "SLCP",
    "TASKS",
    "BernoulliGLM",
    "Cosine",
    "CustomTask",
    "Failure",
    "GaussianLinear",
    "GaussianLinearUniform",
    "GaussianMixture",
    "JansenRit",
    "LotkaVolterra",
    "LotkaVolterraODE",
    "LynxHare",
    "MultimodalGaussian",
    "Prior",
    "SLCPDistractors",
    "SeededSimulator",
    "Simulations",
    "Task",
    "TwoMoons",
    "forget_failures",
    "from_command",
    "from_function",
    "load_store",
    "sample_joint",
    "sample_prior",
    "simulate",
    "trials",
    "with_gaps",
]
