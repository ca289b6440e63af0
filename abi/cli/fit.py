"""``abi fit``: infer the parameters of a simulator from one observation."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from torch import Tensor

from simulators import Simulations, load_store, sample_prior
from simulators.running.engines import check_workers

from ..config import ABIConfig
from ..files.origin import load_object, origin_of
from ..files.run_folder import Given, RunFolder
from ..posterior import ABIPosterior
from ..report.plotting import plot_marginals
from ..report.summary import describe, mean_and_sd, summarise, write_answer
from ..rounds.problem import CHECK_FRACTION, Plan, Problem, answers_elsewhere, default_rounds, pose
from ..rounds.steps import Work
from ..sampler import placed, run
from .ending import Json, Strict, can_draw, print_json, resumable
from .loading import load_array, load_instance, load_prior
from .resumed import check_observation, check_origin, check_plan, checked_further

_NUM_PRIOR = 10_000
_NUM_SIMULATIONS = 20_000


def fit_command(
    simulator: Annotated[
        str, typer.Option(help="module:object, for example simulators:MG1 or mymodule:simulate.")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "--run-dir", help="Folder for the results; it must not hold a run."),
    ],
    prior: Annotated[
        str | None, typer.Option(help="module:object; the simulator's own when omitted.")
    ] = None,
    observed: Annotated[
        Path | None,
        typer.Option(help="x_o as .npy, .npz or .csv; the simulator's default when omitted."),
    ] = None,
    simulations: Annotated[
        Path | None,
        typer.Option(help="A store of abi simulate: the first round takes its rows as they are."),
    ] = None,
    num_simulations: Annotated[
        int | None, typer.Option(min=1, help=f"Budget of simulator calls. [{_NUM_SIMULATIONS}]")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds that share the budget. [4, or 2 of a small one]")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything. [0]")] = None,
    check_fraction: Annotated[
        float | None,
        typer.Option(help=f"Share of the budget that checks the answer. [{CHECK_FRACTION}]"),
    ] = None,
    stop_when: Annotated[
        str | None,
        typer.Option(help="passes, or a largest bias in sds: end once the answer is so good."),
    ] = None,
    num_samples: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Posterior draws to write.")
    ] = 10_000,
    paper: Annotated[bool, typer.Option("--paper", help="The algorithm as published.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes that simulate.")] = 1,
    timeout: Annotated[float | None, typer.Option(help="Seconds a simulation may take.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Where the networks train, such as cuda: the CPU.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in OUT.")] = False,
    progress: Annotated[bool, typer.Option(help="Show live progress.")] = True,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Infer the parameters of a simulator from one observation; a verdict ends the answer.

    OUT then holds samples.csv, summary.json, rounds.csv, marginals.png,
    posterior.safetensors, and one file a round to go on from.
    """
    check_workers(workers, timeout)  # before anything is written
    model = load_instance(simulator, "--simulator")
    theta_prior = load_prior(model, prior)
    given = None if simulations is None else _store(simulations)
    named = {"prior": prior, "simulator": simulator}
    asked = {
        "--num-simulations": num_simulations,
        "--rounds": rounds,
        "--seed": seed,
        "--check-fraction": check_fraction,
        "--stop-when": _bias_or_word(stop_when),
    }
    if resume:  # the budget, the seed and the constants are those the run began with
        folder = RunFolder.open(out)
        folder.check_given(Given.of(None, None, given))
        plan, x_o, names, began = folder.request()
        check_origin(began, _origin(theta_prior, model, named))
        check_plan(plan, asked, paper)
        check_observation(x_o, None if observed is None else _observation(model, observed))
        plan = replace(plan, config=placed(plan.config, device))
        problem = pose(theta_prior, model, x_o, names)
    else:
        plan = _plan(asked, placed(ABIConfig.paper() if paper else ABIConfig(), device))
        problem = pose(theta_prior, model, _observation(model, observed))
        origin = _origin(theta_prior, model, named)
        folder = RunFolder.create(out, problem, plan, origin, Given.of(None, None, given))
    state = folder.last_state(plan, problem.x_o, None)
    done = named | {"rounds": plan.num_rounds, "num_simulations": plan.num_simulations}
    work = Work(problem, plan, None, folder.simulations, given)
    with resumable("--resume"):
        posterior = checked_further(folder.path, state, plan)
        if posterior is None:
            posterior = run(work, folder, state, workers, timeout, progress)
        samples = posterior.sample((num_samples,), seed=posterior.seed)
        write_answer(posterior, samples, folder.path)  # before anything else may fail
        exact = _try_exact(getattr(model, "reference_posterior", None), problem.x_o, num_samples)
        summary = summarise(posterior, samples, exact, done)
        folder.write_json("summary.json", summary)
        picture = _draw(folder.path, posterior, problem, samples, exact) if can_draw() else None
    if as_json:
        print_json(summary)
    else:
        _print_table(samples, exact, posterior)
        typer.echo(str(posterior.verdict))
        if posterior.verdict.outcome == "cannot tell" and posterior.answer is not None:
            typer.echo(f"more pairs for the verdict: abi check {shlex.quote(str(out))}")
        if picture is not None:
            typer.echo(f"picture: {picture}")
    raise typer.Exit(int(strict and posterior.verdict.outcome == "fails"))


def _plan(asked: Mapping[str, Any], config: ABIConfig) -> Plan:
    """What a new run is asked for; nothing is kept for a check that the answer cannot have."""
    budget = asked["--num-simulations"] or _NUM_SIMULATIONS
    rounds = default_rounds(budget) if asked["--rounds"] is None else asked["--rounds"]
    share = CHECK_FRACTION if asked["--check-fraction"] is None else asked["--check-fraction"]
    kept = share if answers_elsewhere(config, rounds) else 0.0
    return Plan(budget, rounds, asked["--seed"] or 0, config, kept, asked["--stop-when"])


def _bias_or_word(text: str | None) -> Any:
    """A number where it is one; what else may stand there, the plan knows."""
    try:
        return text and float(text)
    except ValueError:
        return text


def _origin(prior: Any, model: Any, named: dict[str, str | None]) -> dict[str, Any]:
    """Where prior and simulator come from; an object without a path has the one it was named by.

    The instance of a class that was named has none: what names it is kept all the same.
    """
    origin = origin_of(prior, model)
    for what, spec in named.items():
        if origin[what] is None and spec and not inspect.isclass(load_object(spec, f"--{what}")):
            origin[what] = {"path": spec, "arguments": None}
    return origin | {"named": named}


def _store(path: Path) -> Simulations:
    """Simulations made before."""
    if not path.is_dir():
        raise ValueError(
            f"`--simulations`: there is no folder {path}; name a store, the --out of abi simulate."
        )
    return load_store(path)


def _observation(model: Any, path: Path | None) -> Tensor:
    if path is not None:
        return load_array(path, "--observed").reshape(-1)
    try:
        observation: Tensor = model.observation
    except (AttributeError, NotImplementedError):
        raise ValueError("`--observed` is needed: the simulator has no default.") from None
    return observation


def _draw(
    folder: Path,
    posterior: ABIPosterior,
    problem: Problem,
    samples: Tensor,
    exact: Tensor | None,
) -> Path:
    return plot_marginals(
        samples,
        posterior.parameter_names,
        folder / "marginals.png",
        prior=sample_prior(problem.prior, _NUM_PRIOR, seed=0),
        exact=exact,
        support=problem.support,
        title=f"{posterior.num_simulations:,} simulator calls in {len(posterior.rounds)} rounds",
    )


def _try_exact(
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


def _print_table(samples: Tensor, exact: Tensor | None, posterior: ABIPosterior) -> None:
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
        describe(part, posterior.parameter_names) for part in (samples, exact) if part is not None
    ]
    for name in posterior.parameter_names:
        # As text: in rich's markup a name such as "mass [kg]" would lose its unit.
        table.add_row(Text(name), *(mean_and_sd(part[name]) for part in columns))
    Console().print(table)
