"""The answer's flows and a likelihood learned beside them, as one distribution.

Takes fitted flows and the pairs that they were fitted to, gives their log-linear pool, or the flows
alone where theta held out gain nothing. Imports the rooms below it and `abi.encoders`.
"""

from typing import TYPE_CHECKING

from simulators.lazy import lazily

if TYPE_CHECKING:
    from .model import PooledFlows, restore_pooled
    from .power import pooled
else:  # laws of many forms, which the first fit needs, and nobody before it
    __getattr__, __dir__ = lazily(
        __name__, {"PooledFlows": "model", "pooled": "power", "restore_pooled": "model"}
    )

__all__ = ["PooledFlows", "pooled", "restore_pooled"]
