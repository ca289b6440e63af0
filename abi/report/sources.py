"""What a path holds, read into one record: a fit's answer with its prior and exact posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from simulators import sample_prior
from simulators.random import child_seed

from ..files.origin import restored
from ..files.parts import read_parts
from ..files.run_folder import POSTERIOR, RunFolder
from ..generators.support import Support
from ..pictures.fit import NUM_PRIOR, draws_of, exact_draws
from ..pictures.marginals import Marginal, marginals_of
from ..plan import Plan
from ..posterior import ABIPosterior
from ..quantiles.kernel import FixedKernel
from ..rounds.record import RoundState
from ..saved import load

_NUM_EXACT = 4_000  # they may come from a chain, and a picture needs no more


@dataclass(frozen=True, eq=False)
class FitRecord:
    """A fit as a report needs it; what could not be had is None, and ``notes`` say why."""

    name: str
    posterior: ABIPosterior
    samples: Tensor
    """Draws of the posterior, (n, d)."""
    prior: Tensor | None
    """Draws of the prior, (m, d)."""
    exact: Tensor | None
    """Draws of the exact posterior at x_o, (k, d)."""
    support: Support
    simulator: Callable[..., Any] | None
    plan: Plan | None
    """What was asked, where the run folder tells."""
    origin: dict[str, Any] | None
    versions: dict[str, str] | None
    """Of the packages that made the fit, where recorded."""
    notes: tuple[str, ...]
    kept: bool = True
    """Whether the answer itself was read, with its verdict; else only the rounds that led to it."""
    final: bool = False
    """Whether the run is known to have ended, with all its rounds or as soon as it passed."""

    @property
    def marginals(self) -> list[Marginal]:
        """Every parameter, in order."""
        names = self.posterior.parameter_names
        return marginals_of(names, self.samples, self.prior, self.exact, self.support)

    @property
    def finished(self) -> bool:
        """Whether the rounds have ended."""
        if self.final or self.plan is None:
            return True
        return self.plan.ends_with(len(self.posterior.rounds))

    @property
    def num_rounds(self) -> int:
        """Rounds that are done, and those that are planned to follow: at least one of a run."""
        done = len(self.posterior.rounds)
        if self.plan is None:
            return done
        return max(self.plan.last_round, done + int(not self.finished))


@dataclass(frozen=True)
class Wanted:
    """What to draw for a report, and what to use in place of what a run recorded."""

    num_samples: int | None = None
    """Draws of the posterior; None for ten thousand, or fewer where parameters are many."""
    seed: int = 0
    prior: Any = None
    simulator: Any = None
    reference: bool = True


def read_fit(path: Path, wanted: Wanted) -> FitRecord:
    """Read a run folder or a saved posterior, and draw from what it names.

    Raises:
        ValueError: if the path holds no fit, or a run without a finished round.
    """
    kept = not path.is_dir() or (path / POSTERIOR).is_file()
    if not path.is_dir():
        posterior, plan, origin, final = load(path), None, None, True
    else:
        posterior, plan, origin, final = _read_folder(path)
    if posterior.x_o is None:
        raise ValueError(
            f"`path`: {path} is amortised, a posterior for every x, and a page is of one x_o; "
            "refine it there (posterior.refine(x_o, run_dir=...))."
        )
    seed = child_seed(wanted.seed, 0)
    notes: list[str] = []
    prior, simulator = _prior_and_simulator(origin, wanted, notes)
    draws = None if prior is None else _prior_draws(prior, posterior, wanted, notes)
    support = getattr(posterior.model, "support", None)
    if support is None:
        support = Support.of(object() if draws is None else prior, posterior.theta_dim)  # type: ignore[arg-type]
    exact = _exact(simulator, posterior, wanted, notes) if wanted.reference else None
    return FitRecord(
        name=str(path),
        posterior=posterior,
        samples=draws_of(posterior, wanted.num_samples, seed),
        prior=draws,
        exact=exact,
        support=support,
        simulator=simulator,
        plan=plan,
        origin=origin,
        versions=_versions(path),
        notes=tuple(notes),
        kept=kept,
        final=final,
    )


def is_fit(path: Path) -> bool:
    """Whether the path looks like a fit: a folder, or a file of tensors."""
    return path.is_dir() or path.suffix == ".safetensors"


def _read_folder(path: Path) -> tuple[ABIPosterior, Plan, dict[str, Any], bool]:
    """The answer, what was asked, where prior and simulator are, and whether the run has ended."""
    folder = RunFolder.open(path)
    plan, x_o, names, origin = folder.request()
    if (path / POSTERIOR).is_file():
        return load(path / POSTERIOR), plan, origin, True
    asked = None if folder.amortised else x_o
    state = _last_state(folder, plan, x_o)
    if state is None:
        raise ValueError(
            f"`paths`: the run in {path} has no finished round yet; let it run on, or go on with "
            f"abi.resume({str(path)!r}), or the same abi fit command with --resume."
        )
    return ABIPosterior.found(state, plan, asked, names), plan, origin, state.final


def _last_state(folder: RunFolder, plan: Plan, x_o: Tensor) -> RoundState | None:
    """The last round's state; a distance or an encoder of the user's is not there to be read."""
    try:
        return folder.last_state(plan, x_o, None)
    except (ValueError, KeyError):
        # The distance is not called: a report reads the answer of the round.
        return folder.last_state(plan, x_o, FixedKernel(lambda x: x[:, 0]))


def _prior_and_simulator(
    origin: dict[str, Any] | None, wanted: Wanted, notes: list[str]
) -> tuple[Any, Any]:
    """Those given, or those the run names; None with a note where they cannot be imported."""
    prior, simulator = wanted.prior, wanted.simulator
    if origin is None:
        if simulator is None:
            notes.append(
                "A saved posterior does not name its simulator; give --simulator and --prior to "
                "compare with the prior and to predict data."
            )
        return prior if prior is not None else getattr(simulator, "prior", None), simulator
    if simulator is None and _has_path(origin, "simulator", notes):
        simulator = _restored(origin, "simulator", notes)
    if prior is None:
        if origin["prior"] == "task":
            prior = getattr(simulator, "prior", None)
        elif _has_path(origin, "prior", notes):
            prior = _restored(origin, "prior", notes)
    return prior, simulator


def _has_path(origin: dict[str, Any], what: str, notes: list[str]) -> bool:
    """Whether the run recorded where to import it from; a note with what to type if not."""
    if origin[what] is not None:
        return True
    spec = origin.get("named", {}).get(what) or "module:object"
    notes.append(f"The {what} of this run has no import path of its own: give --{what} {spec}.")
    return False


def _restored(origin: dict[str, Any], what: str, notes: list[str]) -> Any:
    """What an import gives; a user's module may fail in any way, and the report goes on."""
    try:
        return restored(origin[what], what)
    except Exception as error:
        notes.append(f"The {what} could not be imported again: {reason(error)}.")
        return None


def reason(error: Exception) -> str:
    """Its first line, or its kind where it says nothing."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


def _prior_draws(
    prior: Any, posterior: ABIPosterior, wanted: Wanted, notes: list[str]
) -> Tensor | None:
    try:
        draws = sample_prior(prior, NUM_PRIOR, child_seed(wanted.seed, 1))
    except Exception as error:
        notes.append(f"The prior could not be sampled: {reason(error)}.")
        return None
    if draws.shape[1] != posterior.theta_dim:
        notes.append(
            f"The prior has {draws.shape[1]} parameters and the posterior {posterior.theta_dim}; "
            "it is left out."
        )
        return None
    return draws


def _exact(
    simulator: Any, posterior: ABIPosterior, wanted: Wanted, notes: list[str]
) -> Tensor | None:
    """Draws of the exact posterior, where the simulator knows it and can draw from it."""

    def broken(error: Exception) -> None:
        notes.append(f"The exact posterior could not be drawn from: {reason(error)}.")

    seed = child_seed(wanted.seed, 2)
    return exact_draws(simulator, posterior.x_o, _NUM_EXACT, broken, seed)


def _versions(path: Path) -> dict[str, str] | None:
    """The versions that the run or the saved posterior wrote down."""
    if path.is_dir():
        return RunFolder.open(path).versions()
    found: dict[str, str] | None = read_parts(path, "abi-posterior")[1].get("versions")
    return found
