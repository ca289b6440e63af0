"""The encoders of a fitted answer, kept with it: what its flows see of any x.

One serves all flows, or each has its own: of two that learn, flows have one and the other in turn.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from simulators.random import isolated_rng

from .choice import OWN_ENCODER, build_encoder, features_of
from .layout import Layout


@dataclass(frozen=True, eq=False)
class FittedEncoders:
    """Trained encoders, one for all flows or one for each, and how to build them again.

    Attributes:
        modules: x (n, p) -> features (n, k).
        name: of the encoder, or that of a module of the user's.
        layout: items or series of x.
        x_dim: p.
    """

    modules: nn.ModuleList
    name: str
    layout: Layout
    x_dim: int

    def features(self, x: Tensor, part: int) -> Tensor:
        """What flow number ``part`` sees of x (n, p), (n, k)."""
        return features_of(self.modules[part if len(self.modules) > 1 else 0], x)

    def tensors(self) -> dict[str, Tensor]:
        """Weights and scales, by name."""
        return dict(self.modules.state_dict())

    def values(self) -> dict[str, Any]:
        """What else :meth:`restore` needs, in JSON's types."""
        about = {"name": self.name, "x_dim": self.x_dim, "num_encoders": len(self.modules)}
        return about | asdict(self.layout)

    @classmethod
    def restore(
        cls, tensors: dict[str, Tensor], values: dict[str, Any], own: nn.Module | None
    ) -> FittedEncoders | None:
        """The encoders of a file; None where they are the user's code, and it is not given."""
        name, x_dim = values["name"], values["x_dim"]
        if name == OWN_ENCODER and own is None:
            return None
        layout = Layout.of_values(values)
        with isolated_rng(0):  # the initial weights are drawn, then overwritten
            modules = nn.ModuleList(
                build_encoder(own if name == OWN_ENCODER and own else name, _blank(x_dim), layout)
                for _ in range(values["num_encoders"])
            )
        modules.load_state_dict(tensors)
        return cls(modules.eval(), name, layout, x_dim)


def _blank(x_dim: int) -> Tensor:
    return torch.zeros(2, x_dim)
