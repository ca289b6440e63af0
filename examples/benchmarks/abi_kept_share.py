"""What keeping fewer, nearer pairs costs: held-out log scores of the flows of every round.

A fit is made once per model. For each of its rounds, flows are fitted again to the share of the
round's pairs whose posteriors are nearest to that of x_o by the MSW distance, and scored on fresh
pairs from the same truncated prior: mean log density of the true theta given x, over those of them
that lie in the nearest half and in the nearest tenth. The score is an average over thousands of
observations near x_o, and so tells settings apart that no single posterior could.

    python examples/benchmarks/abi_kept_share.py

Observations are drawn by seed, and are not those of examples/paper/accuracy.py. A model takes ten
minutes of a core; those done are kept in abi_kept_share.json.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from measure import MACHINE, versions
from torch import Tensor

import abi
from abi.encoders.choice import features_of
from abi.files.run_folder import RunFolder
from abi.files.storage import load_state
from abi.generators.flow import FlowModel
from abi.generators.flow_training import Conditioning, fit_flow
from abi.quantiles.kernel import LearnedKernel
from abi.rounds.problem import Problem, pose
from abi.rounds.record import RoundState
from abi.rounds.regions.drawing import sample_inside
from simulators import MG1, Cosine, MultimodalGaussian, sample_prior
from simulators.random import child_seed

RESULT = Path(__file__).with_suffix(".json")
MODELS: dict[str, tuple[Any, int]] = {
    "MultimodalGaussian": (MultimodalGaussian(), 20_000),
    "Cosine": (Cosine(), 15_000),
    "MG1": (MG1(), 40_000),
}
SHARES = (0.25, 0.5, 1.0)
NEAR = (0.5, 0.1)
SEED, HELD_OUT, FLOWS = 77, 6_000, 2


def states(name: str, folder: Path) -> tuple[Problem, list[RoundState]]:
    """The rounds of a fit with defaults, each with the regions that it was drawn from."""
    task, calls = MODELS[name]
    theta = sample_prior(task.prior, 1, seed=child_seed(SEED, 0))
    x_o = task(theta, seed=child_seed(SEED, 1))[0]
    abi.fit(task.prior, task, x_o, num_simulations=calls, seed=0, run_dir=folder, progress=True)
    run = RunFolder.open(folder)
    plan = run.request()[0]
    files = sorted(folder.glob("round_*.safetensors"))
    return pose(task.prior, task, x_o), [
        load_state(file, x_o, plan.config, None, None) for file in files
    ]


def scores(problem: Problem, state: RoundState, regions: tuple[Any, ...]) -> list[dict[str, Any]]:
    """One row a share: the log scores near x_o, beside those of all of the pairs.

    Flows see the features that the quantile network learned, and these stay as they are.
    """
    kernel = state.kernel
    if not isinstance(kernel, LearnedKernel):
        raise TypeError("a fit with a known distance has no network to take features from")
    encoder, config = kernel.network.encoder, abi.ABIConfig()
    theta = sample_inside(problem.prior, regions, HELD_OUT, seed=child_seed(SEED, 2))
    x = problem.simulator(theta, seed=child_seed(SEED, 3), first_row=0)
    features, distance = features_of(encoder, x), kernel(x)
    at, own = features_of(encoder, problem.x_o[None])[0], kernel(state.x)
    rows = []
    for share in SHARES:
        kept = own <= own.quantile(share)
        given = Conditioning(torch.nn.Identity(), features_of(encoder, state.x[kept]), at)
        model, _ = fit_flow(
            state.theta[kept], problem.support, settings=config.flow,
            training=config.generator_training, seed=SEED, num_flows=FLOWS, given=given,
        )  # fmt: skip
        values = log_scores(model, theta, features)
        near = {f"nearest_{part:.0%}": values[distance <= distance.quantile(part)] for part in NEAR}
        rows.append({"share": share, "pairs": int(kept.sum())} | near)
    return [_compared(row, rows[-1]) for row in rows]


def log_scores(model: FlowModel, theta: Tensor, features: Tensor) -> Tensor:
    """Log density of each theta (n, d) given its own features (n, k), not those of x_o."""
    z = model.support.to_real(theta)
    with torch.no_grad():
        members = range(len(model.flows))
        parts = torch.stack([model.log_density(part, z, features) for part in members])
    mixed = parts.logsumexp(dim=0) - torch.tensor(float(len(parts))).log()
    return mixed - model.trend.log_scale - model.support.log_jacobian(z)


def _compared(row: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """Mean scores, and how far below those of all pairs, with the standard error of that."""
    out = {"share": row["share"], "pairs": row["pairs"]}
    for name in (f"nearest_{part:.0%}" for part in NEAR):
        loss = whole[name] - row[name]
        error = float(loss.std() / len(loss) ** 0.5)
        out[name] = {
            "log_score": round(float(row[name].mean()), 4),
            "lost": [round(float(loss.mean()), 4), round(error, 4)],
        }
    return out


def main() -> None:
    torch.set_num_threads(1)
    kept = json.loads(RESULT.read_text())["models"] if RESULT.exists() else {}
    for name in (name for name in MODELS if name not in kept):
        with tempfile.TemporaryDirectory() as folder:
            problem, rounds = states(name, Path(folder) / "run")
            regions: tuple[Any, ...] = ()
            table = []
            for number, state in enumerate(rounds, start=1):
                table.append({"round": number, "shares": scores(problem, state, regions)})
                regions = (*regions, *state.regions)
                print(name, json.dumps(table[-1]), flush=True)
        kept[name] = table
        head = {
            "what": "log score near x_o lost by fitting flows to the nearest share of pairs",
            "held_out_pairs": HELD_OUT,
            "flows_mixed": FLOWS,
            "machine": MACHINE,
            "versions": versions("torch", "zuko", "abi-toolkit"),
            "models": kept,
        }
        RESULT.write_text(json.dumps(head, indent=1) + "\n")


if __name__ == "__main__":
    main()
