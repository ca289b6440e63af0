r"""CoLT: find the point around which q and p differ most, and test the mass near it.

For an anchor ``(theta_i, x_i) ~ p`` and K draws ``theta_ij ~ q(. | x_i)``, a localization network
gives a point theta_l(x_i) and an embedding phi a metric; the ball probability rank is

    U_i = 1/K #{ j : |phi(theta_ij) - phi(theta_l(x_i))| < |phi(theta_i) - phi(theta_l(x_i))| },

uniform when q = p, whatever theta_l and phi are, and for q != p some theta_l makes it non-uniform
(Chen, Bansal & Scott 2025, Theorems 1 and 2). The networks are trained on one part of the pairs to
push the ranks away from uniform and frozen; Kolmogorov-Smirnov on the other part gives the p-value,
and the distance t, an estimate of an integral probability metric over balls (Theorem 3).

Differs from the paper, each for a measured reason:

- the pairs of one call are split into training and test, so that the p-value is honest without a
  second batch from the simulator;
- ranks are randomised, ``(r + xi (ties + 1)) / (K + 1)``, so that the test is exact at any K;
- theta is whitened by the mean and covariance of the core of q(. | x), from draws that are not
  ranked (:func:`~validation.scores.frames.frame_of`): balls
  become ellipsoids of q's own shape (power 0.75 -> 0.997 on an inflated covariance);
- the loss is the squared 2-Wasserstein distance of the sorted ranks to the uniform quantiles, as
  powerful as the Sinkhorn divergence and 5 to 9 times cheaper; ``divergence="sinkhorn"`` is there;
- the embedding sees a random few of the K draws in each epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor

from simulators.arguments import choice
from simulators.summary import summary

from ..posteriors.draws import (
    LEAST_PAIRS,
    Given,
    JointDraws,
    check_counts,
    drawn,
    given,
    only,
    split_rows,
)
from ..results.localized import Localization
from ..results.result import ValidationResult
from ..scores.ball_ranks import BallNetworks, ColtTraining, Embedding, fit_ball_networks
from ..scores.frames import frame_of, num_frame_draws
from ..scores.uniformity import ks_uniform, randomised_ranks
from ..seeds import part_seed


@dataclass(frozen=True, eq=False)
class Localizer:
    """CoLT's trained networks: ``localizer(x)`` is the :class:`Localization` at x (p,)."""

    pairs: Given
    networks: BallNetworks
    num_moments: int
    num_samples: int
    q_mass: float
    p_mass: float
    seed: int

    __repr__ = summary

    def __call__(self, x: Tensor) -> Localization:
        """Point and radius at one observation x, in the shape that the pairs have them."""
        row = only(self.pairs.observations(x))
        count, seed = self.num_moments + self.num_samples, part_seed(self.seed, 20)
        draws = drawn(self.pairs.q, count, row, self.pairs.theta.shape[1], seed)
        frame = frame_of(draws[: self.num_moments])
        ranked = draws[self.num_moments :]
        centre = self.networks.centre(row)
        distances = self.networks.distances(frame.whitened(ranked), centre)[:, 0]
        return Localization(
            frame.restored(centre)[0],
            float(distances.quantile(self.q_mass)),
            self.q_mass,
            self.p_mass,
            ranked[:, 0],
            distances,
        )


def colt(
    q: Any,
    theta: Tensor,
    x: Tensor,
    *,
    embedding: Embedding = "full",
    num_samples: int = 500,
    train_fraction: float = 0.5,
    training: ColtTraining | None = None,
    seed: int = 0,
) -> ValidationResult:
    """CoLT: does some ball of theta hold more of q than of the true posterior?

    A network, trained on one part of the pairs, chooses for each x the ball where the two differ
    most; the test is made on the other part. Where the draws of all pairs do not fit into memory,
    it takes as many pairs, at random, as do.

    Other Parameters:
        embedding: in what space the balls lie. ``"full"``: a learned one, for curved posteriors;
            ``"identity"``: that of theta itself; ``"residual"`` (not in the paper): theta plus what
            a network learns to add, for posteriors of very many parameters.
        num_samples: K, draws of q at each x that are compared; some more set the scale.
        train_fraction: share of the pairs that trains the networks, in (0, 1).
        training: of the networks.
        seed: of everything random.

    Returns:
        The Kolmogorov-Smirnov distance of the ranks, in [0, 1]. ``details``: ``ranks`` (n_test,),
        and ``localize``, a function of x (p,) that gives the ball where the two differ most.

    Raises:
        ValueError: if an argument is not as described, or pairs or draws are not finite.

    Source: Chen, Bansal & Scott (2025), "CoLT: the conditional localization test for assessing the
    accuracy of neural posterior estimates", Algorithms 1 and 2.

    q is the posterior under test, as :func:`~validation.as_posterior` takes it; theta (N, d) and x
    (N, p) are pairs from prior and simulator that q was not trained on.
    """
    embedding = choice(*get_args(Embedding))(embedding, "embedding")
    training = training or ColtTraining()
    check_counts(num_samples=num_samples)
    pairs = given(q, theta, x, LEAST_PAIRS)
    draws, num_moments = _framed(pairs, num_samples, training, seed)
    train, test = split_rows(len(draws.x), train_fraction, part_seed(seed, 1))
    networks = fit_ball_networks(
        draws.theta[train],
        draws.samples[:, train],
        draws.x[train],
        embedding=embedding,
        training=training,
        seed=part_seed(seed, 2),
    )
    ranks = ranks_in_balls(networks, draws.rows(test), part_seed(seed, 3))
    distance, p_value = ks_uniform(ranks)
    q_mass, p_mass = _largest_gap(ranks)
    details = {
        "ranks": ranks,
        "num_train": len(train),
        "num_test": len(test),
        "q_mass": q_mass,
        "p_mass": p_mass,
        "localize": Localizer(pairs, networks, num_moments, num_samples, q_mass, p_mass, seed),
    }
    name = "colt_identity" if embedding == "identity" else "colt"
    return ValidationResult(name, distance, p_value, seed, details=details)


def colt_identity(
    q: Any, theta: Tensor, x: Tensor, *, num_samples: int = 500, train_fraction: float = 0.5,
    training: ColtTraining | None = None, seed: int = 0,
) -> ValidationResult:  # fmt: skip
    """:func:`colt` with ``embedding="identity"``; its other arguments and errors are the same."""
    return colt(
        q, theta, x, embedding="identity", num_samples=num_samples,
        train_fraction=train_fraction, training=training, seed=seed,
    )  # fmt: skip


def localize(result: ValidationResult, x: Tensor) -> Localization:
    """The region of theta where q and the true posterior differ most at x (p,), as CoLT learned.

    Args:
        result: of :func:`colt` or :func:`colt_identity`.
        x: one observation.

    Raises:
        ValueError: if the result is of another test, or x has another shape, is not finite, or
            lies far outside of all x of the pairs.
    """
    localizer = result.details.get("localize")
    if localizer is None:
        raise ValueError(f"`result` must come from colt; {result.method!r} has no localization.")
    found: Localization = localizer(x)
    return found


def framed_draws(
    q: Any, theta: Any, x: Any, num_samples: int, training: ColtTraining, seed: int
) -> tuple[JointDraws, int]:
    """Checked pairs and draws of q in the frame of its core, and how many draws made the frame."""
    return _framed(given(q, theta, x, LEAST_PAIRS), num_samples, training, seed)


def _framed(
    pairs: Given, num_samples: int, training: ColtTraining, seed: int
) -> tuple[JointDraws, int]:
    """The pairs and K draws of q in the frame of q's core, and how many draws made that frame.

    Those draws are not ranked, so the frame is fair.
    """
    num_moments = num_frame_draws(pairs.theta.shape[1]) if training.whiten else 0
    num_drawn = num_samples + num_moments
    draws = pairs.that_fit(num_drawn).draws(num_drawn, part_seed(seed, 0))
    frame = frame_of(draws.samples[:num_moments])
    truth, ranked = frame.whitened(draws.theta[None])[0], draws.samples[num_moments:]
    # Of a discrete theta draws may be the truth; whitened in another batch they would be near it.
    same = (ranked == draws.theta).all(dim=-1, keepdim=True)
    white = frame.whitened(ranked).where(~same, truth)
    return JointDraws(truth, draws.x, white), num_moments


def ranks_in_balls(networks: BallNetworks, draws: JointDraws, seed: int) -> Tensor:
    """Ball ranks (n,) of the truth among q's draws; 50 draws are embedded at once."""
    centre = networks.centre(draws.x)
    away = networks.distances(draws.theta[None], centre)[0]
    parts = [networks.distances(part, centre) for part in draws.samples.split(50)]
    # The last bit of a distance depends on the batch: a draw that is the truth is as far away.
    same = (draws.samples == draws.theta).all(dim=-1)
    return randomised_ranks(away, torch.cat(parts).where(~same, away), seed)


def _largest_gap(ranks: Tensor) -> tuple[float, float]:
    """The level u where the ranks' distribution function F leaves the diagonal most: u and F(u)."""
    ordered = ranks.double().sort().values
    steps = torch.arange(len(ordered), dtype=torch.float64)
    gaps = torch.stack([(steps + 1) / len(ordered) - ordered, ordered - steps / len(ordered)])
    side, at = divmod(int(gaps.argmax()), len(ordered))
    return float(ordered[at]), (at + 1 - side) / len(ordered)
