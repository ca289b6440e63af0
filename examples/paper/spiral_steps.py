"""The draws of the spiral's diffusion model by reverse step, and CoLT's statistic of each.

Run ``python examples/paper/spiral_steps.py runs/benchmark`` after ``abi benchmark diffusion
--quick --out runs/benchmark``, whose model it takes; a folder without one gets its own.

Source: Chen, Bansal & Scott (2025), Figures 4(d) and 7(b) to (g).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from abi.studies.engine.pictures import panels_of
from validation import ColtTraining, colt
from validation.perturbations import Failure, spiral

HERE = Path(__file__).parent
STEPS = 20
NUM_PAIRS = 600
TRAINING = ColtTraining(hidden=(64, 64), learning_rate=3e-4, epochs=150)


def statistics(failure: Failure) -> list[dict[str, float]]:
    """CoLT's distance, half of 600 pairs training it, at every number of steps."""
    rows = []
    for left_out in failure.strengths:
        task = failure.at(left_out)
        theta, x = task.joint(NUM_PAIRS, seed=1)
        found = colt(
            task.q, theta, x, embedding="identity", num_samples=100, training=TRAINING, seed=2
        )
        rows.append(
            {
                "step": STEPS - left_out,
                "statistic": round(float(found.statistic), 4),
                "p_value": float(f"{float(found.p_value):.2g}"),
            }
        )
        print(rows[-1], flush=True)
    return rows


def draw(failure: Failure, rows: list[dict[str, float]], path: Path) -> None:
    figure, table = panels_of(13, 6.4, 2, 4, len(failure.strengths) + 1)
    panels = table.ravel()
    x = failure.observe(3_000, 3)
    for ax, left_out in zip(panels, failure.strengths, strict=False):
        theta = failure.at(left_out).q.sample(1, x, seed=4)[0]
        ax.plot(theta[:, 0], theta[:, 1], ".", markersize=1.5)
        ax.set(title=f"{STEPS - left_out:g} steps", aspect="equal", xlim=(-17, 17), ylim=(-17, 17))
    ax = panels[6]
    ax.plot([row["step"] for row in rows], [row["statistic"] for row in rows], "o-")
    ax.set(title="CoLT's statistic", xlabel="reverse steps of q", ylim=(0, None))
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    torch.set_num_threads(1)
    failure = spiral(folder=Path(sys.argv[1]) / "diffusion_cells")
    rows = statistics(failure)
    (HERE / "spiral_steps.json").write_text(json.dumps(rows, indent=1) + "\n")
    draw(failure, rows, HERE / "spiral_steps.png")
