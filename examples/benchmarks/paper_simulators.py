"""How fast are the other simulators of the paper, and the exact references?

Simulations per CPU second on one core, over the prior, of M/G/1, the cosine model and the
multimodal Gaussian: this project through its public call, a straightforward numpy implementation
of many rows at once, and ELFI's own M/G/1 where it is installed (it has no other of the three).
Then what a simulation costs for every task, and 10,000 draws of every reference.

    python examples/benchmarks/paper_simulators.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import cpu_seconds, fastest, save, versions

import simulators

NUM = 50_000
CHUNK = 1_000
ROUNDS = 7

Numpy = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def numpy_mg1(theta: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """All queues a customer at a time."""
    shortest, width, rate = theta.T
    arrivals = generator.exponential(1.0, (50, len(theta))).cumsum(axis=0) / rate
    services = shortest + width * generator.uniform(size=(50, len(theta)))
    departure = np.zeros(len(theta))
    out = np.empty((len(theta), 50))
    for j in range(50):
        out[:, j] = services[j] + np.maximum(arrivals[j] - departure, 0.0)
        departure += out[:, j]
    return out


def numpy_cosine(theta: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    omega, phi, log_sigma, log_amplitude = (column[:, None] for column in theta.T)
    wave = np.cos(2.0 * np.pi * omega * np.arange(1, 101) + phi)
    noise = generator.standard_normal((len(theta), 100))
    return np.exp(log_amplitude) * wave + np.exp(log_sigma) * noise


def numpy_multimodal(theta: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    noise = generator.standard_normal((len(theta), 4, 2))
    first_sd, second_sd = theta[:, 2, None] ** 2, theta[:, 3, None] ** 2
    r = np.tanh(theta[:, 4, None])
    first = theta[:, 0, None] + first_sd * noise[..., 0]
    mixed = r * noise[..., 0] + np.sqrt(1.0 - r**2) * noise[..., 1]
    second = theta[:, 1, None] + second_sd * mixed
    return np.stack([first, second], axis=2).reshape(len(theta), 8)


def in_chunks(simulate: Numpy, theta: np.ndarray) -> Callable[[int], Any]:
    """A thousand rows at once: what fits the cache, and faster than all in one."""

    def run(seed: int) -> None:
        generator = np.random.default_rng(seed)
        for start in range(0, len(theta), CHUNK):
            simulate(theta[start : start + CHUNK], generator)

    return run


def elfi_mg1(theta: np.ndarray) -> Callable[[int], Any]:
    from elfi.examples.mg1 import MG1

    def run(seed: int) -> None:
        state = np.random.RandomState(seed)
        for start in range(0, len(theta), CHUNK):
            part = theta[start : start + CHUNK]
            MG1(
                part[:, 0], part[:, 0] + part[:, 1], part[:, 2], n_obs=50,
                batch_size=len(part), random_state=state,
            )  # fmt: skip

    return run


def comparisons() -> tuple[dict[str, Any], dict[str, str]]:
    missing: dict[str, str] = {}
    result = {}
    for task, in_numpy in (
        (simulators.MG1(), numpy_mg1), (simulators.Cosine(), numpy_cosine),
        (simulators.MultimodalGaussian(), numpy_multimodal),
    ):  # fmt: skip
        theta = simulators.sample_prior(task.prior, NUM, seed=1)
        task(theta[:2], 0)  # compile
        columns = theta.double().numpy()
        runs: dict[str, Callable[[int], Any]] = {
            "ours": lambda seed, t=task, th=theta: t(th, seed),
            "numpy": in_chunks(in_numpy, columns),
        }
        if isinstance(task, simulators.MG1):
            try:
                runs["ELFI"] = elfi_mg1(columns)
            except ImportError as error:
                missing["ELFI"] = f"skipped: {error}"
        seconds = fastest(runs, ROUNDS)
        result[type(task).__name__] = {
            name: {
                "simulations_per_cpu_second": round(NUM / taken),
                "ours_is_faster_by": round(taken / seconds["ours"], 2),
            }
            for name, taken in seconds.items()
        }
    return result, missing


def every_task() -> dict[str, Any]:
    result = {}
    for task in (
        simulators.MG1(), simulators.Cosine(), simulators.LotkaVolterra(),
        simulators.MultimodalGaussian(), simulators.GaussianLinear(),
        simulators.GaussianLinearUniform(), simulators.GaussianMixture(), simulators.TwoMoons(),
        simulators.BernoulliGLM(), simulators.JansenRit(), simulators.JansenRit("spectrum"),
    ):  # fmt: skip
        num = 2_000 if isinstance(task, simulators.JansenRit) else 20_000
        theta = simulators.sample_prior(task.prior, num, seed=1)
        task(theta[:2], 0)
        taken = fastest({"": lambda seed, t=task, th=theta: t(th, seed)}, 3)[""]
        entry: dict[str, Any] = {"simulations_per_cpu_second": round(num / taken)}
        try:
            task.reference_posterior(task.observation, 10, seed=0)
            start = cpu_seconds()
            task.reference_posterior(task.observation, 10_000, seed=1)
            entry["cpu_seconds_for_10000_reference_draws"] = round(cpu_seconds() - start, 2)
        except NotImplementedError:
            entry["cpu_seconds_for_10000_reference_draws"] = None
        result[str(task)] = entry
    return result


def main() -> None:
    start = time.monotonic()
    against, missing = comparisons()
    save(
        __file__,
        {
            "what": "simulations per CPU second over the prior, one core, best of rounds",
            "num_simulations": NUM,
            "seeds": {"prior": 1, "rounds": list(range(1, ROUNDS + 1))},
            "versions": versions("numpy", "numba", "torch", "elfi"),
            "against_others": against,
            "packages_missing": missing,
            "every_task": every_task(),
            "seconds": round(time.monotonic() - start),
        },
    )


if __name__ == "__main__":
    main()
