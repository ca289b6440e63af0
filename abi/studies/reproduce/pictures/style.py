"""What the pictures of an experiment share: colours, lines, and the ends of their axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ....generators.support import Support
from ....pictures.density import Ends
from ..experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXACT = "#000000"
ABI = "#D55E00"
# Okabe & Ito's colours, and lines that tell them apart in grey.
STYLES: Mapping[str, tuple[str, Any]] = {
    "abi": (ABI, "-"),
    "abi_paper": ("#E69F00", "-"),
    "abi_paper_potnet": ("#E69F00", ":"),
    "abi_paper_mixture": ("#E69F00", "--"),
    "abi_paper_wgan": ("#E69F00", "-."),
    "abi_paper_uncounted": ("#A6761D", "-"),
    "abi_paper_raw": ("#A6761D", ":"),
    "snpe": ("#0072B2", "-"),
    "snpe_1": ("#0072B2", ":"),
    "snle": ("#009E73", "-"),
    "snle_1": ("#009E73", ":"),
    "smc_abc": ("#CC79A7", "-"),
    "wabc": ("#56B4E9", "-"),
    "abc_ss": ("#000080", "-."),
    "wgan_gp": ("#8B4513", "-."),
    "rejection_abc": ("#999999", "-"),
}
OTHER = ("#556B2F", "-.")
_COLUMNS = 4


def ends_of(experiment: Experiment) -> list[Ends]:
    """The ends of the prior's support, a pair a parameter."""
    task = experiment.problem.task
    support = Support.of(task.prior, task.theta_dim)
    return list(zip(support.lower.tolist(), support.upper.tolist(), strict=True))


def bare(ax: Axes) -> None:
    """A panel of densities: no height, few numbers, the lower side alone."""
    ax.set_yticks([])
    ax.locator_params(axis="x", nbins=4)
    ax.spines[["left", "right", "top"]].set_visible(False)


def grid(count: int) -> tuple[int, int]:
    """Rows and columns of so many panels, at most four in a row."""
    rows = -(-count // _COLUMNS)
    return rows, -(-count // rows)
