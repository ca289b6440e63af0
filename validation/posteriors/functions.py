"""Functions and samplers of any signature, as batched posteriors.

A function of x alone gives a distribution. One of two arguments, or a method ``sample``, draws:
its arguments' names say how it is called, and where they do not, one trial at two observations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from simulators.random import isolated_rng

from .protocol import BatchedPosterior, check_samples
from .signatures import Call, calls, comes_from, num_required, seeded
from .stored_samples import Layout

_TRIED_DRAWS = 3  # other than the two observations: an axis is told by its length


def function_posterior(function: Callable[..., Any], layout: Layout | None) -> BatchedPosterior:
    """Tell ``x -> distribution`` from a sampler of ``num_samples`` and ``x`` by the arguments."""
    target = function.forward if isinstance(function, nn.Module) else function
    name = getattr(function, "__name__", type(function).__name__)
    if calls(target):
        return sampler_posterior(function, name, layout, target=target)
    required = num_required(target)
    if required != 1:
        raise TypeError(
            f"`q` ({name}) must take x and return a distribution, or take (num_samples, x) and "
            f"return samples; it requires {required} arguments."
        )
    return BatchedPosterior(
        lambda num, x: _drawn(_distribution(function, x, name), num),
        name,
        lambda theta, x: _log_prob(_distribution(function, x, name), theta),
    )


def sampler_posterior(
    sampler: Callable[..., Any],
    name: str,
    layout: Layout | None,
    density: Callable[..., Any] | None = None,
    target: Callable[..., Any] | None = None,
) -> BatchedPosterior:
    """A function or method that draws, called as its arguments say.

    Args:
        sampler: takes a number or shape, and x.
        name: what the errors call it.
        layout: of what it returns; samples first when None.
        density: its log-density, of (theta, x).
        target: whose arguments count, where they are not the sampler's own.
    """
    way = _Way(seeded(sampler, target), calls(target or sampler), name, layout)
    return BatchedPosterior(way.draw, name, density, looped=way.looped)


class _Way:
    """How one sampler is called: known from the start, or from its first trial on."""

    def __init__(
        self, sampler: Callable[..., Any], choices: list[Call], name: str, layout: Layout | None
    ) -> None:
        self.sampler, self.choices, self.name, self.layout = sampler, choices, name, layout

    def looped(self, x: Tensor) -> bool:
        if len(self.choices) > 1:
            self.choices = [self._tried(x[:2] if len(x) > 1 else x.repeat_interleave(2, dim=0))]
        return self.choices[0].one_at_a_time

    def draw(self, num_samples: int, x: Tensor) -> Any:
        """Draws (K, b, d), of a looped one with b = 1."""
        call = self.choices[0]
        if call.one_at_a_time:
            drawn = call(self.sampler, num_samples, x[0])
            values = drawn if drawn is None else torch.as_tensor(drawn)
            return values[:, None] if values is not None and values.ndim == 2 else values
        drawn = call(self.sampler, num_samples, x)
        return _swapped(drawn) if self.layout == "observations_first" else drawn

    def _tried(self, x: Tensor) -> Call:
        """The first call that gives three draws at each of two x, as it should.

        Raises:
            TypeError: if none does, with all that were tried and what they gave.
        """
        found = []
        for call in self.choices:
            way = _Way(self.sampler, [call], self.name, self.layout)
            parts = x.split(1 if call.one_at_a_time else 2)
            try:
                with isolated_rng(0), torch.enable_grad():
                    drawn = [way.draw(_TRIED_DRAWS, part) for part in parts]
                for part, samples in zip(parts, drawn, strict=True):
                    check_samples(samples, _TRIED_DRAWS, len(part), self.name)
            except Exception as error:  # whatever a wrong call leads to
                found.append(f"{self.name}{call} gave {_said(error)}")
            else:
                return call
        raise TypeError(
            f"`q` ({self.name}) answered no call that was tried at two observations: name its "
            f"arguments num_samples and x, and return (num_samples, n, d). {'; '.join(found)}."
        )


def _said(error: Exception) -> str:
    """What went wrong with a call, in a few words."""
    if isinstance(error, ValueError) and " got (" in str(error):
        return f"shape {str(error).split(' got ')[1].split('. ')[0]}"
    return f"{type(error).__name__} ({str(error).splitlines()[0][:60] if str(error) else ''})"


def _distribution(function: Callable[..., Any], x: Tensor, name: str) -> Any:
    distribution = function(x)
    if not hasattr(distribution, "sample") and not hasattr(distribution, "rvs"):
        kind = "None" if distribution is None else type(distribution).__name__
        raise TypeError(
            f"`q` ({name}) must return a distribution with .sample(shape) for x {tuple(x.shape)}; "
            f"it returned {kind}. To return samples, take (num_samples, x)."
        )
    return distribution


def _drawn(distribution: Any, num_samples: int) -> Any:
    """Draws of a distribution over all x, of torch and its like, or of scipy."""
    if hasattr(distribution, "sample"):
        if comes_from(distribution, "scipy"):  # its own noise would differ from call to call
            rng = np.random.default_rng(int(torch.randint(1 << 31, ())))
            return distribution.sample((num_samples,), rng=rng)
        return distribution.sample((num_samples,))
    if not hasattr(distribution, "args"):
        raise TypeError(
            f"`q` returned scipy's {type(distribution).__name__}, which is a distribution at one "
            "x: draw at each row of x in a function of (num_samples, x) that returns samples."
        )
    shapes = map(np.shape, (*distribution.args, *distribution.kwds.values()))
    return distribution.rvs(size=(num_samples, *np.broadcast_shapes(*shapes)))


def _log_prob(distribution: Any, theta: Tensor) -> Tensor:
    """Log density at theta (K, n, d), -inf outside the support, which torch refuses to look at."""
    if comes_from(distribution, "scipy"):
        return torch.as_tensor(distribution.logpdf(theta.numpy()))
    try:
        inside = distribution.support.check(theta)
    except (AttributeError, NotImplementedError):  # it declares none
        inside = torch.ones((), dtype=torch.bool)
    if inside.all():
        return torch.as_tensor(distribution.log_prob(theta))
    rows = inside if inside.ndim == theta.ndim else inside[..., None]
    values = torch.as_tensor(distribution.log_prob(theta.where(rows, distribution.sample())))
    return values.masked_fill(~inside.reshape(values.shape), -torch.inf)


def _swapped(samples: Any) -> Tensor:
    values = torch.as_tensor(samples)
    if values.ndim != 3:
        raise ValueError(f"`q` must return three axes (n, L, d); got {tuple(values.shape)}.")
    return values.transpose(0, 1)
