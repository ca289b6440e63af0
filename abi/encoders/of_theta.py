"""Encoders that are found with theta: the values of x that matter, or sums of them.

Many data say of theta little more than some weighted sums of their values: a hundred yes and no, of
which ten sums matter. Principal axes miss these where the noise is as large, and a network of all
values spends its simulations on finding them. *regression* finds them: one feature for each
parameter, what ridge regression on x predicts of it, with theta on the real line. Of the pairs that
it was found from it predicts each as if that one had been left out: it knows them too well, and a
flow that learns from what it knows is too sure of itself at x_o. (Of a GLM's hundred answers, 1,000
calls, ten observations, mean C2ST fell from .84 to .72.)

In others most values say nothing: ninety-two of a hundred. *selected* leaves these out. A value
stays if its rank, or that of its distance to the median, is correlated with a parameter's or with
its square by more than chance would give the largest of all of these in one fit of a hundred.

Source: Fearnhead & Prangle (2012), "Constructing summary statistics for approximate Bayesian
computation", for regression; Wolpert (1992), "Stacked generalization", for what is left out. The
selection is ours; of such rules it is sure independence screening (Fan & Lv 2008) by ranks.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from ..training.ridge import best_line
from .item import InputScaling, enough

MOST_VALUES = 512  # of x
_PLENTY = 10  # pairs for each value of x
_LEVEL = 0.01  # chance that any value that says nothing stays


class Regression(nn.Module):
    """Predictions of theta on the real line, z (n, d), from x (n, p); nothing more is learned.

    Without z a module of two parameters, into which that of a file is loaded.
    """

    slope: Tensor

    def __init__(self, x: Tensor, z: Tensor | None):
        super().__init__()
        self.values = InputScaling(x)
        slope = torch.zeros(x.shape[1], 2)
        if z is not None:
            slope = best_line(self.values(x).double(), _in_sds(z)).slope.float()
        self.register_buffer("slope", slope)
        self.scaling = InputScaling(self.values(enough(x)) @ slope, logs=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to (n, d)."""
        features: Tensor = self.scaling(self.values(x) @ self.slope)
        return features

    @torch.no_grad()
    def left_out(self, x: Tensor, z: Tensor) -> Tensor | None:
        """The features (n, d) of x (n, p) as if each pair (x, z) had been left out of them.

        None where pairs are many for each value of x: few weigh much in their own predictions, rare
        x, and what others say of these is so far off that flows become too wide (epidemics of ten
        counts, 1,000 calls, C2ST .57 -> .60). None, too, of pairs that they were not found from.
        """
        if _PLENTY * x.shape[1] < len(x):
            return None
        standard = _in_sds(z)
        line = best_line(self.values(x).double(), standard)
        if not torch.allclose(line.slope.float(), self.slope, rtol=1e-3, atol=1e-6):
            return None
        features: Tensor = self.scaling((standard - line.left - line.shift).float())
        return features

    def _load_from_state_dict(self, state: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        """Take on the number of parameters, which other data decided."""
        self.slope = torch.empty_like(state[f"{prefix}slope"])
        super()._load_from_state_dict(state, prefix, *rest)


class Selected(nn.Module):
    """The values of x (n, p) that tell of theta on the real line, z (n, d), as they are.

    Without z all of them, until those of a file are loaded.
    """

    places: Tensor

    def __init__(self, x: Tensor, z: Tensor | None):
        super().__init__()
        places = torch.arange(x.shape[1]) if z is None else telling(x, z)
        self.register_buffer("places", places)
        self.scaling = InputScaling(x[:, places])

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to (n, values that tell of theta)."""
        features: Tensor = self.scaling(x[:, self.places])
        return features

    def _load_from_state_dict(self, state: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        """Take on the places, which other data decided."""
        self.places = torch.empty_like(state[f"{prefix}places"])
        super()._load_from_state_dict(state, prefix, *rest)


def telling(x: Tensor, z: Tensor) -> Tensor:
    """Places (k,) of the values of x (n, p) that say more of z (n, d) than chance; one at least."""
    x, z = enough(torch.cat([x, z], dim=1)).tensor_split([x.shape[1]], dim=1)
    around = (x - x.median(dim=0).values).abs()
    level, own = _normal_scores(z), _normal_scores(torch.cat([x, around], dim=1))
    asked = _standard(torch.cat([level, level**2], dim=1))
    # Of independent pairs a correlation times sqrt(n) is standard normal.
    found = (own.T @ asked).abs().reshape(2, x.shape[1], -1).amax(dim=(0, 2)) / math.sqrt(len(x))
    quantile = 1.0 - _LEVEL / (2 * own.shape[1] * asked.shape[1])
    sure = found > torch.special.ndtri(torch.tensor(quantile, dtype=torch.float64))
    return sure.nonzero()[:, 0] if sure.any() else found.argmax()[None]


def _in_sds(z: Tensor) -> Tensor:
    return ((z - z.mean(dim=0)) / z.std(dim=0).clamp_min(1e-30)).double()


def _normal_scores(values: Tensor) -> Tensor:
    """Ranks of each column (n, k) as standard normal quantiles, ties sharing one, float64."""
    from scipy.stats import rankdata

    ranks = torch.from_numpy(rankdata(values.numpy(), axis=0)).double()
    return _standard(torch.special.ndtri((ranks - 0.5) / len(values)))


def _standard(columns: Tensor) -> Tensor:
    """Mean 0 and variance 1 in each column; a constant one is 0."""
    centered = columns - columns.mean(dim=0)
    return centered / centered.square().mean(dim=0).sqrt().clamp_min(1e-12)
