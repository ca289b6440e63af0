"""Twenty ways in which a posterior of sbi goes wrong, honest ones beside them, and exact ones.

Most mistakes are made in training; those that are made afterwards, in the use of a posterior, are
made with the honest one of the same simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from sabotage_training import (
    BOX,
    GLM,
    MANY,
    MOONS,
    QUEUE,
    SOME,
    Draw,
    Problem,
    drawing,
    estimator,
    exact,
    honest,
    likelihood,
    npe,
    quietly,
    trainer,
)
from torch import Tensor, nn
from torch.distributions import Independent, SigmoidTransform, TransformedDistribution, Uniform

from simulators import GaussianLinearUniform

Kind = Literal["exact", "own draws", "honest", "sabotage"]


@dataclass(frozen=True)
class Case:
    """A posterior of the study; of kind "own draws" its own draws stand in the truth's place."""

    name: str
    kind: Kind
    problem: Problem
    what: str
    make: Callable[[], Draw]


def _few_epochs(problem: Problem) -> Draw:
    pairs = problem.pairs(2_000, 21)
    return drawing(npe(problem, pairs, 22, max_num_epochs=5))


def _overfitted(problem: Problem) -> Draw:
    """Rows of the validation set stand in the training set: its loss falls on."""
    theta, x = (part.repeat(5, 1) for part in problem.pairs(500, 23))
    return drawing(npe(problem, (theta, x), 24, max_num_epochs=400))


def _narrow_prior() -> Draw:
    from sbi.utils import BoxUniform

    theta = 0.9 * BOX.pairs(SOME, 25)[0]
    prior = BoxUniform(torch.full((5,), -0.9), torch.full((5,), 0.9))
    return drawing(npe(BOX, (theta, BOX.at(theta, 26)), 27, prior=prior))


def _less_noise() -> Draw:
    pairs = Problem("quiet box", GaussianLinearUniform(5, 0.07), BOX.flow).pairs(SOME, 28)
    return drawing(npe(BOX, pairs, 29))


def _dead_column() -> Draw:
    alive = torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0])
    theta, x = BOX.pairs(SOME, 30)
    draw = drawing(npe(BOX, (theta, x * alive), 31))
    return lambda number, x, seed: draw(number, x * alive, seed)


def _truncated() -> Draw:
    """TSNPE: the second round draws parameters where the first finds them possible at one x_o."""
    from sbi.utils import RestrictedPrior, get_density_thresholder

    first = npe(BOX, BOX.pairs(2_000, 32), 33).set_default_x(BOX.task.observation)
    with quietly(34):
        accept = get_density_thresholder(
            first, quantile=1e-4, num_samples_to_estimate_support=10_000
        )
        proposal = RestrictedPrior(BOX.task.prior, accept, sample_with="rejection")
        theta = proposal.sample((3_000,), show_progress_bars=False)
    return drawing(npe(BOX, (theta, BOX.at(theta, 35)), 36))


def _uncorrected() -> Draw:
    """The second round's parameters are the first's draws at one x_o, and nobody says so."""
    theta, x = MOONS.pairs(2_000, 37)
    first = npe(MOONS, (theta, x), 38)
    more = drawing(first)(2_000, MOONS.task.observation[None], 39)[:, 0]
    pairs = torch.cat([theta, more]), torch.cat([x, MOONS.at(more, 40)])
    return drawing(npe(MOONS, pairs, 41))


def _one_gaussian() -> Draw:
    build = {"num_components": 1}
    return drawing(npe(MOONS, MOONS.pairs(SOME, 42), 43, flow="mdn", build=build))


def _short_chains() -> Draw:
    settings = {"num_chains": 1, "warmup_steps": 5, "thin": 1, "init_strategy": "proposal"}
    with quietly(44):
        q = likelihood(MOONS).build_posterior(
            sample_with="mcmc", mcmc_method="slice_np_vectorized", mcmc_parameters=settings
        )
    return drawing(q, 2_000)


def _variational() -> Draw:
    """In the logits of theta: sbi's amortised one stops at the bounds of a prior."""
    logistic = TransformedDistribution(Uniform(torch.zeros(2), 1.0), SigmoidTransform().inv)
    theta, x = MOONS.pairs(SOME, 13)
    pairs = ((theta + 1) / 2).logit(), x
    with quietly(45):
        made = trainer("NLE", Independent(logistic, 1), "nsf", pairs)
        q = made.build_posterior(sample_with="vi", vi_method="rKL")
        q.train_amortized(*pairs, n_particles=32, show_progress_bar=False)
    draw = drawing(q)
    return lambda number, x, seed: 2 * draw(number, x, seed).sigmoid() - 1


def _mixed_ensemble() -> Draw:
    from sbi.inference.posteriors import EnsemblePosterior

    bad = npe(MOONS, MOONS.pairs(2_000, 46), 47, max_num_epochs=5)
    return drawing(EnsemblePosterior([honest(MOONS), bad]))


def _untrained_embedding() -> Draw:
    with quietly(48):
        net = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 4)).requires_grad_(False)
    return drawing(npe(GLM, GLM.pairs(SOME, 49), 50, build={"embedding_net": net}))


def _wrong_base() -> Draw:
    """exp undoes a logarithm to the base of 10."""
    theta, x = QUEUE.pairs(SOME, 51)
    logs = torch.cat([theta[:, :2], theta[:, 2:].log10()], dim=1)
    draw = drawing(estimator(QUEUE, (logs, x), 52))

    def wrong(number: int, x: Tensor, seed: int) -> Tensor:
        draws = draw(number, x, seed)
        return torch.cat([draws[..., :2], draws[..., 2:].exp()], dim=-1)

    return wrong


def _pilots_units() -> Draw:
    """Parameters leave the flow standardised, and get the mean and sd of 50 others."""
    (mean, sd), (other_mean, other_sd) = (
        (theta.mean(dim=0), theta.std(dim=0))
        for theta in (QUEUE.pairs(MANY, 11)[0], QUEUE.pairs(50, 53)[0])
    )
    draw = drawing(honest(QUEUE))
    return lambda number, x, seed: (draw(number, x, seed) - mean) / sd * other_sd + other_mean


def _batch_standardised() -> Draw:
    """x is standardised by the 100 observations at hand, not as it was in training."""
    (mean, sd), (other_mean, other_sd) = (
        (x.mean(dim=0), x.std(dim=0)) for x in (GLM.pairs(MANY, 11)[1], GLM.pairs(100, 54)[1])
    )
    draw = drawing(honest(GLM))
    return lambda number, x, seed: draw(number, (x - other_mean) / other_sd * sd + mean, seed)


def _nearest() -> Draw:
    """Answers are looked up at the nearest of 2,000 x."""
    stored = GLM.pairs(2_000, 55)[1]
    scale = stored.std(dim=0)
    draw = drawing(honest(GLM))

    def looked_up(number: int, x: Tensor, seed: int) -> Tensor:
        return draw(number, stored[torch.cdist(x / scale, stored / scale).argmin(dim=1)], seed)

    return looked_up


def _leaking() -> Draw:
    return drawing(honest(BOX).posterior_estimator)


def _clipped() -> Draw:
    draw = drawing(honest(BOX))

    def clipped(number: int, x: Tensor, seed: int) -> Tensor:
        draws = draw(number, x, seed)
        low, high = (draws.kthvalue(max(1, round(f * number)), dim=0).values for f in (0.05, 0.95))
        return draws.clamp(low, high)

    return clipped


def _swapped() -> Draw:
    draw = drawing(honest(GLM))
    order = [0, 1, 2, 3, 5, 4, 6, 7, 8, 9]
    return lambda number, x, seed: draw(number, x, seed)[..., order]


def _wide() -> Draw:
    draw = drawing(honest(GLM))

    def wide(number: int, x: Tensor, seed: int) -> Tensor:
        draws = draw(number, x, seed)
        centre = draws.mean(dim=0)
        return centre + 1.3 * (draws - centre)

    return wide


CASES = (
    Case("exact moons", "exact", MOONS, "the exact posterior", lambda: exact(MOONS)),
    Case("exact box", "exact", BOX, "the exact posterior", lambda: exact(BOX)),
    Case("honest moons", "honest", MOONS, "NPE, nsf, 10,000 simulations",
         lambda: drawing(honest(MOONS))),
    Case("ensemble", "sabotage", MOONS, "an ensemble of the honest one and one of five epochs",
         _mixed_ensemble),
    Case("uncorrected", "sabotage", MOONS,
         "second round's pairs, drawn at one x_o, taken for the prior's", _uncorrected),
    Case("one Gaussian", "sabotage", MOONS, "one Gaussian in place of a flow", _one_gaussian),
    Case("short chains", "sabotage", MOONS, "NLE, one MCMC chain of 5 steps of warm-up an x",
         _short_chains),
    Case("variational", "sabotage", MOONS,
         "NLE, variational with reverse KL, which keeps to one mode", _variational),
    Case("honest box", "honest", BOX, "NPE, maf, 10,000 simulations", lambda: drawing(honest(BOX))),
    Case("honest box nsf", "honest", BOX, "NPE, nsf, 10,000 simulations",
         lambda: drawing(honest(BOX, "nsf"))),
    Case("leaking", "sabotage", BOX, "drawn from the flow, over the prior's edges", _leaking),
    Case("clipped", "sabotage", BOX, "tails cut: draws clipped to the central 90%", _clipped),
    Case("narrow prior", "sabotage", BOX, "trained with a prior narrower by 10%", _narrow_prior),
    Case("less noise", "sabotage", BOX, "30% of the noise's variance forgotten in training",
         _less_noise),
    Case("dead column", "sabotage", BOX, "one column of x is zero, in training and use",
         _dead_column),
    Case("truncated", "sabotage", BOX, "TSNPE for one x_o, used at every x", _truncated),
    Case("honest queue", "honest", QUEUE, "NPE, maf, 10,000 simulations",
         lambda: drawing(honest(QUEUE))),
    Case("wrong base", "sabotage", QUEUE, "a rate trained as log10, brought back by exp",
         _wrong_base),
    Case("pilot's units", "sabotage", QUEUE,
         "parameters brought back by the mean and sd of 50 others", _pilots_units),
    Case("honest neuron", "honest", GLM, "NPE, maf, 10,000 simulations",
         lambda: drawing(honest(GLM))),
    Case("own draws", "own draws", GLM, "the honest one, a draw of its own in the truth's place",
         lambda: drawing(honest(GLM))),
    Case("few epochs", "sabotage", GLM, "five epochs of 2,000 simulations",
         lambda: _few_epochs(GLM)),
    Case("overfitted", "sabotage", GLM,
         "500 simulations, each five times in the data, so that training does not stop early",
         lambda: _overfitted(GLM)),
    Case("batch standardised", "sabotage", GLM,
         "x normalised by the mean and sd of 100 others", _batch_standardised),
    Case("nearest", "sabotage", GLM, "posterior of another x: the nearest of 2,000", _nearest),
    Case("swapped", "sabotage", GLM, "two neighbouring columns of theta swapped", _swapped),
    Case("wide", "sabotage", GLM, "sds times 1.3", _wide),
    Case("untrained embedding", "sabotage", GLM,
         "embedding net of 4 features never trained", _untrained_embedding),
)  # fmt: skip
