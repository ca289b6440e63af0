r"""One exact p-value over a panel of tests, by swapping the truth with q's draws at the same x.

Under q = p the C candidates at each x are exchangeable, so that taking any of them for the truth
gives a data set as likely as the one observed. Every test of the panel is a statistic T_m of that
choice; B random choices b give its null, its own p-value

    p_m(b) = #{ b' : T_m(b') >= T_m(b) } / (B + 1),   p_m = p_m(0),

and, at no further price, the null of anything made of all of them. What is made here is

    C(b) = sum_m w_m cot(pi p_m(b) / 2),   p = #{ b : C(b) >= C(0) } / (B + 1),

which the least p-values decide, and which gains where several tests agree (Liu & Xie 2020). No term
is negative (Liu, Meng & Pillai 2025): by their cotangent of pi p a p-value near 1, which some tests
give of what is clearly wrong, took away what another's near 0 had said. It is exact for any number
of tests, however correlated, in place of a correction that assumes the worst (Westfall & Young
1993). The least p-value alone is as exact and loses up to .1 of power more.

The tests are those of :mod:`.statistics`: of :mod:`validation.methods` in a form that is trained in
closed form, for every swap anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.random import child_seed

from .candidates import Candidates, swaps
from .features import seen
from .statistics import statistics_of

NUM_SWAPS = 499
"""B: the least p-value is 1 / 500."""
_WEIGHTS = {"tarp": 0.3, "score_rank": 0.3, "conformal_c2st": 0.3}
"""w_m, 1 of the others: these see little that others do not see with fewer pairs."""
_OF_A_DENSITY = 2.0
"""w of hpd where q has a density: what q says of itself sees most of all with few pairs."""


@dataclass(frozen=True, eq=False)
class Panel:
    """The p-value over all tests, and each test's own, by name.

    The statistic is -log10 of what the p-value would be if C were the upper half of a Cauchy law,
    as it nearly is where it is large.
    """

    p_value: float
    p_values: Mapping[str, float]
    statistic: float
    null_statistics: Tensor


def panel(candidates: Candidates, seed: int, num_swaps: int = NUM_SWAPS) -> Panel:
    """Test whether the true theta are exchangeable with q's draws at the same x.

    Args:
        candidates: of at least 20 pairs.
        seed: of swaps, folds, directions and centres.
        num_swaps: B.
    """
    features = seen(candidates, child_seed(seed, 1))
    chosen = swaps(candidates, num_swaps, child_seed(seed, 2))
    statistics = statistics_of(candidates, features, chosen, seed)
    known = {} if candidates.log_q is None else {"hpd": _OF_A_DENSITY}
    weights = torch.tensor([(_WEIGHTS | known).get(name, 1.0) for name in statistics])
    p_values, p_value, together = combined(torch.stack(list(statistics.values())), weights)
    named = dict(zip(statistics, p_values.tolist(), strict=True))
    size = -(1.0 - 2.0 * torch.arctan(together / weights.sum()) / torch.pi).log10()
    return Panel(p_value, named, float(size[0]), size[1:])


def combined(statistics: Tensor, weights: Tensor) -> tuple[Tensor, float, Tensor]:
    """Of statistics (M, 1 + B), the observed ones first: each p-value (M,), that of all, and C.

    Larger statistics are further from the null; swaps are alike and the observed is one of them.
    """
    count = statistics.shape[1]
    ordered = statistics.sort(dim=1).values
    at_least = count - torch.searchsorted(ordered, statistics, right=False)
    p_values = (at_least.double() - 0.5) / count
    together = weights.double() @ (1.0 / torch.tan(0.5 * torch.pi * p_values))
    p_value = float((together >= together[0]).double().mean())
    return at_least[:, 0].double() / count, p_value, together
