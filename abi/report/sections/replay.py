"""The code that repeats a fit, from what its folder recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pprint import pformat
from typing import Any

from simulators.base import numbered_names
from validation.page import Block, Code, Facts, Section, Text
from validation.words import number, plural

from ...config import ABIConfig
from ...encoders.choice import OWN_ENCODER
from ...plan import CHECK_FRACTION, Plan, default_rounds
from ...posterior import ABIPosterior
from ..sources import FitRecord

NUM_FITS = 100  # of the validation that a page proposes
_LONGEST_OBSERVATION = 40


def replay_section(record: FitRecord, key: str) -> Section:
    """Code, constants, seed and versions."""
    blocks: list[Block] = []
    if record.plan is None:
        blocks.append(
            Text(
                "A saved posterior holds its seed and constants, not its prior and simulator: put "
                "yours in their place."
            )
        )
    if any(r.simulator_calls == 0 for r in record.posterior.rounds):
        blocks.append(
            Text(
                "A round took stored simulations instead of calling the simulator: pass the same "
                "ones as simulations=."
            )
        )
    if any(r.check_calls for r in record.posterior.rounds):
        blocks.append(
            Text(
                "Rounds were added to a finished fit (refine): the code below makes one fit of as "
                "many calls in as many rounds, whose draws are others."
            )
        )
    if record.posterior.rounds[0].encoder in (None, OWN_ENCODER):
        blocks.append(
            Text("The fit had a distance or an encoder of yours: put it in place of the dots.")
        )
    if record.plan is None and record.posterior.config.proposal == "generator":
        blocks.append(
            Text(
                "The calls below are those made; a fit that proposes by its generator makes a few "
                "less than it is asked for, and another number gives other draws."
            )
        )
    blocks += [
        Code(fit_code(record), "Python"),
        *_constants(record.posterior),
        *([validation_step(record)] if record.posterior.answer is not None else []),
    ]
    if record.versions is not None:
        told = "Versions it was made with; others may differ in the last digits"
        blocks.append(Facts(tuple(record.versions.items()), folded=told))
    else:
        blocks.append(
            Text("The versions that made this fit were not recorded in its files.", note=True)
        )
    return Section(f"{key}-repeat", "To repeat the fit", tuple(blocks))


def fit_code(record: FitRecord) -> str:
    """Python that makes the same posterior."""
    posterior, plan = record.posterior, record.plan
    rounds, calls = _budget(record)
    calls += 0 if plan is None else plan.num_check
    imports, setup = _problem(record)
    more, x_o = _observation(record)
    words = ["prior, simulator, x_o", f"num_simulations={calls}"]
    words += [] if plan is not None and plan.adaptive else [f"num_rounds={rounds}"]
    words += [f"seed={posterior.seed}", *_checking(plan)]
    encoder = posterior.rounds[0].encoder
    if encoder is None:
        words.append("distance=...")
    elif encoder == OWN_ENCODER:
        words.append("encoder=...")
    config = _config(posterior.config)
    if config:
        setup.append(f"config = {config}")
        words.append("config=config")
    lines = [*sorted({"import abi", *imports, *more}), "", *setup, x_o, ""]
    names = tuple(posterior.parameter_names)
    if _own_names(record) != names:
        words.append(f"parameter_names={list(names)!r}")
    body = ",\n    ".join(words)
    code = "\n".join(lines) + f"posterior = abi.fit(\n    {body},\n)"
    if plan is None and (pairs := posterior.pairs) is not None:
        code += f"\nposterior = posterior.check(num_simulations={pairs.num_calls})"
    return code


def _budget(record: FitRecord) -> tuple[int, int]:
    """Rounds, and simulator calls without those of the check."""
    plan, rounds = record.plan, record.posterior.rounds
    if plan is None or plan.rounds_before:
        return len(rounds), sum(part.simulator_calls for part in rounds)
    return plan.num_rounds, plan.num_simulations - plan.num_check


def _checking(plan: Plan | None) -> list[str]:
    """The words of abi.fit about the check, where they are not the default."""
    if plan is None:
        return ["check_fraction=0.0"]
    words = []
    if plan.check_fraction != CHECK_FRACTION:
        words.append(f"check_fraction={plan.check_fraction!r}")
    if plan.stop_when is not None:
        words.append(f"stop_when={plan.stop_when!r}")
    return words


def validation_code(record: FitRecord) -> str:
    """The lines that validate the method behind a fit: its rounds, without their check."""
    posterior = record.posterior
    rounds, calls = _budget(record)
    task, setup = "simulator", ""
    if record.simulator is None or not hasattr(record.simulator, "prior"):
        task = "task"
        setup = "task = simulators.from_function(simulator, prior)\n"
    words = f"num_simulations={calls}, check_fraction=0.0"
    chosen = record.plan is not None and record.plan.adaptive
    words += "" if chosen or rounds == default_rounds(calls) else f", num_rounds={rounds}"
    own = _config(posterior.config)
    words += ", config=config" if own else ""
    constants = "config" if own else "abi.ABIConfig()"
    of = f'{{"calls": {calls}, "config": {constants}.to_dict()}}'
    return (
        f"{setup}"
        "q = validation.PerObservation(lambda x, seed: abi.fit(\n"
        "    prior, simulator, x, seed=seed,\n"
        f"    {words}))\n"
        f"pairs = simulators.sample_joint({task}, {NUM_FITS}, seed=0)\n"
        "report = validation.validate(q, *pairs, controls=True)\n"
        f'report.save("validation.json", of={of})'
    )


def validation_step(record: FitRecord) -> Code:
    """The lines that validate, and what they cost at this fit's own pace."""
    minutes = NUM_FITS * sum(r.seconds for r in record.posterior.rounds) / 60
    pace = f"{number(minutes, 2)} minutes" if minutes < 90 else f"{number(minutes / 60, 2)} hours"
    return Code(
        validation_code(record),
        f"To test the method over the whole prior ({NUM_FITS} fits, {pace} at the pace of this "
        "one), and then give validation.json to abi report as well:",
    )


def _problem(record: FitRecord) -> tuple[list[str], list[str]]:
    """Import lines, and lines that define prior and simulator."""
    origin = record.origin or {"prior": None, "simulator": None}
    imports, setup = [], []
    for what in ("simulator", "prior"):
        found = origin[what]
        if found == "task":
            setup.append("prior = simulator.prior")
        elif found is None:
            setup.append(f"{what} = ...  # yours: it has no import path")
        else:
            line, value = _import(found)
            imports.append(line)
            setup += [] if value == what else [f"{what} = {value}"]
    return _joined(imports), setup


def _import(found: dict[str, Any]) -> tuple[str, str]:
    module, _, path = found["path"].partition(":")
    first = path.split(".")[0]
    if found["arguments"] is None:
        return f"from {module} import {first}", path
    words = ", ".join(f"{name}={value!r}" for name, value in found["arguments"].items())
    return f"from {module} import {first}", f"{path}({words})"


def _joined(imports: Sequence[str]) -> list[str]:
    """One line a module.

    >>> _joined(["from ball import throw", "from ball import Prior", "from other import x"])
    ['from ball import Prior, throw', 'from other import x']
    """
    names: dict[str, set[str]] = {}
    for line in imports:
        module, _, name = line.partition(" import ")
        names.setdefault(module, set()).add(name)
    return [
        f"{module} import {', '.join(sorted(found))}" for module, found in sorted(names.items())
    ]


def _observation(record: FitRecord) -> tuple[list[str], str]:
    """Import lines, and the line that defines x_o."""
    x_o = record.posterior.observation
    if len(x_o) <= _LONGEST_OBSERVATION:
        shortest = [float(str(value)) for value in x_o.numpy()]  # that reads back as the same
        values = pformat(shortest, width=70, compact=True).replace("nan", "torch.nan")
        return ["import torch"], f"x_o = torch.tensor({values})"
    if record.plan is None:
        return [], f"x_o = abi.load({record.name!r}).x_o"
    file = f"{record.name}/request.safetensors"
    return ["from safetensors.torch import load_file"], f'x_o = load_file({file!r})["x_o"]'


def _config(config: ABIConfig) -> str:
    """The constants as Python, empty for the defaults."""
    if config == ABIConfig():
        return ""
    if config == ABIConfig.paper():
        return "abi.ABIConfig.paper()"
    return f"abi.ABIConfig.from_dict({pformat(config.to_dict(), width=88, sort_dicts=False)})"


def _own_names(record: FitRecord) -> tuple[str, ...] | None:
    """The names that abi.fit would give by itself."""
    own = getattr(record.simulator, "parameter_names", None)
    if own:
        return tuple(own)
    return numbered_names(record.posterior.theta_dim)


def _constants(posterior: ABIPosterior) -> list[Block]:
    """What was changed from the default, and all of them folded."""
    usual = _flat(ABIConfig().to_dict())
    own = _flat(posterior.config.to_dict())
    changed = tuple((name, value) for name, value in own.items() if value != usual.get(name))
    words = f"{plural(len(changed), 'constant')} changed from the default:"
    blocks: list[Block] = [Text(words if changed else "All constants have their default values.")]
    blocks += [Facts(changed)] if changed else []
    return [*blocks, Facts(tuple(own.items()), folded="All constants of the fit")]


def _flat(values: dict[str, Any]) -> dict[str, str]:
    """Constants of constants by their whole name, all as text."""
    found: dict[str, str] = {}
    for name, value in values.items():
        inner = value if isinstance(value, dict) else {"": value}
        found |= {f"{name}.{key}".rstrip("."): str(part) for key, part in inner.items()}
    return found
