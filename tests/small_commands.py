"""Commands whose new fits take seconds: of what stands around a fit no accuracy is asked."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

from fits import SMALL

import abi

# A flow that has learned what x_o says.
CONSTANTS = replace(SMALL, generator_training=abi.ABIConfig().generator_training)


def constants() -> abi.ABIConfig:
    """In the place of ``ABIConfig``, called for the default constants."""
    return CONSTANTS


constants.paper = abi.ABIConfig.paper  # type: ignore[attr-defined]


def command() -> ModuleType:
    """The module that asks for them."""
    import abi.cli.work.fit

    return abi.cli.work.fit
