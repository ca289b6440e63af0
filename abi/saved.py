"""Posteriors read from files."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from simulators.arguments import as_path

from .files.run_folder import POSTERIOR, posterior_file
from .files.storage import read_posterior
from .plan import Plan
from .posterior import ABIPosterior
from .rounds.record import RoundState


def load(path: str | Path, *, encoder: nn.Module | None = None) -> ABIPosterior:
    """Read a posterior that :meth:`ABIPosterior.save` wrote, or that of a finished run folder.

    Files of earlier versions lack what later ones need: they answer at their own x_o only, and
    their verdict says what is missing.

    Args:
        path: the file, or the ``run_dir`` of a fit that has ended.
        encoder: the ``encoder`` module that the fit was given, if any. Files hold no code: without
            it the posterior answers at its own x_o only.

    Raises:
        ValueError: if there is no such file, or it is damaged, of another kind, or from a newer
            version.
    """
    return ABIPosterior(**read_posterior(posterior_file(as_path(path, "path")), encoder))


def checked_further(run_dir: Path, state: RoundState | None, plan: Plan) -> ABIPosterior | None:
    """The answer in a finished run's folder, where a check has added pairs to its own.

    To make it again from the state of its last round would lose them.
    """
    file = run_dir / POSTERIOR
    if state is None or not state.final or not file.is_file():
        return None
    kept = load(file)
    return None if kept.pairs is None or kept.pairs.num_calls <= plan.num_check else kept
