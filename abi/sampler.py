"""Adaptive Bayesian inference: Algorithm 2 of Lu & Wong (2025), one function a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from simulators import Simulations
from simulators.running.engines import Workers, check_workers

from .config import ABIConfig
from .course import Pace, run
from .files.origin import from_origin, origin_of
from .files.run_folder import POSTERIOR, Given, RunFolder
from .plan import CHECK_FRACTION, StopWhen, check_generator, plan_of_fit
from .posterior import ABIPosterior
from .quantiles.kernel import FixedKernel
from .refining import check_can_go_on, further_plan
from .rounds.problem import check_simulations, observed_by, pose
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
    workers: Workers = 1,
    timeout: float | None = None,
    run_dir: str | Path | None = None,
    device: str | None = None,
    progress: bool = True,
) -> ABIPosterior:
    """Infer the parameters of a simulator from one observation, and judge the answer.

    A fit needs draws from the prior and calls of the simulator, and nothing else: no likelihood
    and no prior density. It works in rounds. Each round simulates where the round before found the
    posterior, and trains networks on all pairs (theta, x) of that region.

    Args:
        prior: a dict (or a list of pairs) of names and distributions of torch or scipy; any object
            with ``sample((n,)) -> (n, d)``; or a function n -> (n, d). Where it has a ``support``,
            no draw of the posterior leaves it.
        simulator: your own function in numpy or torch, a command, or a task of :mod:`simulators`.
            A function may take one theta (d,), many (n, d), or one argument for each parameter.
        x_o: the observation, in the form in which the simulator returns x: a number, an array
            (p,) or (1, p), an image, a dict, or a row of a data frame. Values with names are
            matched with the simulator's by name. NaN is a value that was not measured: simulations
            get the same gaps, unless the simulator says how values go missing
            (:func:`simulators.with_gaps`, :func:`simulators.trials`). None asks about every x: one
            round, and a posterior for every x, which :meth:`ABIPosterior.refine` makes a fit at
            one x_o.
        num_simulations: the most simulator calls that the fit may make, failed ones included. A
            plain function is called a few times more, three at most where it does not fail, to
            find out what it takes and returns.
        num_rounds: rounds that share these calls. When omitted: 4; 3 below 2,000 simulations; 2
            below 750; 1 without an ``x_o``; and more where the posterior is found to be ever
            narrower (:mod:`abi.rounds.schedule`). Later rounds get more calls than earlier ones
            (``config.growth``).
        seed: whole number of at least 0. The same arguments and seed give the same fit, with any
            number of workers. Run several fits in processes, not in threads: threads share the
            global random streams.
        check_fraction: share of the calls, in [0, 1/2], that is kept for testing the answer, 1,000
            calls at most. These pairs are never trained on; without them (0) the verdict cannot
            tell. None are kept where the answer holds at x_o alone: with ``distance``, with
            ``config.adjustment`` other than "conditional", or with several rounds of
            ``config.proposal`` "generator".
        stop_when: end early and leave the remaining calls unmade. "passes": as soon as the answer
            of a round is good enough to pass. A number: as soon as no posterior mean can be off by
            more than so many posterior standard deviations.
        config: settings of the method; ``ABIConfig.paper()`` is the published algorithm.
        distance: a function x (n, p) -> (n,), where you know how far the posterior at x is from
            that at x_o; it replaces the learned MSW distance (Appendix C.1 of the paper).
        encoder: your own torch module x (n, p) -> features (n, k), instead of ``config.encoder``.
            A copy of it is trained with the networks.
        simulations: pairs made before (``simulators.load_store``), with theta drawn from the
            prior. The first round uses them instead of simulating; they do not count as calls.
        parameter_names: d names. When omitted: those of the prior or the simulator, or theta_1, ...
        workers: processes that simulate at the same time; or a cluster: the address of a dask
            scheduler (``"tcp://host:8786"``), its ``Client``, or one such as ``SLURMCluster``.
        timeout: seconds after which a simulation counts as failed.
        run_dir: folder in which the fit keeps every finished round, and the simulations of a slow
            one as they come. :func:`resume` goes on from there after an interruption; one more
            simulation is made, by which it knows the simulator again.
        device: where the networks train, such as "cuda". When omitted: where ``x_o`` is. Prior,
            simulator and posterior stay on the CPU.
        progress: show a progress bar.

    Returns:
        The posterior at ``x_o``, or for every x. ``posterior.sample((1000,))`` draws from it,
        ``print(posterior.verdict)`` says whether to trust it, ``posterior.rounds`` what each round
        did.

    Raises:
        TypeError, ValueError: if an argument is not as described, or a round is left with too few
            simulations to go on. The message names the argument and what to do.
        FileExistsError: if ``run_dir`` already holds a run.

    Warns:
        UserWarning: if ``x_o`` is unlike the data that the model simulates.

    Source: Lu & Wong (2025), Algorithm 2.
    """
    check_workers(workers, timeout)  # before anything is written
    config = placed(ABIConfig() if config is None else config, device, x_o)
    if x_o is None and distance is not None:
        raise ValueError("`distance` is to one x_o; got x_o=None. Leave one of them out.")
    plan = plan_of_fit(
        num_simulations, num_rounds, seed, check_fraction, stop_when, config,
        amortised=x_o is None, known_distance=distance is not None,
    )  # fmt: skip
    if distance is None:  # a known distance proposes by the generator
        check_generator(plan)
    fixed = None if distance is None else FixedKernel(distance)
    if fixed is not None:  # one that gives no distances is not worth a simulation
        fixed(observed_by(simulator, x_o).values.reshape(1, -1).repeat(2, 1))
    check_simulations(simulations)
    problem = pose(prior, simulator, x_o, parameter_names, encoder, timeout)
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
    workers: Workers = 1,
    timeout: float | None = None,
    device: str | None = None,
    progress: bool = True,
) -> ABIPosterior:
    """Go on with an interrupted fit. The result is the one that the uninterrupted fit would give.

    One simulation is made again, to see that prior and simulator are those that it began with.

    With ``num_simulations`` a fit that has ended goes on, as by :meth:`ABIPosterior.refine`: rounds
    are added to its folder, where the answer of before is kept as ``posterior_04.safetensors``, by
    the number of its rounds. Once these are interrupted, leave ``num_simulations`` out.

    Args:
        run_dir: the folder that was given to :func:`fit`.
        prior: the prior of the fit. Needed only if it cannot be imported, for example because it
            was defined in a notebook.
        simulator: the simulator of the fit; needed in the same cases.
        distance: the ``distance`` that the fit was given, if any.
        encoder: the ``encoder`` module that the fit was given, if any.
        simulations: the ``simulations`` that the fit was given, if any; leave them out with
            ``num_simulations``.
        num_simulations: calls to add to a fit that has ended.
        num_rounds: rounds that share these calls. When omitted, as for
            :meth:`ABIPosterior.refine`.
        seed: seed of the added rounds.
        check_fraction: share of all calls that is kept for testing the new answer, a quarter of
            the added calls at most.
        stop_when: when the added rounds end early, as for :func:`fit`.
        workers: processes that simulate at the same time, or a cluster, as for :func:`fit`.
        timeout: seconds after which a simulation counts as failed.
        device: where the networks train; where they did before when omitted.
        progress: show a progress bar.

    Returns:
        The posterior, as :func:`fit` returns it.

    Raises:
        ValueError: if the folder holds no run, or an argument is missing or not that of the run.
    """
    check_simulations(simulations)
    folder = RunFolder.open(run_dir)
    if folder.several is not None:
        raise ValueError(
            f"`run_dir` {folder.path} holds a fit of several observations; go on with it by "
            f"abi.resume_many({str(folder.path)!r})."
        )
    if num_simulations is not None:
        asked = num_simulations, num_rounds, seed, check_fraction, stop_when
        go_on(folder, asked, encoder)
    folder.check_given(Given.of(distance, encoder, simulations))
    plan, x_o, names, origin = folder.request()
    plan = replace(plan, config=placed(plan.config, device, x_o))
    prior, simulator = from_origin(origin, prior, simulator)
    fixed = None if distance is None else FixedKernel(distance)
    state = folder.last_state(plan, x_o, fixed, encoder)  # before a function is called to be known
    problem = pose(prior, simulator, x_o, names, encoder, timeout)
    problem = replace(problem, amortised=folder.amortised)
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
