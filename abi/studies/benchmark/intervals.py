"""The interval of a rejection rate that holds what batches and what networks add."""

from __future__ import annotations

from validation import PowerRate


def interval(rate: PowerRate) -> tuple[float, float]:
    """Clopper-Pearson, widened to the mean ± two standard errors over seeds where that is more."""
    low, high = rate.interval
    if rate.rate is not None and rate.standard_error is not None:
        low = min(low, rate.rate - 2 * rate.standard_error)
        high = max(high, rate.rate + 2 * rate.standard_error)
    return max(low, 0.0), min(high, 1.0)
