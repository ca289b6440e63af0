"""What the prior says of lynx and hares before their counts are seen
(:mod:`simulators.models.lynx_hare`).

python examples/lynx_hare_model.py
"""

from __future__ import annotations

import torch

import simulators
from simulators.models.lynx_hare.model import HARES, LYNX, YEARS

model = simulators.LynxHare()
observation = model.observation
PARAMETERS = model.parameter_names
populations = model.populations


def main() -> None:
    theta = simulators.sample_prior(model.prior, 5_000, seed=0)
    run = simulators.simulate(model, theta, seed=1)
    print(f"{len(run.x)} simulations, {len(run.failures)} failures")
    low, middle, high = torch.quantile(run.x, torch.tensor([0.05, 0.5, 0.95]), dim=0)
    inside = ((observation >= low) & (observation <= high)).float().mean()
    print(f"{inside:.0%} of the 42 counts lie inside the prior's 90% band")
    print("year   hares   lynx  [prior 5%, 50%, 95%, of hares]")
    for k, year in enumerate(YEARS):
        band = ", ".join(f"{float(q[k].exp()):8.2g}" for q in (low, middle, high))
        print(f"{year}  {HARES[k]:6.1f} {LYNX[k]:6.1f}  [{band}]")


if __name__ == "__main__":
    main()
