"""From predicted probabilities at each x_o to a result: statistics, p-values, max-T, PP data."""

from __future__ import annotations

import torch
from torch import Tensor

from ..scores.uniformity import permutation_p
from .result import ValidationResult

_LEVELS = 101


def local_result(
    method: str, columns: list[Tensor], draws: Tensor, x_o: Tensor, seed: int
) -> ValidationResult:
    """Make the result of L-C2ST from the classifiers' probabilities.

    Args:
        method: name of the test.
        columns: for each x_o, probabilities of class 1, (folds, 1 + num_nulls, N_v).
        draws: where they were read, (N_v, m, d).
        x_o: the observations, (m, p).
        seed: of the whole test.
    """
    values = torch.stack(
        [(column - 0.5).square().mean(dim=(0, 2)) for column in columns], dim=1
    ).double()
    details = {
        "x_o": x_o,
        "theta_o": draws,
        "probabilities": torch.stack([column[:, 0].mean(dim=0) for column in columns], dim=1),
        "pp": pp_curves(columns[0]),
    }
    return max_t_result(method, values, seed, details)


def max_t_result(
    method: str, values: Tensor, seed: int, details: dict[str, object]
) -> ValidationResult:
    r"""Combine statistics (1 + num_nulls, m), the observed first, over the m observations.

    Each column is standardised by the mean and deviation of all its 1 + num_nulls values, which
    treats observed and null alike; with Z the result, the adjusted p-value of x_o number k is
    ``(1 + #{h : max_j Z_hj >= Z_0k}) / (1 + num_nulls)``.
    """
    spread = values.std(dim=0)
    standard = (values - values.mean(dim=0)) / torch.where(spread > 0, spread, 1.0)
    largest = standard[1:].max(dim=1).values
    raw = [permutation_p(column[0], column[1:]) for column in values.T]
    adjusted = [permutation_p(value, largest) for value in standard[0]]
    single = values.shape[1] == 1
    return ValidationResult(
        method,
        float(values[0, 0] if single else standard[0].max()),
        min(adjusted),
        seed,
        values[1:, 0] if single else largest,
        details
        | {"statistics": values[0].tolist(), "p_values": raw, "p_values_adjusted": adjusted},
    )


def pp_curves(probabilities: Tensor, alpha: float = 0.05) -> dict[str, Tensor]:
    """Distribution function of the class-0 probabilities, with the null's pointwise 1 - alpha band.

    Args:
        probabilities: of class 1, (folds, 1 + num_nulls, N_v).
        alpha: level of the band.

    Returns:
        ``levels``, ``observed``, ``low`` and ``high``, each (101,).

    Source: Linhart, Gramfort & Rodrigues (2023), Algorithm 5.
    """
    levels = torch.linspace(0, 1, _LEVELS)
    ordered = (1 - probabilities.mean(dim=0)).sort(dim=1).values
    counts = torch.searchsorted(ordered, levels.expand(len(ordered), -1).contiguous(), right=True)
    curves = counts / ordered.shape[1]
    low, high = curves[1:].quantile(torch.tensor([alpha / 2, 1 - alpha / 2]), dim=0)
    return {"levels": levels, "observed": curves[0], "low": low, "high": high}
