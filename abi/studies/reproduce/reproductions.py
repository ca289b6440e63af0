"""The paper's experiments: models, budgets, rounds, what it prints, and what is doubtful in it.

Two are ours: real counts, and a prior without density.

Source: Lu & Wong (2025), Section 4 and Appendix C.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from simulators import MG1, Cosine, GaussianLinear, LotkaVolterra, LynxHare, MultimodalGaussian

from .intractable import CountedPopulations

WARMUP_TOLERANCES = (2.0, 0.7, 0.3, 0.01, 0.005, 0.003, 0.001, 0.001, 0.001)
WARMUP_PROPOSALS = 10_000  # N
WARMUP_RETRIES = 1_000_000  # R: fewer drop theta and narrow every further round


@dataclass(frozen=True, eq=False)
class Reproduction:
    """One experiment.

    Attributes:
        name: what the command calls it.
        title: what it shows, in a line.
        source: paper and place.
        task: the model, its prior and its default observation, which is the paper's.
        budget: simulator calls of the paper's setting, or ours where it prints none.
        quick_budget: of ``--quick``.
        rounds: T of the sequential methods.
        encoder: what the rivals and ABI as published are shown of x.
        has_exact: whether an exact posterior is known.
        series: rows of x as curves over time, where x is one: their names.
        published: method -> score -> what the paper prints.
        published_posterior: what is printed of the exact posterior: name -> a value a parameter.
        compatible: method -> what Table 1 says of a prior without density.
        note: what is doubtful in print, or different here.
    """

    name: str
    title: str
    source: str
    task: Any
    budget: int
    quick_budget: int
    rounds: int
    encoder: str = "flat"
    has_exact: bool = True
    series: tuple[str, ...] = ()
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    published_posterior: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    compatible: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def true_theta(self) -> Tensor | None:
        """The parameters behind the default observation, (d,), where it was simulated."""
        found: Tensor | None = getattr(self.task, "true_theta", None)
        return found


def _table_2() -> dict[str, dict[str, float]]:
    means = (f"mean_difference_{j}" for j in range(1, 6))
    names = ("mmd_squared", "w1", *means, "correlation_bias")
    values = {
        "abi_paper_potnet": (0.466, 0.609, 0.001, 0.030, 0.016, 0.006, 0.137, 0.881),
        "wabc": (0.592, 2.738, 0.383, 0.193, 0.058, 0.022, 0.345, 1.776),
        "abc_ss": (0.573, 1.663, 0.18, 0.103, 0.076, 0.007, 0.642, 1.382),
        "snle": (0.511, 0.912, 0.033, 0.001, 0.24, 0.084, 0.078, 1.146),
        "snpe": (0.536, 1.126, 0.363, 0.112, 0.192, 0.012, 0.361, 1.094),
        "wgan_gp": (0.514, 1.079, 0.039, 0.049, 0.030, 0.143, 0.087, 2.340),
    }
    return {method: dict(zip(names, row, strict=True)) for method, row in values.items()}


_TABLE_1 = {
    "abi": "yes", "abi_paper": "yes", "abi_paper_potnet": "yes", "abi_paper_mixture": "yes",
    "abi_paper_wgan": "yes", "abi_paper_raw": "yes", "abi_paper_uncounted": "yes", "wabc": "no",
    "abc_ss": "yes", "snle": "no", "snpe": "no",
}  # fmt: skip
_KNOWN = (
    Reproduction(
        "gaussian",
        "A Gaussian with a known answer, nine rounds",
        "Lu & Wong (2025), Appendix C.1, Figure 10",
        GaussianLinear.warmup(),
        budget=10_000,
        quick_budget=1_000,
        rounds=2,
        published_posterior={"mean": (5.94,), "variance": (0.95,)},
        note="`abi_paper` is the appendix's experiment: the distance |x - x_o| is known, the "
        "tolerances are the nine printed ones, and its calls are not limited to the budget, for it "
        "takes R = 10^6 retries a theta. The others are given the budget.",
    ),
    Reproduction(
        "multimodal",
        "Four modes from four points: the multimodal Gaussian",
        "Lu & Wong (2025), Section 4.1, Figures 1 to 3 and 11, Table 2",
        MultimodalGaussian(),
        budget=20_000,
        quick_budget=2_000,
        rounds=2,
        encoder="moments",
        published=_table_2(),
        note="The paper prints neither its observation nor its numbers of calls: ours is one draw "
        "at the true parameters of Papamakarios et al. (2019). Its MMD, of a bandwidth not "
        "printed, fits neither the unbiased nor the biased squared MMD; ours is the unbiased "
        "square, the bandwidth being the median distance of the reference. W1 of two exact samples "
        "is itself far from 0 here (see the floor). Rivals see the moments of the four points.",
    ),
    Reproduction(
        "mg1",
        "The M/G/1 queue, fifty interdeparture times",
        "Lu & Wong (2025), Section 4.2, Figure 4",
        MG1(),
        budget=40_000,
        quick_budget=3_000,
        rounds=4,
        encoder="sorted",
        published_posterior={"mean": (3.96, 2.99, 0.177)},
        note="The text gives theta_2 ~ U(0, 10), the published means come from theta_2 - theta_1 ~ "
        "U(0, 10), which is used here. Rivals see the times sorted.",
    ),
    Reproduction(
        "cosine",
        "A wave in noise",
        "Lu & Wong (2025), Section 4.3, Figures 5 to 7",
        Cosine(),
        budget=15_000,
        quick_budget=3_000,
        rounds=3,
        encoder="principal+lags",
        series=("Y",),
        note="The paper's series is not printed: ours is one simulation at its true parameters. "
        "Rivals see the principal axes of the series and its autocorrelations, SNLE the series.",
    ),
    Reproduction(
        "lotka-volterra",
        "Predators and prey, one event at a time",
        "Lu & Wong (2025), Section 4.4, Figures 8 and 9",
        LotkaVolterra(),
        budget=10_000,
        quick_budget=2_000,
        rounds=2,
        encoder="transitions",
        has_exact=False,
        series=("prey", "predators"),
        note="No exact posterior is known: shown are the true parameters and what the posterior "
        "predicts. The paper's path is not printed: ours is one simulation at its true parameters. "
        "Paths stop when a species dies out, as in the paper. "
        "Rivals see the moments of the path's transitions, SNLE the path.",
    ),
    Reproduction(
        "lynx-hare",
        "Lynx and hares of the Hudson Bay, 1900 to 1920",
        "not in Lu & Wong (2025); model and published means: Carpenter (2018)",
        LynxHare(),
        budget=20_000,
        quick_budget=4_000,
        rounds=2,
        encoder="principal+lags",
        series=("log hares", "log lynx"),
        published_posterior={"mean": (0.55, 0.028, 0.80, 0.024, 34.0, 5.9, 0.25, 0.25)},
        note="Real counts. The noise being log-normal, the exact posterior is known; the printed "
        "means are of Stan's. Rivals see the principal axes of the series and its "
        "autocorrelations, SNLE the series.",
    ),
    Reproduction(
        "intractable-prior",
        "A prior without density: a simulator's output",
        "Lu & Wong (2025), Table 1",
        CountedPopulations(),
        budget=10_000,
        quick_budget=1_000,
        rounds=2,
        encoder="moments",
        compatible=_TABLE_1,
        note="The paper asserts the table without an experiment; this one is ours. The prior is "
        "what a Lotka-Volterra process ends with. SNPE needs the prior's density from its second "
        "round on; snpe_1 is its first round alone. WABC is by SMC-ABC here, whose weights need a "
        "density; rejection by its distance would need none. Rivals see the moments of the counts.",
    ),
)
NAMES = tuple(known.name for known in _KNOWN)
"""Experiments that can be asked for."""


def reproduction(name: str) -> Reproduction:
    """The experiment of that name.

    Raises:
        ValueError: if there is none.
    """
    for known in _KNOWN:
        if known.name == name:
            return known
    raise ValueError(f"`NAME` must be one of {', '.join(NAMES)}; got {name!r}.")
