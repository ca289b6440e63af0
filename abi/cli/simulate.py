"""``abi simulate``: draw from the prior, simulate, and keep every finished row in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .ending import print_json, resumable
from .options import Json, OwnPrior, Timeout, Workers


def simulate_command(
    simulator: Annotated[
        str,
        typer.Option(help="module:object: a function of yours, or simulators:MG1 of this package."),
    ],
    out: Annotated[Path, typer.Option(help="The store: a folder, new, or one to go on with.")],
    num_simulations: Annotated[int, typer.Option(min=1, help="Number of simulations.")],
    prior: OwnPrior = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of prior draws and noise.")] = 0,
    workers: Workers = 1,
    engine: Annotated[
        str | None, typer.Option(help="in-process, processes, distributed, or tcp://host:port.")
    ] = None,
    timeout: Timeout = None,
    one_at_a_time: Annotated[
        bool, typer.Option("--one-at-a-time", help="The function takes one theta (d,).")
    ] = False,
    retry_failures: Annotated[
        bool, typer.Option("--retry-failures", help="Try the failures in the store again.")
    ] = False,
    max_failure_fraction: Annotated[
        float, typer.Option(help="Stop if a larger share of the simulations fails.")
    ] = 0.5,
    as_json: Json = False,
) -> None:
    """Draw from the prior, simulate, and keep all in a folder; run again to continue.

    With a simulator of this package, the rows are those of simulators.sample_joint(task, n, seed).
    """
    from simulators import forget_failures, from_function, sample_prior, simulate
    from simulators.given.priors import as_sampler, names_of
    from simulators.given.probe import NUM_PROBES
    from simulators.given.task import recognise
    from simulators.random import child_seed
    from simulators.running.engines import check_workers

    from .work.named import simulator_and_prior

    check_workers(workers, timeout)  # before anything is called
    function, its_prior = simulator_and_prior(simulator, prior)
    noise_seed = child_seed(seed, 1)
    _check_begun(out, num_simulations, noise_seed)
    theta_prior = as_sampler(its_prior)
    theta = sample_prior(theta_prior, num_simulations, child_seed(seed, 0))
    if one_at_a_time:
        function = from_function(function, theta_prior, batched=False)
    tried = sample_prior(theta_prior, NUM_PROBES, seed=0)
    seeded = recognise(function, tried, names_of(theta_prior), timeout=timeout).simulator
    if retry_failures and out.exists():
        forget_failures(out)
    with resumable():
        run = simulate(
            seeded,
            theta,
            workers=workers,
            engine=engine,
            timeout=timeout,
            seed=noise_seed,
            store=out,
            max_failure_fraction=max_failure_fraction,
        )
    if as_json:
        failures = [{"row": failure.index, "reason": failure.reason} for failure in run.failures]
        print_json({"store": str(out), "simulations": len(run.x), "failures": failures})
        return
    typer.echo(f"{out}: {len(run.x)} simulations, {len(run.failures)} failures")
    for failure in run.failures[:5]:
        typer.echo(f"  row {failure.index}: {failure.reason}")


def _check_begun(out: Path, num_simulations: int, noise_seed: int) -> None:
    """Refuse, in the words of the options, what is not what the store was begun with."""
    if not (out / "manifest.json").is_file():
        return
    from simulators.store.folder import read_manifest

    begun = read_manifest(out)
    if begun.num_rows != num_simulations:
        raise ValueError(
            f"`--num-simulations`: {out} was begun with {begun.num_rows}; got {num_simulations}. "
            "Give that number and the same --seed to go on with it, or another --out."
        )
    if begun.seed != noise_seed:
        raise ValueError(
            f"`--seed`: {out} was begun with another. Give that one to go on with it, or another "
            "--out."
        )
