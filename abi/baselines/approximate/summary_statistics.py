"""ABC with learned summaries: the posterior mean, estimated by a network, is what is compared.

    S(x) = an estimate of E[theta | x],   keep the theta whose |S(x) - S(x_o)| is least,

theta in the standard deviations of the prior's draws. One number a parameter is the least that
keeps the posterior mean right as the tolerance vanishes; what the mean does not tell, two modes of
opposite sign for one, is lost.

The budget is cut in two: half of the simulations train the network, the other half are compared
with x_o. The first half is not used again: its summaries were fitted to its own theta.

Source: Fearnhead & Prangle (2012), Section 2.3; Jiang, Wu, Zheng & Wong (2017), Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from simulators.random import child_seed

from ...encoders.choice import features_of
from ...encoders.layout import Layout
from ...generators.base import units
from ...generators.push_forward.model import Conditioned
from ...training.loop import TrainingLog, TrainingSettings, train
from ..inputs import features, num_features

_HIDDEN = (128, 128, 128)  # as wide as ABI's quantile network


def posterior_mean(
    theta: Tensor, x: Tensor, encoder: str | nn.Module, layout: Layout, seed: int
) -> tuple[Callable[[Tensor], Tensor], TrainingLog]:
    """Regress theta on x: x (n, p) -> an estimate of E[theta | x] in prior sds, (n, d).

    The mean is the function of x with the least mean squared error.
    """
    center, scale, _ = units(theta)
    inputs, embedding = features(encoder, x, layout, child_seed(seed, 0))
    width = num_features(inputs, embedding, x)
    network = Conditioned((width, *_HIDDEN, theta.shape[1]), seed=child_seed(seed, 1))
    module = nn.Sequential(embedding, network)

    def loss(target: Tensor, given: Tensor) -> Tensor:
        error: Tensor = ((module(given) - target) ** 2).mean()
        return error

    data = ((theta - center) / scale, inputs(x))
    log = train(module, loss, data, TrainingSettings(), child_seed(seed, 3))
    return lambda rows: features_of(module, inputs(rows)), log
