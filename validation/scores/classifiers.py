r"""One small classifier, and many of them trained at once.

A permutation test retrains its classifier for every permutation. The networks have one
architecture and see the same features, only with other labels; so all of them are one network
whose weights carry a leading axis m,

    h_m = relu(x W1_m + b1_m),  h'_m = relu(h_m W2_m + b2_m),  f_m = h'_m W3_m + b3_m,

and every step of Adam is three batched matrix products for the lot. They share minibatches and,
where asked, initial weights, which keeps a permutation test exact: the statistic is then one
fixed function of the labels. A network that has stopped improving leaves the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from simulators.arguments import FRACTION, POSITIVE, choice, count, device_here, layers, settle
from simulators.random import torch_generator

from ..seeds import part_seed
from .stacked import Adam, Backpropagation, even_widths, forward, initial_weights

_ROWS_AT_ONCE = 2_000


@dataclass(frozen=True)
class Training:
    """How a classifier is built and trained; the defaults suit a few thousand rows."""

    hidden: tuple[int, ...] = (64, 64)
    """Width of each hidden layer; none for a linear classifier."""
    learning_rate: float = 1e-3
    """Of Adam."""
    batch_size: int = 200
    """Rows in a step."""
    max_epochs: int = 200
    """Most passes over the training rows."""
    patience: int = 20
    """Passes without a better score on held-out rows before training stops."""
    validation_fraction: float = 0.1
    """Share of the rows held out for that score."""
    stop_on: Literal["loss", "accuracy"] = "loss"
    """The score: the cross-entropy, or the accuracy as in scikit-learn."""
    device: str = "cpu"
    """Where the networks are, such as "cuda"; results come on the CPU."""

    def __post_init__(self) -> None:
        settle(
            self,
            hidden=layers(),
            learning_rate=POSITIVE,
            batch_size=count(),
            max_epochs=count(),
            patience=count(),
            validation_fraction=FRACTION,
            stop_on=choice("loss", "accuracy"),
            device=device_here,
        )


@dataclass(frozen=True, eq=False)
class Classifiers:
    """M trained networks over the same features."""

    weights: tuple[Tensor, ...]
    """One (M, in, out) a layer; hidden layers may have units of weight 0 (:func:`.even_widths`)."""
    biases: tuple[Tensor, ...]
    """One (M, 1, out) a layer."""
    shift: Tensor
    """Subtracted from the features, (f,)."""
    scale: Tensor
    """Divides the features, (f,)."""

    def logits(self, features: Tensor) -> Tensor:
        """Log-odds of class 1 for features (n, f): (M, n), or (M, n, G) with G > 1 outputs.

        They are computed where the networks are, and come back to where the features are.
        """
        scaled = (features.to(self.shift.device) - self.shift) / self.scale
        chunks = scaled.split(_ROWS_AT_ONCE)
        parts = [forward(chunk, self.weights, self.biases) for chunk in chunks]
        values = torch.cat(parts, dim=1).to(features.device)
        return values.squeeze(-1) if values.shape[-1] == 1 else values

    def probabilities(self, features: Tensor) -> Tensor:
        """Probability of class 1 for features (n, f): (M, n), or (M, n, G)."""
        return torch.sigmoid(self.logits(features))


def fit_classifiers(
    features: Tensor,
    labels: Tensor,
    *,
    groups: Tensor | None = None,
    training: Training | None = None,
    num_inits: int = 1,
    scaling: tuple[Tensor, Tensor] | None = None,
    seed: int = 0,
) -> Classifiers:
    """Train M networks on the same features with M sets of labels.

    Args:
        features: (n, f), finite; (M, n, f) where each network has its own.
        labels: 0 or 1, one row a network, (M, n); (M, n, G) for G labels a row.
        groups: rows of one group (a pair that shares its x) stay on one side of the split into
            training and validation, (n,); every row its own group when omitted.
        training: architecture and schedule.
        num_inits: how many different initial networks there are; network m starts from number
            m modulo ``num_inits``.
        scaling: shift (f,) and scale (f,) of the features; their mean and standard deviation when
            omitted (a constant column is only centred).
        seed: of initial weights, split and minibatches.

    Raises:
        ValueError: if the rows are too few to train and validate.
    """
    training = training or Training()
    targets = labels if labels.ndim == 3 else labels[..., None]
    shift, scale = (part.to(training.device) for part in scaling or feature_scaling(features))
    scaled = (features.to(training.device) - shift) / scale
    learn, validate = _split(features.shape[-2], groups, training.validation_fraction, seed)
    layers = (features.shape[-1], *training.hidden, targets.shape[-1])
    first = even_widths(initial_weights(layers, num_inits, part_seed(seed, 1)))
    start = [value[torch.arange(len(targets)) % num_inits].clone() for value in first]
    batches = _minibatches(learn, training, part_seed(seed, 2))
    trained = _train(
        scaled, targets.to(scaled), [value.to(scaled) for value in start],
        batches, validate.to(scaled.device), training,
    )  # fmt: skip
    half = len(trained) // 2
    return Classifiers(tuple(trained[:half]), tuple(trained[half:]), shift, scale)


def feature_scaling(features: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (f,) and standard deviation (f,); 1 in place of the deviation of a constant column."""
    deviation = features.std(dim=0)
    constant = deviation <= 1e-6 * features.abs().amax(dim=0)
    return features.mean(dim=0), torch.where(constant, torch.ones_like(deviation), deviation)


def _train(
    features: Tensor,
    targets: Tensor,
    parameters: list[Tensor],
    epochs: Iterator[Sequence[Tensor]],
    validate: Tensor,
    training: Training,
) -> list[Tensor]:
    """Train until every network has stopped; the weights of each network's best epoch."""
    best = [value.clone() for value in parameters]
    device = features.device
    best_score = torch.full((len(targets),), -torch.inf, device=device)
    waited = torch.zeros(len(targets), dtype=torch.long, device=device)
    active = torch.arange(len(targets), device=device)
    optimiser = Adam.start(parameters, training.learning_rate)
    backward = Backpropagation()

    def data(rows: Tensor) -> tuple[Tensor, Tensor]:
        return features.index_select(-2, rows), targets.index_select(1, rows)

    for batches in epochs:
        for rows in batches:  # drawn on the CPU: the same on every device
            step = backward.gradients(*data(rows.to(device)), optimiser.parameters)
            optimiser.step(*step)
        score = _score(*data(validate), optimiser.parameters, training.stop_on)
        improved = score > best_score[active]
        # scikit-learn's tolerance: an improvement below it does not buy more patience.
        enough = score > best_score[active] + 1e-4
        waited[active] = torch.where(enough, 0, waited[active] + 1)
        chosen = active[improved]
        best_score[chosen] = score[improved]
        for kept, value in zip(best, optimiser.parameters, strict=True):
            kept[chosen] = value[improved]
        running = waited[active] < training.patience
        if not running.all():
            active, optimiser = active[running], optimiser.keep(running)
            targets = targets[running]
            features = features if features.ndim == 2 else features[running]
        if len(active) == 0:
            break
    return best


def _score(features: Tensor, labels: Tensor, parameters: list[Tensor], kind: str) -> Tensor:
    """Validation score of each network (M,), larger is better."""
    half = len(parameters) // 2
    outputs = forward(features, parameters[:half], parameters[half:])
    if kind == "accuracy":
        return ((outputs > 0) == (labels > 0.5)).float().mean(dim=(1, 2))
    losses = functional.binary_cross_entropy_with_logits(outputs, labels, reduction="none")
    return -losses.mean(dim=(1, 2))


def _split(rows: int, groups: Tensor | None, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Training and validation rows; no group is on both sides."""
    groups = torch.arange(rows) if groups is None else groups
    names = groups.unique()
    held = max(1, round(fraction * len(names)))
    if len(names) - held < 2:
        raise ValueError(
            f"a classifier needs at least 3 independent training rows; got {len(names)}. Draw more "
            "pairs with simulators.sample_joint, or give the training part a larger share."
        )
    order = names[torch.randperm(len(names), generator=torch_generator(part_seed(seed, 0)))]
    validating = torch.isin(groups, order[:held])
    return (~validating).nonzero()[:, 0], validating.nonzero()[:, 0]


def _minibatches(rows: Tensor, training: Training, seed: int) -> Iterator[Sequence[Tensor]]:
    """The minibatches of each epoch, the same for all networks."""
    generator = torch_generator(seed)
    for _ in range(training.max_epochs):
        yield rows[torch.randperm(len(rows), generator=generator)].split(training.batch_size)
