"""Posteriors read from files."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from .files.storage import read_posterior
from .posterior import ABIPosterior


def load(path: str | Path, *, encoder: nn.Module | None = None) -> ABIPosterior:
    """Read a posterior written by :meth:`ABIPosterior.save`.

    Files of earlier versions hold neither encoders nor a verdict: they answer at their x_o, and
    the verdict says what they lack.

    Args:
        path: the file.
        encoder: the module of yours that the fit was given, if it was: files hold no code, and
            without it the posterior answers at its own x_o alone.

    Raises:
        ValueError: if the file is not a posterior of this format, or is from a newer version.
    """
    return ABIPosterior(**read_posterior(Path(path), encoder))
