"""Which experiment, which parts of it, at which strengths: what an option's words stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .experiment import Experiment, Part

P = TypeVar("P", bound=Any)

EXPERIMENTS: Mapping[str, tuple[str, str]] = {
    "nptbench": (
        "failures.nptbench.power_curves",
        "power over the strength of six failures (CoLT, Figures 3 and 8 to 13)",
    ),
    "blind-prior": (
        "failures.blind_prior.blind_prior",
        "the prior in the place of the posterior (CoLT, Tables 3 and 4)",
    ),
    "tree": (
        "failures.tree.tree_curves",
        "draws a little beside a thin tree (CoLT, Figures 1 and 6)",
    ),
    "diffusion": (
        "failures.diffusion.diffusion_steps",
        "a diffusion model that stops too early (CoLT, Figures 4 and 7)",
    ),
    "conformal": (
        "failures.conformal.conformal",
        "trained, weak and moved classifiers (conformal C2ST, Figures 1 to 3 and 5 to 11)",
    ),
    "lc2st": (
        "local.run.run_lc2st",
        "local tests of trained flows beside the oracle (L-C2ST, Figures 1 to 6, Tables 1 and 3)",
    ),
    "verdict": (
        "verdict.run.run_verdict",
        "level, power and truth of the verdict of a fit",
    ),
    "tasks": (
        "tasks.run.run_tasks",
        "C2ST of fits at the ten tasks of Lueckmann et al. (2021), beside published figures",
    ),
}
"""Name -> its function, what the experiment shows and the paper's place."""


IMAGES = (
    "a folder with CIFAR-10's data_batch_*.bin (archive cifar-10-binary.tar.gz) and torchvision's "
    "inception_v3_google-*.pth"
)


def named(known: Iterable[str], words: Sequence[str] | None, option: str) -> list[str]:
    """The names that the words stand for, in their order; all of them where there is no word.

    A word that is a name stands for that one, another for all that hold it.

    Raises:
        ValueError: if no name is left.
    """
    names = list(dict.fromkeys(known))
    if not words:
        return names
    kept = [
        name
        for name in names
        if any(word == name if word in names else word in name for word in words)
    ]
    if not kept:
        raise ValueError(f"`{option}` must be in one of these names: {'; '.join(names)}.")
    return kept


def experiment_of(name: str) -> Callable[..., Any]:
    """The function that sets an experiment up, of ``quick``, or that runs a study."""
    if name not in EXPERIMENTS:
        raise ValueError(f"`NAME` must be one of {', '.join(EXPERIMENTS)}; got {name!r}.")
    module, _, function = EXPERIMENTS[name][0].rpartition(".")
    found: Callable[..., Any] = getattr(import_module(f".{module}", __package__), function)
    return found


def chosen(experiment: Experiment, labels: list[str] | None, names: list[str] | None) -> list[Part]:
    """The parts with one of the labels, each with the tests that have one of the names."""
    wanted = named((part.label for part in experiment.parts), labels, "--part")
    parts = [part for part in experiment.parts if part.label in wanted]
    tests = named((name for part in parts for name in part.tests), names, "--test")
    kept = [
        replace(part, tests={name: test for name, test in part.tests.items() if name in tests})
        for part in parts
    ]
    return [part for part in kept if part.tests]


def at_strengths(parts: list[Part], strengths: list[float] | None) -> list[Part]:
    """The parts that have one of the strengths, with those alone; all where none is named."""
    if not strengths:
        return parts
    kept = [
        replace(part, strengths=tuple(at for at in part.strengths if at in strengths))
        for part in parts
    ]
    if not any(part.strengths for part in kept):
        known = sorted({at for part in parts for at in part.strengths})
        raise ValueError(f"`--strength` must be among {', '.join(f'{at:g}' for at in known)}.")
    return [part for part in kept if part.strengths]


def possible(parts: list[Part], images: Path | None) -> list[Part]:
    """The parts that can be run; those that need images are left out where none are given.

    Raises:
        ValueError: if no part is left.
    """
    without = [part for part in parts if images is not None or not part.needs_images]
    if not without:
        raise ValueError(f"`--images` must be given for this part: {IMAGES}.")
    return without


def resized(part: P, repetitions: int | None, num_seeds: int | None) -> P:
    """The part with other numbers of batches a seed and of seeds, where they are given."""
    return replace(
        part,
        repetitions=part.repetitions if repetitions is None else repetitions,
        num_seeds=part.num_seeds if num_seeds is None else num_seeds,
    )
