"""Small fits that take seconds, for tests of what comes before and after them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import problems
import torch
from torch import Tensor

import abi
from abi.files.fitted import restored
from abi.generators.flow import FlowModel
from abi.generators.flow_network import FlowSettings
from abi.generators.flow_training import fit_flow
from abi.generators.pool.power import pooled
from abi.generators.push_forward.potnet import POTNetSettings
from abi.generators.push_forward.wgan import WGANSettings
from abi.generators.support import Support
from abi.training.loop import TrainingSettings
from simulators import Prior

QUICK = TrainingSettings(max_epochs=15)


SMALL = abi.ABIConfig(
    hidden=(32, 32),
    num_slices=3,
    num_levels=6,
    network_training=QUICK,
    generator_training=QUICK,
    flow=FlowSettings(num_transforms=1, hidden=(32,)),
    num_flows=1,
    likelihood=False,
    min_accepted=100,
    potnet=POTNetSettings(
        hidden=(32, 32), training=TrainingSettings(batch_size=256, max_epochs=100, num_steps=300)
    ),
    wgan=WGANSettings(hidden=(32, 32), num_steps=250, learning_rate=3e-3),
)


TRAINED = replace(
    SMALL,
    encoder="flat",
    generator_training=replace(abi.ABIConfig().generator_training, num_steps=600),
)
"""Its generator is trained as usual: the answers are near the exact ones."""


BY_GENERATOR = {
    kind: replace(SMALL, adjustment="quantile", proposal="generator", generator=kind)
    for kind in ("flow", "mixture", "potnet", "wgan")
}


X_O = torch.tensor([0.5, -0.5, 0.6, -0.4, 0.4, -0.6])


def quick_fit(**changes: object) -> abi.ABIPosterior:
    arguments: dict[str, object] = {
        "prior": problems.BOX,
        "simulator": problems.simulate,
        "x_o": X_O,
        "num_simulations": 1_200,
        "num_rounds": 2,
        "config": SMALL,
        "progress": False,
    }
    return abi.fit(**(arguments | changes))  # type: ignore[arg-type]


def small_flow(
    theta: Tensor,
    support: Support,
    width: int,
    training: TrainingSettings,
    seed: int = 0,
    **more: Any,
) -> FlowModel:
    """Flows of one transform with ``width`` units, fitted to theta (n, d) as ``fit_flow`` does."""
    settings = FlowSettings(num_transforms=1, hidden=(width,))
    return fit_flow(theta, support, settings=settings, training=training, seed=seed, **more)[0]


def pooled_everywhere(
    flows: FlowModel, x: Tensor, theta: Tensor, prior: Prior, **how: Any
) -> FlowModel:
    """Flows and a likelihood of their pairs, at the first x, where no region cuts the prior."""
    return pooled(
        flows, x, theta, x[0], prior, lambda at: torch.ones(len(at), dtype=torch.bool), **how
    )


def assert_a_file_holds(model: FlowModel, count: int = 50) -> None:
    """A model comes back from what it tells a file: with the same draws, and their density."""
    state = model.state()
    again = restored(state.tensors, {"kind": state.kind, "values": state.values}, None)
    draws = model.sample(count, 3)
    assert torch.equal(again.sample(count, 3), draws)
    assert torch.equal(again.log_prob(draws), model.log_prob(draws))


@cache
def usual_fit() -> abi.ABIPosterior:
    """:func:`quick_fit` as it stands, made once: a posterior is frozen, so that tests share it."""
    return quick_fit()
