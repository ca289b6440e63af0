"""The Jansen-Rit neural mass model: the field potential of a column of cortex.

======== ============================================= ============== ===============
symbol   meaning                                       unit           prior
======== ============================================= ============== ===============
C        connections between the populations           none           U(10, 250)
mu       mean of the input from other columns          1 / s          U(50, 500)
sigma    strength of its noise                         mV / s^(3/2)   U(100, 5000)
g        gain of the electrode                         dB             U(-20, 20)
======== ============================================= ============== ===============

Pyramidal cells (0), excitatory (1) and inhibitory (2) interneurons, with S the sigmoid of Jansen &
Rit, A = 3.25 mV, B = 22 mV, a = 100 / s, b = 50 / s, s_0 = 0.01, s_2 = 1:

    X_0'' = A a S(X_1 - X_2)               - 2 a X_0' - a^2 X_0 + s_0 W_0'
    X_1'' = A a (mu + 0.8 C S(C X_0))      - 2 a X_1' - a^2 X_1 + sigma W_1'
    X_2'' = B b C / 4 S(C X_0 / 4)         - 2 b X_2' - b^2 X_2 + s_2 W_2'
    Y     = 10^(g / 10) (X_1 - X_2)

seen for 8 s at 128 Hz after 2 s of burn-in from a random start, integrated at 1024 Hz. The mean of
the record is taken off, as in the paper's experiment. C, sigma and g raise the power alike, so
their posterior is a thin curved sheet.

Source: Jansen & Rit (1995); Rodrigues et al. (2021), "HNPE"; Linhart, Gramfort & Rodrigues (2023),
Section 4.2, for the prior (its footnote 6 for g) and the length of the record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...arguments import choice, settle
from ..declared import Constant, Observation, prepared, uniform_box

_STEPS_PER_SECOND = 1024
_BURN_IN = 2 * _STEPS_PER_SECOND
_EVERY = 8
_NUM_SAMPLES = 1024
_SEGMENT = 64


@dataclass(frozen=True)
class JansenRit:
    """The potential of a column of cortex, 1024 values, or the logarithm of its power spectrum.

    The default observation is one record at C = 135, mu = 220, sigma = 2000, g = 0, the values of
    Linhart et al. (2023).

    Args:
        summary: ``"series"``: x (n, 1024) is the record. ``"spectrum"``: x (n, 33) is the natural
            logarithm of its power spectral density at 0, 2, ..., 64 Hz, by Welch's method: Hann
            windows of 64 values, half overlapping.
    """

    summary: Literal["series", "spectrum"] = "series"

    theta_dim = 4
    parameter_names = ("C", "mu", "sigma", "g")
    prior = uniform_box([10.0, 50.0, 100.0, -20.0], [250.0, 500.0, 5000.0, 20.0])
    """Uniform on the box of the module's table."""
    true_theta = Constant(135.0, 220.0, 2000.0, 0.0)
    """The parameters behind the default observation, (4,)."""
    observation = Observation(seed=2023)
    """The default observation, (x_dim,)."""

    def __post_init__(self) -> None:
        settle(self, summary=choice("series", "spectrum"))

    @property
    def x_dim(self) -> int:
        """1024 values of the record, or 33 of its spectrum."""
        return _NUM_SAMPLES if self.summary == "series" else _SEGMENT // 2 + 1

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, 4) -> x (n, x_dim), float32."""
        from .kernels import simulate_potentials

        rows, seed = prepared(theta, self.theta_dim, seed)
        potential = np.empty((len(rows), _NUM_SAMPLES))
        simulate_potentials(
            rows, 1.0 / _STEPS_PER_SECOND, _BURN_IN, _EVERY,
            np.uint64(seed), np.uint64(first_row), potential,
        )  # fmt: skip
        potential -= potential.mean(axis=1, keepdims=True)
        if self.summary == "spectrum":
            potential = log_power_spectrum(potential)
        return torch.from_numpy(potential.astype(np.float32))

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """No exact posterior is known: the record shows one of six hidden diffusions."""
        raise NotImplementedError(
            "JansenRit has no exact posterior: the record shows one nonlinear combination of six "
            "hidden diffusions; compare with `true_theta`."
        )


def log_power_spectrum(record: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log power density (n, 33) of records (n, 1024) at 128 Hz, by Welch's method.

    Source: Welch (1967), "The use of fast Fourier transform for the estimation of power spectra".
    """
    window = np.sin(np.pi * np.arange(_SEGMENT) / _SEGMENT) ** 2
    segments = np.lib.stride_tricks.sliding_window_view(record, _SEGMENT, axis=1)
    segments = segments[:, :: _SEGMENT // 2]
    centred = segments - segments.mean(axis=2, keepdims=True)
    power = (np.abs(np.fft.rfft(window * centred, axis=2)) ** 2).mean(axis=1)
    power[:, 1:-1] *= 2.0  # the negative frequencies
    rate = _STEPS_PER_SECOND / _EVERY
    return np.asarray(np.log(power / (rate * (window**2).sum())))
