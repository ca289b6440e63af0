"""A power map as its file holds it."""

from __future__ import annotations

from typing import Any

MAP: dict[str, Any] = {
    "format": "power_map",
    "version": 1,
    "tests": ["sbc", "c2st", "one's own"],
    "failures": ["too wide", "correlated <0.7>"],
    "cells": {
        "too wide": {
            "sbc": {"strength": 0.2, "seconds": 0.02},
            "c2st": {"strength": 0.5, "seconds": 1.25},
            "one's own": {"strength": 0.25, "seconds": 3},
        },
        "correlated <0.7>": {
            "sbc": {"strength": None, "seconds": 0.02},
            "c2st": {"strength": 12, "seconds": 1.25},
        },
    },
}
