"""How fast is the Lotka-Volterra simulator, and how many events do its simulations take?

Simulations per CPU second, on one core, of the same process by

- this project (numba), through its public call,
- the same loop in C, gcc -O3 -march=native, event chosen by comparisons or by jumps,
- a plain Python loop with numpy's generator,
- gillespy2's C++ and numpy solvers, libRoadRunner, and ELFI's example, where they are installed.

The packages know no stopping rule, so survivors go on in all comparisons with them; ELFI's model
has three reactions, not four, and stops without predators. gillespy2 and libRoadRunner take one
theta a call, as inference needs; gillespy2 also many paths at one theta.

    python examples/benchmarks/gillespie.py
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import fastest, save, versions

import simulators

TRUE = (0.5, 0.01, 1.0, 0.01)
ROUNDS = 5
NUM_FAST, NUM_SLOW = 20_000, 100
NUM_PRIOR_FAST, NUM_PRIOR_SLOW = 20_000, 150
NUM_EVENTS = 1_000_000

Run = Callable[[np.ndarray, int], np.ndarray]  # theta (n, 4), seed -> last states (n, 2)


def ours(stop: bool) -> Run:
    task = simulators.LotkaVolterra(stop_at_extinction=stop)

    def run(theta: np.ndarray, seed: int) -> np.ndarray:
        x = task(torch.from_numpy(theta), seed).numpy()
        return x[:, [100, 201]]

    run(np.array([TRUE], dtype=np.float32), 0)  # compile
    return run


def in_c(stop: bool, flags: list[str]) -> Run:
    source = Path(__file__).with_name("gillespie.c")
    folder = tempfile.mkdtemp()
    library = f"{folder}/gillespie.so"
    command = ["gcc", "-O3", "-march=native", "-shared", "-fPIC", *flags, "-o", library]
    subprocess.run([*command, str(source), "-lm"], check=True)
    loaded = ctypes.CDLL(library)
    loaded.prepare()

    def run(theta: np.ndarray, seed: int) -> np.ndarray:
        rows = theta.astype(np.float64)
        out = np.empty((len(rows), 202), dtype=np.float32)
        events = np.empty(len(rows), dtype=np.int64)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (rows, out, events)]
        loaded.simulate(
            pointers[0], ctypes.c_long(len(rows)), ctypes.c_uint64(seed), ctypes.c_int(stop),
            ctypes.c_long(100_000_000), ctypes.c_double(0.1), ctypes.c_int(101), *pointers[1:],
        )  # fmt: skip
        return out[:, [100, 201]]

    return run


def plain_python(theta: np.ndarray, seed: int) -> np.ndarray:
    """The textbook loop; floats and numpy's generator, no arrays in the loop."""
    generator = np.random.default_rng(seed)
    return np.array([_plain_path(row, generator)[-1] for row in theta.tolist()])


def _plain_path(theta: list[float], generator: np.random.Generator) -> list[tuple[int, int]]:
    alpha, beta, gamma, delta = theta
    prey, predators, time = 50, 100, 0.0
    record: list[tuple[int, int]] = []
    while len(record) < 101:
        birth, predation = alpha * prey, beta * prey * predators
        death, growth = gamma * predators, delta * prey * predators
        total = birth + predation + death + growth
        time = time + generator.exponential(1.0 / total) if total > 0.0 else float("inf")
        while len(record) < 101 and time > 0.1 * len(record):
            record.append((prey, predators))
        chosen = generator.random() * total
        if chosen < birth:
            prey += 1
        elif chosen < birth + predation:
            prey -= 1
        elif chosen < birth + predation + death:
            predators -= 1
        else:
            predators += 1
    return record


def gillespy2_solvers() -> dict[str, Run]:
    import gillespy2

    model = gillespy2.Model(name="lotka_volterra")
    X, Y = gillespy2.Species("X", 50), gillespy2.Species("Y", 100)
    model.add_species([X, Y])
    rates = [gillespy2.Parameter(f"k{j}", value) for j, value in enumerate(TRUE)]
    model.add_parameter(rates)
    changes: list[tuple[dict[Any, int], dict[Any, int]]] = [
        ({X: 1}, {X: 2}), ({X: 1, Y: 1}, {Y: 1}), ({Y: 1}, {}), ({X: 1, Y: 1}, {X: 1, Y: 2}),
    ]  # fmt: skip
    for j, (before, after) in enumerate(changes):
        model.add_reaction(
            gillespy2.Reaction(name=f"r{j}", reactants=before, products=after, rate=rates[j])
        )
    model.timespan(gillespy2.TimeSpan.linspace(10, 101))

    def last(result: Any) -> list[float]:
        return [result["X"][-1], result["Y"][-1]]

    def one_by_one(solver: Any) -> Run:
        def run(theta: np.ndarray, seed: int) -> np.ndarray:
            out = []
            for i, row in enumerate(theta.tolist()):
                values = {f"k{j}": value for j, value in enumerate(row)}
                arguments = {"seed": 1_000 * seed + i, "variables": values}
                out.append(last(solver.run(number_of_trajectories=1, **arguments)[0]))
            return np.array(out)

        return run

    # gillespy2 builds with the interpreter behind a virtual environment, which lacks its packages.
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    compiled = gillespy2.SSACSolver(model=model, variable=True)

    def many_paths(theta: np.ndarray, seed: int) -> np.ndarray:
        assert (theta == theta[0]).all()
        return np.array(
            [last(r) for r in compiled.run(number_of_trajectories=len(theta), seed=seed)]
        )

    def numpy_solver(theta: np.ndarray, seed: int) -> np.ndarray:
        out = []
        for i, row in enumerate(theta.tolist()):
            for parameter, value in zip(rates, row, strict=True):
                parameter.expression = str(value)
            solver = gillespy2.NumPySSASolver(model=model)
            out.append(last(solver.run(number_of_trajectories=1, seed=1_000 * seed + i)[0]))
        return np.array(out)

    return {
        "gillespy2 C++, many paths at one theta": many_paths,
        "gillespy2 C++, one theta a call": one_by_one(compiled),
        "gillespy2 numpy, one theta a call": numpy_solver,
    }


def roadrunner_solver() -> dict[str, Run]:
    import roadrunner

    engine = roadrunner.RoadRunner(_sbml())
    engine.setIntegrator("gillespie")
    engine.integrator.variable_step_size = False

    def run(theta: np.ndarray, seed: int) -> np.ndarray:
        engine.integrator.seed = seed
        out = []
        for row in theta.tolist():
            engine.reset()
            for j, value in enumerate(row):
                engine.setValue(f"k{j}", value)
            out.append(np.array(engine.simulate(0, 10, 101, ["time", "X", "Y"]))[-1, 1:])
        return np.array(out)

    return {"libRoadRunner, one theta a call": run}


def _sbml() -> str:
    """The four reactions in SBML."""

    def references(tag: str, species: dict[str, int]) -> str:
        items = "".join(
            f'<speciesReference species="{s}" stoichiometry="{n}" constant="true"/>'
            for s, n in species.items()
        )
        return f"<{tag}>{items}</{tag}>" if items else ""

    def reaction(j: int, law: str, before: dict[str, int], after: dict[str, int]) -> str:
        modifiers = "".join(
            f'<modifierSpeciesReference species="{s}"/>' for s in law if s not in before
        )
        modifiers = f"<listOfModifiers>{modifiers}</listOfModifiers>" if modifiers else ""
        factors = "".join(f"<ci>{name}</ci>" for name in (f"k{j}", *law))
        return (
            f'<reaction id="r{j}" reversible="false" fast="false">'
            f"{references('listOfReactants', before)}{references('listOfProducts', after)}"
            f'{modifiers}<kineticLaw><math xmlns="http://www.w3.org/1998/Math/MathML"><apply>'
            f"<times/>{factors}</apply></math></kineticLaw></reaction>"
        )

    species = "".join(
        f'<species id="{s}" compartment="c" initialAmount="{n}" hasOnlySubstanceUnits="true" '
        'boundaryCondition="false" constant="false"/>'
        for s, n in (("X", 50), ("Y", 100))
    )
    rates = "".join(
        f'<parameter id="k{j}" value="{v}" constant="false"/>' for j, v in enumerate(TRUE)
    )
    reactions = (
        reaction(0, "X", {"X": 1}, {"X": 2})
        + reaction(1, "XY", {"X": 1}, {})
        + reaction(2, "Y", {"Y": 1}, {})
        + reaction(3, "XY", {"Y": 1}, {"Y": 2})
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1">'
        '<model id="lotka_volterra"><listOfCompartments><compartment id="c" size="1" '
        f'constant="true"/></listOfCompartments><listOfSpecies>{species}</listOfSpecies>'
        f"<listOfParameters>{rates}</listOfParameters><listOfReactions>{reactions}"
        "</listOfReactions></model></sbml>"
    )


def elfi_example() -> dict[str, Run]:
    from elfi.examples.lotka_volterra import lotka_volterra

    def run(theta: np.ndarray, seed: int) -> np.ndarray:
        stock = lotka_volterra(
            *theta[:, :3].T, n_obs=101, time_end=10.0, batch_size=len(theta),
            random_state=np.random.RandomState(seed),
        )  # fmt: skip
        return stock[:, -1]

    return {"ELFI example, three reactions, a batch": run}


def packages() -> tuple[dict[str, Run], dict[str, str]]:
    """The packages' solvers, and why others are missing."""
    found: dict[str, Run] = {}
    missing: dict[str, str] = {}
    for name, make in (
        ("gillespy2", gillespy2_solvers), ("libRoadRunner", roadrunner_solver),
        ("ELFI", elfi_example),
    ):  # fmt: skip
        try:
            found.update(make())
        except ImportError as error:
            missing[name] = f"skipped: {error}"
        except Exception as error:
            missing[name] = f"skipped: does not build here: {str(error).splitlines()[0]}"
    return found, missing


def rates(runs: dict[str, tuple[Run, np.ndarray]]) -> dict[str, Any]:
    """Simulations per CPU second of each, and the ratio of ours to it."""
    seconds = fastest(
        {name: lambda seed, r=run, t=theta: r(t, seed) for name, (run, theta) in runs.items()},
        ROUNDS,
    )
    speed = {name: len(runs[name][1]) / taken for name, taken in seconds.items()}
    first = next(iter(speed.values()))
    return {
        name: {"simulations_per_cpu_second": round(s, 1), "ours_is_faster_by": round(first / s, 2)}
        for name, s in speed.items()
    }


def event_counts(stop: bool, num: int) -> dict[str, Any]:
    """The distribution of the number of events over the prior."""
    task = simulators.LotkaVolterra(stop_at_extinction=stop)
    theta = simulators.sample_prior(task.prior, num, seed=1)
    events = task.num_events(theta, seed=2).numpy()
    levels = (0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999)
    return {
        "num_prior_draws": num,
        "quantiles": {str(q): int(np.quantile(events, q)) for q in levels},
        "mean": round(float(events.mean()), 1),
        "max": int(events.max()),
        "share_above_1e6": float((events > 1e6).mean()),
        "share_that_meets_the_cap_of_1e8": float((events > 1e8).mean()),
        "upper_95_percent_limit_of_that_share": (int((events > 1e8).sum()) + 3.0) / num,
    }


def main() -> None:
    solvers, missing = packages()
    solvers = {"plain Python loop": plain_python, **solvers}
    true = np.array([TRUE], dtype=np.float32)
    prior = simulators.sample_prior(
        simulators.LotkaVolterra().prior, NUM_PRIOR_FAST, seed=3
    ).numpy()
    by_rule = {}
    for rule, stop in (("paper's stopping rule", True), ("survivors go on", False)):
        trio = {
            "ours": ours(stop),
            "C, event by comparisons": in_c(stop, []),
            "C, event by jumps": in_c(stop, ["-DWITH_JUMPS"]),
        }
        at_truth = {name: (run, true.repeat(NUM_FAST, 0)) for name, run in trio.items()}
        over_prior = {name: (run, prior) for name, run in trio.items()}
        by_rule[rule] = {"at_true_theta": rates(at_truth), "over_prior": rates(over_prior)}
    # With packages: the fast ones on enough rows to be timed, all on the same prior draws.
    few = prior[:NUM_PRIOR_SLOW]
    fast = {"ours": ours(False), "C, event by comparisons": in_c(False, [])}
    against = {
        "at_true_theta": rates(
            {
                **{name: (run, true.repeat(NUM_FAST, 0)) for name, run in fast.items()},
                **{name: (run, true.repeat(NUM_SLOW, 0)) for name, run in solvers.items()},
            }
        ),
        "over_150_prior_draws": rates(
            {
                **{name: (run, few.repeat(40, 0)) for name, run in fast.items()},
                **{name: (run, few) for name, run in solvers.items() if "many paths" not in name},
            }
        ),
    }
    means = {
        name: [round(float(value), 1) for value in np.median(run(true.repeat(400, 0), 9), axis=0)]
        for name, run in {**fast, **solvers}.items()
    }
    save(
        __file__,
        {
            "what": "Lotka-Volterra by Gillespie's algorithm, 101 x 2 values, one core",
            "seeds": {"prior": 3, "events": [1, 2], "rounds": list(range(1, ROUNDS + 1))},
            "versions": versions("numpy", "numba", "torch", "gillespy2", "libroadrunner", "elfi"),
            "gcc": subprocess.run(
                ["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True
            ).stdout.strip(),
            "best_of_rounds": ROUNDS,
            "same_loop_in_c": by_rule,
            "packages_survivors_go_on": against,
            "packages_missing": missing,
            "median_prey_and_predators_at_time_10_at_true_theta": means,
            "events_over_the_prior": {
                "paper's stopping rule": event_counts(True, NUM_EVENTS),
                "survivors go on": event_counts(False, NUM_EVENTS // 4),
            },
        },
    )


if __name__ == "__main__":
    main()
