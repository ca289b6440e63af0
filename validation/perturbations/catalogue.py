"""All failures of the laboratory by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from .gaussians.families import NPTBENCH, nptbench
from .task import Failure
from .tree_law import tree
from .turned_boundary import bivariate

FAILURES: Mapping[str, Callable[..., Failure]] = MappingProxyType(
    {
        **{name: partial(nptbench, name) for name in NPTBENCH},
        **{f"{name}_curved": partial(nptbench, name, curved=True) for name in NPTBENCH},
        "tree": tree,
        "bivariate": bivariate,
    }
)
"""Name -> function that gives the :class:`Failure`; dimensions (3, 3) unless told others."""


def find_failure(family: Failure | str) -> Failure:
    """The failure of this name in :data:`FAILURES`; a :class:`Failure` is passed on.

    Raises:
        ValueError: if there is none of that name.
    """
    if isinstance(family, Failure):
        return family
    if not isinstance(family, str) or family not in FAILURES:
        raise ValueError(f"`family` must be one of {', '.join(FAILURES)}; got {family!r}.")
    return FAILURES[family]()
