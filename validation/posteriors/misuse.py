"""What is taken for a posterior and is none: refused by name, with what to pass in its place.

Without this, each ends in an error from deep inside another library, at the first draw.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution

from simulators.random import isolated_rng

from .signatures import comes_from


def refuse_misuse(obj: Any) -> None:
    """Refuse what is near a posterior but none.

    Raises:
        TypeError: naming what it is, and what to pass.
    """
    for is_it, words in _NEAR_MISSES:
        if is_it(obj):
            name = obj.__name__ if isinstance(obj, type) else type(obj).__name__
            raise TypeError("`q` is " + words.format(name=name))


def _of_sbi(obj: Any) -> bool:
    return comes_from(obj, "sbi")


def _is_class_of_sbi(obj: Any) -> bool:
    return isinstance(obj, type) and obj.__module__.split(".")[0] == "sbi"


def _is_unconditional(flow: Any) -> bool:
    """Whether a zuko flow draws without an x: one with a context lacks its columns."""
    if not comes_from(flow, "zuko"):
        return False
    try:
        with isolated_rng(0), torch.no_grad():
            flow(None).sample((1,))
    except Exception:  # each kind of flow fails in its own way
        return False
    return True


_NEAR_MISSES: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (_is_class_of_sbi,
     "the class {name}, not a posterior: train an object of it, and pass what its "
     "build_posterior() gives."),
    (inspect.isclass, "the class {name}: pass an object of it."),
    (lambda obj: _of_sbi(obj) and hasattr(obj, "build_posterior"),
     "an sbi trainer ({name}), not a posterior: pass what its build_posterior() gives."),
    (lambda obj: _of_sbi(obj) and "abc" in type(obj).__module__.split("."),
     "an sbi {name}, which answers for one x_o at a time: pass PerObservation(lambda x_o: "
     "abc(x_o, ...)), with the settings of one run."),
    (lambda obj: isinstance(obj, Distribution),
     "one distribution ({name}), of no x or read at one already: pass the flow itself, or a "
     "function x -> distribution."),
    (_is_unconditional,
     "a zuko {name} without a context, which cannot look at x: build it with context=, the "
     "number of values of x, or pass a function x -> distribution."),
    (lambda obj: comes_from(obj, "scipy") and (hasattr(obj, "rvs") or hasattr(obj, "sample")),
     "one scipy distribution ({name}), which does not look at x: pass a function x -> "
     "distribution, as lambda x: scipy.stats.norm(x, 1.0)."),
    (lambda obj: comes_from(obj, "bayesflow"),
     "a BayesFlow {name}, which takes and gives dictionaries: pass as_posterior(lambda "
     "num_samples, x, seed: q.sample(num_samples=num_samples, conditions={{'x': x.numpy()}}, "
     "seed=seed)['theta'], layout='observations_first'), with your names for x and theta."),
    (lambda obj: isinstance(obj, Tensor | np.ndarray) or comes_from(obj, "pandas"),
     "an array of samples, which does not say for which observations: pass "
     "as_posterior((theta, x, q_samples), layout='samples_first')."),
    (lambda obj: _of_sbi(obj) and not hasattr(obj, "sample"),
     "an sbi {name}, which does not draw: pass what the trainer's build_posterior() gives."),
    (lambda obj: comes_from(obj, "lampe") and not hasattr(obj, "flow"),
     "a lampe {name}, which has no draws of its own: draw with its sampler at each x, in a "
     "function of (num_samples, x)."),
)  # fmt: skip
"""(is it this?, what it is and what to pass): the first that it is counts."""
