"""The classifier two-sample test: how often is a draw told from a draw of the reference?

The accuracy, over five folds, of a classifier of samples against reference, both z-scored by the
reference; 0.5 when the two are alike. ``"mlp"`` is two hidden layers of ten units a dimension, the
form Lueckmann et al. (2021) report; ``"rf"``, a random forest, is the default of sbi 0.27. Both are
sbi's own function.

Source: Lopez-Paz & Oquab (2017); Lueckmann et al. (2021).
"""

from __future__ import annotations

import warnings
from typing import Literal

from torch import Tensor

from simulators.arguments import choice
from simulators.random import child_seed, isolated_rng

from .inputs import as_pair
from .moments import deviations

_LEAST = 10  # with fewer a fold may be left without a class


def c2st(
    samples: Tensor,
    reference: Tensor,
    *,
    classifier: Literal["mlp", "rf"] = "mlp",
    seed: int = 0,
) -> float:
    """How well a classifier tells samples from exact ones: accuracy on held-out draws.

    0.5 is chance, so the best; 1 says that the two never overlap.

    Args:
        samples: draws, (n, d).
        reference: exactly as many draws of the exact posterior, (n, d).
        classifier: ``"mlp"``, a small network, or ``"rf"``, a random forest.
        seed: of folds and weights.

    Raises:
        ValueError: if the numbers of draws differ or are below 10, or the classifier is unknown.
    """
    a, b = as_pair(samples, reference)
    if len(a) != len(b):
        raise ValueError(
            f"`samples` and `reference` must be of one size; got {len(a)} and {len(b)} draws."
        )
    if len(a) < _LEAST:
        raise ValueError(
            f"`samples` and `reference` must hold at least {_LEAST} draws each for the five folds "
            f"of c2st; got {len(a)}."
        )
    choice("mlp", "rf")(classifier, "classifier")
    # In double, before sbi rounds to float32: far from 0 that would hide the scale.
    place, unit = b.mean(dim=0), deviations(b)
    a, b = (a - place) / unit, (b - place) / unit
    # scikit-learn takes seeds of 32 bits.
    fold_seed = child_seed(seed, 0) % (1 << 32)
    with isolated_rng(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a network that stops early is no news
        from sbi.utils.metrics import c2st as sbi_c2st

        accuracy = sbi_c2st(
            b.float(), a.float(), seed=fold_seed, classifier=classifier, z_score=False
        )
        return float(accuracy)
