"""A run on the disk: what was asked, and the state after each round, to resume from."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from simulators import Simulations
from simulators.arguments import as_folder, as_path
from simulators.running.engines import Engine

from ..config import ABIConfig
from ..plan import Plan
from ..quantiles.kernel import FixedKernel
from ..rounds.problem import Problem
from ..rounds.record import RoundState
from ..rounds.regions.region import AnyRegion
from . import same_model
from .parts import FORMAT_VERSION, OF_A_RUN, read_parts, write_bytes, write_parts
from .storage import load_state, save_state
from .versions import versions

_REQUEST = "request.safetensors"
POSTERIOR, POSTERIORS = "posterior.safetensors", "posteriors"
"""The answer of a finished run; the folder of its answers, where it is of several observations."""


@dataclass(frozen=True)
class Given:
    """What a fit is given that a folder does not hold: whether, and of data which."""

    distance: bool = False
    encoder: bool = False
    simulations: str | None = None
    """A digest of theta and x."""

    @classmethod
    def of(cls, distance: Any, encoder: Any, simulations: Simulations | None) -> Given:
        """That of the arguments of a fit."""
        digest = None
        if simulations is not None:
            both = simulations.theta.numpy().tobytes() + simulations.x.numpy().tobytes()
            digest = hashlib.sha256(both).hexdigest()
        return cls(distance is not None, encoder is not None, digest)


NOTHING_GIVEN = Given()


class Kept(Protocol):
    """As much of a posterior as a folder needs."""

    def save(self, path: Path) -> None:
        """Write it to one file."""
        ...


@dataclass(frozen=True)
class RunFolder:
    """A folder with the request of a fit and one file a round."""

    path: Path

    @classmethod
    def create(
        cls,
        path: str | Path,
        problem: Problem,
        plan: Plan,
        origin: dict[str, Any],
        given: Given = NOTHING_GIVEN,
    ) -> RunFolder:
        """Start a run in a folder that holds none, or only the request of one that never began.

        Raises:
            FileExistsError: if the folder already holds a run.
        """
        folder = cls(as_folder(path, "run_dir"))
        begun = any(folder.path.glob("round_*.safetensors")) or folder.simulations.exists()
        if (folder.path / _REQUEST).exists() and begun:
            raise FileExistsError(
                f"`run_dir` {folder.path} already holds a run; go on with it by "
                f"abi.resume({str(folder.path)!r}) or abi fit --resume, or name another folder."
            )
        header = _plan_values(plan) | {
            "parameter_names": problem.parameter_names,
            "amortised": problem.amortised,
            "origin": origin,
            "given": asdict(given),
            "versions": versions(),
        }
        tensors = {"x_o": problem.x_o}
        tensors |= {} if problem.several is None else {"several": problem.several}
        (folder.path / same_model.FILE).unlink(missing_ok=True)
        write_parts(folder.path / _REQUEST, "abi-request", tensors, header)
        return folder

    def check_model(self, problem: Problem, engine: Engine, *, begins: bool) -> None:
        """Keep what tells its prior and simulator if it ``begins``; or refuse others than these.

        Raises:
            ValueError: if one of them is another.
        """
        path = self.path / same_model.FILE
        if path.is_file():
            same_model.check_model(path, problem, engine)
        elif begins:  # a run that an earlier version began has none
            same_model.keep_model(path, problem, engine)

    def go_on(self, plan: Plan) -> None:
        """Let rounds follow a run that has ended; its answer keeps a file of its own.

        Simulations that it was given are among its pairs by now, and are not asked for again.
        """
        tensors, header = self._request()
        if self.holds_answer:
            (self.path / POSTERIOR).rename(
                self.path / f"posterior_{plan.rounds_before:02d}.safetensors"
            )
        write_parts(
            self.path / _REQUEST,
            "abi-request",
            tensors,
            header
            | _plan_values(plan)
            | {"given": header.get("given", {}) | {"simulations": None}},
        )

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """A folder that holds a run.

        Raises:
            ValueError: if it holds none.
        """
        folder = cls(as_path(path, "run_dir"))
        if not (folder.path / _REQUEST).is_file():
            gone = "" if folder.path.is_dir() else " (there is no such folder)"
            raise ValueError(
                f"`run_dir` {folder.path} holds no run{gone}; name the folder that was given to "
                "abi.fit as run_dir or to abi fit as --out, or start a run there."
            )
        return folder

    def request(self) -> tuple[Plan, Tensor, tuple[str, ...], dict[str, Any]]:
        """The plan, the observation, the parameter names, and where prior and simulator are."""
        tensors, header = self._request()
        config = ABIConfig.from_dict(header["config"])
        plan = Plan(
            header["num_simulations"],
            header["num_rounds"],
            header["seed"],
            config,
            header.get("check_fraction", 0.0),  # new in version 7, as is the next
            header.get("stop_when"),
            header.get("rounds_before", 0),  # new in version 9, as is the next
            header.get("calls_before", 0),
            header.get("num_observations", 1),
            header.get("adaptive", False),  # new in version 11
        )
        return plan, tensors["x_o"], tuple(header["parameter_names"]), header["origin"]

    def check_given(self, given: Given) -> None:
        """Refuse to go on with other code or data than the run began with.

        Raises:
            ValueError: if a distance, an encoder or simulations are missing, too many or others.
        """
        header = self._request()[1]
        if "given" not in header:  # written before it was recorded
            return
        for name, began in header["given"].items():
            now = getattr(given, name)
            if now == began:
                continue
            if not now:
                raise ValueError(f"`{name}`: the run began with {name} of yours; give it again.")
            raise ValueError(
                f"`{name}`: the run began with other ones; give those."
                if began
                else f"`{name}`: the run began without; leave it out."
            )

    @property
    def amortised(self) -> bool:
        """Whether the run is of all x, and its x_o only stands in for one."""
        found: bool = self._request()[1].get("amortised", False)
        return found  # new in version 9

    @property
    def several(self) -> Tensor | None:
        """The observations (K, p), where several are asked about together."""
        return self._request()[0].get("several")

    def versions(self) -> dict[str, str] | None:
        """The versions that began the run, where its file records them."""
        found: dict[str, str] | None = self._request()[1].get("versions")
        return found

    @property
    def simulations(self) -> Path:
        """Where the simulations of an unfinished round are."""
        return self.path / "simulations"

    def save(self, state: RoundState) -> None:
        """Keep the state after a round; its simulations are part of it now."""
        save_state(state, self._file(len(state.records)))
        shutil.rmtree(self.simulations, ignore_errors=True)

    @property
    def holds_answer(self) -> bool:
        """Whether the run came to its end and its answer is there."""
        return (self.path / POSTERIOR).is_file() or (self.path / POSTERIORS).is_dir()

    def finish(self, posterior: Kept) -> None:
        """Keep the answer; the simulations of its check are part of it now."""
        name = POSTERIOR if self.several is None else POSTERIORS
        posterior.save(self.path / name)
        shutil.rmtree(self.simulations, ignore_errors=True)

    def last_state(
        self, plan: Plan, x_o: Tensor, fixed: FixedKernel | None, own: nn.Module | None = None
    ) -> RoundState | None:
        """The state after the last finished round, if there is one."""
        first = 1 if self._file(1).is_file() else max(1, plan.rounds_before)
        finished = first - 1
        while self._file(finished + 1).is_file():
            finished += 1
        if finished < first:
            return None
        states = [
            load_state(self._file(number), x_o, plan.config, fixed, own)
            for number in range(first, finished + 1)
        ]
        final = states[-1].final or plan.ends_with(finished)
        if finished == plan.rounds_before:  # rounds are to follow, whether its file says so yet
            final = not states[-1].reopened
        proposing = states[:-1] if final else states  # files of before name one of the last, too
        regions: tuple[AnyRegion, ...] = ()
        for state in proposing:
            regions = state.regions if state.whole else (*regions, *state.regions)
        return replace(states[-1], regions=regions, final=final)

    def write_json(self, name: str, values: dict[str, Any]) -> Path:
        """Write a summary people and programs read."""
        path = self.path / name
        write_bytes(
            path, (json.dumps({"version": FORMAT_VERSION, **values}, indent=2) + "\n").encode()
        )
        return path

    def update_json(self, name: str, values: dict[str, Any]) -> None:
        """Change entries of a summary, and leave the others; nothing where there is none.

        Raises:
            ValueError: if the file is not a summary.
        """
        path = self.path / name
        if not path.is_file():
            return
        try:
            kept = json.loads(path.read_bytes())
            del kept["version"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"`run_dir`: {path} is no summary of a run; remove it.") from error
        self.write_json(name, kept | values)

    def _request(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The tensors and the header of what was asked."""
        return read_parts(self.path / _REQUEST, "abi-request", OF_A_RUN)

    def _file(self, number: int) -> Path:
        return self.path / f"round_{number:02d}.safetensors"


def _plan_values(plan: Plan) -> dict[str, Any]:
    return asdict(plan) | {"config": plan.config.to_dict()}


def posterior_file(path: Path) -> Path:
    """The file of a finished fit: the answer in a run folder, or the path itself.

    Raises:
        ValueError: if there is none.
    """
    file = path / POSTERIOR if path.is_dir() else path
    if not file.is_file():
        what = f"holds no finished fit ({POSTERIOR})" if path.is_dir() else "is not there"
        raise ValueError(
            f"`path`: {path} {what}; name the --out of an abi fit that has ended, or a file that "
            "posterior.save wrote."
        )
    return file
