"""Compiled loops of the M/G/1 queue: the simulator and the Gibbs sampler.

Given the parameters, a hidden arrival time V_i enters through its exponential gaps, whose product
is ``theta_3^n exp(-theta_3 V_n)`` on V_1 < ... < V_n, and through the service time
``U_i = Y_i - max(0, V_i - X_{i-1})``, uniform on [theta_1, theta_2]. Hence, with the others fixed,

    V_i ~ U(max(V_{i-1}, X_i - theta_2 if Y_i > theta_2), min(V_{i+1}, X_i - theta_1)),  i < n
    V_n ~ Exp(theta_3) cut to [max(V_{n-1}, X_n - theta_2 if Y_n > theta_2), X_n - theta_1]
    theta_1 | ... uniform between max(0, max U - width) and min(10, min U)
    width   | ... ~ width^-n on [max U - theta_1, 10]
    theta_3 | ... ~ theta_3^n exp(-theta_3 V_n) on (0, 1/3), by slice sampling

(theta_3^n with a flat prior; Gamma(n + 1, V_n) cut at 1/3.) One more move makes long idle or busy
stretches mix: multiply all arrival times by c and divide theta_3 by c, a Metropolis step along the
ridge where the prior of the arrivals is constant.

Source: Shestopaloff & Neal (2014), Sections 3 and 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...random import child_seed
from ...streams.xoshiro import exponential, normal, seed_stream, uniform
from ...streams.ziggurat import draw_exponential, draw_uniform, open_stream

_UPPER_SHORTEST = 10.0
_UPPER_WIDTH = 10.0
_UPPER_RATE = 1.0 / 3.0
_NUM_CHAINS = 4
_BURN_IN = 20_000
_THIN = 200


@njit(nogil=True, cache=True)
def simulate_queues(theta: Any, seed: Any, first_row: Any, out: Any) -> None:
    """Fill ``out`` (n, customers) with interdeparture times at ``theta`` (n, 3)."""
    for i in range(theta.shape[0]):
        stream = open_stream(seed, first_row + np.uint64(i))
        shortest, width, rate = theta[i, 0], theta[i, 1], theta[i, 2]
        arrival = 0.0
        departure = 0.0
        for j in range(out.shape[1]):
            wait, stream = draw_exponential(stream)
            service, stream = draw_uniform(stream)
            arrival += wait / rate
            gap = shortest + width * service + max(0.0, arrival - departure)
            departure += gap
            out[i, j] = gap


@njit(inline="always")
def _arrival_bounds(i: int, v: Any, y: Any, x: Any, shortest: float, longest: float) -> Any:
    low = v[i - 1] if i > 0 else 0.0
    if y[i] > longest:
        low = max(low, x[i] - longest)
    high = x[i] - shortest
    if i + 1 < len(v):
        high = min(high, v[i + 1])
    return low, high


@njit(inline="always")
def _service_range(v: Any, y: Any, x: Any) -> Any:
    low, high = np.inf, -np.inf
    for i in range(len(v)):
        before = x[i - 1] if i > 0 else 0.0
        service = y[i] - max(0.0, v[i] - before)
        low = min(low, service)
        high = max(high, service)
    return low, high


@njit(inline="always")
def _power_draw(count: int, low: float, high: float, u: float) -> float:
    """Inverse distribution function of ``w^-count`` on [low, high], stable for large count."""
    if count == 1:
        return low * (high / low) ** u
    power = 1.0 - count
    ratio = (high / low) ** power
    return low * (1.0 - u * (1.0 - ratio)) ** (1.0 / power)


@njit(inline="always")
def _rate_draw(count: int, total: float, current: float, state: Any) -> float:
    """Slice sampling of ``r^count exp(-r total)`` on (0, 1/3), shrinking from the whole range."""
    level = count * np.log(current) - current * total - exponential(state)
    low, high = 0.0, _UPPER_RATE
    while True:
        proposal = low + (high - low) * uniform(state)
        if count * np.log(proposal) - proposal * total > level:
            return proposal
        if proposal < current:
            low = proposal
        else:
            high = proposal


@njit(inline="always")
def _rescale(v: Any, y: Any, x: Any, theta: Any, state: Any) -> None:
    """Move (V, theta_3) to (c V, theta_3 / c).

    The prior of the arrivals, theta_3^n exp(-theta_3 V_n), loses c^-n, which the Jacobian c^n of V
    returns; the Jacobian 1/c of theta_3 stays. The service times must remain allowed.
    """
    factor = np.exp(0.1 * normal(state))
    rate = theta[2] / factor
    if rate >= _UPPER_RATE or uniform(state) >= 1.0 / factor:
        return
    low, high = theta[0], theta[0] + theta[1]
    for i in range(len(v)):
        before = x[i - 1] if i > 0 else 0.0
        service = y[i] - max(0.0, factor * v[i] - before)
        if service < low or service > high:
            return
    for i in range(len(v)):
        v[i] *= factor
    theta[2] = rate


@njit(inline="always")
def _sweep(v: Any, y: Any, x: Any, theta: Any, end_limit: float, state: Any) -> None:
    n = len(v)
    shortest, longest = theta[0], theta[0] + theta[1]
    for i in range(n - 1):
        low, high = _arrival_bounds(i, v, y, x, shortest, longest)
        v[i] = low + (high - low) * uniform(state)
    low, high = _arrival_bounds(n - 1, v, y, x, shortest, longest)
    tail = np.exp(-theta[2] * (high - low))
    drawn = low - np.log(1.0 - uniform(state) * (1.0 - tail)) / theta[2]
    v[n - 1] = min(max(drawn, low), high)

    least, most = _service_range(v, y, x)
    for _ in range(2):  # the two ends of the service times move each other: twice is cheap
        low = max(0.0, most - theta[1])
        high = min(_UPPER_SHORTEST, end_limit - theta[1], least)
        if high > low:
            theta[0] = low + (high - low) * uniform(state)
        low = most - theta[0]
        high = min(_UPPER_WIDTH, end_limit - theta[0])
        if high > low > 0.0:
            theta[1] = _power_draw(n, low, high, uniform(state))
    theta[2] = _rate_draw(n, v[n - 1], theta[2], state)
    _rescale(v, y, x, theta, state)


@njit(nogil=True, cache=True)
def _run_chain(
    y: Any, start: Any, end_limit: float, seed: Any, chain: Any, burn_in: int, thin: int, out: Any
) -> None:
    n = len(y)
    state = np.empty(4, np.uint64)
    seed_stream(state, seed, chain)
    x = np.cumsum(y)
    theta = start.copy()
    # The latest arrivals that keep every service time allowed at the starting parameters.
    v = np.maximum(x - (theta[0] + theta[1]), 0.0)
    v[n - 1] = max(v[n - 1], 1e-12)
    for _ in range(burn_in):
        _sweep(v, y, x, theta, end_limit, state)
    for k in range(out.shape[0]):
        for _ in range(thin):
            _sweep(v, y, x, theta, end_limit, state)
        out[k] = theta


def sample_posterior(
    y: NDArray[np.float64], num_samples: int, end_limit: float, seed: int
) -> NDArray[np.float64]:
    """Draw (num_samples, 3) given the times ``y`` (n,).

    Args:
        y: interdeparture times, positive, (n,).
        num_samples: draws wanted, taken from all chains alike.
        end_limit: largest theta_2 the prior allows.
        seed: seed of the chains.
    """
    each = -(-num_samples // _NUM_CHAINS)
    chains = np.empty((_NUM_CHAINS, each, 3))
    generator = np.random.default_rng(child_seed(seed, 0))
    for chain in range(_NUM_CHAINS):
        # Spread starts: a chain that has not forgotten its own shows between the chains.
        shortest = generator.uniform(0.2, 0.95) * min(_UPPER_SHORTEST, y.min())
        width = generator.uniform(0.3, 0.95) * min(_UPPER_WIDTH, end_limit - shortest)
        start = np.array([shortest, width, generator.uniform(0.05, 0.95) * _UPPER_RATE])
        _run_chain(
            y, start, end_limit, np.uint64(child_seed(seed, 1)), np.uint64(chain),
            _BURN_IN, _THIN, chains[chain],
        )  # fmt: skip
    # Interleave, so that any prefix holds every chain.
    return chains.transpose(1, 0, 2).reshape(-1, 3)[:num_samples]
