"""Posteriors that are wrong by a known amount: the ground truth for tests of posteriors.

A :class:`Failure` is a way of being wrong. At a chosen strength it becomes a :class:`Task`: a true
posterior p, and an estimate q of it that is wrong by so much. Draws of both are exact; at strength
0 they are the same.

>>> from validation.perturbations import nptbench
>>> task = nptbench("covariance", 3, 3).at(0.8)
>>> theta, x = task.joint(100, seed=1)
>>> task.q.sample(5, x, seed=2).shape
torch.Size([5, 100, 3])
"""

from .catalogue import FAILURES, find_failure
from .diffusion.edm import DiffusionTraining
from .diffusion.spiral_law import spiral
from .gaussians.families import DIMENSIONS, NPTBENCH, nptbench
from .image_features.cifar import load_cifar10
from .image_features.images import CORRUPTIONS, image_corruption
from .image_features.inception import load_inception
from .sphere_law import FlowTraining, sphere
from .task import Failure, Law, Task
from .tree_law import tree
from .turned_boundary import LinearScore, bivariate

__all__ = [
    "CORRUPTIONS",
    "DIMENSIONS",
    "FAILURES",
    "NPTBENCH",
    "DiffusionTraining",
    "Failure",
    "FlowTraining",
    "Law",
    "LinearScore",
    "Task",
    "bivariate",
    "find_failure",
    "image_corruption",
    "load_cifar10",
    "load_inception",
    "nptbench",
    "sphere",
    "spiral",
    "tree",
]
