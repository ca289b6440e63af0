"""The answer: how probable each model is given x_o, how far off that may be, and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from simulators.arguments import as_path
from simulators.given.observation import Observed, Returned
from validation.results.tables import html_table, text_table

from ..encoders.layout import as_observations
from .classifier import Classifier
from .files import read_comparison, write_comparison
from .judging import Trained, Unseen, judge
from .odds import LogOdds
from .picture import draw
from .verdict import ComparisonVerdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison:
    """Posterior probabilities of M models given x_o: ``print`` shows them in ten lines.

    Attributes:
        names: of the models.
        x_o: the observation, (p,).
        model_prior: prior probabilities, (M,).
        best: the name of the most probable model.
        probabilities: posterior ones, (M,). Where no unseen pair of a model comes near x_o, they
            are the least that the pairs show for the best model: "at least".
        intervals: 95% intervals of them, (M, 2); an end is 0 or 1 where no pair bounds it.
        log_bayes_factors: log p(x_o | best) / p(x_o | m) for each model m, with 95% intervals.
        verdict: may the probabilities be trusted?
        classifier: the networks.
        unseen: pairs that no network saw, for calibration, check and intervals.
        returned: what one simulation is, where that is known.
        seed: of all.
    """

    names: tuple[str, ...]
    x_o: Tensor
    model_prior: Tensor
    best: str
    probabilities: Tensor
    intervals: Tensor
    log_bayes_factors: tuple[LogOdds, ...]
    verdict: ComparisonVerdict
    classifier: Classifier
    unseen: Unseen
    returned: Returned | None
    seed: int

    @classmethod
    def of(cls, trained: Trained) -> ModelComparison:
        """The answer of trained networks at an observation."""
        return cls(**vars(trained), **vars(judge(trained)))

    def plot(self) -> Figure:
        """Draw the probability of each model, its 95% interval, and its prior probability.

        Returns:
            A matplotlib figure, which a notebook shows; ``figure.savefig("models.png")`` keeps it.

        Raises:
            ValueError: if matplotlib is not installed.
        """
        return draw(self.names, self.probabilities, self.intervals, self.model_prior)

    @property
    def num_simulations(self) -> int:
        """Simulator calls made, failed ones included."""
        return sum(self.verdict.calls.values())

    def log_bayes_factor(self, first: str, second: str) -> LogOdds:
        """The log of p(x_o | first) / p(x_o | second) with its 95% interval.

        Raises:
            ValueError: if a name is not one of a model.
        """
        from .judging import log_bayes_factor

        for name in (first, second):
            if name not in self.names:
                raise ValueError(f"`name` must be of {', '.join(self.names)}; got {name!r}.")
        numbers = self.names.index(first), self.names.index(second)
        return log_bayes_factor(self.classifier, self.unseen, self.x_o, *numbers)

    def at(self, x: Any) -> ModelComparison:
        """The comparison at another observation, judged there; no simulator is called.

        Raises:
            ValueError: if x is not one finite observation of as many values.
        """
        given = Observed.of(x).matched(self.returned)
        other = as_observations(given, len(self.x_o), self.classifier.layout)[0]
        return ModelComparison.of(replace(self._trained, x_o=other))

    def probabilities_at(self, x: Tensor) -> Tensor:
        """Posterior probabilities of the models at each row of x (n, p), (n, M), float64.

        They are the networks' own, but for log odds beyond what all unseen pairs together could
        show, which are cut there. :meth:`at` judges one of them, with intervals.
        """
        rows = as_observations(x, len(self.x_o), self.classifier.layout)
        log_q = self.classifier(rows)
        cut = log_q.clamp_min(-self.unseen.most_log_odds)
        return (cut + self.model_prior.log()).softmax(dim=1)

    def __repr__(self) -> str:
        each = ", ".join(
            f"{name} {row[1]}" for name, row in zip(self.names, self._rows, strict=True)
        )
        return f"ModelComparison of {each}; {self.verdict.headline}"

    def __str__(self) -> str:
        headline, *rest = str(self.verdict).splitlines()
        table = text_table(self._rows, self._header)
        return "\n".join([headline, table, *rest, f"  {self._footing}"])

    def _repr_html_(self) -> str:
        table = html_table(self._rows, self._header, "Probabilities of the models given x_o")
        return f"{table}<p>{escape(self._footing)}<br>{escape(self.verdict.headline)}</p>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an end that no pair bounds is None."""
        return {
            "models": {
                name: {
                    "probability": float(self.probabilities[k]),
                    "interval": self.intervals[k].tolist(),
                    "prior": float(self.model_prior[k]),
                    "log_bayes_factor_of_best": self.log_bayes_factors[k].to_dict(),
                }
                for k, name in enumerate(self.names)
            },
            "best": self.best,
            "x_o": self.x_o.tolist(),
            "encoder": self.classifier.encoder,
            "simulator_calls": self.num_simulations,
            "seed": self.seed,
            "verdict": self.verdict.to_dict(),
        }

    def save(self, path: str | Path) -> None:
        """Write the comparison to one safetensors file, which :meth:`load` reads; no pickle."""
        write_comparison(as_path(path, "path"), self._trained)

    @staticmethod
    def load(path: str | Path, *, encoder: nn.Module | None = None) -> ModelComparison:
        """Read what :meth:`save` wrote.

        Args:
            path: the file.
            encoder: the module that the comparison was given, if any: files hold no code.

        Raises:
            ValueError: if there is no such file, it is damaged, of another kind or a newer version,
                or it needs the module.
        """
        return ModelComparison.of(read_comparison(as_path(path, "path"), encoder))

    @property
    def _trained(self) -> Trained:
        """What :meth:`of` was given."""
        known = self.names, self.x_o, self.model_prior
        return Trained(*known, self.classifier, self.unseen, self.returned, self.seed)

    @property
    def _rows(self) -> Sequence[list[str]]:
        return [
            [
                name,
                _share(float(self.probabilities[k]), *self.intervals[k].tolist()),
                _range(*self.intervals[k].tolist()),
                f"{float(self.model_prior[k]):.3g}",
                "-" if name == self.best else str(self.log_bayes_factors[k]),
            ]
            for k, name in enumerate(self.names)
        ]

    @property
    def _header(self) -> list[str]:
        factor = f"log Bayes factor of {self.best}"
        return ["model", "probability", "95% interval", "prior", factor]

    @property
    def _footing(self) -> str:
        calls = f"{self.num_simulations:,} simulator calls"
        return f"{calls}, {len(self.unseen):,} unseen pairs; encoder {self.classifier.encoder}"


def _share(value: float, low: float, high: float) -> str:
    """A probability, or the end that is known.

    >>> _share(0.52, 0.4, 0.6), _share(0.997, 0.995, 1.0), _share(0.003, 0.0, 0.005)
    ('0.52', 'at least 0.9950', 'at most 0.0050')
    """
    if high >= 1.0:
        return f"at least {_places(low)}"
    return f"at most {_places(high)}" if low <= 0.0 else _places(value)


def _range(low: float, high: float) -> str:
    return f"{_places(low)} to {_places(high)}"


def _places(value: float) -> str:
    """Two digits of a probability or of its distance from 1.

    >>> _places(0.5), _places(0.9912), _places(0.0034), _places(1.0)
    ('0.50', '0.9912', '0.0034', '1')
    """
    rest = min(value, 1.0 - value)
    if rest <= 0.0:
        return f"{value:.0f}"
    return f"{value:.2f}" if rest >= 0.05 else f"{value:.{3 if rest >= 0.01 else 4}f}"
