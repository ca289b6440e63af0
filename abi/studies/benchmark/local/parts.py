"""The experiments of the L-C2ST paper: which tasks, how much training, how many pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simulators import (
    SLCP,
    BernoulliGLM,
    GaussianLinearUniform,
    GaussianMixture,
    JansenRit,
    Task,
    TwoMoons,
)
from validation import Training

from .one_class import OneClassPart

TASKS: dict[str, Task] = {
    "two-moons": TwoMoons(),
    "slcp": SLCP(),
    "gaussian-mixture": GaussianMixture(),
    "gaussian-linear-uniform": GaussianLinearUniform(),
    "bernoulli-glm": BernoulliGLM(),
    "bernoulli-glm-raw": BernoulliGLM("raw"),
}
NUM_OBSERVATIONS = 10
"""The observations of a task: draws from prior and simulator, nobody chose them."""


@dataclass(frozen=True)
class Sizes:
    """What the tests of one part have in common."""

    num_x_o: int = NUM_OBSERVATIONS
    """The first so many of the task's observations."""
    num_nulls: int = 100
    """N_H."""
    num_samples: int = 10_000
    """N_v: draws at which a classifier is read, and the oracle's test points of each class."""
    num_ranked: int = 200
    """K, draws of q for an HPD rank."""
    patience: int = 50
    """Epochs without better accuracy before a classifier stops."""

    def training(self, theta_dim: int) -> Training:
        """The paper's classifier, two layers of 10 d units, for every test that has one."""
        width = 10 * theta_dim
        return Training((width, width), 1e-3, 200, 1_000, self.patience, 0.1, "accuracy")


@dataclass(frozen=True)
class LocalPart:
    """A task: power over the training of q, power and type I error over the calibration pairs."""

    label: str
    """What ``--part`` calls it."""
    task: Task
    num_trains: tuple[int, ...] = (100, 1_000, 10_000, 100_000)
    """N_train of the estimates, at ``num_cals[-1]`` pairs."""
    num_cals: tuple[int, ...] = (100, 500, 1_000, 2_000, 5_000, 10_000)
    """N_cal, at ``num_train``."""
    num_train: int = 1_000
    repetitions: int = 50
    """Test runs, each on new calibration pairs."""
    num_seeds: int = 1
    """Networks for each N_train."""
    sizes: Sizes = Sizes()
    max_epochs: int | None = None
    """Of the estimates; training stops by itself when omitted."""
    estimates_of: str = ""
    """The part whose estimates these are; empty where they are its own."""

    @property
    def estimates(self) -> str:
        """The label under which its estimates are kept."""
        return self.estimates_of or self.label

    def points(self) -> list[tuple[int, int, bool]]:
        """(N_train, N_cal, whether q plays the truth) of every rate, each once."""
        most, two = self.num_cals[-1], (False, True)
        points = {(train, most, False): None for train in self.num_trains}
        points |= {(self.num_train, cal, exact): None for cal in self.num_cals for exact in two}
        return list(points)


@dataclass(frozen=True)
class AgreementPart(LocalPart):
    """Figure 6, Tables 1 and 3: the statistics of one run beside the oracle's, x_o by x_o."""

    def points(self) -> list[tuple[int, int, bool]]:
        """(N_train, N_cal, False) for every N_train."""
        return [(train, self.num_cals[-1], False) for train in self.num_trains]


@dataclass(frozen=True)
class GainPart:
    """Section 4.2: the statistic of L-C2ST-NF over the gain of the Jansen-Rit model."""

    label: str
    task: Task
    num_train: int = 50_000
    num_cal: int = 10_000
    num_samples: int = 10_000
    num_nulls: int = 100
    gains: tuple[float, ...] = (-20.0, -15.0, -10.0, -5.0, 0.0, 5.0, 10.0, 15.0, 20.0)
    """g_o in dB, at C = 135, mu = 220, sigma = 2000."""
    num_transforms: int = 10
    """Layers of the masked autoregressive flow."""
    max_epochs: int | None = None


def parts(quick: bool) -> tuple[LocalPart | GainPart | OneClassPart, ...]:
    """Every part; quick: a tenth of the pairs, three observations, five runs."""
    gain = GainPart("jansen-rit", JansenRit("spectrum"))
    if not quick:
        local = [LocalPart(label, task) for label, task in TASKS.items()]
        return (*local, *map(agreement, local), gain, OneClassPart("one-class"))
    # With 59 nulls a p-value of at most 0.05 has probability 0.05 exactly.
    sizes = Sizes(3, num_nulls=59, num_samples=1_000, num_ranked=50, patience=20)
    local = [
        LocalPart(label, task, (100, 1_000), (100, 300, 1_000), 1_000, 5, sizes=sizes)
        for label, task in TASKS.items()
    ]
    return (
        *local,
        *(agreement(part, 30) for part in local),
        replace(gain, num_train=5_000, num_cal=2_000, num_samples=2_000),
        OneClassPart("one-class", repetitions=20),
    )


def agreement(part: LocalPart, num_x_o: int = 100) -> AgreementPart:
    """The same estimates at ``num_x_o`` observations, one run with the most calibration pairs."""
    return AgreementPart(
        f"agreement,{part.label}", part.task, part.num_trains, part.num_cals[-1:], part.num_train,
        repetitions=1, sizes=replace(part.sizes, num_x_o=num_x_o, num_nulls=1),
        max_epochs=part.max_epochs, estimates_of=part.label,
    )  # fmt: skip
