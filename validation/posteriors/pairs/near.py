r"""Is x_o where the pairs are? Far outside all x no test can tell, though each gives a p-value.

How far a row is from the others: the largest of its values, each in its column's median absolute
deviation from the median; and, in the columns without ties, the Mahalanobis distance by the
covariance of the other rows, which sees a place off the line on which columns lie.

Were x_o of the law of x, its distance would top all s_(1) > s_(2) > ... with probability 1/(N + 1),
and, where the tail is a power's (a Cauchy law's, say), the gap ln s_o - ln s_(1) would then be
larger than c times the Hill estimate

    h = 1/(k - 1) sum_{j=2..k} (j - 1) (ln s_(j-1) - ln s_(j))

with probability (1 + c / (k - 1))^{1 - k}. Lighter tails have smaller gaps yet. x_o is refused
where that is below :data:`_CHANCE`, which makes 3 in 10,000 by each distance at N = 200, and fewer
with more or fewer x. Columns in which more than half of the x agree say nothing: the first count
among zeros is no wonder.

Source: Hill (1975), "A simple general approach to inference about the tail of a distribution";
Rényi (1953), on gaps of ordered exponentials.
"""

from __future__ import annotations

import torch
from torch import Tensor

_CHANCE = 0.06
"""Of so large a gap, once x_o is the farthest."""
_ENOUGH_ROWS = 200
"""With fewer a chance must be less by the square of their share: the largest of few is often
topped, and the units of the columns are rough."""
_TAIL = 20
"""k, the most of the largest distances that tell the tail."""
_LEAST_ROWS = 10
_CONTINUOUS = 0.95
"""Share of different values in a column from which on ties are rounding."""
_ROWS_A_COLUMN = 5
_MOST_COLUMNS = 300
"""Of a covariance: with more, each column counts alone."""
_MOST_LENGTH = 3.0
"""Of a row in a covariance, in medians of the rows' lengths."""
_RIDGE = 1e-10
"""Added to the variances, for columns that repeat each other but for rounding."""


def check_within(x_o: Tensor, x: Tensor) -> None:
    """Refuse observations x_o (m, p) clearly outside of all x (N, p).

    One drawn from the law of x is refused in less than 1 of 1,000 cases, however few the x and
    however heavy their tails.

    Raises:
        ValueError: if one is, with what sets it apart.
    """
    if len(x) < _LEAST_ROWS:
        return
    place = x.median(dim=0).values
    spread = (x - place).abs().median(dim=0).values
    columns = spread > 0
    if not columns.any():
        return
    rows, asked = (((part - place) / spread)[:, columns].double() for part in (x, x_o))
    alone = rows.abs().amax(dim=1), asked.abs().amax(dim=1)
    far = _is_far(*alone)
    if far.any():
        row = int(far.nonzero()[0, 0])
        column = int(columns.nonzero()[:, 0][asked[row].abs().argmax()])
        low, high = float(x[:, column].min()), float(x[:, column].max())
        raise ValueError(
            f"`x_o` lies far outside of all x, where no test can tell: column {column}"
            f"{_of_row(row, x_o)} is {float(x_o[row, column]):.4g}, the x are in [{low:.4g}, "
            f"{high:.4g}]. Check units and the order of columns, or draw pairs near it."
        )
    far = _is_far(*_mahalanobis(rows, asked))
    if far.any():
        row = int(far.nonzero()[0, 0])
        raise ValueError(
            f"`x_o` lies far outside of all x, where no test can tell: the values"
            f"{_of_row(row, x_o)} do not go together as they do in x. Check units and the order of "
            "columns, or draw pairs near it."
        )


def _of_row(row: int, x_o: Tensor) -> str:
    return f" of row {row}" if len(x_o) > 1 else ""


def _mahalanobis(x: Tensor, x_o: Tensor) -> tuple[Tensor, Tensor]:
    """Distances of x (N,), each by the covariance of the others, and x_o (m,), by that of all."""
    kept = torch.tensor([len(column.unique()) >= _CONTINUOUS * len(x) for column in x.T])
    x, x_o = x[:, kept], x_o[:, kept]
    count, width = x.shape
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    if width < 2 or width > _MOST_COLUMNS or count < _ROWS_A_COLUMN * width:
        return length[:, 0], torch.linalg.vector_norm(x_o, dim=1)
    # Rows that are far out are drawn in: one of them alone would be the covariance.
    weight = (_MOST_LENGTH * length.median() / length.clamp_min(1e-30)).clamp_max(1.0)
    mean = (weight * x).sum(dim=0) / weight.sum()
    x, x_o = x - mean, x_o - mean
    drawn_in = weight * x
    covariance = drawn_in.T @ drawn_in / count
    ridge = _RIDGE * covariance.diagonal().mean() * torch.eye(width, dtype=x.dtype)
    factor = torch.linalg.cholesky(covariance + ridge)

    def squares(rows: Tensor) -> Tensor:
        solved: Tensor = torch.linalg.solve_triangular(factor, rows.T, upper=False)
        return solved.square().sum(dim=0)

    own = squares(drawn_in) / count
    # Sherman and Morrison: the covariance less the row's own part of it.
    return (squares(x) / (1 - own).clamp_min(1e-9)).sqrt(), squares(x_o).sqrt()


def _is_far(known: Tensor, asked: Tensor) -> Tensor:
    """Which distances (m,) lie clearly beyond the known ones (N,)."""
    if len(known.unique()) < 2:
        return torch.zeros(len(asked), dtype=torch.bool)
    size = min(_TAIL, len(known) // 2)
    tail = _spread_ties(known).sort(descending=True).values[:size].clamp_min(1e-300).log()
    steps = torch.arange(1, size, dtype=tail.dtype)
    hill = (steps * (tail[:-1] - tail[1:])).mean().clamp_min(1e-12)
    gap = ((asked.clamp_min(1e-300).log() - tail[0]) / hill).clamp_min(0.0)
    share = min(1.0, len(known) / _ENOUGH_ROWS)
    return (gap > 0) & ((1 + gap / (size - 1)) ** (1 - size) < _CHANCE * share**2)


def _spread_ties(values: Tensor) -> Tensor:
    """Equal values spread evenly up to the next larger one: a lattice has no gaps within."""
    levels, which, counts = values.unique(return_inverse=True, return_counts=True)
    steps = levels.diff()
    steps = torch.cat([steps, steps[-1:]])
    order = which.argsort(stable=True)
    place = torch.empty_like(which)
    place[order] = torch.arange(len(values)) - (counts.cumsum(0) - counts)[which[order]]
    return values + torch.where(counts > 1, steps / counts, 0.0)[which] * (place + 0.5)
