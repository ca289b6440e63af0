r"""A few networks that tell models apart: x -> log p(x | m), up to a constant that all m share.

Each minimises the cross entropy of the model m that made x, of logits l_m(x) + log n_m with n_m the
pairs of model m, so that whatever their numbers

    softmax l(x)  ->  p(x | m) / sum_k p(x | k),

the probabilities under equal prior ones. The average of their log probabilities is *calibrated* on
pairs that no network saw: a common scale and one shift a model (vector scaling) that minimise the
cross entropy there, so that what is said too surely is said less so. The other pairs that no
network saw check it (:mod:`abi.comparison.check`).

The pairs have weights that each network draws for itself, exponential with mean 1, as the Bayesian
bootstrap has them (Rubin 1981): so the networks differ as networks of other pairs would.

Encoders are those of a fit (:mod:`abi.encoders.choice`): short trainings race, and the best fixed
one, with a learned one where it suits, is trained whole.

Source: Hinton, Vinyals & Dean (2015) and Guo et al. (2017), "On calibration of modern neural
networks", for the scale; Cranmer, Pavez & Louppe (2015) for ratios of densities by classifiers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from simulators.arguments import choice
from simulators.random import child_seed, isolated_rng, torch_generator

from ..encoders.choice import (
    FIXED,
    LEARNED,
    OWN_ENCODER,
    build_encoder,
    candidates,
    features_of,
    learned_for,
    prepared,
)
from ..encoders.layout import Layout
from ..training.loop import TrainingLog, TrainingSettings, check_trained, train
from ..training.relu import relu_network
from .base import Quadratic, fitted
from .pairs import Labelled

_MEMBERS = range(4)
_HIDDEN = (64, 64)
_TRAINING = TrainingSettings(learning_rate=1e-3, weight_decay=0.1, num_steps=1_000)
_RACE = 0.25  # of the steps
_HELD_IN_RACE = 0.25  # of the pairs: a tenth tells encoders apart by chance
_AHEAD = 0.97  # of a loss
_NOTHING_LEFT = 0.01  # a loss in nats that no encoder need improve on
_ROWS = 8192
_RIDGE = 4.0  # 1 / variance of scale and shifts about 1 and 0


class Member(nn.Module):
    """One network: an encoder, layers from its features to M logits, and what these add to."""

    def __init__(self, encoder: nn.Module, num_features: int, count: int, base: Quadratic | None):
        super().__init__()
        self.encoder, self.base = encoder, base
        self.layers = relu_network((num_features, *_HIDDEN, count))
        last = self.layers[-1]
        nn.init.zeros_(last.weight)  # type: ignore[arg-type]
        nn.init.zeros_(last.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, M) of x (n, p)."""
        features = self.encoder(x)
        logits: Tensor = self.layers(features)
        return logits if self.base is None else logits + self.base(features)


@dataclass(frozen=True, eq=False)
class Classifier:
    """Trained networks and their calibration.

    Attributes:
        members: the networks, x (n, p) -> (n, M).
        encoder: the name of what they see of x.
        layout: items or series of x.
        scale: of the log probabilities, a number.
        shifts: added to them, (M,).
        losses: held-out loss of each encoder that was tried, in nats.
    """

    members: nn.ModuleList
    encoder: str
    layout: Layout
    scale: Tensor
    shifts: Tensor
    losses: dict[str, float]

    @torch.no_grad()
    def each(self, x: Tensor) -> Tensor:
        """Calibrated log probabilities of each network, under equal prior ones, (E, n, M)."""
        found = torch.stack([_log_probs(member, x) for member in self.members])
        return (self.scale * found + self.shifts).log_softmax(dim=2)

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        """Calibrated log probabilities under equal prior ones, (n, M), float64."""
        return (self.scale * self.raw(x) + self.shifts).log_softmax(dim=1)

    @torch.no_grad()
    def raw(self, x: Tensor) -> Tensor:
        """The mean of the networks' log probabilities, (n, M), float64."""
        return torch.stack([_log_probs(member, x) for member in self.members]).mean(dim=0)

    @property
    def order(self) -> int | None:
        """Of the logistic regressions that the networks begin from; None where there are none."""
        base = self.members[0].base
        return base.order if isinstance(base, Quadratic) else None

    @torch.no_grad()
    def features(self, x: Tensor) -> Tensor:
        """What the first network sees of x, (n, k)."""
        encoder = self.members[0].encoder
        return features_of(encoder, x)  # type: ignore[arg-type]


def _log_probs(member: nn.Module, x: Tensor) -> Tensor:
    return torch.cat([member(part) for part in x.split(_ROWS)]).double().log_softmax(dim=1)


def check_encoder(encoder: object) -> None:
    """Refuse what is no name of an encoder, before a simulation is paid for.

    Raises:
        ValueError: if so.
    """
    choice("auto", *FIXED, *LEARNED)(encoder, "encoder")


def train_classifier(
    pairs: Labelled,
    calibration: Labelled,
    layout: Layout,
    encoder: str | nn.Module,
    seed: int,
) -> Classifier:
    """Choose an encoder, train the networks, and calibrate them.

    Args:
        pairs: to train on.
        calibration: pairs that no network sees.
        layout: items or series of x.
        encoder: "auto", the name of one, or the user's own.
        seed: of weights, splits and batches.
    """
    counts = pairs.model.bincount()
    losses: dict[str, float] = {}
    if encoder == "auto":
        encoder, losses = _chosen(pairs, layout, seed)
    fits = [_trained(pairs, encoder, layout, _TRAINING, child_seed(seed, k)) for k in _MEMBERS]
    for _, log in fits:
        check_trained(log, "the classifier of models")
    label = encoder if isinstance(encoder, str) else OWN_ENCODER
    losses[label] = sum(log.validation_loss for _, log in fits) / len(fits)
    members = nn.ModuleList([member for member, _ in fits]).eval()
    one = torch.ones((), dtype=torch.float64)
    plain = Classifier(members, label, layout, one, torch.zeros(len(counts)).double(), losses)
    scale, shifts = calibrate(plain.raw(calibration.x), calibration.model)
    return Classifier(members, label, layout, scale, shifts, losses)


def _chosen(pairs: Labelled, layout: Layout, seed: int) -> tuple[str, dict[str, float]]:
    """The encoder with the least held-out loss, and those losses, by name.

    A learned one takes many times as long; it must be clearly ahead.
    """
    x_dim = pairs.x.shape[1]
    names = candidates(x_dim, layout)
    if len(names) == 1:
        return names[0], {}
    short = replace(_TRAINING.shortened(_RACE), validation_fraction=_HELD_IN_RACE)

    def loss_of(name: str) -> float:
        return _trained(pairs, name, layout, short, child_seed(seed, 0))[1].validation_loss

    losses = {name: loss_of(name) for name in names}
    learned = learned_for(x_dim, layout, losses)
    best = min(losses, key=lambda name: losses[name])
    if learned is not None and losses[best] > _NOTHING_LEFT:
        losses[learned] = loss_of(learned)
        best = learned if losses[learned] < _AHEAD * losses[best] else best
    return best, losses


def _trained(
    pairs: Labelled, encoder: str | nn.Module, layout: Layout, training: TrainingSettings, seed: int
) -> tuple[Member, TrainingLog]:
    """One network, begun from a logistic regression where its encoder has nothing to learn."""
    counts = pairs.model.bincount()
    shares = (counts / counts.sum()).log()
    generator = torch_generator(child_seed(seed, 2))
    weights = torch.empty(len(pairs)).exponential_(generator=generator)
    with isolated_rng(child_seed(seed, 0)):
        module = build_encoder(encoder, pairs.x, layout)
        with torch.no_grad():
            num_features = module.eval()(pairs.x[:1]).shape[1]
        seen, inputs = prepared(module, pairs.x)
        base = None
        if isinstance(seen, nn.Identity):
            _, rows = training.split(len(pairs), torch_generator(child_seed(seed, 1)))
            base = fitted(inputs[rows], pairs.model[rows], weights[rows], shares)
        member = Member(seen, num_features, len(counts), base)

    def loss(inputs: Tensor, model: Tensor, weights: Tensor) -> Tensor:
        losses = cross_entropy(member(inputs) + shares, model, reduction="none")
        return (weights * losses).mean()

    data = inputs, pairs.model, weights
    log = train(member, loss, data, training, child_seed(seed, 1))
    member.encoder = module
    return member, log


def calibrate(raw: Tensor, model: Tensor) -> tuple[Tensor, Tensor]:
    """Scale and shifts (M,) of log probabilities (n, M) that foretell the models (n,) best.

    Each model's pairs count as if they were as many; a weak prior keeps the scale near 1 and the
    shifts near 0 where the pairs say little.
    """
    counts = model.bincount(minlength=raw.shape[1])
    offset = (counts / counts.sum()).clamp_min(1e-12).log().double()
    values = torch.zeros(1 + raw.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([values], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        logits = values[0].exp() * raw + values[1:] + offset
        total = cross_entropy(logits, model, reduction="sum") + _RIDGE / 2 * values.square().sum()
        total.backward()
        return total

    optimizer.step(closure)
    found = values.detach()
    return found[0].exp(), found[1:] - found[1:].mean()
