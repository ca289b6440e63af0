"""Pictures of results: the only file here that knows matplotlib.

Every picture shows what the test looked at with what chance alone would do beside it: distribution
functions with simultaneous bands, null distributions with the observed value, draws coloured by
where the classifier, or the ball, finds q wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from simulators.base import numbered_names
from simulators.lazy import check_installed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .localized import Localization
    from .tested import Tested

_BAND = "0.85"
_OBSERVED = "tab:blue"
_EXPECTED = "0.3"


def plot_result(result: Tested, ax: Axes | None = None) -> Axes:
    """Draw the picture that belongs to the result's method, with its p-value as the title."""
    ax = new_figure("plot").add_subplot() if ax is None else ax
    picture = _PICTURES.get(result.method)
    if picture is not None:
        picture(result, ax)
    elif "ranks" in result.details:
        plot_rank_ecdf(result.details["ranks"], ax)
    elif result.null_statistics is not None:
        plot_null(result, ax)
    else:
        _plot_value(result, ax)
    ax.set_title(f"{result.method}: p = {result.p_value:.2g}")
    return ax


def save_plot(result: Tested, path: Path) -> Path:
    """Write the method's picture to ``path`` without touching the user's open figures."""
    figure = new_figure("save_plots")
    plot_result(result, figure.add_subplot())
    figure.savefig(path, dpi=150)
    return path


def save_local_plots(results: Iterable[Tested], x: Tensor, folder: Path) -> list[Path]:
    """Write L-C2ST's coloured pair plot and CoLT's localisation at x (p,), where there are any.

    The second is left out where the posterior cannot be sampled at x.
    """
    from matplotlib.figure import Figure

    paths = []
    for result in results:
        if "probabilities" in result.details:
            paths.append(folder / f"{result.method}_pairs.png")
            plot_pairs(result).savefig(paths[-1], dpi=150)
        if "localize" in result.details:
            try:
                found = result.details["localize"](x)
            except (ValueError, NotImplementedError):  # stored samples know their own x only
                continue
            figure = Figure(figsize=(5, 4), layout="constrained")
            plot_localization(found, figure.add_subplot())
            paths.append(folder / f"{result.method}_localization.png")
            figure.savefig(paths[-1], dpi=150)
    return paths


def plot_rank_ecdf(ranks: Tensor, ax: Axes | None = None, alpha: float = 0.05) -> Axes:
    """Distribution functions of ranks (n,) or (n, d) minus the diagonal, with simultaneous bands.

    A whole curve stays inside the band with probability 1 - alpha when q = p: the band is the
    Kolmogorov-Smirnov test drawn as a picture (over d curves at alpha / d, Bonferroni).
    """
    from scipy.stats import kstwo

    ax = new_figure("plot").add_subplot() if ax is None else ax
    columns = ranks if ranks.ndim == 2 else ranks[:, None]
    n, d = columns.shape
    width = float(kstwo.ppf(1 - alpha / d, n))
    ax.axhspan(-width, width, color=_BAND, label=f"{1 - alpha:.0%} simultaneous band")
    ax.axhline(0.0, color=_EXPECTED, linewidth=1)
    steps = np.arange(1, n + 1) / n
    for j in range(d):
        ordered = np.sort(columns[:, j].numpy())
        label = None if d == 1 else f"parameter {j + 1}"
        grid, heights = _difference(ordered, steps)
        ax.plot(grid, heights, label=label, color=_OBSERVED if d == 1 else None)
    ax.set(xlim=(0, 1), xlabel="rank u", ylabel="F(u) - u")
    ax.legend(fontsize="small", frameon=False)
    return ax


def plot_pp(result: Tested, ax: Axes | None = None) -> Axes:
    """PP-plot of L-C2ST's class-0 probabilities at the first x_o, with the null's pointwise band.

    Source: Linhart, Gramfort & Rodrigues (2023), Algorithm 5 and Figure 4.
    """
    ax = new_figure("plot").add_subplot() if ax is None else ax
    curves = {key: value.numpy() for key, value in result.details["pp"].items()}
    ax.fill_between(
        curves["levels"], curves["low"], curves["high"], color=_BAND, label="95% under the null"
    )
    ax.step(
        curves["levels"], (curves["levels"] >= 0.5).astype(float), color=_EXPECTED, linewidth=1,
        where="post", label="chance",
    )  # fmt: skip
    ax.plot(curves["levels"], curves["observed"], color=_OBSERVED, label="observed")
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability of q", ylabel="distribution function")
    ax.legend(fontsize="small", frameon=False)
    return ax


def plot_null(result: Tested, ax: Axes | None = None) -> Axes:
    """Histogram of the null statistics with the observed one."""
    if result.null_statistics is None:
        raise ValueError(f"`result` of {result.method!r} has no null statistics to draw.")
    ax = new_figure("plot").add_subplot() if ax is None else ax
    ax.hist(result.null_statistics.numpy(), bins=30, color=_BAND, label="null")
    ax.axvline(result.statistic, color=_OBSERVED, label="observed")
    ax.set(xlabel="statistic", ylabel="count")
    ax.legend(fontsize="small", frameon=False)
    return ax


def plot_pairs(result: Tested, index: int = 0, names: tuple[str, ...] | None = None) -> Figure:
    """Pair plot of q's draws at x_o number ``index``, coloured by the predicted probability of p.

    Red: the classifier finds p denser than q; blue: q denser than p.

    Raises:
        ValueError: if the result does not come from L-C2ST.
    """
    if "probabilities" not in result.details:
        raise ValueError(f"`result` must come from lc2st; {result.method!r} has no probabilities.")
    theta = result.details["theta_o"][:, index].numpy()
    colour = result.details["probabilities"][:, index].numpy()
    names = names or numbered_names(theta.shape[1])
    return _pair_grid(theta, colour, names, "probability of p", _symmetric(colour))


def plot_localization(
    found: Localization, ax: Axes | None = None, dims: tuple[int, int] = (0, 1)
) -> Axes:
    """Draws of q at one x, those in CoLT's ball coloured, with the ball's centre.

    Args:
        found: from ``validation.localize(result, x)``.
        ax: axes to draw on.
        dims: the two parameters shown; with one parameter a histogram is drawn.
    """
    ax = new_figure("plot").add_subplot() if ax is None else ax
    samples = found.samples.numpy()
    inside = (found.distances <= found.radius).numpy()
    label = f"in the ball: q {found.q_mass:.2f}, p {found.p_mass:.2f}"
    if samples.shape[1] == 1:
        edges = np.histogram_bin_edges(samples[:, 0], bins=30).tolist()
        ax.hist(samples[~inside, 0], bins=edges, color=_BAND, label="draws of q")
        ax.hist(samples[inside, 0], bins=edges, color=_OBSERVED, alpha=0.6, label=label)
        ax.axvline(float(found.point[0]), color="black", linestyle=":")
    else:
        i, j = dims
        ax.scatter(samples[~inside, i], samples[~inside, j], s=6, color="0.7", label="draws of q")
        ax.scatter(samples[inside, i], samples[inside, j], s=6, color=_OBSERVED, label=label)
        ax.plot(float(found.point[i]), float(found.point[j]), "k+", markersize=12)
        ax.set(xlabel=f"theta_{i + 1}", ylabel=f"theta_{j + 1}")
    ax.legend(fontsize="small", frameon=False)
    return ax


def _plot_local_coverage(result: Tested, ax: Axes) -> None:
    levels = result.details["levels"].numpy()
    ax.plot([0, 1], [0, 1], color=_EXPECTED, linewidth=1)
    for curve in result.details["coverage"].numpy():
        ax.plot(levels, curve, color=_OBSERVED, alpha=0.6)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="level", ylabel="local coverage")


def _plot_value(result: Tested, ax: Axes) -> None:
    ax.axvline(result.statistic, color=_OBSERVED)
    ax.set(xlabel="statistic", yticks=[])


def _pair_grid(
    theta: np.ndarray, colour: np.ndarray, names: tuple[str, ...], label: str, limit: float
) -> Figure:
    d = theta.shape[1]
    figure = new_figure("plot", 2.2 * d + 1, 2.2 * d)
    grid = figure.subplots(d, d, squeeze=False)
    points: Any = None
    for i in range(d):
        for j in range(d):
            ax = grid[i, j]
            if i == j:
                ax.hist(theta[:, i], bins=30, color=_BAND)
            elif i > j:
                points = ax.scatter(
                    theta[:, j], theta[:, i], c=colour, s=5, cmap="coolwarm",
                    vmin=0.5 - limit, vmax=0.5 + limit,
                )  # fmt: skip
            else:
                ax.set_axis_off()
            if i == d - 1:
                ax.set_xlabel(names[j], parse_math=False)  # a parameter may be called $x$
            if j == 0:
                ax.set_ylabel(names[i], parse_math=False)
    if points is not None:
        figure.colorbar(points, ax=grid, label=label)
    return figure


def _symmetric(probabilities: np.ndarray) -> float:
    return max(float(np.abs(probabilities - 0.5).max()), 1e-3)


def _difference(ordered: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The step curve F(u) - u, with its value before and after each jump."""
    before = np.concatenate([[0.0], steps[:-1]])
    grid = np.repeat(ordered, 2)
    heights = np.stack([before, steps], axis=1).ravel() - grid
    return np.concatenate([[0.0], grid, [1.0]]), np.concatenate([[0.0], heights, [0.0]])


def new_figure(what: str, width: float = 5.0, height: float = 4.0) -> Figure:
    """A figure in inches that no window shows.

    Args:
        what: needs it, for the error.
        width: of the figure.
        height: of the figure.

    Raises:
        ValueError: if matplotlib is not installed.
    """
    check_installed(what, "matplotlib")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


_PICTURES: dict[str, Callable[[Tested, Axes], Any]] = {
    "lc2st": plot_pp,
    "lc2st_nf": plot_pp,
    "local_hpd": _plot_local_coverage,
    "conformal_multiple": plot_null,
    "discriminative_calibration": plot_null,
}
