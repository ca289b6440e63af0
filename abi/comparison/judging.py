"""What trained networks and unseen pairs say at one x: probabilities, intervals, a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.given.observation import Returned
from simulators.random import child_seed

from ..encoders.choice import FIXED, build_encoder, candidates, features_of
from ..rounds.plausibility import plausibility
from .check import LEAST_PAIRS, ModelCheck, check_probabilities
from .classifier import Classifier
from .odds import LogOdds, log_odds, nearness, places, units_of
from .pairs import Labelled
from .verdict import ComparisonVerdict, judged

_VIEWS, _MOST_COLUMNS = ("flat", "sorted", "moments"), 32  # of the check; of each view


@dataclass(frozen=True, eq=False)
class Unseen:
    """Pairs that no network saw, and how many simulations there were.

    Attributes:
        calibration: pairs that scale and shifts were fitted to.
        check: pairs that nothing was fitted to.
        calls: of each model's simulator.
        failures: of each.
    """

    calibration: Labelled
    check: Labelled
    calls: tuple[int, ...]
    failures: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.calibration) + len(self.check)

    @property
    def all(self) -> Labelled:
        """Both."""
        parts = self.calibration, self.check
        return Labelled(torch.cat([p.x for p in parts]), torch.cat([p.model for p in parts]))

    @property
    def most_log_odds(self) -> float:
        """The largest that could be told from no pair of a model among all of another."""
        return math.log(len(self))


@dataclass(frozen=True, eq=False)
class Trained:
    """Networks and where they are judged, as :class:`~abi.ModelComparison` describes it."""

    names: tuple[str, ...]
    x_o: Tensor
    model_prior: Tensor
    classifier: Classifier
    unseen: Unseen
    returned: Returned | None
    seed: int


@dataclass(frozen=True, eq=False)
class Judged:
    """What is known at one x, as :class:`~abi.ModelComparison` describes it."""

    best: str
    probabilities: Tensor
    intervals: Tensor
    log_bayes_factors: tuple[LogOdds, ...]
    verdict: ComparisonVerdict


@dataclass(frozen=True, eq=False)
class _Around:
    """What the networks say at x and of the unseen pairs, and where these lie."""

    at: Tensor  # (E, M), of each network
    said: Tensor  # (n, M)
    model: Tensor
    known: Tensor  # places (n, k)
    here: Tensor  # that of x

    @staticmethod
    def of(classifier: Classifier, unseen: Unseen, x: Tensor) -> _Around:
        pairs = unseen.all
        said, seen = classifier(pairs.x), classifier.features(pairs.x)
        units = units_of(seen, said)
        here = places(classifier.features(x[None]), classifier(x[None]), units)[0]
        return _Around(
            classifier.each(x[None])[:, 0], said, pairs.model, places(seen, said, units), here
        )

    def between(self, first: int, second: int) -> LogOdds:
        """Log Bayes factor of two models, by their pairs near x."""
        if first == second:
            return LogOdds(0.0, 0.0, 0.0)
        rows = (self.model == first) | (self.model == second)
        at = self.at[:, first] - self.at[:, second]
        said = (self.said[:, first] - self.said[:, second])[rows]
        weights = nearness(self.known[rows], self.here)
        first_made = (self.model == first)[rows]
        return log_odds(float(at.mean()), float(at.std()), said, first_made, weights)

    def against_all(self, number: int) -> LogOdds:
        """Log odds of a model against all others, under equal prior probabilities."""
        weights = nearness(self.known, self.here)
        at, own = self.at.log_softmax(dim=1), self.model == number
        odds = _logit(at, number)
        mean = float(_logit(at.mean(dim=0, keepdim=True).log_softmax(dim=1), number))
        return log_odds(mean, float(odds.std()), _logit(self.said, number), own, weights)


def _logit(log_q: Tensor, number: int) -> Tensor:
    """Log odds of one model against the others, (n, M) -> (n,)."""
    others = [k for k in range(log_q.shape[1]) if k != number]
    return log_q[:, number] - log_q[:, others].logsumexp(dim=1)


def log_bayes_factor(
    classifier: Classifier, unseen: Unseen, x: Tensor, first: int, second: int
) -> LogOdds:
    """That of two models at x."""
    return _Around.of(classifier, unseen, x).between(first, second)


def judge(trained: Trained) -> Judged:
    """Probabilities at x_o, their intervals, and the verdict."""
    names, x, model_prior, seed = trained.names, trained.x_o, trained.model_prior, trained.seed
    classifier, unseen = trained.classifier, trained.unseen
    around = _Around.of(classifier, unseen, x)
    log_q = classifier(x[None])[0]
    best = int((log_q + model_prior.log()).argmax())
    factors = tuple(around.between(best, number) for number in range(len(names)))
    shown = torch.tensor([-factor.shown for factor in factors]).double()
    probabilities = (shown + model_prior.log()).softmax(dim=0)
    prior_log_q = (log_q + model_prior.log())[None]
    intervals = []
    for number in range(len(names)):
        moved = float(_logit(prior_log_q, number) - _logit(log_q[None], number))
        odds = around.against_all(number).moved(moved)
        intervals.append(torch.tensor([odds.low, odds.high]).double().sigmoid())
    check = _checked(classifier, unseen, around, child_seed(seed, 0))
    x_o_p_values = _plausibilities(names, x, classifier, unseen, child_seed(seed, 1))
    outcome, headline = judged(check, names, best, factors, x_o_p_values)
    verdict = ComparisonVerdict(
        outcome,
        headline,
        check,
        x_o_p_values,
        dict(zip(names, unseen.calls, strict=True)),
        dict(zip(names, unseen.failures, strict=True)),
    )
    return Judged(names[best], probabilities, torch.stack(intervals), factors, verdict)


def _checked(classifier: Classifier, unseen: Unseen, around: _Around, seed: int) -> ModelCheck:
    """The check of the probabilities, where there are pairs enough."""
    pairs = unseen.check
    if len(pairs) < LEAST_PAIRS:
        return ModelCheck(len(pairs))
    weights = nearness(around.known[len(unseen.calibration) :], around.here)
    views = _views(classifier, pairs.x)
    return check_probabilities(classifier(pairs.x), pairs.model, views, weights, seed)


def _views(classifier: Classifier, x: Tensor) -> Tensor:
    """Features of x (n, p) that probabilities may hang on: those seen, and other encoders'."""
    others = [name for name in candidates(x.shape[1], classifier.layout) if name in _VIEWS]
    built = [build_encoder(name, x, classifier.layout) for name in others]
    parts = [features_of(encoder, x) for encoder in built]
    return torch.cat([part[:, :_MOST_COLUMNS] for part in (classifier.features(x), *parts)], dim=1)


def _plausibilities(
    names: Sequence[str], x: Tensor, classifier: Classifier, unseen: Unseen, seed: int
) -> dict[str, float]:
    """The p-value that x comes from each model, by its unseen data."""
    pairs = unseen.all
    fixed = classifier.encoder if classifier.encoder in FIXED else None
    return {
        name: plausibility(pairs.x[pairs.model == number], x, seed, fixed, classifier.layout)
        for number, name in enumerate(names)
    }
