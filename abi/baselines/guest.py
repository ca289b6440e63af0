"""sbi as a guest: seeded, silent, on one thread, and the global state as it was found.

sbi draws from the global streams, prints to standard output, writes TensorBoard logs where it runs,
and warns about its own deprecations. Everything of it is imported and called inside :func:`guest`.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

from simulators.random import as_count, isolated_rng
from validation.threads import one_thread

from ..training.torch_settings import usual_torch


@contextlib.contextmanager
def guest(seed: int) -> Iterator[None]:
    """Run code of sbi at ``seed``, in silence and on one thread."""
    logger = logging.getLogger("sbi")
    level = logger.level
    with (
        isolated_rng(seed),
        usual_torch(),
        one_thread(),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)


class _NoTracker:
    """What sbi reports its training to: nobody."""

    log_dir: str | None = None

    def log_metric(self, name: str, value: float, step: int | None = None) -> None:
        """Ignore one value."""

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Ignore some values."""

    def log_params(self, params: dict[str, Any]) -> None:
        """Ignore parameters."""

    def add_figure(self, name: str, figure: Any, step: int | None = None) -> None:
        """Ignore a figure."""

    def add_scalar(self, **value: Any) -> None:
        """Ignore one value, as sbi before 0.26 gives it."""

    def flush(self) -> None:
        """Write nothing."""


def quiet(trainer: type) -> dict[str, Any]:
    """What keeps one of sbi's trainers from printing, and from writing logs where it runs."""
    known = inspect.signature(trainer).parameters
    name = "tracker" if "tracker" in known else "summary_writer"  # until sbi 0.26
    return {name: _NoTracker(), "show_progress_bars": False}


def training_limits(max_epochs: int | None) -> dict[str, int]:
    """The keyword of sbi's training, none where sbi decides."""
    if max_epochs is None:
        return {}
    return {"max_num_epochs": as_count(max_epochs, "max_epochs", 1)}


def training_record(trainer: Any, num_pairs: int) -> dict[str, float]:
    """What the last round of sbi's training did."""
    return {
        "pairs": float(num_pairs),
        "epochs": float(trainer.summary["epochs_trained"][-1]),
        "validation_loss": float(trainer.summary["best_validation_loss"][-1]),
    }
