"""Gaps and sets of items beside the posterior that knows them, and beside what is done by hand.

    python examples/benchmarks/gaps.py    six minutes; writes gaps.json and gaps.md beside itself

Three models whose posterior given an incomplete observation is known: a linear Gaussian of which
three of six values were not measured; normal items, five of twelve at most; and a detection limit,
below which four of eight values lie. By hand, one fills the gaps with the mean of what is there, or
leaves the incomplete out, in the observation and in the simulations. All fits: 2,000 calls, two
rounds (4,000 and one of every x), one flow, one seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import measure
import numpy as np
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal

import abi
from abi.studies.engine import tables
from simulators import trials, with_gaps

HERE = Path(__file__).parent
CALLS, DRAWS = 2_000, 20_000
CONFIG = abi.ABIConfig(num_flows=1)
NAN = torch.nan
Moments = tuple[Tensor, Tensor]
"""Means and sds, (d,) each."""

DESIGN = torch.tensor([[1.0, 0.5], [0.3, 1.0], [1.0, -1.0], [0.0, 1.0], [0.7, 0.7], [1.0, 0.0]])
NOISE = 0.5
PLANE = MultivariateNormal(torch.zeros(2), torch.eye(2))
GAPPY = torch.tensor([0.8, NAN, 1.5, NAN, NAN, 0.2])

MOST, LIMIT = 12, 0.5
MU = {"mu": Normal(0.0, 2.0)}
BOTH = MU | {"log_sd": Normal(0.0, 0.5)}
ITEMS = torch.tensor([1.35, 0.13, 0.64, 2.1, 0.46])
LIMITED = torch.tensor([0.9, NAN, 1.6, NAN, 0.6, NAN, NAN, 1.1])


def linear(theta: Tensor) -> Tensor:
    """Six noisy linear functions of two parameters."""
    return theta @ DESIGN.T + NOISE * torch.randn(len(theta), 6)


def items(
    mu: float, log_sd: float, rng: np.random.Generator, number: int | None = None
) -> np.ndarray:
    """Draws of a normal law: as many as said, or 1 to 12."""
    count = rng.integers(1, MOST + 1) if number is None else number
    return rng.normal(mu, math.exp(log_sd), count)


def five_items(mu: float, log_sd: float, rng: np.random.Generator) -> np.ndarray:
    return items(mu, log_sd, rng, 5)


def twelve_items(mu: float, log_sd: float, rng: np.random.Generator) -> np.ndarray:
    return items(mu, log_sd, rng, MOST)


def looks(theta: Tensor, number: int) -> Tensor:
    return theta + torch.randn(len(theta), number)


def above_limit(theta: Tensor) -> Tensor:
    """Eight looks, of which those below the limit are not seen."""
    x = looks(theta, 8)
    return torch.where(x < LIMIT, NAN, x)


def linear_posterior(x: Tensor) -> Moments:
    seen = ~x.isnan()
    design = DESIGN[seen]
    covariance = torch.linalg.inv(torch.eye(2) + design.T @ design / NOISE**2)
    return covariance @ (design.T @ x[seen]) / NOISE**2, covariance.diagonal().sqrt()


def items_posterior(x: Tensor) -> Moments:
    """By quadrature."""
    mu, log_sd = torch.meshgrid(
        torch.linspace(-8, 8, 401), torch.linspace(-2.5, 2.5, 251), indexing="ij"
    )
    log_p = -(mu**2) / 8 - log_sd**2 / 0.5
    for value in x:
        log_p = log_p - 0.5 * ((value - mu) / log_sd.exp()) ** 2 - log_sd
    return moments(log_p, mu, log_sd)


def limited_posterior(x: Tensor) -> Moments:
    """By quadrature; of a value below the limit, the probability of that."""
    mu = torch.linspace(-8.0, 8.0, 4_001).double()
    seen = x[~x.isnan()].double()
    log_p = -(mu**2) / 8 - 0.5 * (seen[:, None] - mu).square().sum(dim=0)
    below = Normal(mu, 1.0).cdf(torch.tensor(LIMIT).double())
    return moments(log_p + int(x.isnan().sum()) * below.log(), mu)


def moments(log_p: Tensor, *values: Tensor) -> Moments:
    weight = (log_p - log_p.max()).double().exp()
    weight /= weight.sum()
    mean = torch.stack([(weight * v).sum() for v in values])
    square = torch.stack([(weight * v.double() ** 2).sum() for v in values])
    return mean, (square - mean**2).sqrt()


@dataclass(frozen=True)
class Way:
    """One way to deal with the gaps of a case."""

    case: str
    way: str
    prior: Any
    simulator: Callable[..., Any]
    x_o: Tensor
    exact: Moments


def ways() -> list[Way]:
    line = partial(Way, "linear, 3 of 6 values", prior=PLANE, exact=linear_posterior(GAPPY))
    five = partial(Way, "normal items, 5 of at most 12", prior=BOTH, exact=items_posterior(ITEMS))
    limit = partial(
        Way, "detection limit, 4 of 8 below", prior=MU, exact=limited_posterior(LIMITED)
    )
    seen = LIMITED[~LIMITED.isnan()]
    filled = LIMITED.nan_to_num(float(seen.mean()))
    return [
        line("x_o as it is", simulator=linear, x_o=GAPPY),
        # The mean of each value over prior and simulator is 0.
        line("filled with means", simulator=linear, x_o=GAPPY.nan_to_num(0.0)),
        five("simulators.trials", simulator=trials(items, MOST), x_o=ITEMS),
        five("a simulator of 5, by hand", simulator=five_items, x_o=ITEMS),
        five(
            "filled with their mean", simulator=twelve_items,
            x_o=torch.cat([ITEMS, ITEMS.mean().repeat(MOST - 5)]),
        ),
        limit("simulators.with_gaps", simulator=with_gaps(above_limit), x_o=LIMITED),
        limit("filled with their mean", simulator=partial(looks, number=8), x_o=filled),
        limit("incomplete ones left out", simulator=partial(looks, number=4), x_o=seen),
    ]  # fmt: skip


def result(case: str, way: str, draws: Tensor, exact: Moments, seconds: float) -> dict[str, Any]:
    mean, sd = exact
    bias, ratio = (draws.mean(dim=0) - mean) / sd, draws.std(dim=0) / sd
    return {
        "case": case,
        "way": way,
        "bias_in_exact_sds": [round(float(value), 3) for value in bias],
        "sd_over_exact": [round(float(value), 3) for value in ratio],
        "cpu_seconds": round(seconds, 1),
    }


def fitted(way: Way) -> dict[str, Any]:
    start = measure.cpu_seconds()
    fit = abi.fit(
        way.prior, way.simulator, way.x_o,
        num_simulations=CALLS, num_rounds=2, config=CONFIG, progress=False,
    )  # fmt: skip
    seconds = measure.cpu_seconds() - start
    found = result(way.case, way.way, fit.sample((DRAWS,)), way.exact, seconds)
    found |= {"encoder": fit.rounds[-1].encoder, "verdict": fit.verdict.outcome}
    print(found, flush=True)
    return found


def amortised() -> list[dict[str, Any]]:
    """One fit of every set of items, asked at three numbers of them."""
    start = measure.cpu_seconds()
    fit = abi.fit(
        BOTH, trials(items, MOST), None, num_simulations=2 * CALLS, config=CONFIG, progress=False
    )
    seconds = measure.cpu_seconds() - start
    generator = np.random.default_rng(1)
    found = []
    for number in (2, 5, MOST):
        x = ITEMS if number == 5 else torch.from_numpy(generator.normal(1.0, 1.0, number)).float()
        draws, case = fit.sample((DRAWS,), x=x), f"normal items, {number} of at most 12"
        row = result(case, "trials, one fit of all numbers", draws, items_posterior(x), seconds)
        found.append(row | {"encoder": fit.rounds[-1].encoder, "verdict": fit.verdict.outcome})
    return found


def table(rows: list[dict[str, Any]]) -> str:
    written = []
    for row in rows:
        bias = ", ".join(f"{value:+.2f}" for value in row["bias_in_exact_sds"])
        ratio = ", ".join(f"{value:.2f}" for value in row["sd_over_exact"])
        words = row["case"], row["way"], bias, ratio, row["verdict"], row["encoder"]
        written.append([*words, f"{row['cpu_seconds']:.0f}"])
    heads = "case", "way", "bias, exact sds", "sd over exact", "verdict", "encoder", "CPU s"
    return "\n".join(tables.table(heads, written))


def main() -> None:
    torch.set_num_threads(1)
    rows = [fitted(way) for way in ways()] + amortised()
    measure.save(__file__, {"calls": CALLS, "rows": rows})
    head = (
        f"{CALLS:,} calls a fit, two rounds, one flow; of all numbers of items at once "
        f"{2 * CALLS:,} calls, one round. A value a parameter; {DRAWS:,} draws; {measure.MACHINE}. "
        "The verdict is about the model that was simulated: what was filled in or left out by hand "
        "is another model, of which the answer may well be right."
    )
    (HERE / "gaps.md").write_text(f"{head}\n\n{table(rows)}\n")


if __name__ == "__main__":
    main()
