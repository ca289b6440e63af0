"""The answer of a fit: a frozen posterior for the observation it was fitted to, with a verdict.

Where its flows are conditional, and its rounds cut the prior, it answers at other x near x_o too
(:mod:`abi.rounds.reach`), and pairs that no training saw have judged it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from simulators.arguments import as_path, as_tensor
from simulators.arguments import sample_shape as as_size
from simulators.base import as_rows
from simulators.random import as_count, child_seed
from simulators.running.engines import Engine, Workers, check_workers, open_engine

from .config import ABIConfig
from .files.run_folder import posterior_file
from .files.storage import read_posterior, write_posterior
from .generators.base import GenerativeModel
from .generators.conditional import ConditionalFlows
from .pictures import in_a_notebook, plot, plot_predictive, plot_rounds, summary
from .quantiles.kernel import Kernel, LearnedKernel
from .rounds.checks import CheckPairs
from .rounds.judging import (
    Answer,
    check_calls,
    for_tests,
    judge_further,
    why_at_x_o_alone,
)
from .rounds.problem import Problem, posed_again
from .rounds.reach import Reach, as_observations
from .rounds.record import RoundRecord
from .training.torch_settings import usual_torch
from .verdict.record import Verdict

DRAWS_KEY = 1  # of the seed of draws
CHECK_KEY = 2  # of the fit's seed, for the check of its answer


@dataclass(frozen=True, eq=False, repr=False)
class ABIPosterior:
    """The posterior of theta at x_o: draws, density, verdict, and how :func:`abi.fit` made it.

    Attributes:
        model: the trained generative model of theta.
        x_o: the observation, (p,).
        parameter_names: d names.
        rounds: what each round did and cost, one :class:`RoundRecord` each.
        accepted: the theta that the model was trained on, (k, d).
        seed: seed of the fit.
        config: settings of the fit.
        verdict: may the answer be trusted? ``print(posterior.verdict)`` says so in ten lines.
        kernel: the MSW distance of x to x_o that was learned; None where ``distance`` was given.
        reach: what the fit has simulated, from which it tells at what other x it answers.
        pairs: the pairs that the verdict rests on; None if the fit kept none.
        problem: prior and simulator of the fit; None after loading from a file.
    """

    model: GenerativeModel
    x_o: Tensor
    parameter_names: tuple[str, ...]
    rounds: tuple[RoundRecord, ...]
    accepted: Tensor
    seed: int
    config: ABIConfig
    verdict: Verdict
    kernel: Kernel | None = None
    reach: Reach | None = None
    pairs: CheckPairs | None = None
    problem: Problem | None = None

    plot, plot_predictive, plot_rounds = plot, plot_predictive, plot_rounds
    summary, _repr_html_ = summary, in_a_notebook

    def __repr__(self) -> str:
        names = ", ".join(self.parameter_names[:5]) + (", ..." if self.theta_dim > 5 else "")
        return f"ABIPosterior of {names}, {self.num_simulations:,} calls; {self.verdict.headline}"

    @property
    def theta_dim(self) -> int:
        """Number of parameters d."""
        return len(self.parameter_names)

    @property
    def answer(self) -> Answer | None:
        """What testing the answer needs; None where the posterior is known at x_o alone."""
        q = ConditionalFlows.of(self.model)
        if q is None or self.reach is None or not isinstance(self.kernel, LearnedKernel):
            return None
        return Answer(q, self.kernel, self.reach, self.parameter_names, self.rounds)

    @property
    def num_simulations(self) -> int:
        """Simulator calls made in all: those of the verdict and failed ones included."""
        return self.verdict.num_calls + sum(record.simulator_calls for record in self.rounds)

    def sample(
        self, sample_shape: Sequence[int] = (), x: Tensor | None = None, *, seed: int = 0
    ) -> Tensor:
        """Draw from the posterior, ``(*sample_shape, d)``, float32.

        Args:
            sample_shape: a tuple, such as ``(1000,)``.
            x: another observation, (p,) or (1, p), near enough to the fit's own; that when omitted.
            seed: the same seed gives the same draws.

        Raises:
            ValueError: if the fit cannot answer at ``x``, or another argument is not as described.
        """
        shape = as_size(sample_shape)
        key = child_seed(seed, DRAWS_KEY)
        if self._is_own(x):
            # A stream of its own: noise that others draw at the same seed must not go with theta.
            draws = self.model.sample(shape.numel(), key)
        else:
            q, rows = self._elsewhere(x)
            if len(rows) > 1:
                raise ValueError(
                    f"`x` must be one observation; got {len(rows)}. sample_batched takes several."
                )
            draws = q.sample(shape.numel(), rows, key)[:, 0]
        return draws.reshape(*shape, self.theta_dim)

    def sample_batched(self, sample_shape: Sequence[int], x: Tensor, *, seed: int = 0) -> Tensor:
        """Draw at several observations x (n, p) at once, ``(*sample_shape, n, d)``.

        A ValueError names the rows of x at which the fit cannot answer.
        """
        shape = as_size(sample_shape)
        q, rows = self._elsewhere(x)
        draws = q.sample(shape.numel(), rows, child_seed(seed, DRAWS_KEY))
        return draws.reshape(*shape, len(rows), self.theta_dim)

    def log_prob(self, theta: Tensor, x: Tensor | None = None) -> Tensor:
        """Log density of the posterior, (n,); -inf outside the prior's support.

        Args:
            theta: points, (n, d).
            x: another observation, (p,) or (1, p), or one for each theta, (n, p); the fit's own
                when omitted.

        Raises:
            NotImplementedError: if the generative model has no density ("potnet" and "wgan").
            ValueError: if the fit cannot answer at ``x``, or theta has another shape.
        """
        theta = as_rows(theta, self.theta_dim, "point")
        if self._is_own(x):
            return self.model.log_prob(theta)
        q, rows = self._elsewhere(x)
        if len(rows) == 1:
            return q.log_prob(theta[:, None], rows)[:, 0]
        if len(rows) != len(theta):
            raise ValueError(
                f"`x` must be one observation, or one for each of the {len(theta)} rows of theta; "
                f"got {len(rows)}."
            )
        return q.log_prob(theta[None], rows)[0]

    def log_prob_batched(self, theta: Tensor, x: Tensor) -> Tensor:
        """Log density at theta (K, n, d), row by row given x (n, p): (K, n)."""
        q, rows = self._elsewhere(x)
        return q.log_prob(as_tensor(theta, "theta", torch.float32), rows)

    def check(
        self,
        num_simulations: int = 600,
        *,
        simulator: Callable[..., Any] | None = None,
        prior: Any = None,
        workers: Workers = 1,
        timeout: float | None = None,
    ) -> ABIPosterior:
        """The same posterior, tested on more pairs: its verdict is sharper.

        Args:
            num_simulations: simulator calls to spend on it.
            simulator: the simulator of the fit; needed if the posterior was loaded from a file.
            prior: the prior of the fit; the simulator's own when omitted.
            workers: processes that simulate at the same time, or a cluster, as for :func:`fit`.
            timeout: seconds after which a simulation counts as failed.

        Raises:
            ValueError: if the posterior is known at x_o alone and so cannot be tested, or prior or
                simulator are missing.
        """
        num_simulations = as_count(num_simulations, "num_simulations", 1)
        check_workers(workers, timeout)
        if self.answer is None:
            raise ValueError(f"`check`: the answer cannot be checked: {why_at_x_o_alone(self)}.")
        problem = posed_again(self.problem, simulator, prior, self.x_o, self.parameter_names)
        engine = open_engine(workers, timeout)
        try:
            return self.checked(num_simulations, problem, engine)
        finally:
            engine.close()

    def checked(
        self, num_calls: int, problem: Problem, engine: Engine, slow_dir: Path | None = None
    ) -> ABIPosterior:
        """The posterior tested on so many more pairs; unchanged where it cannot be tested."""
        if (answer := self.answer) is None:
            return self
        seed = child_seed(self.seed, CHECK_KEY, 0 if self.pairs is None else self.pairs.num_calls)
        simulate = check_calls(problem, engine, slow_dir, seed)
        with usual_torch():
            pairs, verdict = judge_further(answer, self.pairs, num_calls, problem, simulate, seed)
        return replace(self, pairs=pairs, verdict=verdict)

    def check_pairs(self, num_draws: int = 1_000, *, seed: int = 0) -> tuple[Any, Tensor, Tensor]:
        """(q, theta, x) for a test of :mod:`validation`: ``sbc(*posterior.check_pairs())``.

        theta (n, d) and x (n, p) are the pairs behind the verdict, q this posterior with
        ``num_draws`` at each x. Both lie in the answer's high-density region, where pairs are made.
        A ValueError says so if the fit kept none.
        """
        if self.pairs is None or (answer := self.answer) is None:
            raise ValueError(f"`check_pairs`: {self.verdict.headline}.")
        return for_tests(answer, self.pairs, num_draws, seed)

    def save(self, path: str | Path) -> None:
        """Write the posterior to one safetensors file, which :func:`abi.load` reads; no pickle."""
        kept = [part.name for part in fields(self) if part.name != "problem"]
        write_posterior(as_path(path, "path"), **{name: getattr(self, name) for name in kept})

    def to_arviz(
        self,
        num_samples: int = 1000,
        seed: int = 0,
        *,
        prior: Any = None,
        simulator: Any = None,
    ) -> Any:
        """The fit as ArviZ data: InferenceData (ArviZ 0.x) or a DataTree (1.x).

        Its groups are ``posterior``, ``observed_data``, ``sample_stats`` (the log density of each
        draw) and ``rounds`` (the numbers of :attr:`rounds`).

        Args:
            num_samples: draws of the posterior; they are independent, so one chain holds them all.
            seed: of the draws.
            prior: the prior of the fit, to add a group ``prior`` of as many draws.
            simulator: the simulator of the fit, to add ``posterior_predictive`` and, with
                ``prior``, ``prior_predictive``. Each costs ``num_samples`` calls; NaN if failed.
        """
        from .files.arviz_data import to_arviz

        return to_arviz(self, num_samples, seed, prior, simulator)

    def to_zuko(self) -> nn.Module:
        """A copy of the posterior as a zuko flow over theta, to train further or to build on.

        ``flow = posterior.to_zuko()`` is a torch module, and ``flow()`` a distribution with
        ``log_prob``, ``sample`` and ``rsample`` that respects the prior's support.

        Raises:
            NotImplementedError: if the generative model has no density.
        """
        from .generators.flow_module import as_zuko

        return as_zuko(self.model)

    def _is_own(self, x: Tensor | None) -> bool:
        """Whether x is the observation of the fit."""
        if x is None:
            return True
        given = as_tensor(x, "x", torch.float32).reshape(-1)
        return given.shape == self.x_o.shape and torch.equal(given, self.x_o)

    def _elsewhere(self, x: Tensor | None) -> tuple[ConditionalFlows, Tensor]:
        """q(theta | x), and x as rows (n, p) at each of which it holds."""
        rows = as_observations(x, len(self.x_o))
        if (answer := self.answer) is None:
            raise ValueError(f"`x` must be the observation of the fit: {why_at_x_o_alone(self)}.")
        answer.reach.require(answer.q, rows)
        return answer.q, rows


def load(path: str | Path, *, encoder: nn.Module | None = None) -> ABIPosterior:
    """Read a posterior that :meth:`ABIPosterior.save` wrote, or that of a finished run folder.

    Files of earlier versions lack what later ones need: they answer at their own x_o only, and
    their verdict says what is missing.

    Args:
        path: the file, or the ``run_dir`` of a fit that has ended.
        encoder: the ``encoder`` module that the fit was given, if any. Files hold no code: without
            it the posterior answers at its own x_o only.

    Raises:
        ValueError: if there is no such file, or it is damaged, of another kind, or from a newer
            version.
    """
    return ABIPosterior(**read_posterior(posterior_file(as_path(path, "path")), encoder))
