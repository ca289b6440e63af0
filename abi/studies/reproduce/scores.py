"""What is said of a method's draws, with an exact posterior and without one.

Each score of a study stands beside its floor: the same score of a second, independent sample of the
exact posterior, which is a cell of its own.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ... import metrics
from ...quantiles.distance import msw_distance

_SEED = 2025  # of the classifiers' folds and weights, and of slices


def distances(samples: Tensor, exact: Tensor) -> dict[str, float]:
    """W1, in the units of theta and in exact sds, and C2ST by network and forest."""
    return {
        "w1": metrics.wasserstein(samples, exact),
        "normalised_w1": metrics.normalised_wasserstein(samples, exact),
        "c2st": metrics.c2st(samples, exact, seed=_SEED),
        "c2st_rf": metrics.c2st(samples, exact, classifier="rf", seed=_SEED),
    }


def further_distances(samples: Tensor, exact: Tensor) -> dict[str, float]:
    """W2, sliced W1, MSW and squared MMD, in the units of theta."""
    return {
        "w2": metrics.wasserstein(samples, exact, order=2),
        "sliced": metrics.sliced_distance(samples, exact, seed=_SEED),
        "msw": float(msw_distance(samples, exact, seed=_SEED)),
        "mmd_squared": metrics.mmd_squared(samples, exact),
    }


def moments(samples: Tensor, exact: Tensor) -> dict[str, float]:
    """Errors of means and sds by parameter, and the metrics of the paper's Table 2.

    ``mean_difference_j`` is the absolute difference of means in the units of theta;
    ``correlation_bias`` the sum of absolute differences over the correlation matrix.
    """
    scores = {}
    bias, ratio = metrics.mean_bias(samples, exact), metrics.sd_ratio(samples, exact)
    difference = (samples.double().mean(dim=0) - exact.double().mean(dim=0)).abs()
    for j in range(samples.shape[1]):
        scores[f"mean_bias_{j + 1}"] = float(bias[j])
        scores[f"sd_ratio_{j + 1}"] = float(ratio[j])
        scores[f"mean_difference_{j + 1}"] = float(difference[j])
    if samples.shape[1] > 1:
        # Each pair stands twice in the matrix.
        scores["correlation_bias"] = 2.0 * float(
            metrics.correlation_error(samples, exact).abs().sum()
        )
    return scores


def against_truth(
    samples: Tensor, theta: Tensor | None, prior: Tensor, predicted: Tensor, x_o: Tensor
) -> dict[str, float]:
    """Scores where no exact posterior is known.

    ``predicted_inside`` is the share of the values of x_o inside the central 90% of the predicted
    ones (0.9 is right on average over data sets, and neighbours in a series move together);
    ``truth_inside`` the share of the true parameters inside the central 90% of their draws;
    ``mean_error`` and ``spread`` are the largest |mean - truth| and the mean sd, in prior sds.

    Args:
        samples: draws, (n, d).
        theta: the true parameters, (d,), where they are known.
        prior: draws of the prior, (m, d).
        predicted: data simulated at draws, (k, p).
        x_o: the observation, (p,).
    """
    scores = {"predicted_inside": float(_inside(predicted, x_o))}
    scale = prior.std(dim=0)
    scores["spread"] = float((samples.std(dim=0) / scale).mean())
    if theta is not None:
        scores["truth_inside"] = float(_inside(samples, theta))
        scores["mean_error"] = float(((samples.mean(dim=0) - theta) / scale).abs().max())
    return scores


def _inside(draws: Tensor, values: Tensor) -> Tensor:
    ends = torch.quantile(draws, torch.tensor([0.05, 0.95]), dim=0)
    return ((values >= ends[0]) & (values <= ends[1])).float().mean()
