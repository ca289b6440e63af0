"""The model of both jobs in numpy: speed and angle of a ball from noisy positions."""

import json
import sys
import time

import numpy as np

LOW, HIGH = np.array([1.0, 0.2]), np.array([10.0, 1.4])
BUDGET = 2_000
START = time.perf_counter()


def throw_one(theta):
    """One theta (2,) -> (16,): eight positions with noise of 0.1."""
    t = np.linspace(0.1, 1.0, 8)
    height = theta[0] * np.sin(theta[1]) * t - 4.9 * t**2
    where = np.concatenate([theta[0] * np.cos(theta[1]) * t, height])
    return where + 0.1 * np.random.randn(16)


np.random.seed(1)
X_O = throw_one([6.0, 0.8]).astype("float32")
"""The observation, the same for every library: a throw of speed 6 at angle 0.8."""


def report(draws=None, calls=BUDGET, **more):
    """Print what the job found, as one line of JSON; the clock includes the library's import."""
    wall, cpu = time.perf_counter() - START, time.process_time()
    found = {"seconds": round(wall, 1), "cpu_seconds": round(cpu, 1), "simulator_calls": calls}
    found |= more
    if draws is not None:
        draws = np.asarray(draws)
        found |= {"mean": draws.mean(0).round(3).tolist(), "sd": draws.std(0).round(4).tolist()}
    print(json.dumps(found), file=sys.stdout)
