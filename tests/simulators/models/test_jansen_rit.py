"""The neural mass model: its exact linear step, its convergence, and its spectrum."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import integrate, linalg, signal, stats

import simulators
from simulators import JansenRit
from simulators.models.jansen_rit.kernels import linear_step, simulate_potentials
from simulators.models.jansen_rit.model import log_power_spectrum

H = 1.0 / 1024.0


@pytest.mark.parametrize(
    ("rate", "noise", "h"), [(100.0, 2_000.0, H), (50.0, 1.0, H), (2.0, 3.0, 0.4)]
)
def test_the_linear_step_has_the_exact_mean_and_covariance(
    rate: float, noise: float, h: float
) -> None:
    e_xx, e_xv, e_vx, e_vv, l_xx, l_vx, l_vv = linear_step(rate, noise, h)
    drift = np.array([[0.0, 1.0], [-(rate**2), -2.0 * rate]])
    assert np.allclose([[e_xx, e_xv], [e_vx, e_vv]], linalg.expm(drift * h), rtol=1e-10)

    def rate_of_covariance(s: float) -> np.ndarray:
        column = linalg.expm(drift * s)[:, 1] * noise
        return np.outer(column, column)

    covariance = integrate.quad_vec(rate_of_covariance, 0.0, h, epsrel=1e-12)[0]
    root = np.array([[l_xx, 0.0], [l_vx, l_vv]])
    assert np.allclose(root @ root.T, covariance, rtol=1e-6)


def test_without_connections_the_signal_is_a_known_gaussian_process() -> None:
    # C = 0: X_1 is an oscillator driven by sigma dW alone, X_2 by dW: a linear system.
    sigma, num = 500.0, 400
    out = np.empty((num, 64))
    theta = np.tile([0.0, 220.0, sigma, 0.0], (num, 1))
    simulate_potentials(theta, H, 2 * 1024, 64, np.uint64(1), np.uint64(0), out)
    # Sixteenths of a second: exp(-100/16) (1 + 100/16) = 0.014, so nearly independent in X_1.
    variance = sigma**2 / (4.0 * 100.0**3) + 1.0 / (4.0 * 50.0**3)
    assert out.mean() == pytest.approx(
        3.25 / 100.0 * 220.0, abs=6.0 * math.sqrt(variance / out.size)
    )
    assert out.var() == pytest.approx(variance, rel=6.0 * math.sqrt(2.0 / out.size))
    z = (out[:, ::8].ravel() - out.mean()) / math.sqrt(variance)
    assert stats.kstest(z, "norm").pvalue > 1e-4


def slow_potential(theta: np.ndarray, h: float, seconds: float, seed: int) -> np.ndarray:
    """Euler-Maruyama in numpy, many rows at once: (n,) potentials at the end."""
    connections, mu, sigma = theta[:, 0], theta[:, 1], theta[:, 2]
    generator = np.random.default_rng(seed)
    state = generator.standard_normal((6, len(theta)))
    squash = lambda v: 5.0 / (1.0 + np.exp(0.56 * (6.0 - v)))  # noqa: E731
    for _ in range(round(seconds / h)):
        x, v = state[:3], state[3:]
        drive = np.stack(
            [
                325.0 * squash(x[1] - x[2]),
                325.0 * (mu + 0.8 * connections * squash(connections * x[0])),
                1100.0 * 0.25 * connections * squash(0.25 * connections * x[0]),
            ]
        )
        rate = np.array([[100.0], [100.0], [50.0]])
        noise = np.stack([np.full_like(mu, 0.01), sigma, np.ones_like(mu)])
        shock = math.sqrt(h) * noise * generator.standard_normal(x.shape)
        state = np.concatenate([x + h * v, v + h * (drive - 2 * rate * v - rate**2 * x) + shock])
    return state[1] - state[2]


def test_the_splitting_agrees_with_a_fine_euler_scheme() -> None:
    theta = np.tile([135.0, 220.0, 2_000.0, 0.0], (3_000, 1))
    fast = np.empty((3_000, 1))
    # 0.3 s from the random start: long enough to couple, short enough for a slow scheme.
    simulate_potentials(theta, H, 307, 1, np.uint64(2), np.uint64(0), fast)
    slow = slow_potential(theta, H / 16.0, 307 * H, 3)
    assert stats.ks_2samp(fast[:, 0], slow).pvalue > 1e-4
    assert fast.std() / slow.std() == pytest.approx(1.0, abs=0.1)


def test_the_gain_scales_the_record_and_only_that() -> None:
    theta = JansenRit().true_theta.repeat(3, 1)
    theta[:, 3] = torch.tensor([-20.0, 0.0, 10.0])
    records = torch.cat([JansenRit()(row[None], seed=5) for row in theta])
    assert torch.allclose(records[0], 0.01 * records[1], rtol=1e-4, atol=1e-6)
    assert torch.allclose(records[2], 10.0 * records[1], rtol=1e-4, atol=1e-5)


def test_a_record_has_no_mean_and_an_alpha_rhythm() -> None:
    record = JansenRit().observation
    assert abs(float(record.mean())) < 1e-5
    spectrum = JansenRit("spectrum").observation
    # 2 Hz a bin: the model's classical parameters give some ten oscillations a second.
    assert 8.0 <= 2.0 * int(spectrum.argmax()) <= 14.0


def test_the_spectrum_is_welchs() -> None:
    theta = simulators.sample_prior(JansenRit().prior, 4, 0)
    record = JansenRit()(theta, seed=1).double().numpy()
    _, power = signal.welch(record, fs=128.0, nperseg=64)
    assert np.allclose(JansenRit("spectrum")(theta, seed=1).numpy(), np.log(power), atol=1e-3)
    white = np.random.default_rng(0).standard_normal((200, 1024))
    density = np.exp(log_power_spectrum(white))[:, 2:-1]  # removing means empties the lowest bins
    assert density.mean() == pytest.approx(2.0 / 128.0, rel=0.01)
