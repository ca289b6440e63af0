"""The draws that a test works on: checked joint pairs, and q's draws at the same x."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from simulators.arguments import FRACTION
from simulators.random import as_count, torch_generator

from ..seeds import part_seed
from .pairs.arrays import as_numbers, check_resolution, flat_rows, names_of
from .pairs.independence import warn_of_dependence
from .pairs.near import check_within
from .pairs.repeats import warn_of_repeats
from .protocol import Posterior, check_samples
from .recognise import as_posterior
from .sbi_posteriors import EstimatorDraws
from .sbi_shapes import refuse_likelihood
from .stored_samples import StoredSamples, WeightedSamples

LEAST_PAIRS = 20  # of a test that trains on a part of them
_MOST_NUMBERS = 1 << 28  # in a part of the draws: 1 GiB
_MOST_AT_ONCE = 1 << 27  # in draws that a test makes copies of


@dataclass(frozen=True, eq=False)
class JointDraws:
    """Pairs ``(theta_i, x_i) ~ p`` and K draws from ``q(. | x_i)`` for each.

    theta is (N, d), x (N, p), samples (K, N, d).
    """

    theta: Tensor
    x: Tensor
    samples: Tensor

    @property
    def together(self) -> Tensor:
        """Theta, then the draws, (1 + K, N, d)."""
        return torch.cat([self.theta[None], self.samples])

    def rows(self, index: Tensor) -> JointDraws:
        """The pairs at ``index`` (m,), with their draws."""
        return JointDraws(self.theta[index], self.x[index], self.samples[:, index])


@dataclass(frozen=True, eq=False)
class OfRows(Posterior):
    """A posterior that is asked with flat rows of x and sees them in their own shape."""

    q: Posterior
    event: tuple[int, ...]
    """Shape of one observation, such as (channels, height, width)."""

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draws (num_samples, n, d) given x (n, p)."""
        return self.q.sample(num_samples, self._shaped(x), seed)

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Log-density of theta (K, n, d) given x (n, p), where the posterior has one: (K, n)."""
        if not hasattr(self.q, "log_prob"):
            raise NotImplementedError(f"{_name(self.q)} offers draws only, no density.")
        values: Tensor = self.q.log_prob(theta, self._shaped(x))
        return values

    def to_base(self, theta: Tensor, x: Tensor) -> Tensor:
        """Theta (n, d) given x (n, p) in the base of the flow, where it is one: (n, d)."""
        if not hasattr(self.q, "to_base"):
            raise NotImplementedError(f"{_name(self.q)} is no flow with a known inverse.")
        z: Tensor = self.q.to_base(theta, self._shaped(x))
        return z

    def _shaped(self, x: Tensor) -> Tensor:
        return x.reshape(len(x), *self.event)


@dataclass(frozen=True, eq=False)
class Given:
    """What every test is given, in one form: x is flat, and q is asked with flat x."""

    q: Posterior
    theta: Tensor
    """(N, d)."""
    x: Tensor
    """(N, p)."""
    event: tuple[int, ...]
    """Shape that one observation was handed in with; of p values in all."""
    names: list[str] | None = None
    """Of the columns of x, where it was a data frame."""

    def draws(self, num_samples: int, seed: int) -> JointDraws:
        """The pairs with draws from q at every x, made once.

        Raises:
            ValueError: if q draws NaN or draws of another dimension.
        """
        num_samples = as_count(num_samples, "num_samples", 1)
        width = self.theta.shape[1]
        samples = drawn(self.q, num_samples, self.x, width, part_seed(seed, 0))
        return JointDraws(self.theta, self.x, samples)

    def parts(self, num_samples: int, seed: int) -> Iterator[tuple[Given, int]]:
        """The pairs with a seed of their own, in parts whose draws fit into memory: mostly one."""
        # Draws that are stored are there already.
        whole = isinstance(self.q, StoredSamples) or hasattr(self.q, "stored")
        count, width = self.theta.shape
        rows = count if whole else max(1, _MOST_NUMBERS // max(1, num_samples * width))
        for k, start in enumerate(range(0, count, rows)):
            part = slice(start, start + rows)
            own = seed if rows >= count else part_seed(seed, 50, k)
            yield replace(self, theta=self.theta[part], x=self.x[part]), own

    def that_fit(self, num_samples: int) -> Given:
        """All pairs, or so many at random that the draws of a test that needs all at once fit."""
        count, width = self.theta.shape
        most = max(LEAST_PAIRS, _MOST_AT_ONCE // max(1, num_samples * width))
        if count <= most:
            return self
        rows = torch.randperm(count, generator=torch_generator(0))[:most].sort().values
        return replace(self, theta=self.theta[rows], x=self.x[rows])

    def observations(self, x_o: Any) -> Tensor:
        """One observation or several as flat rows (m, p), none of them far outside all x.

        Raises:
            ValueError: if they have another shape or other columns, are not finite, or far away.
        """
        names = names_of(x_o)
        if self.names and names and names != self.names and set(names) == set(self.names):
            raise ValueError(
                f"`x_o` must have its columns in the order of x, {self.names}; got {names}. "
                "Say x_o[x.columns]."
            )
        rows = checked_observations(x_o, self.event)
        check_within(rows, self.x)
        return rows


def given(q: Any, theta: Any, x: Any, minimum: int = 2) -> Given:
    """Check the pairs, of which a test needs ``minimum``, and warn where they repeat each other.

    Args:
        q: any posterior.
        theta: (N, d).
        x: one observation a row, of any shape: (N, p), images (N, 1, 8, 8), or (N,) for one value.
        minimum: pairs that are needed.

    Raises:
        TypeError: if theta or x are no numbers, or q is no posterior.
        ValueError: if the pairs are too few, do not match, or hold NaN, or q is an estimator of the
            likelihood.
    """
    names, x = names_of(x), as_numbers(x, "x")
    event = tuple(x.shape[1:])
    theta, x = checked_pairs(theta, x, minimum)
    warn_of_repeats(theta, x)
    posterior = of_rows(q, event)
    draw = getattr(posterior, "draw", None)
    if isinstance(draw, EstimatorDraws):
        refuse_likelihood(draw.estimator, theta, x)
    return Given(posterior, theta, x, event, names)


def of_rows(q: Any, event: tuple[int, ...]) -> Posterior:
    """Any posterior, to be asked with flat rows of observations of shape ``event``."""
    posterior = as_posterior(q)
    if len(event) < 2 or isinstance(posterior, StoredSamples | WeightedSamples):
        return posterior
    return OfRows(posterior, event)


def joint_draws(
    q: Any, theta: Any, x: Any, num_samples: int, seed: int, minimum: int = 2
) -> JointDraws:
    """:func:`given`, with draws from q at every x: what most tests begin with."""
    num_samples = as_count(num_samples, "num_samples", 1)  # before anything is spent
    return given(q, theta, x, minimum).draws(num_samples, seed)


def drawn(q: Posterior, num_samples: int, x: Tensor, theta_dim: int, seed: int) -> Tensor:
    """Draws of q at x (n, p), whoever wrote it: (num_samples, n, d), float32 and finite.

    Raises:
        ValueError: if they are not that.
    """
    samples = check_samples(q.sample(num_samples, x, seed), num_samples, len(x), _name(q))
    samples = checked_draws(samples, theta_dim)
    warn_of_dependence(samples, in_order=not isinstance(q, WeightedSamples))
    return samples


def _name(q: Posterior) -> str:
    return type(q.q if isinstance(q, OfRows) else q).__name__


_OR_GAPS = "; or fill in values not measured, and let a column of x, and of what q sees, say where"


def checked_pairs(theta: Any, x: Any, minimum: int) -> tuple[Tensor, Tensor]:
    """Return theta (N, d) and x, flat, (N, p) as finite float32 matrices that pair row by row."""
    theta, x = as_numbers(theta, "theta"), flat_rows(x, "x")
    if theta.ndim != 2:
        raise ValueError(
            f"`theta` must be a matrix, one row a draw; got shape {tuple(theta.shape)}. For one "
            "column use theta[:, None] or, of a series, theta.to_frame()."
        )
    check_resolution(theta, "theta")
    check_resolution(x, "x")
    theta, x = theta.float().contiguous(), x.float().contiguous()
    if len(theta) != len(x):
        raise ValueError(
            f"`theta` and `x` must pair row by row; got {len(theta)} and {len(x)} rows. Drop the "
            "unmatched rows or draw both with simulators.sample_joint."
        )
    for name, values in (("theta", theta), ("x", x)):
        bad = (~torch.isfinite(values)).any(dim=1)
        if bad.any():
            first = int(bad.nonzero()[0, 0])
            raise ValueError(
                f"`{name}` must be finite; {int(bad.sum())} of {len(values)} rows hold NaN or "
                f"infinity, the first is row {first}. Drop these rows from theta and x alike"
                f"{_OR_GAPS if name == 'x' and values.isnan().any() else ''}."
            )
    if len(theta) < minimum:
        raise ValueError(
            f"`theta` and `x` must hold at least {minimum} pairs for this test; got {len(theta)}."
            " Draw more with simulators.sample_joint."
        )
    return theta, x


def checked_observations(x_o: Any, event: tuple[int, ...]) -> Tensor:
    """Return one observation of shape ``event``, or several, as finite float32 rows (m, p)."""
    values = as_numbers(x_o, "x_o").float()
    bad = int((~torch.isfinite(values)).sum())
    one = values[None] if values.shape == event else values
    if one.shape[1:] != event or not len(one) or bad:
        what = f"{math.prod(event)} finite values an observation"
        what += f", in the shape {event} that x has" if len(event) > 1 else ""
        holds = f", and {bad} of its values are NaN or infinite" if bad else ""
        raise ValueError(
            f"`x_o` must hold {what}; got shape {tuple(values.shape)}{holds}. Pass it as a row of "
            "x is, such as x[0]."
        )
    return one.reshape(len(one), math.prod(event))


def only(rows: Tensor) -> Tensor:
    """One row (1, p), or say that there are more."""
    if len(rows) != 1:
        raise ValueError(f"`x_o` must be one observation; got {len(rows)}.")
    return rows


def checked_draws(samples: Tensor, theta_dim: int) -> Tensor:
    """Return q's draws (K, n, d), or say that they are not finite or of another dimension."""
    if samples.shape[-1] != theta_dim:
        raise ValueError(
            f"`q` must draw parameters of dimension {theta_dim}, as `theta` has; its draws have "
            f"{samples.shape[-1]}. The order of the arguments is (q, theta, x)."
        )
    bad = torch.stack([(~torch.isfinite(draw)).any(dim=-1) for draw in samples])
    if bad.any():
        rows = int(bad.any(dim=0).sum())
        raise ValueError(
            f"`q` must draw finite parameters; {int(bad.sum())} of {bad.numel()} draws, at {rows} "
            "of the observations, hold NaN or infinity. Correct q; where it fails it is wrong."
        )
    return samples


def check_counts(**counts: int) -> None:
    """Refuse what is no whole number of at least 1, by its name."""
    for name, count in counts.items():
        as_count(count, name, 1)


def split_rows(
    rows: int, fraction: float, seed: int, name: str = "train_fraction"
) -> tuple[Tensor, Tensor]:
    """Cut ``rows`` indices at random in two: (training, held out), both sorted.

    Raises:
        ValueError: if the fraction leaves a part without the 2 rows it needs.
    """
    FRACTION(fraction, name)
    order = torch.randperm(rows, generator=torch_generator(seed))
    cut = round(fraction * rows)
    if min(cut, rows - cut) < 2:
        raise ValueError(
            f"`{name}` = {fraction} of {rows} pairs leaves {min(cut, rows - cut)} in one part; "
            "each needs at least 2. Draw more pairs with simulators.sample_joint."
        )
    return order[:cut].sort().values, order[cut:].sort().values
