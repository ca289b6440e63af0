"""The posteriors under test: flows of sbi, trained once and kept as safetensors.

The flow is tested as it is, on theta as the task has it: what it puts outside of the prior's bounds
counts as wrong.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from simulators import Task, sample_joint
from simulators.random import child_seed

from ....baselines.guest import guest, quiet, training_limits
from ....files.parts import read_parts, write_parts

_KIND = "abi-benchmark-estimate"


@dataclass(frozen=True)
class Recipe:
    """How an estimate is made; with the task, all that it depends on."""

    label: str
    """Of the task."""
    num_train: int
    seed: int
    model: Literal["nsf", "maf"] = "nsf"
    """Neural spline flow, or masked autoregressive flow."""
    num_transforms: int = 5
    max_epochs: int | None = None

    def path(self, folder: Path) -> Path:
        """Where it is kept: readable, and different for different recipes."""
        words = f"{self.label}--{self.model}--{self.num_train}--{digest(asdict(self))}"
        return folder / f"{words}.safetensors"


def digest(asked: dict[str, Any]) -> str:
    """Eight letters that are others for whatever was asked differently."""
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:8]


def estimate(task: Task, recipe: Recipe, folder: Path) -> Any:
    """The flow q(theta | x) of ``recipe``, read from ``folder`` or trained and kept there."""
    path = recipe.path(folder)
    if not path.is_file():
        network = _train(task, recipe)
        write_parts(path, _KIND, dict(network.state_dict()), {"recipe": asdict(recipe)})
        return network
    tensors, _ = read_parts(path, _KIND)
    with guest(0):
        rows = torch.randn(20, task.theta_dim), torch.randn(20, task.x_dim)
        network = _builder(recipe)(*rows)  # their scaling is overwritten with the weights
        network.load_state_dict(tensors)
        network.eval()
    return network


def from_base(network: Any, z: Tensor, x_o: Tensor) -> Tensor:
    """``theta = T(z; x_o)`` for base draws z (n, d) at x_o (p,): (n, d)."""
    flow = network.net
    with guest(0), torch.no_grad():
        context = flow._embedding_net(x_o.expand(len(z), -1))
        theta: Tensor = flow._transform.inverse(z, context=context)[0]
    return theta


def _train(task: Task, recipe: Recipe) -> Any:
    theta, x = sample_joint(task, recipe.num_train, child_seed(recipe.seed, 0))
    with guest(child_seed(recipe.seed, 1)):
        from sbi.inference import NPE_C

        trainer = NPE_C(
            prior=None,
            density_estimator=_builder(recipe),
            **quiet(NPE_C),
        )
        trainer.append_simulations(theta, x)
        network = trainer.train(**training_limits(recipe.max_epochs))
        network.eval()
    return network


def _builder(recipe: Recipe) -> Any:
    from sbi.neural_nets import posterior_nn

    return posterior_nn(recipe.model, num_transforms=recipe.num_transforms)
