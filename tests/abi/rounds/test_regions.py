"""Truncated proposals: regions hold the posterior, and what is drawn inside is the prior."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
import torch
from fits import small_flow
from torch import Tensor
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal, Uniform

from abi.encoders.item import InputScaling
from abi.generators.flow import FlowModel
from abi.generators.flow_training import Conditioning
from abi.generators.mixture import fit_mixture
from abi.generators.support import Support
from abi.rounds.regions import drawing, placing
from abi.rounds.regions.drawing import sample_inside
from abi.rounds.regions.finding import bounds, share_inside, worthwhile
from abi.rounds.regions.leaning import leaned_on, leaning_on, refilled
from abi.rounds.regions.placing import Placed
from abi.rounds.regions.region import Region, inside_all
from abi.training.loop import TrainingSettings
from simulators.random import torch_generator

BOX = Independent(Uniform(-4 * torch.ones(2), 4 * torch.ones(2)), 1)
BOX_DRAWS = 8 * torch.rand(500, 2, generator=torch_generator(9)) - 4
SLOPED = Independent(Normal(torch.zeros(2), torch.ones(2)), 1)
EVERYWHERE = Support(torch.full((2,), -torch.inf), torch.full((2,), torch.inf))


class Sampler:
    """A prior that can only be sampled."""

    def __init__(self, prior: torch.distributions.Distribution):
        self.prior = prior

    def sample(self, sample_shape: tuple[int]) -> Tensor:
        return self.prior.sample(sample_shape)


def narrow_flow(mean: float = 0.5, sd: float = 0.2, seed: int = 0) -> FlowModel:
    """A flow of N(mean, sd^2) in each of two coordinates."""
    theta = mean + sd * torch.randn(2_000, 2, generator=torch_generator(seed))
    return small_flow(theta, EVERYWHERE, 16, TrainingSettings(num_steps=150), seed=seed)


@pytest.fixture(scope="module")
def flow() -> FlowModel:
    return narrow_flow()


def test_a_region_holds_its_model_s_draws_and_little_else(flow: FlowModel) -> None:
    region = Placed(flow, BOX, (), seed=1).region()
    draws = flow.sample(20_000, seed=2)
    assert float(region.contains(draws).float().mean()) > 0.99
    # Without theta held out, by the model's own word.
    own = Placed(replace(flow, held=()), BOX, (), seed=1).region()
    assert abs(float(own.contains(draws).float().mean()) - (1.0 - placing.OUTSIDE)) < 1e-3
    far = torch.tensor([[0.5, 3.0], [-3.0, 0.5], [3.9, 3.9]])
    assert not region.contains(far).any()


def test_theta_held_out_draw_the_edge_nearer_and_never_farther(
    flow: FlowModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of N(mean, sd^2) in two coordinates the log density drops by half a squared radius."""
    own = Placed(replace(flow, held=()), BOX, (), seed=1).region()
    for count, drop in ((199, 0.0), (200, 50.0)):  # too few; farther than the flow says
        drops = torch.full((count,), drop)
        monkeypatch.setattr(FlowModel, "drops", lambda model, drops=drops: drops)
        same = Placed(flow, BOX, (), seed=1).region()
        assert same.log_threshold == own.log_threshold
    drop = 1.0  # two nats farther, and the median itself is log(2) below the peak
    monkeypatch.setattr(FlowModel, "drops", lambda model: torch.full((200,), drop))
    nearer = Placed(flow, BOX, (), seed=1).region()
    outside = 1.0 - float(nearer.contains(flow.sample(20_000, seed=2)).float().mean())
    assert outside == pytest.approx(math.exp(-(drop + 2.0 + math.log(2.0))), rel=0.5)
    assert bool((nearer.upper - nearer.lower < own.upper - own.lower).all())


@pytest.mark.parametrize("prior", [BOX, SLOPED], ids=["flat", "sloped"])
def test_draws_inside_are_those_of_the_prior(
    prior: torch.distributions.Distribution, flow: FlowModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weighted resampling of the stretched flow against plain rejection from the prior."""
    region = Placed(flow, prior, (), seed=1).region()
    plain = sample_inside(prior, (region,), 3_000, seed=3)
    monkeypatch.setattr(drawing, "PER_DRAW", 0)
    monkeypatch.setattr(drawing, "_CHUNK", 10)  # rejection gives up at once
    weighted = sample_inside(prior, (region,), 3_000, seed=4)
    assert len(plain) == len(weighted) == 3_000
    assert region.contains(plain).all()
    assert region.contains(weighted).all()
    assert len(weighted.unique(dim=0)) == 3_000  # no theta comes twice
    # Means and sds of the two agree to a few Monte-Carlo errors; q itself is far narrower.
    spread = plain.std(dim=0)
    assert ((plain.mean(dim=0) - weighted.mean(dim=0)).abs() / spread).max() < 0.12
    assert ((weighted.std(dim=0) / spread) - 1).abs().max() < 0.08
    assert (spread > 1.4 * flow.sample(3_000, seed=5).std(dim=0)).all()


def test_a_prior_that_can_only_be_sampled_gets_a_region_its_draws_fill(flow: FlowModel) -> None:
    wide = Independent(Uniform(-400 * torch.ones(2), 400 * torch.ones(2)), 1)
    with_density = Placed(flow, wide, (), seed=1).region()
    without = Placed(flow, Sampler(wide), (), seed=1).region()
    assert without.log_threshold < with_density.log_threshold
    draws = flow.sample(5_000, seed=2)
    assert without.contains(draws[with_density.contains(draws)]).all()  # larger, not elsewhere
    inside = sample_inside(Sampler(wide), (without,), 200, seed=3)
    assert len(inside) == 200
    assert without.contains(inside).all()


def test_regions_are_nested() -> None:
    first = Placed(narrow_flow(0.5, 0.6), BOX, (), seed=1).region()
    second = Placed(narrow_flow(0.8, 0.2, seed=5), BOX, (first,), seed=2).region()
    theta = sample_inside(BOX, (first, second), 1_000, seed=3)
    assert first.contains(theta).all()
    assert second.contains(theta).all()
    both = inside_all((first, second), theta)
    assert torch.equal(both, first.contains(theta) & second.contains(theta))
    assert inside_all((), theta).all()


@dataclass(frozen=True)
class Asked:
    """A problem at one x_o."""

    prior: Distribution
    several: Tensor | None = None


def test_a_region_holds_some_of_the_pairs_that_its_flow_has_learned_from(flow: FlowModel) -> None:
    """A flow that is sure of a place where no theta was simulated is not believed: 5, or 5%."""
    theta = BOX_DRAWS[:60]
    own = Placed(flow, BOX, (), seed=1).region()
    region = Placed(flow, BOX, (), seed=1, theta=theta).region()
    assert int(own.contains(theta).sum()) < 5
    assert int(region.contains(theta).sum()) == 5
    many = Placed(narrow_flow(0.8, 0.02), BOX, (), seed=1, theta=BOX_DRAWS[:400]).region()
    assert int(many.contains(BOX_DRAWS[:400]).sum()) == 20
    draws = flow.sample(5_000, seed=2)
    assert region.contains(draws[own.contains(draws)]).all()  # larger, not elsewhere
    near = 0.5 + 0.2 * torch.randn(60, 2, generator=torch_generator(1))
    same = Placed(flow, BOX, (), seed=1, theta=near).region()
    assert same.log_threshold == own.log_threshold


def test_a_region_that_contradicts_those_before_is_not_made() -> None:
    there, elsewhere = narrow_flow(-2.0, 0.2), narrow_flow(2.0, 0.2)
    asked = Asked(BOX)
    first = bounds(there, asked, (), BOX_DRAWS, 500, seed=1)
    regions = first.regions
    assert len(regions) == 1
    assert first.share == float(regions[0].contains(BOX_DRAWS).float().mean())
    theta = sample_inside(BOX, regions, 500, seed=2)
    far = Placed(elsewhere, BOX, regions, seed=1).region()
    share = share_inside(far, theta)
    assert worthwhile(far, theta, 500, share, few=True)  # by how many it leaves out
    theta = torch.cat([theta, elsewhere.sample(50, seed=4)])  # else its edge is lowered
    found = bounds(elsewhere, asked, regions, theta, 500, seed=3)
    assert (found.regions, found.share, found.left) == (regions, None, ())


def test_a_region_that_the_answer_leans_on_is_left_for_its_own() -> None:
    small = Placed(narrow_flow(0.2, 0.1), BOX, (), seed=1).region()
    wide = Placed(narrow_flow(0.5, 0.6), BOX, (), seed=1).region()
    answer = narrow_flow(0.4, 0.15)
    assert leaned_on(answer, (wide, small), seed=1) == (small,)
    assert leaned_on(narrow_flow(0.2, 0.1, seed=1), (wide, small), seed=1) == ()
    share = leaning_on(answer, (wide, small))
    assert share is not None
    beyond = float((~small.contains(answer.sample(5_000, seed=5))).float().mean())
    assert beyond - 0.02 < share < beyond + 0.2
    assert leaning_on(answer, (wide,)) is None
    theta = sample_inside(BOX, (wide, small), 300, seed=2)
    found = bounds(answer, Asked(BOX), (wide, small), theta, 200, seed=3)
    assert found.left == (wide, small)
    assert found.regions[0] is wide
    draws = answer.sample(5_000, seed=4)
    assert float(inside_all((wide, small), draws).float().mean()) < 0.9
    assert float(inside_all(found.regions, draws).float().mean()) > 0.99


@pytest.mark.parametrize("worked", [1.0, 0.5])
@pytest.mark.parametrize("num_before", [20, 300, 5_000])
def test_pairs_from_a_region_that_was_left_count_as_draws_of_the_new_one(
    flow: FlowModel, num_before: int, worked: float
) -> None:
    """Those made before and those to come are together what one draw of the prior would be."""
    old = Placed(narrow_flow(0.5, 0.1), BOX, (), seed=1).region()
    new = Placed(flow, BOX, (), seed=1).region()
    before = sample_inside(BOX, (old,), num_before, seed=2)
    theta, reused = refilled(BOX, (new,), (old,), before, 800, 3, worked)
    assert reused is not None
    assert len(theta) == 800
    assert new.contains(theta).all()
    theta = theta[torch.rand(800, generator=torch_generator(5)) < worked]  # the others failed
    earlier = before[new.contains(before)]
    assert reused == min(reused, len(earlier))
    exact = sample_inside(BOX, (new,), 20_000, seed=4)
    share = float(old.contains(exact).float().mean())
    together = torch.cat([earlier[:reused], theta])
    off = float(old.contains(together).float().mean()) - share
    assert abs(off) < 4.0 * math.sqrt(share * (1.0 - share) / len(together))
    assert refilled(BOX, (new,), (), before, 400, 3)[1] is None


def test_a_mixture_has_regions_too() -> None:
    theta = 0.5 + 0.2 * torch.randn(2_000, 2, generator=torch_generator(0))
    mixture = fit_mixture(theta, EVERYWHERE, max_components=1, seed=0)
    region = Placed(mixture, BOX, (), seed=1).region()
    inside = sample_inside(BOX, (region,), 300, seed=2)
    assert len(inside) == 300
    exact = MultivariateNormal(mixture.means[0], scale_tril=mixture.factors[0])
    assert (exact.log_prob(inside) >= region.log_threshold - 1e-4).all()


def test_draws_are_a_function_of_the_seed(flow: FlowModel) -> None:
    region = Placed(flow, BOX, (), seed=1).region()
    again = Placed(flow, BOX, (), seed=1).region()
    assert region.log_threshold == again.log_threshold
    first, second, other = (sample_inside(BOX, (region,), 100, seed=s) for s in (1, 1, 2))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_stretched_draws_know_their_density(flow: FlowModel) -> None:
    theta, log_density = flow.sample_wide(500, 1.0, seed=0)
    torch.testing.assert_close(log_density, flow.log_prob(theta), atol=1e-3, rtol=1e-3)
    wide, _ = flow.sample_wide(5_000, 2.0, seed=0)
    narrow = flow.sample(5_000, seed=1)
    assert (wide.std(dim=0) > 1.5 * narrow.std(dim=0)).all()


def test_the_box_of_a_region_never_cuts_what_the_density_admits(flow: FlowModel) -> None:
    region = Placed(flow, BOX, (), seed=1).region()
    boxless = replace(region, lower=torch.full((2,), -9.0), upper=torch.full((2,), 9.0))
    grid = torch.cartesian_prod(torch.linspace(-4, 4, 161), torch.linspace(-4, 4, 161))
    cut = boxless.contains(grid) & ~region.contains(grid)
    assert int(cut.sum()) <= 0.01 * int(boxless.contains(grid).sum())
    assert isinstance(boxless, Region)


@pytest.mark.parametrize("theta_dim", [2, 4])
@pytest.mark.parametrize("bent", [False, True])
def test_a_linear_gaussian_law_of_many_parameters_is_not_cut(theta_dim: int, bent: bool) -> None:
    """There the edge would be all that is left to learn; few parameters have little edge."""
    n = 3_000
    x = torch.randn(n, theta_dim, generator=torch_generator(0))
    noise = 0.1 * torch.randn(n, theta_dim, generator=torch_generator(1))
    theta = (x.abs() if bent else x) + noise
    x_o = torch.full((theta_dim,), 2.0)
    given = Conditioning(InputScaling(x), x, x_o, "flat")
    training = TrainingSettings(num_steps=400)
    model = small_flow(theta, Support.everywhere(theta_dim), 32, training, given=given)
    prior = Independent(Normal(torch.zeros(theta_dim), torch.ones(theta_dim)), 1)
    region = Placed(model, prior, (), seed=1).region()
    assert float(region.contains(theta).float().mean()) < 0.25
    made = worthwhile(region, theta, n, share_inside(region, theta), few=theta_dim == 2)
    assert made is (bent or theta_dim == 2)
    few = replace(region, model=replace(model, held=()))  # too few to tell
    assert worthwhile(few, theta, n, share_inside(few, theta), few=False)


def test_a_first_region_of_four_parameters_may_hold_more_than_a_quarter() -> None:
    """Where pairs are few and the next round doubles those inside; later ones may not."""
    box = Independent(Uniform(-torch.ones(4), torch.ones(4)), 1)
    model = replace(flow_of_four(0.09), held=())  # else they would say that it is a Gaussian
    theta = 2 * torch.rand(300, 4, generator=torch_generator(2)) - 1
    first = bounds(model, Asked(box), (), theta, 600, seed=1)
    assert first.share is not None
    assert 0.25 < first.share < 0.4
    whole = Placed(flow_of_four(None), box, (), seed=1, num_draws=5_000).ending(1e-9)
    assert bounds(model, Asked(box), (whole,), theta, 600, seed=1).share is None
    many = 2 * torch.rand(5_000, 4, generator=torch_generator(2)) - 1
    assert bounds(model, Asked(box), (), many, 600, seed=1).share is None


def test_an_answer_from_few_pairs_does_not_end_the_rounds() -> None:
    """It may fill where they come from for want of knowledge."""
    box = Independent(Uniform(-torch.ones(4), torch.ones(4)), 1)
    theta = 2 * torch.rand(1_000, 4, generator=torch_generator(2)) - 1
    wide = flow_of_four(None)
    assert bounds(wide, Asked(box), (), theta, 600, seed=1).filled
    assert not bounds(wide, Asked(box), (), theta[:999], 600, seed=1).filled


def flow_of_four(sd: float | None) -> FlowModel:
    """Of four uniform coordinates, the first of them N(0, sd^2) if it has one."""
    theta = 2 * torch.rand(2_000, 4, generator=torch_generator(0)) - 1
    if sd is not None:
        theta[:, 0] = sd * torch.randn(2_000, generator=torch_generator(1))
    support = Support(torch.full((4,), -1.0), torch.full((4,), 1.0))
    return small_flow(theta, support, 16, TrainingSettings(num_steps=150))
