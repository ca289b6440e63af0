"""Adaptive Bayesian inference: Algorithm 2 of Lu & Wong (2025), one function a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from simulators import Simulations
from simulators.given.observation import Observed
from simulators.running.engines import check_workers

from .config import ABIConfig
from .course import Pace, run
from .files.origin import from_origin, origin_of
from .files.run_folder import POSTERIOR, Given, RunFolder
from .plan import (
    CHECK_FRACTION,
    Plan,
    StopWhen,
    answers_elsewhere,
    check_amortised,
    check_generator,
    default_rounds,
)
from .posterior import ABIPosterior
from .quantiles.kernel import FixedKernel
from .refining import check_can_go_on, further_plan
from .rounds.problem import check_simulations, pose
from .rounds.steps import Work
from .saved import load


def fit(
    prior: Any,
    simulator: Callable[..., Any],
    x_o: Any,
    *,
    num_simulations: int = 20_000,
    num_rounds: int | None = None,
    seed: int = 0,
    check_fraction: float = CHECK_FRACTION,
    stop_when: StopWhen = None,
    config: ABIConfig | None = None,
    distance: Callable[[Tensor], Tensor] | None = None,
    encoder: nn.Module | None = None,
    simulations: Simulations | None = None,
    parameter_names: Sequence[str] | None = None,
    workers: int = 1,
    timeout: float | None = None,
    run_dir: str | Path | None = None,
    device: str | None = None,
    progress: bool = True,
) -> ABIPosterior:
    """Fit the posterior of theta given one observation, from draws of prior and simulator alone.

    Args:
        prior: anything with ``sample((n,)) -> (n, d)``; a dict, or a list of pairs, of names and
            distributions of torch or scipy; or a function n -> (n, d). Its ``support`` and
            ``log_prob`` are used where it offers them; no density is needed.
        simulator: a task of :mod:`simulators`, a command, or your own function of numpy or torch:
            of one theta (d,), of many (n, d), or of an argument a parameter.
        x_o: the observation, (p,) or (1, p), or as the simulator returns it: a number, an image,
            a dict or a row of a data frame, whose names are matched with the simulator's. None for
            an amortised fit: one round, and a posterior for every x, to be refined at one later.
        num_simulations: hard budget of simulator calls, retries included. Beyond it a function is
            called once or twice, three times where it takes one theta as well as many, to find out
            its form, more often only where it raises. A task or a command is not called, nor is
            one of ``simulators.from_function`` with ``batched``.
        num_rounds: T; 4 by default, 3 below 2,000 simulations, 2 below 750. Later rounds get larger
            shares (``config.growth``).
        seed: the fit is a function of its arguments and this seed, whatever the workers. Fits side
            by side belong in processes: threads of one share its global random streams.
        check_fraction: share of the budget, in [0, 1/2], kept for pairs that no training sees and
            that the verdict rests on, 1,000 at most; 0 for none. A fit whose answer knows no x but
            its own (``distance``, or other than conditional flows) keeps none.
        stop_when: "passes", or the largest bias in posterior sds that is borne: the rounds end as
            soon as fresh pairs find an answer so good, and the calls left are not made.
        config: constants; ``ABIConfig.paper()`` gives the published algorithm.
        distance: a known distance x (n, p) -> (n,) to the posterior at x_o, in place of the learned
            MSW distance (Appendix C.1).
        encoder: your own torch module x (n, p) -> features (n, k) in place of ``config.encoder``; a
            copy of it is trained with the networks it feeds.
        simulations: draws of prior and simulator made before (``simulators.load_store``); the first
            round takes them instead of simulating, and they cost nothing of the budget.
        parameter_names: d names; those the prior or the simulator has, or theta_1 ..., when
            omitted.
        workers: processes that simulate.
        timeout: seconds one simulation may take.
        run_dir: folder to keep each round in, and the simulations of a slow round while it lasts,
            so that :func:`resume` can go on.
        device: where the networks train, such as "cuda"; where ``x_o`` is, when omitted. Prior,
            simulator and posterior stay on the CPU.
        progress: show a live bar.

    Returns:
        A posterior for ``x_o``, or for every x, with a :attr:`~ABIPosterior.verdict`;
        ``posterior.rounds`` tells what each round did.

    Raises:
        ValueError: on arguments that do not fit together, each named in one line; and if a round
            keeps too few pairs to go on.
        FileExistsError: if ``run_dir`` already holds a run.

    Source: Lu & Wong (2025), Algorithm 2.
    """
    check_workers(workers, timeout)  # before anything is written
    if num_rounds is None:
        num_rounds = 1 if x_o is None else default_rounds(num_simulations)
    config = placed(ABIConfig() if config is None else config, device, x_o)
    if x_o is None:
        check_amortised(config, num_rounds)
        if distance is not None:
            raise ValueError("`distance` is to one x_o; got x_o=None. Leave one of them out.")
    kept = check_fraction if distance is None and answers_elsewhere(config, num_rounds) else 0.0
    plan = Plan(num_simulations, num_rounds, seed, config, kept, stop_when)
    if distance is None:  # a known distance proposes by the generator
        check_generator(plan)
    fixed = None if distance is None else FixedKernel(distance)
    if fixed is not None:  # one that gives no distances is not worth a simulation
        fixed(Observed.of(x_o).values.reshape(1, -1).repeat(2, 1))
    check_simulations(simulations)
    problem = pose(prior, simulator, x_o, parameter_names, encoder)
    origin = origin_of(prior, simulator)
    folder = None
    if run_dir is not None:
        given = Given.of(distance, encoder, simulations)
        folder = RunFolder.create(run_dir, problem, plan, origin, given)
    slow_dir = None if folder is None else folder.simulations
    work = Work(problem, plan, fixed, slow_dir, simulations)
    return run(work, folder, None, Pace(workers, timeout, progress), ABIPosterior.after)


def resume(
    run_dir: str | Path,
    prior: Any = None,
    simulator: Callable[..., Any] | None = None,
    *,
    distance: Callable[[Tensor], Tensor] | None = None,
    encoder: nn.Module | None = None,
    simulations: Simulations | None = None,
    num_simulations: int | None = None,
    num_rounds: int | None = None,
    seed: int = 0,
    check_fraction: float = CHECK_FRACTION,
    stop_when: StopWhen = None,
    workers: int = 1,
    timeout: float | None = None,
    device: str | None = None,
    progress: bool = True,
) -> ABIPosterior:
    """Go on with an interrupted fit; the result is that of a fit that was never interrupted.

    With ``num_simulations`` a fit that has ended goes on, as by :meth:`ABIPosterior.refine`: rounds
    are added to its folder, where the answer of before is kept as ``posterior_04.safetensors``, by
    the number of its rounds. Once these are interrupted, leave ``num_simulations`` out.

    Args:
        run_dir: the folder given to :func:`fit`.
        prior: the prior of the fit, where it cannot be imported from where it was.
        simulator: the simulator of the fit, where it cannot be imported from where it was.
        distance: the known distance of the fit, if it had one.
        encoder: the module of the fit, if it had one.
        simulations: the simulations given to the fit, if there were any; not for more calls.
        num_simulations: so many calls more.
        num_rounds: rounds that share them; as in :meth:`ABIPosterior.refine`, when omitted.
        seed: of the rounds that are added.
        check_fraction: share of all calls that checks the new answer, a quarter of the further
            ones at most.
        stop_when: as in :func:`fit`, of the rounds that are added.
        workers: processes that simulate.
        timeout: seconds one simulation may take.
        device: where the networks train; where those of the fit did, when omitted.
        progress: show a live bar.

    Raises:
        ValueError: if the folder holds no run, or the arguments do not fit it.
    """
    check_simulations(simulations)
    folder = RunFolder.open(run_dir)
    if num_simulations is not None:
        asked = num_simulations, num_rounds, seed, check_fraction, stop_when
        go_on(folder, asked, encoder)
    folder.check_given(Given.of(distance, encoder, simulations))
    plan, x_o, names, origin = folder.request()
    plan = replace(plan, config=placed(plan.config, device, x_o))
    prior, simulator = from_origin(origin, prior, simulator)
    fixed = None if distance is None else FixedKernel(distance)
    state = folder.last_state(plan, x_o, fixed, encoder)  # before a function is called to be known
    problem = replace(pose(prior, simulator, x_o, names, encoder), amortised=folder.amortised)
    work = Work(problem, plan, fixed, folder.simulations, simulations)
    return run(work, folder, state, Pace(workers, timeout, progress), ABIPosterior.after)


def go_on(
    folder: RunFolder,
    asked: tuple[int, int | None, int, float, StopWhen],
    encoder: nn.Module | None = None,
) -> None:
    """Let rounds follow the run of a folder, which has ended.

    Args:
        folder: of the run.
        asked: calls, rounds, seed, share of the check and when to stop, of what follows.
        encoder: the module of the fit, if it had one.

    Raises:
        ValueError: if it has not ended, or cannot go on.
    """
    if not folder.holds_answer:
        raise ValueError(
            f"`num_simulations`: the run in {folder.path} has not ended; go on with it as it is "
            "(abi.resume(run_dir), or abi fit --continue without numbers), then ask for more."
        )
    fit = load(folder.path / POSTERIOR, encoder=encoder)
    check_can_go_on(fit)
    folder.go_on(further_plan(fit, *asked))


def placed(config: ABIConfig, device: str | None, x_o: Any = None) -> ABIConfig:
    """The constants with the networks on the device asked for, or where x_o is.

    Raises:
        TypeError: if ``config`` holds no constants.
        ValueError: if a device is not there; told before anything is spent.
    """
    if not isinstance(config, ABIConfig):
        raise TypeError(
            f"`config` must be an abi.ABIConfig; got {type(config).__name__}. Name what differs "
            "from the defaults: abi.ABIConfig(num_flows=5)."
        )
    if device is None and isinstance(x_o, Tensor) and x_o.device.type != "cpu":
        device = str(x_o.device)
    config = config if device is None else config.on(device)
    config.check_devices()
    return config
