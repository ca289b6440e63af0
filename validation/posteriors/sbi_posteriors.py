"""Posteriors, ensembles and density estimators of sbi, as batched posteriors.

What sbi samples for many x at once is asked for in batches. What it does not is asked for one x
after the other: rejection and importance sampling, MCMC that is not vectorised, a potential of the
user's own, trials of a likelihood, and variational posteriors, which are trained anew at each x.

An ensemble is the mixture ``sum_c w_c q_c(theta | x)``. sbi's own draws of it take one component
for all x and come component by component, so that the first K of them, which a test may look at,
are one component's. Here each draw at each x has a component of its own.
"""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from simulators.random import isolated_rng

from .flow_bases import sbi_to_base
from .protocol import BatchedPosterior, check_samples
from .sbi_shapes import as_conditions, trained_shape
from .signatures import arguments

Draw = Callable[[int, Tensor], Any]
Looped = Callable[[Tensor], bool]
Density = Callable[[Tensor, Tensor], Any]

# Draws within the prior at each x that tell its share of a component's flow, to 7% at worst.
_LEAKAGE_DRAWS = 200
# What sbi says of the way it is called, which is not its user's but ours.
_NOTES = ("Capping max_sampling_batch_size", "Note that for batched sampling", "The passed number")


def sbi_posterior(posterior: Any) -> BatchedPosterior:
    """A posterior or an ensemble of them, which has ``sample_batched``."""
    name = f"sbi {type(posterior).__name__}"
    base = sbi_to_base(getattr(posterior, "posterior_estimator", None))
    draw, looped = _draw(posterior, name)
    return BatchedPosterior(draw, name, _log_prob(posterior), base, looped=looped)


@dataclass(frozen=True, eq=False)
class EstimatorDraws:
    """Draws of a conditional density estimator, which has a ``condition_shape``.

    NLE's has the same class as NPE's, and draws x given theta: it is told by the shapes and, where
    these agree, by the pairs.
    """

    estimator: Any

    def __call__(self, num_samples: int, x: Tensor) -> Any:
        """(num_samples, x (n, ...)) -> (num_samples, n, d)."""
        return self.estimator.sample((num_samples,), self.conditions(x))

    def log_prob(self, theta: Tensor, x: Tensor) -> Any:
        """Theta (K, n, d), x (n, ...) -> (K, n)."""
        return self.estimator.log_prob(theta, self.conditions(x))

    def conditions(self, x: Tensor) -> Tensor:
        """X in the shape that it was trained on."""
        hint = (
            " An estimator of the likelihood (NLE) draws x and is none: pass what the trainer's "
            "build_posterior() gives."
        )
        name = f"sbi {type(self.estimator).__name__}"
        return as_conditions(x, self.estimator.condition_shape, name, hint)


def sbi_estimator(estimator: Any) -> BatchedPosterior:
    """A conditional density estimator, which has a ``condition_shape``."""
    draw, base = EstimatorDraws(estimator), sbi_to_base(estimator)
    return BatchedPosterior(draw, f"sbi {type(estimator).__name__}", draw.log_prob, base)


def _is_ensemble(posterior: Any) -> bool:
    return hasattr(posterior, "posteriors") and hasattr(posterior, "weights")


def _samples_in_batches(posterior: Any) -> bool:
    """Whether ``sample_batched`` is there, and means the same as ``sample``."""
    if not _means_the_same(posterior, "sample", "sample_batched"):
        return False
    if type(getattr(posterior, "potential_fn", None)).__name__ == "CustomPotentialWrapper":
        return False  # a function of the user's own, which knows one x
    try:  # without x: what is not there says so before it looks at x
        with isolated_rng(0), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior.sample_batched((1,), None, **_quiet(posterior.sample_batched))
    except (NotImplementedError, AssertionError):
        return False
    except Exception:  # there, and in want of an x
        return True
    return True


def _means_the_same(posterior: Any, single: str, batched: str) -> bool:
    """Whether a class that changes the method for one x changes that for many, too.

    NPE-A's posterior of later rounds corrects for the proposal in ``sample``; ``sample_batched``
    (sbi 0.27) is the parent's, which does not know of it.
    """
    classes = type(posterior).__mro__
    return next(
        (batched in vars(cls) for cls in classes if single in vars(cls) or batched in vars(cls)),
        True,
    )


def _draw(posterior: Any, name: str) -> tuple[Draw, Looped]:
    """A function (K, x (n, ...)) -> (K, n, d), and whether it takes such x one at a time."""
    if _is_ensemble(posterior):
        parts = [_draw(component, name) for component in posterior.posteriors]
        weights = torch.as_tensor(posterior.weights).detach().cpu()
        draws = [draw for draw, _ in parts]
        return (
            lambda num, x: _mixture_draws(draws, weights, num, x, name),
            lambda x: any(looped(x) for _, looped in parts),
        )
    batched = _samples_in_batches(posterior)
    shape, trials = trained_shape(posterior)

    def are_trials(x: Tensor) -> bool:
        return trials and x.shape[1:] != shape and x.shape[2:] == shape

    def draw(num_samples: int, x: Tensor) -> Any:
        if are_trials(x) or (shape is None and x.ndim > 2 and not batched):
            drawn = _draws_at_one(posterior, num_samples, x[0])
        elif not batched:
            drawn = _draws_at_one(posterior, num_samples, as_conditions(x, shape, name))
        else:
            drawn = _plain_draws(posterior, num_samples, as_conditions(x, shape, name))
        return _shuffled(drawn) if hasattr(posterior, "mcmc_method") else drawn

    return draw, lambda x: not batched or are_trials(x)


def _plain_draws(posterior: Any, num_samples: int, x: Tensor) -> Any:
    """Draws of one posterior for many x (n, ...)."""
    keywords = _quiet(posterior.sample_batched)
    if "init_strategy_parameters" in arguments(posterior.sample_batched):
        # sbi 0.27 writes into the posterior's own.
        keywords["init_strategy_parameters"] = dict(posterior.init_strategy_parameters or {})
    with _without_notes():
        return posterior.sample_batched((num_samples,), x, **keywords)


def _draws_at_one(posterior: Any, num_samples: int, x: Tensor) -> Tensor:
    """Draws (K, 1, d) at x (1, ...), or at the trials of one observation."""
    if hasattr(posterior, "vi_method"):
        posterior = _trained_at(posterior, x)
    keywords = _quiet(posterior.sample)
    if getattr(posterior, "method", None) == "importance":  # weighted draws: resampled by them
        keywords["method"] = "sir"
    with torch.enable_grad(), _without_notes():
        drawn = posterior.sample((num_samples,), x=x, **keywords)
    return torch.as_tensor(drawn).detach()[:, None]


def _trained_at(posterior: Any, x: Tensor) -> Any:
    """A variational posterior as its user would train it at this x; theirs stays as it is."""
    try:
        fitted = copy.deepcopy(posterior)
    except RecursionError as error:  # sbi 0.24 to 0.26, under newer releases of torch
        raise NotImplementedError(
            "`q`: this release of sbi cannot copy its VIPosterior, to train it at each x; install "
            "sbi 0.27, or pass PerObservation(lambda x_o: q.set_default_x(x_o).train())."
        ) from error
    with torch.enable_grad(), _without_notes(), contextlib.redirect_stdout(io.StringIO()):
        fitted.set_default_x(x).train(show_progress_bar=False)  # it prints how good it is
    return fitted


def _shuffled(samples: Tensor) -> Tensor:
    """Draws (K, n, d) in random order at each x: those of one chain come together."""
    order = torch.rand(samples.shape[:2]).argsort(dim=0)
    return samples.cpu().gather(0, order[..., None].expand_as(samples))


def _quiet(method: Callable[..., Any]) -> dict[str, Any]:
    return {"show_progress_bars": False} if "show_progress_bars" in arguments(method) else {}


@contextlib.contextmanager
def _without_notes() -> Iterator[None]:
    with warnings.catch_warnings():
        for note in _NOTES:
            warnings.filterwarnings("ignore", message=note)
        yield


def _mixture_draws(
    draws: list[Draw], weights: Tensor, num_samples: int, x: Tensor, name: str
) -> Tensor:
    """Draws (K, n, d) of which each has a component of its own, by the weights (C,)."""
    drawn = [check_samples(draw(num_samples, x), num_samples, len(x), name) for draw in draws]
    chosen = torch.multinomial(weights, num_samples * len(x), replacement=True)
    chosen = chosen.reshape(1, num_samples, len(x), 1)
    samples = torch.stack(drawn)
    return samples.gather(0, chosen.expand(-1, -1, -1, samples.shape[-1]))[0]


def _log_prob(posterior: Any, normalised: bool = False) -> Density | None:
    """The density of a direct posterior; other kinds of sbi know theirs up to slow constants.

    Args:
        posterior: of sbi.
        normalised: whether to divide by the share of the flow within the prior, which a constant
            for each x makes unnecessary unless densities are added up.
    """
    if _is_ensemble(posterior):
        densities = [_log_prob(component, normalised=True) for component in posterior.posteriors]
        known = [density for density in densities if density is not None]
        weights = torch.as_tensor(posterior.weights).detach().cpu()
        whole = len(known) == len(densities)
        return (lambda theta, x: _mixture_log_prob(known, weights, theta, x)) if whole else None
    if not hasattr(posterior, "log_prob_batched") or not hasattr(posterior, "posterior_estimator"):
        return None
    if not _means_the_same(posterior, "log_prob", "log_prob_batched"):
        return None
    if "norm_posterior" not in arguments(posterior.log_prob_batched):
        return None
    keywords: dict[str, Any] = {"norm_posterior": normalised}
    if normalised:
        keywords["leakage_correction_params"] = {"num_rejection_samples": _LEAKAGE_DRAWS}
    shape, name = trained_shape(posterior)[0], f"sbi {type(posterior).__name__}"
    return lambda theta, x: posterior.log_prob_batched(
        theta, as_conditions(x, shape, name), **keywords
    )


def _mixture_log_prob(
    densities: list[Density], weights: Tensor, theta: Tensor, x: Tensor
) -> Tensor:
    """``log sum_c w_c q_c(theta | x)`` at theta (K, n, d) and x (n, ...): (K, n)."""
    values = torch.stack([torch.as_tensor(density(theta, x)).cpu() for density in densities])
    return torch.logsumexp(weights.log().reshape(-1, 1, 1) + values, dim=0)
