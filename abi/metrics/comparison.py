"""Every metric of one sample against one reference, each beside that of two exact samples.

The reference is cut in two halves at random. The metric is taken between as many samples and the
first half; its floor between the second half and the first. All three have the same size, so the
difference of the two, the excess, is what the samples are off by.

Means, sds and correlations come with a bootstrap interval, both samples resampled; distances, if
asked, with one that repeats no draw (:mod:`.half_samples`). Either says what other draws of the
same two distributions would change, not what another fit would: repeat the fit at other seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from simulators.random import child_seed, torch_generator

from ..quantiles.distance import msw_distance
from .classifier import c2st
from .half_samples import half_sample_reach
from .inputs import as_pair
from .kernel import median_bandwidth, mmd_squared
from .moments import correlation_error, mean_bias, sd_ratio
from .projections import sliced_distance
from .scores import Comparison, Score
from .transport import normalised_wasserstein, wasserstein

_RESAMPLES = 200
_LEVEL = 0.95

_DISTANCES: dict[str, Callable[[Tensor, Tensor, int], float]] = {
    "w1": lambda a, b, seed: wasserstein(a, b),
    "normalised_w1": lambda a, b, seed: normalised_wasserstein(a, b),
    "w2": lambda a, b, seed: wasserstein(a, b, order=2),
    "sliced": lambda a, b, seed: sliced_distance(a, b, seed=seed),
    "msw": lambda a, b, seed: float(msw_distance(a, b, seed=seed)),
    "mmd_squared": lambda a, b, seed: mmd_squared(a, b),
    "c2st": lambda a, b, seed: c2st(a, b, seed=seed),
    "c2st_rf": lambda a, b, seed: c2st(a, b, classifier="rf", seed=seed),
}
_MOMENTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean_bias": mean_bias,
    "sd_ratio": sd_ratio,
    "correlation_error": correlation_error,
}
_RANGES = {
    "mmd_squared": (-math.inf, math.inf),  # without bias it falls below 0
    "c2st": (0.0, 1.0),
    "c2st_rf": (0.0, 1.0),
}
METRICS = (*_DISTANCES, *_MOMENTS)
"""The metrics that :func:`compare` knows, by name."""


def compare(
    samples: Tensor,
    reference: Tensor,
    *,
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    intervals: bool = False,
) -> Comparison:
    """Compare samples with draws of the exact posterior, by several metrics at once.

    Args:
        samples: draws of a method, (n, d).
        reference: independent draws of the exact posterior, (m, d). Twice as many as samples are
            best: min(n, m // 2) draws are used of the samples and of each half of the reference.
        seed: of everything random.
        metrics: some of :data:`METRICS`; all when omitted.
        intervals: also for distances and C2ST; each is then measured 20 times more.

    Raises:
        ValueError: if samples and reference do not fit together, or a metric is unknown.

    >>> draws = torch.linspace(0, 1, 400)[:, None]
    >>> compare(draws + 5.0, draws, metrics=["w1"])["w1"].value > 4.9
    True
    """
    names = METRICS if metrics is None else (metrics,) if metrics in METRICS else tuple(metrics)
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise ValueError(f"`metrics` must be among {', '.join(METRICS)}; got {unknown[0]!r}.")
    a, b = as_pair(samples, reference)
    size = min(len(a), len(b) // 2)
    if size < 2:
        raise ValueError(
            f"`reference` must hold at least 4 draws and `samples` 2; got {len(b)} and {len(a)}."
        )
    a = a[_order(len(a), child_seed(seed, 0))[:size]]
    order = _order(len(b), child_seed(seed, 1))
    first, second = b[order[:size]], b[order[size : 2 * size]]
    scores: dict[str, Score] = {}
    for name in names:
        if name in _DISTANCES:
            scores[name] = _distance_score(name, a, first, second, seed, intervals)
        else:
            scores |= _moment_scores(name, a, first, second, child_seed(seed, 3))
    # All pairs of draws have a distance: a cost to be paid only for the metric that needs them.
    bandwidth = median_bandwidth(first) if "mmd_squared" in names else None
    return Comparison(scores, size, bandwidth, seed)


def _distance_score(
    name: str, a: Tensor, first: Tensor, second: Tensor, seed: int, with_interval: bool
) -> Score:
    """A distance and its floor; an interval ends where the distance does."""
    inner = child_seed(seed, 2)

    def measure(these: Tensor, those: Tensor) -> float:
        return _DISTANCES[name](these, those, inner)

    value, floor = measure(a, first), measure(second, first)
    if not with_interval:
        return Score(value, floor)
    reach = half_sample_reach(measure, a, first, _LEVEL, child_seed(seed, 4))
    if reach is None:
        return Score(value, floor)
    least, most = _RANGES.get(name, (0.0, math.inf))
    return Score(value, floor, (max(value - reach, least), min(value + reach, most)))


def _moment_scores(
    name: str, a: Tensor, first: Tensor, second: Tensor, seed: int
) -> dict[str, Score]:
    """One score a coordinate, or a pair of coordinates, with its bootstrap interval."""
    measure = _MOMENTS[name]
    values, floors = measure(a, first), measure(second, first)
    if not len(values):  # one parameter has no correlations
        return {}
    generator = torch_generator(seed)
    resamples = []
    for _ in range(_RESAMPLES):
        rows = torch.randint(len(a), (2, len(a)), generator=generator)
        resamples.append(measure(a[rows[0]], first[rows[1]]))
    tail = 0.5 * (1.0 - _LEVEL)
    ends = torch.quantile(torch.stack(resamples), torch.tensor([tail, 1.0 - tail]).double(), dim=0)
    d = a.shape[1]
    if name == "correlation_error":
        labels = [f"{name}_{i + 1}_{j + 1}" for i in range(d) for j in range(i + 1, d)]
    else:
        labels = [f"{name}_{j + 1}" for j in range(d)]
    return {
        label: Score(float(values[j]), float(floors[j]), (float(ends[0, j]), float(ends[1, j])))
        for j, label in enumerate(labels)
    }


def _order(count: int, seed: int) -> Tensor:
    return torch.randperm(count, generator=torch_generator(seed))
