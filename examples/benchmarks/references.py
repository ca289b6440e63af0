"""Are sampled references exact? R-hat and effective sizes of their runs, and two runs apart.

    python examples/benchmarks/references.py    ten minutes; writes .json and .md here

Of every model whose exact posterior is drawn by Monte Carlo: five observations from the prior
predictive, four runs of 2,000 draws each, with other seeds. R-hat is rank-normalised and split
(Vehtari et al. 2021), the largest of the parameters; effective sizes, of the bulk and of the tails,
are the least of them, over the 8,000 draws. C2ST tells one run from another: 0.5 is as it should
be. Draws stand in the order in which the sampler gives them.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from measure import MACHINE
from torch import Tensor

from abi.metrics import c2st
from abi.studies.engine.study import drawn_observations
from abi.studies.engine.tables import average, table, write_results
from simulators import MG1, SIR, BernoulliGLM, LotkaVolterraODE, LynxHare, MultimodalGaussian

HERE = Path(__file__)
SEED, OBSERVATIONS, RUNS, DRAWS = 2036, 5, 4, 2_000
MODELS: dict[str, Any] = {
    "MG1": MG1(),
    "MultimodalGaussian": MultimodalGaussian(),
    "BernoulliGLM": BernoulliGLM(),
    "BernoulliGLM, raw": BernoulliGLM(summary="raw"),
    "SIR": SIR(),
    "LotkaVolterraODE": LotkaVolterraODE(),
    "LynxHare": LynxHare(),
}


def observations(task: Any) -> Tensor:
    """Of a model, (m, p): of the lynx and hares, half a minute a run, the real one alone."""
    if isinstance(task, LynxHare):
        return task.observation[None]
    return drawn_observations(task.prior, task, OBSERVATIONS, SEED)


def diagnosed(task: Any, x_o: Tensor) -> dict[str, float]:
    """What the runs at an observation say of their sampler."""
    import arviz

    started = time.process_time()
    runs = torch.stack([task.reference_posterior(x_o, DRAWS, seed=run) for run in range(RUNS)])
    seconds = time.process_time() - started
    chains = [column.numpy().astype("float64") for column in runs.unbind(dim=2)]
    effective = {
        part: min(float(arviz.ess(chain, method=part)) for chain in chains) / (RUNS * DRAWS)
        for part in ("bulk", "tail")
    }
    return {
        "r_hat": max(float(arviz.rhat(chain)) for chain in chains),
        **effective,
        "c2st": c2st(runs[0], runs[1], seed=SEED),
        "cpu_seconds": seconds / RUNS,
    }


def page(found: dict[str, list[dict[str, float]]]) -> str:
    """The table: a row a model."""
    heads = (
        "model", "observations", "R-hat, worst", "effective share of draws, bulk", "tails",
        "C2ST of two runs, mean", "worst", "CPU s a run",
    )  # fmt: skip
    written = []
    for name, cells in found.items():
        away = [cell["c2st"] for cell in cells]
        seconds = average([cell["cpu_seconds"] for cell in cells])
        written.append([
            f"`{name}`", len(cells), f"{max(cell['r_hat'] for cell in cells):.3f}",
            *(f"{min(cell[part] for cell in cells):.0%}" for part in ("bulk", "tail")),
            f"{average(away):.3f}", f"{max(away):.3f}", f"{seconds:.1f}",
        ])  # fmt: skip
    return "\n".join(table(heads, written)) + "\n"


def main() -> None:
    """Run, judge, and write."""
    torch.set_num_threads(1)
    found = {}
    for name, task in MODELS.items():
        found[name] = [diagnosed(task, x_o) for x_o in observations(task)]
        print(name, found[name], flush=True)
    write_results(HERE, {"machine": MACHINE, "seed": SEED, "models": found}, page(found))


if __name__ == "__main__":
    main()
