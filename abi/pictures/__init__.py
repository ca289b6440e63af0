"""What a person sees of a posterior: its numbers in a table, pairs, predicted data, rounds.

Takes a posterior with what is known beside it (prior, truth, exact draws), gives frozen records and
matplotlib figures. The posterior hands itself in and is not imported; it, :mod:`abi.report` and the
studies import this room, so that a density, a pair and predicted data are drawn by one code each.
"""

from .pairs import plot
from .predictive import plot_predictive
from .rounds import plot_rounds
from .summary import in_a_notebook, summary

__all__ = ["in_a_notebook", "plot", "plot_predictive", "plot_rounds", "summary"]
