"""A region that several posteriors share: their union, filled with the prior in its own measure."""

from __future__ import annotations

import pytest
import torch
from fits import small_flow
from torch import Tensor
from torch.distributions import Distribution, Independent, Normal, Uniform

from abi.encoders.layout import PLAIN
from abi.generators.conditional import ConditionalFlows
from abi.generators.flow_training import Conditioning
from abi.generators.support import Support
from abi.rounds.regions import drawing
from abi.rounds.regions.drawing import sample_inside
from abi.rounds.regions.placing import Placed, shared_region
from abi.rounds.regions.region import SharedRegion
from abi.training.loop import TrainingSettings
from simulators import sample_prior
from simulators.random import torch_generator

BOX = Independent(Uniform(-4 * torch.ones(2), 4 * torch.ones(2)), 1)
SLOPED = Independent(Normal(torch.zeros(2), 1.5 * torch.ones(2)), 1)
EVERYWHERE = Support.everywhere(2)
X = torch.tensor([[-2.0, -2.0], [1.0, 1.0], [1.2, 0.9], [2.0, -1.0]])  # two of them overlap


@pytest.fixture(scope="module")
def q() -> ConditionalFlows:
    """About N(x, .2^2) in each of two coordinates."""
    noise = torch_generator(0)
    x = 3.0 * torch.randn(2_000, 2, generator=noise)
    theta = x + 0.2 * torch.randn(2_000, 2, generator=noise)
    given = Conditioning(torch.nn.Identity(), x, X[0], "flat", PLAIN, False)
    training = TrainingSettings(num_steps=200)
    found = ConditionalFlows.of(small_flow(theta, EVERYWHERE, 16, training, given=given))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def shared(q: ConditionalFlows) -> SharedRegion:
    return shared_region(q, X, BOX, (), seed=1)


def test_it_holds_what_any_of_its_posteriors_does(
    q: ConditionalFlows, shared: SharedRegion
) -> None:
    theta = sample_prior(BOX, 20_000, seed=1)
    each = torch.stack([part.contains(theta) for part in shared.parts])
    assert torch.equal(shared.contains(theta), each.any(dim=0))
    assert int((each.sum(dim=0) > 1).sum()) > 0  # some lie in two of them
    for row, x in enumerate(X):
        draws = q.at(x).sample(2_000, seed=row)
        assert float(shared.contains(draws).float().mean()) > 0.985


def test_its_parts_are_the_regions_of_single_observations(
    q: ConditionalFlows, shared: SharedRegion
) -> None:
    theta = sample_prior(BOX, 20_000, seed=1)
    alone = Placed(q.at(X[3]), BOX, (), seed=1).region()
    both = alone.contains(theta), shared.parts[3].contains(theta)
    assert float((both[0] != both[1]).sum() / both[0].sum()) < 0.25  # but for chance at the edge


@pytest.mark.parametrize("prior", [BOX, SLOPED], ids=["flat", "sloped"])
def test_draws_inside_are_those_of_the_prior(
    prior: Distribution, shared: SharedRegion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each posterior's region gets the share of its prior mass, an overlap counted once."""
    plain = sample_inside(prior, (shared,), 4_000, seed=3)
    monkeypatch.setattr(drawing, "PER_DRAW", 0)
    monkeypatch.setattr(drawing, "_CHUNK", 10)  # rejection gives up at once
    weighted = sample_inside(prior, (shared,), 4_000, seed=4)
    assert len(plain) == len(weighted) == 4_000
    assert shared.contains(weighted).all()
    assert len(weighted.unique(dim=0)) == 4_000

    def shares(theta: Tensor) -> Tensor:
        return torch.stack([part.contains(theta) for part in shared.parts]).float().mean(dim=1)

    # Two samples of 4,000: a share is off by sqrt(2 * .25 / 4000) = .011 or less; resampling
    # without replacement from a pool twenty times as large adds a little.
    assert float((shares(plain) - shares(weighted)).abs().max()) < 0.06
    assert float((plain.mean(dim=0) - weighted.mean(dim=0)).abs().max()) < 0.15


def test_a_later_region_lies_inside_the_one_before(
    q: ConditionalFlows, shared: SharedRegion
) -> None:
    second = shared_region(q, X[1:], BOX, (shared,), seed=2)
    theta = sample_inside(BOX, (shared, second), 1_000, seed=3)
    assert shared.contains(theta).all()
    assert second.contains(theta).all()
