r"""What each time of some series says of the next: moments of values and increments.

With v_t the values of m series at time t, the features are mean and covariance of
(v_t, v_{t+1} - v_t) over t, and of the same with l(v) = sign(v) log(1 + |v| / u) in place of v, as
:func:`abi.encoders.moments.moments` gives them: among them what each increment owes to the values,
in units of what is left of it. A linear Gaussian autoregression says no more than the first; growth
and death at rates per head are linear on the log scale. Where a process has no memory beyond its
state this is most of what a path tells, in tens of numbers where the path has hundreds.

On predators and prey, 6,000 calls, flows given these are .85 nats ahead of flows given the path.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .item import InputScaling, enough
from .layout import Layout
from .moments import moments

_UNIT = 0.1  # quantile of the sizes that are not 0: smaller values are near 0


class Transitions(nn.Module):
    """Moments of values and increments, on two scales; nothing here is learned."""

    unit: Tensor

    def __init__(self, x: Tensor, layout: Layout):
        super().__init__()
        self.layout = layout
        self.register_buffer("unit", _units(layout.items(x)))
        self.scaling = InputScaling(self._features(x), logs=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) of m series to (n, 2 (2 m + m (2 m + 1)))."""
        scaled: Tensor = self.scaling(self._features(x))
        return scaled

    def _features(self, x: Tensor) -> Tensor:
        values = self.layout.items(x)
        sizes = values.double().abs() / self.unit.double()  # a unit may be next to nothing
        logs = torch.sign(values) * torch.log1p(sizes).float()
        return torch.cat([moments(_steps(values)), moments(_steps(logs))], dim=1)


def _steps(series: Tensor) -> Tensor:
    """Values and the increments that follow them, (n, k, m) -> (n, k - 1, 2 m)."""
    return torch.cat([series[:, :-1], series.diff(dim=1)], dim=2)


def _units(items: Tensor) -> Tensor:
    """A size of each series below which its values count as near 0, (m,)."""
    sizes = enough(items.flatten(end_dim=1)).double().abs()
    found = [column[column > 0] for column in sizes.T]
    return torch.tensor([float(part.quantile(_UNIT)) if len(part) else 1.0 for part in found])
