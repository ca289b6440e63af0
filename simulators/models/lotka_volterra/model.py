"""Predators and prey, one event at a time: the Lotka-Volterra jump process, simulated exactly.

======== ======================= ======================= ============
symbol   meaning                 unit                    prior
======== ======================= ======================= ============
alpha    birth of prey           1 / time                U(0, 1)
beta     predation               1 / (predator * time)   U(0, 0.1)
gamma    death of predators      1 / time                U(0, 2)
delta    birth of predators      1 / (prey * time)       U(0, 0.1)
======== ======================= ======================= ============

    prey birth        X -> X + 1   at rate alpha X
    prey death        X -> X - 1   at rate beta X Y
    predator death    Y -> Y - 1   at rate gamma Y
    predator birth    Y -> Y + 1   at rate delta X Y

from (X, Y) = (50, 100), recorded at t = 0, 0.1, ..., 10.

Differs from the paper: its Algorithm 5 takes one predator away at the death of a prey, which
contradicts its own equations and is read as a misprint.

The paper stops when a species has died out and does not say what the rest of the record holds;
here it holds the last state, the dead species at 0 and the other where it stood. That is what nine
prior draws in ten end with, so it matters: with ``stop_at_extinction=False`` the survivors go on,
prey growing without limit or predators dying out.

Source: Lu & Wong (2025), Section 4.4 and Appendix F.2; Gillespie (1976).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...arguments import count, flag, settle
from ..declared import Constant, Observation, prepared, uniform_box

_START = (50.0, 100.0)
_INTERVAL = 0.1
_NUM_POINTS = 101


@dataclass(frozen=True)
class LotkaVolterra:
    """The path of prey and predators, recorded 101 times by Gillespie's exact algorithm.

    x (n, 202) holds the prey at all times, then the predators: ``x.reshape(n, 2, 101)``. Counts up
    to 2^24 are exact in float32. The default observation is one path at ``true_theta``, the value
    of Papamakarios et al. (2019).

    Args:
        stop_at_extinction: the paper's rule: when a species dies out, the rest of the path holds
            the last state. False lets the other species go on.
        max_events: events one simulation may take. One that would need more is a failure, its row
            NaN from there on; :meth:`failure_reason` says so. Prey that explode may need 1e8.
    """

    stop_at_extinction: bool = True
    max_events: int = 100_000_000

    theta_dim = 4
    x_dim = 2 * _NUM_POINTS
    num_series = 2
    parameter_names = ("alpha", "beta", "gamma", "delta")
    prior = uniform_box([0.0] * 4, [1.0, 0.1, 2.0, 0.1])
    """U([0, 1] x [0, 0.1] x [0, 2] x [0, 0.1])."""
    true_theta = Constant(0.5, 0.01, 1.0, 0.01)
    """The parameters behind the default observation, (4,)."""
    observation = Observation(seed=2025)
    """The default observation, (202,)."""

    def __post_init__(self) -> None:
        settle(self, stop_at_extinction=flag, max_events=count())

    @property
    def times(self) -> Tensor:
        """When a path is recorded, (101,)."""
        return torch.arange(_NUM_POINTS) * _INTERVAL

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, 4) -> x (n, 202), float32."""
        return torch.from_numpy(self._run(theta, seed, first_row)[0])

    def num_events(self, theta: Tensor, seed: int, *, first_row: int = 0) -> Tensor:
        """Events that simulations take, the cost of each.

        Args:
            theta: rates, (n, 4).
            seed: that of the simulations.
            first_row: likewise.

        Returns:
            The counts (n,), cut at max_events + 1: such a row is a failure.
        """
        return torch.from_numpy(self._run(theta, seed, first_row)[1])

    def failure_reason(self, theta_row: Tensor, x_row: Tensor) -> str | None:
        """Why the simulation ``x_row`` (202,) at ``theta_row`` (4,) failed; None if it did not."""
        if bool(torch.isfinite(x_row).all()):
            return None
        if not bool(((theta_row >= 0.0) & torch.isfinite(theta_row)).all()):
            return f"rates must be finite and not negative; got {theta_row.tolist()}"
        return f"event cap: the path needs more than max_events={self.max_events} events"

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """No exact posterior is known: between two records the path is hidden."""
        raise NotImplementedError(
            "LotkaVolterra has no exact posterior: the likelihood of a path seen every "
            f"{_INTERVAL} sums over all event histories between; compare with `true_theta`."
        )

    def _run(
        self, theta: Tensor, seed: int | None, first_row: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        from .kernels import simulate_paths

        rows, seed = prepared(theta, self.theta_dim, seed)
        out = np.empty((len(rows), self.x_dim), dtype=np.float32)
        events = np.empty(len(rows), dtype=np.int64)
        simulate_paths(
            rows, np.array(_START), _INTERVAL, self.stop_at_extinction, self.max_events,
            np.uint64(seed), np.uint64(first_row), out, events,
        )  # fmt: skip
        return out, events
