r"""Are the models of unseen pairs draws from the probabilities that their x were given?

The models of the check pairs are drawn uniformly and independently (:mod:`abi.comparison.pairs`),
so that, if q(m | x) is right, m_i ~ q(. | x_i) independently given all x. Drawing the models anew
from q gives data as likely as those observed, and the exact null of any statistic. All here are
sums of residuals r_im = 1[m_i = m] - q(m | x_i) with known variance V under q:

- *sure*: sum_i sum_m r_im log q(m | x_i), of which the log score consists. Where q is too sure it
  is below 0, where not sure enough above.
- *share*: sum_i r_im of each model m, the largest |.|^2 / V: a model is favoured.
- *bins*: the same within fifths of the pairs by q(m | x): calibration, bin by bin.
- *features*: sum_i f_ij r_im for each feature j of x, the largest: a model is favoured where the
  feature is large. Features are those that the networks saw and those of the other encoders, by
  which what the networks overlook comes to light.
- *near x_o*: sum_i w_i r_im, with weights w that fall with the distance from x_o.

Their p-values are combined as those of a fit's panel are (:mod:`validation.swaps.panel`), at the
price of no correction. Source: Cox (1958) for the regression of outcomes on log odds, whose score
tests *sure* and *share* are; Besag & Clifford (1989) for exact Monte Carlo tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from simulators.random import torch_generator
from simulators.summary import summary
from validation.swaps.panel import combined

NUM_DRAWS = 999
LEAST_PAIRS = 50
"""Fewer check nothing."""
ALPHA = 0.05
"""Level of all tests together."""
_BINS = 5
_LEAST_VARIANCE = 1e-12  # where q leaves nothing to chance, and rounding something
NAMES: Mapping[str, str] = {
    "sure": "too sure or unsure",
    "share": "shares of models",
    "bins": "calibration in bins",
    "features": "by features of x",
    "near x_o": "near x_o",
}


@dataclass(frozen=True)
class ModelCheck:
    """The test of the probabilities of models, on pairs that nothing was trained on.

    Attributes:
        num_pairs: pairs.
        p_value: one exact p-value over all tests; None where there were too few pairs.
        p_values: each test's own, by its name.
        leanings: of the share and of x_o's surroundings, z-scores of the residuals by test, one a
            model; above 0 a model made more of the data than its probabilities say.
        sureness: z-score of the log score; below 0 the probabilities are too sure.
    """

    num_pairs: int
    p_value: float | None = None
    p_values: Mapping[str, float] = field(default_factory=dict)
    leanings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    sureness: float = 0.0

    __repr__ = summary

    @property
    def rejects(self) -> bool:
        """Whether the tests reject the probabilities, at level .05 over all of them."""
        return self.p_value is not None and self.p_value <= ALPHA


def check_probabilities(
    log_q: Tensor,
    model: Tensor,
    features: Tensor,
    weights: Tensor,
    seed: int,
    num_draws: int = NUM_DRAWS,
) -> ModelCheck:
    """Test that models are draws from q.

    Args:
        log_q: log q(m | x_i) under equal prior probabilities, (n, M).
        model: the true m_i, (n,).
        features: of x, (n, k).
        weights: that fall with the distance of x_i from x_o, (n,).
        seed: of the draws.
        num_draws: of all models from q; the least p-value is 1 / (num_draws + 1).
    """
    q = log_q.double().exp()
    drawn = torch.multinomial(q, num_draws, replacement=True, generator=torch_generator(seed))
    outcomes = torch.cat([model[:, None], drawn], dim=1).T  # (1 + B, n)
    one = torch.ones(len(model), 1)
    z = {
        "sure": _sureness(log_q.double(), q, outcomes),
        "share": _leanings(one, q, outcomes),
        "bins": _by_bins(q, outcomes),
        "features": _leanings(features - features.mean(dim=0), q, outcomes),
        "near x_o": _leanings(weights[:, None], q, outcomes),
    }
    statistics = torch.stack([values.double().square().amax(dim=1) for values in z.values()])
    p_values, p_value, _ = combined(statistics, torch.ones(len(statistics)))
    return ModelCheck(
        len(model),
        p_value,
        dict(zip(z, p_values.tolist(), strict=True)),
        {name: tuple(z[name][0].tolist()) for name in ("share", "near x_o")},
        float(z["sure"][0, 0]),
    )


def _sureness(log_q: Tensor, q: Tensor, outcomes: Tensor) -> Tensor:
    """The log score over its sd under q, for rows of outcomes (r, n): (r, 1)."""
    mean = (q * log_q).sum(dim=1)
    variance = (q * (log_q - mean[:, None]).square()).sum()
    scores = log_q[torch.arange(len(q)), outcomes].sum(dim=1) - mean.sum()
    return scores[:, None] / variance.clamp_min(_LEAST_VARIANCE).sqrt()


def _leanings(columns: Tensor, q: Tensor, outcomes: Tensor) -> Tensor:
    """Sums over i of columns (n, k) times the residuals of each model, over their sds: (r, M k)."""
    return torch.cat([_leaning(columns, q[:, m], outcomes == m) for m in range(q.shape[1])], dim=1)


def _leaning(columns: Tensor, q: Tensor, made: Tensor) -> Tensor:
    """The same of one model with probabilities q (n,), and whether it made each x, (r, n)."""
    variance = (columns.double().square() * (q * (1.0 - q))[:, None]).sum(dim=0)
    sums = made.float() @ columns.float() - (q.float() @ columns.float())
    return sums / variance.clamp_min(_LEAST_VARIANCE).sqrt().float()


def _by_bins(q: Tensor, outcomes: Tensor) -> Tensor:
    """Residuals of each model in fifths of the pairs by its probability, (r, M 5)."""
    place = q.argsort(dim=0).argsort(dim=0) * _BINS // len(q)  # (n, M)
    parts = []
    for m in range(q.shape[1]):
        columns = torch.nn.functional.one_hot(place[:, m], _BINS)
        parts.append(_leaning(columns, q[:, m], outcomes == m))
    return torch.cat(parts, dim=1)
