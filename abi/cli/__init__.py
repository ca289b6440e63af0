"""The command line ``abi``: the one place where the three packages meet."""

from .app import main

__all__ = ["main"]
