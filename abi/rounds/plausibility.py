"""Could x_o have come from where a round's simulations came from? A conformal test.

    s_i = distance of row i to its k-th nearest neighbour among the other rows and x_o
    p   = (1 + #{i : s_i >= s_o}) / (n + 1)

Rows and x_o are treated alike, so that p is valid, P(p <= a) <= a, where they come from one law: in
the first round, if x_o comes from prior and simulator. Later rounds draw theta from a region around
the posterior: an x_o of the model lies among their data, and p is valid but for what the region
leaves out. A small p says that such data are rare there: one x_o in a hundred of a right model has
a p of .01. It cannot tell a rare x_o of a right model, whose posterior may be right, from a wrong
model, or wrong units of x_o.

Distances are between the x as they are and, where the network saw them through another of the fixed
encoders, between its features, for data may be strange in what the network reads of them alone; of
two p the smaller one is doubled (Bonferroni).

Source: Laxhammar & Falkman (2010), conformal anomaly detection by nearest neighbours.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simulators.random import torch_generator

from ..encoders.choice import FIXED, build_encoder, features_of
from ..encoders.layout import PLAIN, Layout

_IMPLAUSIBLE = 0.01
_NEIGHBOURS = 5
_MOST_ROWS = 2_000


def plausibility(
    x: Tensor, x_o: Tensor, seed: int, encoder: str | None = None, layout: Layout = PLAIN
) -> float:
    """The p-value that x_o (p,) comes from the law of the rows of x (n, p).

    Args:
        x: simulations, (n, p); of more than 2,000 rows as many are drawn at random.
        x_o: the observation, (p,).
        seed: of that draw.
        encoder: what the network saw of x, where it is one of the fixed encoders.
        layout: items or series of x.
    """
    if len(x) > _MOST_ROWS:
        x = x[torch.randperm(len(x), generator=torch_generator(seed))[:_MOST_ROWS]]
    together = torch.cat([x, x_o[None]])
    names = [name for name in FIXED if name in ("flat", encoder)]
    views = [features_of(build_encoder(name, together, layout), together) for name in names]
    return min(1.0, len(views) * min(map(_p_value, views)))


def implausible(p_value: float | None) -> str | None:
    """What to tell about a last round's p-value; None where there is nothing to tell."""
    if p_value is None or p_value > _IMPLAUSIBLE:
        return None
    return (
        f"`x_o` is unusual for this model (p = {p_value:.2g}): of the data that it simulates near "
        f"the answer, about {_in_words(p_value)} is so far out. Check the units of x_o, the order "
        "of its values and the model: unless x_o is just rare, the answer is an extrapolation."
    )


def _in_words(p_value: float) -> str:
    """How rare.

    >>> _in_words(0.003)
    'one x_o in 333'
    """
    return f"one x_o in {round(1.0 / p_value):,}"


def _p_value(features: Tensor) -> float:
    """Of the last row of features (n + 1, k) among all."""
    scores = neighbour_distances(features)
    return float((scores >= scores[-1]).double().mean())


def neighbour_distances(known: Tensor, features: Tensor | None = None) -> Tensor:
    """Distance of features (m, k) to their k-th nearest of the known ones (n, k), (m,).

    Omitted: that of the known ones to their k-th nearest neighbour among the others, (n,).
    """
    own = features is None
    gaps = torch.cdist(
        known if features is None else features, known, compute_mode="donot_use_mm_for_euclid_dist"
    )
    if own:
        gaps.fill_diagonal_(torch.inf)
    return gaps.kthvalue(min(_NEIGHBOURS, len(known) - own), dim=1).values
