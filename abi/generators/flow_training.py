"""The training of flows, one or several, by maximum likelihood.

An encoder that has weights goes on learning with the flow. Flows differ by their first weights and
by the rows they hold out.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from simulators.random import child_seed, torch_generator

from ..encoders.choice import OWN_ENCODER, features_of, features_of_pairs
from ..encoders.fitted import FittedEncoders
from ..encoders.layout import PLAIN, Layout
from ..training.loop import TrainingLog, TrainingSettings, check_trained, train
from .base import Progress
from .flow import FlowModel
from .flow_network import FlowSettings, build_flow
from .held import HeldOut
from .support import Support
from .trend import fit_trend

_HELD = 500  # rows held out that are looked at


@dataclass(frozen=True, eq=False)
class Conditioning:
    """What a conditional flow is given: features of x (n, p), and of x_o (p,), where it is read.

    ``name`` and ``layout`` say how the encoder is built, for files. An encoder that is not
    ``taught`` stays as it is, and what flows have ``seen`` of x, the features (n, k), is worked out
    once. The trend may be ``curved`` where one x is asked about; where all are, what bends it in
    the middle misleads at the edges. ``another`` encoder, if both learn, is every second flow's.
    """

    encoder: nn.Module
    x: Tensor
    x_o: Tensor
    name: str = OWN_ENCODER
    layout: Layout = PLAIN
    taught: bool = True
    curved: bool = True
    seen: Tensor | None = None
    another: nn.Module | None = None

    @property
    def learns(self) -> bool:
        """Whether the features change as the flow is trained: then they show no trend yet."""
        weights = self.encoder.parameters()
        return self.taught and any(part.requires_grad for part in weights)

    def ready(self, z: Tensor) -> Conditioning:
        """With what is seen of pairs with z (n, d), theta on the real line, if it stays."""
        if self.learns:
            return self
        return replace(self, seen=features_of_pairs(self.encoder.eval(), self.x, z))

    def after(self, encoder: nn.Module) -> Conditioning:
        """With the encoder that a flow has taught."""
        seen = features_of(encoder, self.x) if self.seen is None else self.seen
        return replace(self, encoder=encoder, seen=seen)


def fit_flow(
    theta: Tensor,
    support: Support,
    *,
    settings: FlowSettings,
    training: TrainingSettings,
    seed: int,
    num_flows: int = 1,
    given: Conditioning | None = None,
    on_epoch: Progress | None = None,
    known: Tensor | None = None,
) -> tuple[FlowModel, TrainingLog]:
    """Fit flows to theta (n, d), or to theta given x, read at x_o.

    Each is trained for as many passes as the rows it holds out gain by.

    Where encoders learn, each does so with the first flow that has it, and others see x through it.
    (On the queue, 40,000 calls, two encoders in place of one gained .02 nats at x like each of two
    x_o, as much as twice the passes had.)

    Args:
        theta: (n, d).
        support: of theta.
        settings: of each flow.
        training: likewise.
        seed: of weights, batches and what is held out.
        num_flows: as many.
        given: what they are given of x.
        on_epoch: told how much of the training is done.
        known: which rows the trend may see, (n,); all when omitted.

    Returns:
        The model, and the log of its best flow.
    """
    z, settings = support.to_real(theta), settings.for_rows(len(theta))
    given = None if given is None else given.ready(z)
    seen = None if given is None else given.seen
    known = torch.ones(len(z), dtype=torch.bool) if known is None else known
    shown = None if seen is None else seen[known]
    trend, of_others = fit_trend(z[known], shown, curved=given is None or given.curved)
    rest = trend.to_rest(z, seen)
    left_out = rest.masked_scatter(known[:, None], of_others)
    rest, left_out = (varied(rows, z, child_seed(seed, num_flows)) for rows in (rest, left_out))

    def fit_part(given: Conditioning | None, part: int) -> _Fitted:
        def on_part(share: float) -> None:
            if on_epoch is not None:
                on_epoch((part + share) / num_flows)

        return _fit_one(rest, left_out, settings, training, child_seed(seed, part), given, on_part)

    in_turn = [given]
    if given is not None and given.another is not None:
        in_turn.append(replace(given, encoder=given.another))
    fits = []
    for part in range(num_flows):
        begun = in_turn[part % len(in_turn)]
        fits.append(fit_part(begun, part))
        if begun is not None:
            in_turn[part % len(in_turn)] = begun.after(fits[part].encoder)
    flows = nn.ModuleList([fit.flow for fit in fits])
    context = torch.stack([fit.context for fit in fits]) if given else None
    held = tuple(fit.held for fit in fits)
    encoders = None
    if given is not None:
        modules = nn.ModuleList([fit.encoder for fit in fits][: 1 if len(in_turn) == 1 else None])
        encoders = FittedEncoders(modules, given.name, given.layout, given.x.shape[1])
    model = FlowModel(flows, support, trend, context, settings, held, encoders)
    best = min((fit.log for fit in fits), key=lambda log: log.validation_loss)
    check_trained(best, "the flow")
    return model, best


def first_split(seed: int) -> int:
    """The seed by which the first of the flows fitted at ``seed`` holds rows out."""
    return _split(child_seed(seed, 0))


def rows_held(num_rows: int, training: TrainingSettings, split: int) -> Tensor:
    """Those of the rows that a split holds out which are looked at again, (m,)."""
    return training.split(num_rows, torch_generator(split))[0][:_HELD]


def _split(seed: int) -> int:
    return child_seed(seed, 1)


def varied(rest: Tensor, z: Tensor, seed: int) -> Tensor:
    """Rows (n, d), with normal ones for a parameter that does not vary in z (n, d).

    It would have a likelihood without bounds, which alone would be learned.
    """
    noise = torch.randn(rest.shape, generator=torch_generator(seed))
    return torch.where((z == z[0]).all(dim=0), noise, rest)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """One flow, what it sees of x_o (nothing without a context), and what its training did."""

    flow: nn.Module
    encoder: nn.Module
    context: Tensor
    log: TrainingLog
    held: HeldOut


def _fit_one(
    rest: Tensor,
    left_out: Tensor,
    settings: FlowSettings,
    training: TrainingSettings,
    seed: int,
    given: Conditioning | None,
    on_epoch: Progress,
) -> _Fitted:
    from .compiled.training import trainable

    whole: nn.Module = nn.Identity()
    encoder = whole
    inputs: tuple[Tensor, ...] = ()
    width = 0
    if given is not None:
        whole = copy.deepcopy(given.encoder)
        encoder, data = (whole, given.x) if given.seen is None else (nn.Identity(), given.seen)
        inputs, width = (data,), features_of(encoder.eval(), data[:1]).shape[1]
    flow = build_flow(rest.shape[1], width, settings, child_seed(seed, 0))
    quick = trainable(flow, training.device)

    def loss(rows: Tensor, *inputs: Tensor) -> Tensor:
        context = encoder(*inputs) if inputs else None
        return -quick.log_prob(rows, context).mean()

    both = nn.ModuleList([encoder, quick])
    # An encoder that learns with the flow leaves its gradient to autograd.
    descend = quick.descend if isinstance(encoder, nn.Identity) else None
    log = train(both, loss, (rest, *inputs), training, _split(seed), on_epoch, descend=descend)
    quick.write_to(flow)
    flow.eval()
    at = torch.empty(0) if given is None else features_of(whole, given.x_o[None])[0]
    held = rows_held(len(rest), training, _split(seed))
    seen = features_of(encoder, inputs[0][held]) if inputs else None
    return _Fitted(
        flow, whole.eval(), at, log, HeldOut(rest[held], left_out[held], seen, child_seed(seed, 2))
    )
