"""``abi compare``: which of several models made an observation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .ending import print_json
from .options import Json, Progress, Seed, Strict, Timeout, Workers


def compare_command(
    model: Annotated[
        list[str],
        typer.Option(help="NAME=module:object, a simulator; once for each model, two at least."),
    ],
    observed: Annotated[Path, typer.Option(help="The observation x_o: .npy, .npz or .csv.")],
    prior: Annotated[
        list[str] | None,
        typer.Option(help="NAME=module:object; the simulator's own when omitted."),
    ] = None,
    num_simulations: Annotated[
        int, typer.Option(min=1, help="Simulator calls in all, shared equally by the models.")
    ] = 10_000,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="File for the comparison, .safetensors.")] = None,
    workers: Workers = 1,
    timeout: Timeout = None,
    progress: Progress = True,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Infer which of several models made an observation: probabilities and Bayes factors.

    Each model gets the same number of simulations, with theta from its prior. The verdict rests on
    pairs that no network saw.
    """
    from ..comparison.run import compare_models
    from ..files.arrays import load_array
    from .work.named import simulator_and_prior

    simulators, priors = _by_name(model, "--model"), _by_name(prior or [], "--prior")
    if unknown := [name for name in priors if name not in simulators]:
        raise ValueError(f"`--prior`: there is no model {unknown[0]!r}; name one of --model.")
    models = {}
    for name, spec in simulators.items():
        simulator, its_prior = simulator_and_prior(spec, priors.get(name), option="--model")
        models[name] = (its_prior, simulator)
    found = compare_models(
        models,
        load_array(observed, "--observed").reshape(-1),
        num_simulations=num_simulations,
        seed=seed,
        workers=workers,
        timeout=timeout,
        progress=progress,
    )
    if out is not None:
        found.save(out)
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found))
    raise typer.Exit(int(strict and found.verdict.outcome == "fails"))


def _by_name(given: list[str], option: str) -> dict[str, str]:
    """Words NAME=module:object as a dict.

    Raises:
        ValueError: if one of them has another form, or a name comes twice.
    """
    found: dict[str, str] = {}
    for word in given:
        name, equals, spec = word.partition("=")
        if not equals or not name or name in found:
            raise ValueError(
                f"`{option}` must be NAME=module:object, each name once; got {word!r}."
            )
        found[name] = spec
    return found
