"""What ``abi fit`` works on, and how its answer is drawn and printed."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from torch import Tensor

from simulators import Simulations, load_store, sample_prior

from ...config import ABIConfig
from ...files.origin import load_object, origin_of
from ...files.run_folder import Given, RunFolder
from ...pictures.fit import NUM_PRIOR
from ...plan import CHECK_FRACTION, Plan, plan_of_fit
from ...posterior import ABIPosterior
from ...report.plotting import plot_marginals
from ...report.summary import described, mean_and_sd
from ...rounds.problem import Problem, observed_by, pose
from ...rounds.steps import Work
from ...sampler import placed
from .loading import load_array, load_instance, load_prior
from .resumed import check_observation, check_origin, check_plan

NUM_SIMULATIONS = 20_000
"""Calls of a fit that is not told how many."""


def opened(
    out: Path | None,
    observed: Path | None,
    simulations: Path | None,
    named: dict[str, str | None],
    asked: Mapping[str, Any],
    paper: bool,
    device: str | None,
    timeout: float | None,
    resume: bool,
) -> tuple[Any, RunFolder, Work]:
    """The simulator, the folder of a run that begins or goes on, and what is to be done.

    Raises:
        ValueError: if words are missing, or do not fit the run.
    """
    if (simulator := named["simulator"]) is None:
        raise ValueError(
            "`--simulator` is needed, module:object, such as simulators:MG1; or name a run that "
            "has ended: --continue RUN_DIR."
        )
    if out is None:
        raise ValueError("`--out` is needed: a folder for the results.")
    model = load_instance(simulator, "--simulator")
    prior = load_prior(model, named["prior"])
    given = None if simulations is None else _stored(simulations)
    if resume:  # the budget, the seed and the constants are those the run began with
        folder = RunFolder.open(out)
        folder.check_given(Given.of(None, None, given))
        plan, x_o, names, began = folder.request()
        check_origin(began, _origin(prior, model, named))
        check_plan(plan, asked, paper)
        check_observation(x_o, None if observed is None else _observation(model, observed))
        plan = replace(plan, config=placed(plan.config, device))
        problem = pose(prior, model, x_o, names, timeout=timeout)
    else:
        plan = _plan(asked, placed(ABIConfig.paper() if paper else ABIConfig(), device))
        problem = pose(prior, model, _observation(model, observed), timeout=timeout)
        origin = _origin(prior, model, named)
        folder = RunFolder.create(out, problem, plan, origin, Given.of(None, None, given))
    return model, folder, Work(problem, plan, None, folder.simulations, given)


def _plan(asked: Mapping[str, Any], config: ABIConfig) -> Plan:
    """What a new run is asked for."""
    share = CHECK_FRACTION if asked["--check-fraction"] is None else asked["--check-fraction"]
    budget, seed = asked["--num-simulations"] or NUM_SIMULATIONS, asked["--seed"] or 0
    return plan_of_fit(budget, asked["--rounds"], seed, share, asked["--stop-when"], config)


def _origin(prior: Any, model: Any, named: dict[str, str | None]) -> dict[str, Any]:
    """Where prior and simulator come from; an object without a path has the one it was named by.

    The instance of a class that was named has none: what names it is kept all the same.
    """
    origin = origin_of(prior, model)
    for what, spec in named.items():
        if origin[what] is None and spec and not inspect.isclass(load_object(spec, f"--{what}")):
            origin[what] = {"path": spec, "arguments": None}
    return origin | {"named": named}


def _stored(path: Path) -> Simulations:
    """Simulations made before."""
    if not path.is_dir():
        raise ValueError(
            f"`--simulations`: there is no folder {path}; name a store, the --out of abi simulate."
        )
    return load_store(path)


def _observation(model: Any, path: Path | None) -> Tensor:
    if path is not None:
        return observed_by(model, load_array(path, "--observed").reshape(-1)).values
    try:
        observation: Tensor = model.observation
    except (AttributeError, NotImplementedError):
        raise ValueError(
            "`--observed` is needed, for the simulator has no default: --observed x_o.csv."
        ) from None
    return observation


def draw(
    folder: Path,
    posterior: ABIPosterior,
    problem: Problem,
    samples: Tensor,
    exact: Tensor | None,
) -> Path:
    """The picture of the marginals, drawn into the run's folder."""
    return plot_marginals(
        samples,
        posterior.parameter_names,
        folder / "marginals.png",
        prior=sample_prior(problem.prior, NUM_PRIOR, seed=0),
        exact=exact,
        support=problem.support,
        title=f"{posterior.num_simulations:,} simulator calls in {len(posterior.rounds)} rounds",
    )


def try_exact(
    reference: Callable[[Tensor, int], Tensor] | None, x_o: Tensor, num_samples: int
) -> Tensor | None:
    """Draws of the exact posterior; None, with a line on standard error, where it breaks."""
    if reference is None:
        return None
    try:
        return reference(x_o, num_samples)
    except NotImplementedError:
        return None
    except Exception as error:  # the answer does not depend on it
        text = f"no exact posterior at this x_o: {type(error).__name__}: {error}"
        typer.secho(text, err=True, fg=typer.colors.YELLOW)
        return None


def print_next_steps(posterior: ABIPosterior, run_dir: Path) -> None:
    """Print what would sharpen the verdict, and what more calls would bring."""
    path, verdict = shlex.quote(str(run_dir)), posterior.verdict
    if verdict.outcome == "cannot tell" and posterior.answer is not None:
        typer.echo(f"more pairs for the verdict: abi check {path}")
    if verdict.more_calls is not None:
        typer.echo(f"{verdict.more_calls}: abi fit --continue {path} --num-simulations 5000")


def print_table(samples: Tensor, exact: Tensor | None, posterior: ABIPosterior) -> None:
    """Print samples (n, d) in numbers, and those of the exact posterior (m, d) beside them."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    title = f"posterior after {posterior.num_simulations:,} simulator calls"
    table = Table(title=title, min_width=len(title))
    for column in (
        "parameter",
        "ABI mean ± sd",
        *(("exact mean ± sd",) if exact is not None else ()),
    ):
        table.add_column(column, no_wrap=True, justify="left" if column == "parameter" else "right")
    columns = [
        described(part, posterior.parameter_names) for part in (samples, exact) if part is not None
    ]
    for name in posterior.parameter_names:
        # As text: in rich's markup a name such as "mass [kg]" would lose its unit.
        table.add_row(
            Text(name), *(mean_and_sd(part[name].mean, part[name].sd) for part in columns)
        )
    Console().print(table)
