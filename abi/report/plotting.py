"""The picture that a run leaves in its folder: the marginals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from simulators import sample_prior

from ..generators.support import Support
from ..pictures.drawing import draw_density
from ..pictures.fit import NUM_PRIOR
from ..pictures.marginals import marginals_of
from ..pictures.pairs import marks_of
from ..pictures.style import legend_below, picture
from ..posterior import ABIPosterior
from ..rounds.problem import Problem

_INCHES = 3.1
_MAX_COLUMNS = 4


def plot_marginals(
    samples: Tensor,
    names: Sequence[str],
    path: Path,
    *,
    prior: Tensor | None = None,
    exact: Tensor | None = None,
    support: Support | None = None,
    title: str = "",
) -> Path:
    """Draw the marginal densities of samples (n, d) with the prior and the exact posterior.

    Each axis shows where the posterior lives; the prior is a reference line within it. Densities
    end at the ends of the support.

    Args:
        samples: draws of the posterior, (n, d).
        names: d names.
        path: where to write the PNG.
        prior: draws of the prior, (m, d).
        exact: draws of the exact posterior, (k, d).
        support: the prior's support.
        title: line above the panels.
    """
    count = samples.shape[1]
    columns = min(count, _MAX_COLUMNS)
    rows = -(-count // columns)
    with picture(_INCHES * columns, _INCHES * rows + 0.9, "plot_marginals") as figure:
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        marginals = marginals_of(names, samples, prior, exact, support)
        for axes, m in zip(panels, marginals, strict=False):
            draw_density(axes, m)
            axes.set_xlabel(m.name)
            axes.locator_params(axis="x", nbins=5)
        for axes in panels[count:]:
            axes.set_visible(False)
        legend_below(figure, *marks_of(marginals[0]))
        if title:
            figure.suptitle(title)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    return path


def plot_answer(
    posterior: ABIPosterior, problem: Problem, samples: Tensor, exact: Tensor | None, folder: Path
) -> Path:
    """The marginals of a fit's samples (n, d), drawn into the folder of its run."""
    return plot_marginals(
        samples,
        posterior.parameter_names,
        folder / "marginals.png",
        prior=sample_prior(problem.prior, NUM_PRIOR, seed=0),
        exact=exact,
        support=problem.support,
        title=f"{posterior.num_simulations:,} simulator calls in {len(posterior.rounds)} rounds",
    )
