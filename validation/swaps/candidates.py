"""What is judged: at each x the theta that belongs to it, among draws of q there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from simulators.random import child_seed, torch_generator


@dataclass(frozen=True, eq=False)
class Candidates:
    """Of each of N pairs, C = K + 1 candidates for theta: the true one and K draws of q(. | x).

    They are in random order, so that ties between them are broken at random: under q = p every
    candidate is as likely as any other to be the true one.

    Attributes:
        theta: (C, N, d).
        log_q: log q(theta | x) of each up to a constant at each x, (C, N); None where q has none.
        true: the place of the true one, (N,).
        context: what is known of each x, less the same of x_o or, where all x are asked about, less
            its mean; in units of its spread, (N, k).
        distance: of the posterior at each x from that at x_o, (N,); None where all x are asked
            about.
        rest: what q's own statement leaves of each x (:mod:`.rest`), (N, m); None where it is not
            asked about.
    """

    theta: Tensor
    log_q: Tensor | None
    true: Tensor
    context: Tensor
    distance: Tensor | None
    rest: Tensor | None = None

    @classmethod
    def of(
        cls,
        theta: Tensor,
        draws: Tensor,
        context: Tensor,
        distance: Tensor | None,
        log_q: Tensor | None = None,
        *,
        seed: int,
        rest: Tensor | None = None,
    ) -> Candidates:
        """True theta (N, d) and draws (K, N, d) at the same x, shuffled together.

        Args:
            theta: the true ones.
            draws: of q at the same x.
            context: as above.
            distance: as above.
            log_q: of the true ones, then of the draws, (1 + K, N).
            seed: of the order.
            rest: as above.
        """
        together = torch.cat([theta[None], draws])
        count, pairs, width = together.shape
        order = torch.rand(count, pairs, generator=torch_generator(seed)).argsort(dim=0)
        shuffled = together.gather(0, order[..., None].expand(-1, -1, width))
        known = None if log_q is None else log_q.gather(0, order)
        true = (order == 0).int().argmax(dim=0)
        return cls(shuffled, known, true, context, distance, rest)

    @property
    def num_pairs(self) -> int:
        """N."""
        return self.theta.shape[1]

    @property
    def truth(self) -> Tensor:
        """The true theta, (N, d)."""
        return self.of_truth(self.theta)

    @cached_property
    def ranks(self) -> Tensor:
        """Of every parameter among the candidates at its x, (C, N, d)."""
        return among(self.theta)

    def of_truth(self, values: Tensor) -> Tensor:
        """Of values of all candidates (C, N, ...) those of the true one, (N, ...)."""
        return values[self.true, torch.arange(self.num_pairs)]

    def rows(self, chosen: Tensor) -> Candidates:
        """Some of the pairs."""
        known = None if self.log_q is None else self.log_q[:, chosen]
        return Candidates(
            self.theta[:, chosen],
            known,
            self.true[chosen],
            self.context[chosen],
            None if self.distance is None else self.distance[chosen],
            None if self.rest is None else self.rest[chosen],
        )


def swaps(candidates: Candidates, num_swaps: int, seed: int) -> Tensor:
    """Places of the candidate taken for the truth: the true one, then at random, (1 + B, N)."""
    shape = num_swaps, candidates.num_pairs
    generator = torch_generator(child_seed(seed, 0))
    random = torch.randint(len(candidates.theta), shape, generator=generator)
    return torch.cat([candidates.true[None], random])


def among(values: Tensor) -> Tensor:
    """Ranks of values (C, ...) among the first axis, (rank - 1/2) / C in (0, 1).

    Ties take the ranks that their places give them, which are random.
    """
    last = values.movedim(0, -1).contiguous().numpy()
    order = np.argsort(last, axis=-1)  # numpy's is several times as fast as torch's
    ranks = np.empty(last.shape, dtype=np.float32)
    steps = (np.arange(len(values), dtype=np.float32) + 0.5) / len(values)
    np.put_along_axis(ranks, order, np.broadcast_to(steps, ranks.shape), axis=-1)
    return torch.from_numpy(ranks).movedim(-1, 0)
