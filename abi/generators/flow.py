"""Neural spline flows on the prior's support, one or several, with or without a context.

Draws are mapped to the real line by the support, standardised, and given to a zuko flow trained
by maximum likelihood: an affine autoregressive map, which follows a posterior over orders of
magnitude of its scale, then spline maps, which bend what is left. With a context, features of x,
the flow is conditional, theta | x, and the model is read at x_o alone; an encoder that has weights
goes on learning with the flow, a copy for each. Several flows that start from different weights and
hold out different rows are mixed in equal parts: the mixture's log score is at least the mean of
theirs, and where they disagree it is wider.

Source: Durkan et al. (2019), "Neural spline flows"; Papamakarios et al. (2017) for the affine map;
zuko's implementation.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from simulators.random import child_seed, isolated_rng, torch_generator

from ..encoders import features_of, prepared
from ..support import Support
from ..training import TrainingLog, TrainingSettings, train
from .base import GeneratorState, Progress

_MOST_FLOWS = 2  # times those asked for, where few passes leave the time
_HELD, _DRAWS = 500, 32  # rows held out that are looked at, and draws at each
_ROWS = 4_000  # looked at together: the splines of 20 parameters take over 100 kB a row


@dataclass(frozen=True)
class FlowSettings:
    """Size of a flow: spline transforms after the affine one, widths of their networks, bins."""

    num_transforms: int = 2
    hidden: tuple[int, ...] = (128, 128)
    num_bins: int = 8


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Standardised theta (n, d) that one flow was not trained on, their context, and a seed."""

    rows: Tensor
    context: Tensor | None
    seed: int


@dataclass(frozen=True, eq=False)
class FlowModel:
    """Fitted flows in equal parts; conditional ones are read at ``context``, a row each, (M, k).

    ``held`` are theta held out from the training of each flow. They are not kept in files.
    """

    flows: nn.ModuleList
    support: Support
    center: Tensor
    scale: Tensor
    context: Tensor | None
    settings: FlowSettings
    held: tuple[_HeldOut, ...] = ()

    @torch.no_grad()
    def sample(self, num_samples: int, seed: int) -> Tensor:
        """Draw (num_samples, d)."""
        with isolated_rng(seed):
            parts = [
                self._distribution(self.flows[part], part).sample((count,))
                for part, count in enumerate(self._shares(num_samples))
                if count
            ]
            z = torch.cat(parts) if parts else torch.empty(0, len(self.center))
            if len(self.flows) > 1:
                z = z[torch.randperm(len(z))]
        return self.support.from_real(z * self.scale + self.center)

    @torch.no_grad()
    def log_prob(self, theta: Tensor) -> Tensor:
        """Log density at theta (n, d) -> (n,), -inf outside the support."""
        out = torch.full((len(theta),), -torch.inf)
        inside = self.support.contains(theta)
        if not inside.any():  # zuko refuses empty batches
            return out
        z = self.support.to_real(theta[inside])
        standard = (z - self.center) / self.scale
        values = [self._log_density(part, standard) for part in range(len(self.flows))]
        value = torch.stack(values).logsumexp(dim=0) - math.log(len(self.flows))
        out[inside] = value - torch.log(self.scale).sum() - self.support.log_jacobian(z)
        return out

    @torch.no_grad()
    def sample_wide(self, num_samples: int, stretch: float, seed: int) -> tuple[Tensor, Tensor]:
        """Draw (num_samples, d) with the base stretched, and the log density of these draws.

        A flow maps N(0, I) to theta; N(0, stretch^2 I) through the same map covers its
        high-density region far more evenly. One flow, the first, is used.
        """
        generator = torch_generator(seed)
        distribution = self._distribution(self.flows[0], 0)
        base = stretch * torch.randn(num_samples, len(self.center), generator=generator)
        normal = -0.5 * (base / stretch) ** 2 - math.log(stretch) - 0.5 * math.log(2.0 * math.pi)
        parts = [distribution.transform.inv.call_and_ladj(rows) for rows in base.split(_ROWS)]
        standard, log_stretching = (torch.cat(values) for values in zip(*parts, strict=True))
        z = standard * self.scale + self.center
        log_density = normal.sum(dim=1) - log_stretching - torch.log(self.scale).sum()
        return self.support.from_real(z), log_density - self.support.log_jacobian(z)

    @torch.no_grad()
    def drops(self) -> Tensor | None:
        """How far each held-out theta's log density lies below the median of draws at its x, (n,).

        Nothing where none are known. Worked out when asked for: regions alone need it.
        """
        if not self.held:
            return None
        pairs = zip(self.flows, self.held, strict=True)
        return torch.cat([self._drops(flow, held) for flow, held in pairs])

    def state(self) -> GeneratorState:
        """Weights, scaling, support and context."""
        tensors = {f"flows.{name}": value for name, value in self.flows.state_dict().items()}
        tensors |= {"center": self.center, "scale": self.scale}
        tensors |= {"lower": self.support.lower, "upper": self.support.upper}
        if self.context is not None:
            tensors["context"] = self.context
        values = asdict(self.settings) | {"num_flows": len(self.flows)}
        return GeneratorState("flow", tensors, values)

    def _drops(self, flow: nn.Module, held: _HeldOut) -> Tensor:
        distribution: Any = flow(held.context)
        shape = () if held.context is not None else (len(held.rows),)

        def log_density(rows: Tensor) -> Tensor:
            jacobian = self.support.log_jacobian(rows * self.scale + self.center)
            value: Tensor = distribution.log_prob(rows) - jacobian
            return value

        with isolated_rng(held.seed):
            typical = torch.stack([log_density(distribution.sample(shape)) for _ in range(_DRAWS)])
        return typical.median(dim=0).values - log_density(held.rows)

    def _log_density(self, part: int, standard: Tensor) -> Tensor:
        from .splines import quickened

        distribution = self._distribution(quickened(self.flows[part]), part)
        return torch.cat([distribution.log_prob(rows) for rows in standard.split(_ROWS)])

    def _distribution(self, flow: nn.Module, part: int) -> Any:
        return flow(None if self.context is None else self.context[part])

    def _shares(self, num_samples: int) -> list[int]:
        """How many draws each flow gives: equal parts, the first ones the remainder."""
        share, rest = divmod(num_samples, len(self.flows))
        return [share + (part < rest) for part in range(len(self.flows))]


@dataclass(frozen=True, eq=False)
class Conditioning:
    """What a conditional flow is given: features of x (n, p), and of x_o (p,), where it is read."""

    encoder: nn.Module
    x: Tensor
    x_o: Tensor


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
) -> tuple[FlowModel, TrainingLog]:
    """Fit flows to theta (n, d), or to theta given x, read at x_o.

    Of several flows, the first tries ``training.least_epochs`` passes over the rows and upwards.
    Where fewer than all are best, there are as many more flows as the time saved allows, up to
    twice ``num_flows``: on the wave, six flows of 12 passes are .12 nats ahead of three of 24, as
    errors of single flows average out.

    Returns:
        The model, and the log of its best flow.
    """
    z = support.to_real(theta)
    center, scale = z.mean(dim=0), z.std(dim=0).clamp(min=1e-9)
    standard = (z - center) / scale

    def fit_part(part: int, passes: int, begin: float, end: float) -> _Fitted:
        def on_part(share: float) -> None:
            if on_epoch is not None:
                on_epoch(begin + (end - begin) * share)

        shorter = replace(training, max_epochs=passes)
        return _fit_one(standard, settings, shorter, child_seed(seed, part), given, on_part)

    whole = training.passes(len(theta))
    lengths = _lengths(whole, training.least_epochs) if num_flows > 1 else [whole]
    first = _fit_first(partial(fit_part, 0), lengths, 1.0 / num_flows)
    passes = first.log.epochs
    others = min(_MOST_FLOWS * num_flows, num_flows * whole // passes) - 1
    ends = torch.linspace(1.0 / num_flows, 1.0, others + 1).tolist()
    spans = enumerate(pairwise(ends), start=1)
    fits = [first, *(fit_part(part, passes, *span) for part, span in spans)]
    flows = nn.ModuleList([fit.flow for fit in fits])
    context = torch.stack([fit.context for fit in fits]) if given else None
    held = tuple(fit.held for fit in fits)
    model = FlowModel(flows, support, center, scale, context, settings, held)
    return model, min((fit.log for fit in fits), key=lambda log: log.validation_loss)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """One flow, what it sees of x_o (nothing without a context), and what its training did."""

    flow: nn.Module
    context: Tensor
    log: TrainingLog
    held: _HeldOut


def _lengths(whole: int, least: int) -> list[int]:
    """The passes to try, each twice those before it, the most ``whole``."""
    lengths = [whole]
    while lengths[0] >= 2 * least:
        lengths.insert(0, lengths[0] // 2)
    return lengths


def _fit_first(
    fit: Callable[[int, float, float], _Fitted], lengths: list[int], end: float
) -> _Fitted:
    """The first flow, its passes over the rows increased as long as that helps.

    How many passes few rows bear depends on the model: a wave's posterior near x_o is learned in
    8, that of a queue in 50, and each loses .2 nats by the number of the other.
    """
    spans = list(pairwise(torch.linspace(0.0, end, len(lengths) + 1).tolist()))
    best = fit(lengths[0], *spans[0])
    for passes, span in zip(lengths[1:], spans[1:], strict=True):
        longer = fit(passes, *span)
        if longer.log.validation_loss >= best.log.validation_loss:
            break
        best = longer
    return best


def _fit_one(
    standard: Tensor,
    settings: FlowSettings,
    training: TrainingSettings,
    seed: int,
    given: Conditioning | None,
    on_epoch: Progress,
) -> _Fitted:
    from .splines import quickened

    encoder: nn.Module = nn.Identity()
    inputs: tuple[Tensor, ...] = ()
    width = 0
    if given is not None:
        whole = copy.deepcopy(given.encoder)
        encoder, features = prepared(whole, given.x)
        inputs, width = (features,), features_of(encoder, features[:1]).shape[1]
    flow = _build(standard.shape[1], width, settings, child_seed(seed, 0))
    quick = quickened(flow, training.device)

    def loss(rows: Tensor, *inputs: Tensor) -> Tensor:
        context = encoder(*inputs) if inputs else None
        value: Tensor = -quick(context).log_prob(rows).mean()
        return value

    both = nn.ModuleList([encoder, quick])
    log = train(both, loss, (standard, *inputs), training, child_seed(seed, 1), on_epoch)
    flow.load_state_dict(quick.state_dict())
    flow.eval()
    at = torch.empty(0) if given is None else features_of(whole, given.x_o[None])[0]
    held = training.split(len(standard), torch_generator(child_seed(seed, 1)))[0][:_HELD]
    seen = features_of(encoder, inputs[0][held]) if inputs else None
    return _Fitted(flow, at, log, _HeldOut(standard[held], seen, child_seed(seed, 2)))


def restore_flow(state: GeneratorState) -> FlowModel:
    """The model behind a state."""
    values: dict[str, Any] = dict(state.values)
    num_flows = values.pop("num_flows")
    settings = FlowSettings(**(values | {"hidden": tuple(values["hidden"])}))
    tensors = state.tensors
    context = tensors.get("context")
    if context is not None:
        context = context.expand(num_flows, -1)  # before version 3 all flows saw the same
    width = 0 if context is None else context.shape[1]
    flows = nn.ModuleList(
        [_build(len(tensors["center"]), width, settings, seed=0) for _ in range(num_flows)]
    )
    weights = {name[6:]: value for name, value in tensors.items() if name.startswith("flows.")}
    flows.load_state_dict(weights)
    flows.eval()
    support = Support(tensors["lower"], tensors["upper"])
    return FlowModel(flows, support, tensors["center"], tensors["scale"], context, settings)


def _build(theta_dim: int, context_dim: int, settings: FlowSettings, seed: int) -> nn.Module:
    import zuko

    with isolated_rng(seed):
        affine = zuko.flows.MaskedAutoregressiveTransform(
            theta_dim, context_dim, hidden_features=settings.hidden
        )
        splines: Any = zuko.flows.NSF(
            features=theta_dim,
            context=context_dim,
            transforms=settings.num_transforms,
            hidden_features=settings.hidden,
            bins=settings.num_bins,
        )
        flow: nn.Module = zuko.flows.Flow([affine, *splines.transform.transforms], splines.base)
    return flow
