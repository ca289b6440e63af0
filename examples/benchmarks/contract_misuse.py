"""The rows of the contract table that no test may answer: what is near a posterior but none."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from contract_posteriors import PRIOR, SPREAD, Specimen, normal, stored
from contract_trained import built, likelihood, of_nflows, of_zuko, trainer, training
from scipy import stats
from torch import Tensor
from torch.distributions import Independent, Normal

from validation import as_posterior

X = torch.zeros(1, 2)
SECOND: Any = "observations_first"


class Joint:
    """Draws of theta and x together, as a model of p(theta, x) gives them."""

    def sample(self, num_samples: int, x: Tensor) -> Tensor:
        return torch.randn(num_samples, len(x), 4)


def of_sbi(name: str) -> Any:
    from sbi import inference

    return getattr(inference, name)


def of_lampe(name: str) -> Any:
    import lampe.inference

    with training():
        return getattr(lampe.inference, name)(2, 2)


def of_torch(layer: torch.nn.Module) -> Any:
    """A network of the user's own that looks at x through this layer."""

    class Net(torch.nn.Module):
        def forward(self, x: Tensor) -> Any:
            return Normal(layer(x).flatten(1)[:, :2], SPREAD)

    return Net()


def unconditional() -> Any:
    with training():
        import zuko

        return zuko.flows.MAF(2, 0, hidden_features=(8,))


def one_of_two(num_samples: int, x: Tensor) -> Any:
    return normal(num_samples, x[:, :1])


def transposed(num_samples: int, x: Tensor) -> Tensor:
    return torch.as_tensor(normal(num_samples, x)).transpose(0, 1)


def failing(num_samples: int, x: Tensor) -> Tensor:
    """NaN where x is large, as a flow that left its range."""
    return torch.where(x[:, :1] > 1, torch.nan, torch.as_tensor(normal(num_samples, x)))


def few_draws() -> Any:
    theta, x, draws = stored()
    return as_posterior((theta, x, draws[:5]), layout="samples_first")


def of_other_x() -> Any:
    theta, x, draws = stored()
    return as_posterior((theta, x + 1, draws), layout="samples_first")


def bayesflow() -> Any:
    """A workflow, by the name of its module: no more of it is looked at."""
    return type("BasicWorkflow", (), {"__module__": "bayesflow.workflows.basic_workflow"})()


def misuse_rows() -> list[Specimen]:
    def row(
        name: str, build: Callable[[], Any], library: str = "functions", **keywords: Any
    ) -> Specimen:
        return Specimen(name, library, build, misuse=True, **keywords)

    return [
        row("likelihood estimator (NLE)", partial(likelihood, "three values"), "sbi",
            x="three values"),
        row("likelihood estimator (NLE) of two values", partial(likelihood, "large values"), "sbi",
            x="large values"),
        row("ratio estimator (NRE)", lambda: trainer("NRE")._neural_net, "sbi"),
        row("trainer", lambda: trainer("NPE"), "sbi"),
        row("class of a trainer", lambda: of_sbi("NPE"), "sbi"),
        row("class of a posterior", lambda: of_sbi("DirectPosterior"), "sbi"),
        row("potential", lambda: built("NRE").potential_fn, "sbi"),
        row("bound `log_prob_batched`", lambda: built("NPE").log_prob_batched, "sbi"),
        row("MCABC", lambda: of_sbi("MCABC")(lambda theta: theta, PRIOR), "sbi"),
        row("trained on two values of x", lambda: built("NPE"), "sbi", x="three values"),
        row("trained on vectors, given images", lambda: built("NPE"), "sbi", x="images"),
        row("flow read at one x", lambda: of_zuko("MAF", 0)(X[0]), "zuko"),
        row("unconditional flow", unconditional, "zuko"),
        row("trained on two values of x", partial(of_zuko, "MAF", 0), "zuko", x="three values"),
        row("NRE", partial(of_lampe, "NRE"), "lampe"),
        row("trained on two values of x", partial(of_lampe, "NPE"), "lampe", x="three values"),
        row("trained on two values of x", lambda: as_posterior(of_nflows(), layout=SECOND),
            "nflows", x="three values"),
        row("trained on two values of x", partial(of_torch, torch.nn.Linear(2, 4)), "torch",
            x="three values"),
        row("trained on images, given vectors", partial(of_torch, torch.nn.Conv2d(1, 4, 3)),
            "torch"),
        row("flow, layout not said", of_nflows, "nflows"),
        row("distribution", lambda: Independent(Normal(X[0], 1.0), 1), "torch"),
        row("bound `sample` of a distribution", lambda: Normal(X[0], 1.0).sample, "torch"),
        row("frozen distribution", lambda: stats.norm(0, 1), "scipy"),
        row("frozen multivariate normal", lambda: stats.multivariate_normal([0, 0]), "scipy"),
        row("workflow", bayesflow, "BayesFlow"),
        row("array alone", lambda: stored()[2], "arrays"),
        row("layout not said", lambda: as_posterior(stored()), "arrays"),
        row("the other layout", lambda: as_posterior(stored(), layout="observations_first"),
            "arrays"),
        row("of other x", of_other_x, "arrays"),
        row("frame of draws", lambda: pd.DataFrame(np.zeros((9, 2))), "pandas"),
        row("returns None", lambda: lambda num_samples, x: None),
        row("returns the mean", lambda: lambda num_samples, x: x / 2),
        row("returns x, of x alone", lambda: lambda x: x),
        row("returns (n, K, d)", lambda: transposed),
        row("draws one parameter of two", lambda: one_of_two),
        row("draws NaN at some x", lambda: failing),
        row("of three arguments", lambda: lambda num_samples, x, y: normal(num_samples, x)),
        row("draws theta and x", Joint, "objects"),
        row("class", lambda: Joint, "objects"),
        row("nothing", lambda: None, "objects"),
        row("test(theta, x, q)", lambda: normal, order="theta x q"),
        row("test(theta, x, q)", lambda: built("NPE"), "sbi", order="theta x q"),
        row("test(theta, q, x)", lambda: normal, order="theta q x"),
        row("test(q, x, theta)", lambda: built("NPE"), "sbi", x="three values", order="q x theta"),
    ]  # fmt: skip
