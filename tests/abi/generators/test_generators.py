"""Every generative model recovers a known law, stays on the support, and survives storage."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from fits import small_flow
from torch import Tensor, nn
from torch.distributions import Exponential, Gamma, Independent, Normal, Uniform

from abi import metrics
from abi.config import ABIConfig
from abi.generators.base import GenerativeModel
from abi.generators.conditional import ConditionalFlows
from abi.generators.flow import restore_flow
from abi.generators.flow_network import FlowSettings
from abi.generators.flow_training import Conditioning, fit_flow
from abi.generators.mixture import fit_mixture, restore_mixture
from abi.generators.push_forward.model import energy_score, restore_push_forward
from abi.generators.push_forward.potnet import POTNetSettings, fit_potnet, penalised_transport
from abi.generators.push_forward.wgan import WGANSettings, fit_wgan, gradient_penalty
from abi.generators.support import Support, allowed
from abi.training.loop import TrainingSettings
from simulators import MG1
from simulators.random import isolated_rng, torch_generator

BOX = Support(torch.tensor([-1.0, 0.0]), torch.tensor([1.0, 2.0]))
FREE = Support.everywhere(2)
WITH_DENSITY = ["flow", "mixture"]
KINDS = [*WITH_DENSITY, "potnet", "wgan"]
RESTORE = {
    "flow": restore_flow,
    "mixture": restore_mixture,
    "potnet": restore_push_forward,
    "wgan": restore_push_forward,
}
POTNET = POTNetSettings(
    hidden=(32, 32), training=TrainingSettings(batch_size=256, max_epochs=60, num_steps=300)
)
WGAN = WGANSettings(hidden=(32, 32), num_steps=250, learning_rate=3e-3)
BRIEF = replace(WGAN, num_steps=20)


def fit(
    kind: str, theta: Tensor, support: Support, seed: int = 0, wgan: WGANSettings = WGAN
) -> GenerativeModel:
    if kind == "mixture":
        return fit_mixture(theta, support, max_components=5, seed=seed)
    if kind == "potnet":
        return fit_potnet(theta, support, settings=POTNET, seed=seed)[0]
    if kind == "wgan":
        return fit_wgan(theta, support, settings=wgan, seed=seed)[0]
    training = TrainingSettings(max_epochs=60, learning_rate=3e-3)
    return fit_flow(theta, support, settings=FlowSettings(), training=training, seed=seed)[0]


def correlated(n: int, seed: int = 0) -> Tensor:
    z = torch.randn(n, 2, generator=torch_generator(seed))
    return torch.stack([2.0 + z[:, 0], -1.0 + 0.8 * z[:, 0] + 0.6 * z[:, 1]], dim=1)


@pytest.mark.parametrize("kind", KINDS)
def test_moments_of_a_gaussian_are_recovered(kind: str) -> None:
    theta = correlated(2_000)
    draws = fit(kind, theta, FREE).sample(20_000, seed=1)
    # 2,000 draws know a mean to 0.022 and a correlation to 0.008; a flow adds its own error, and a
    # network of noise after 300 small steps more of it.
    near = 0.1 if kind in WITH_DENSITY else 0.2
    torch.testing.assert_close(draws.mean(dim=0), theta.mean(dim=0), atol=near, rtol=0.0)
    torch.testing.assert_close(torch.cov(draws.T), torch.cov(theta.T), atol=2 * near, rtol=0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_stay_on_the_support(kind: str) -> None:
    theta = torch.rand(1_000, 2, generator=torch_generator(0)) * 2 + torch.tensor([-1.0, 0.0])
    draws = fit(kind, theta, BOX).sample(20_000, seed=1)
    assert BOX.contains(draws).all()
    if kind == "wgan":  # after so few steps it does not know its tails: 0.16 was seen
        return
    # A uniform law has as much mass at the edge as elsewhere: 10% within 5% of the ends.
    edge = (draws[:, 0].abs() > 0.9).float().mean()
    assert float(edge) == pytest.approx(0.1, abs=0.03 if kind in WITH_DENSITY else 0.06)


@pytest.mark.parametrize("kind", WITH_DENSITY)
@pytest.mark.parametrize("support", [BOX, FREE])
def test_the_density_integrates_to_one(kind: str, support: Support) -> None:
    theta = 0.3 * correlated(1_000) * torch.tensor([0.5, 1.0]) + torch.tensor([0.0, 1.0])
    theta = theta[BOX.contains(theta)]
    model = fit(kind, theta, support)
    side = torch.linspace(-3.0, 5.0, 801) if support is FREE else torch.linspace(-1.0, 2.0, 801)
    grid = torch.cartesian_prod(side, side)
    total = model.log_prob(grid).exp().sum() * float(side[1] - side[0]) ** 2
    assert float(total) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("kind", WITH_DENSITY)
def test_density_and_draws_belong_to_the_same_law(kind: str) -> None:
    """E_q[p0 / q] = 1 for a density p0 inside the bulk of q."""
    model = fit(kind, correlated(2_000), FREE)
    draws = model.sample(20_000, seed=3)
    inner = Independent(Normal(torch.tensor([2.0, -1.0]), torch.tensor([0.4, 0.3])), 1)
    ratio = (inner.log_prob(draws) - model.log_prob(draws)).exp()
    assert float(ratio.mean()) == pytest.approx(1.0, abs=4 * float(ratio.std()) / 20_000**0.5)


@pytest.mark.parametrize("kind", WITH_DENSITY)
def test_outside_the_support_the_density_is_zero(kind: str) -> None:
    theta = torch.rand(300, 2, generator=torch_generator(0)) * 2 + torch.tensor([-1.0, 0.0])
    model = fit(kind, theta, BOX)
    outside = torch.tensor([[0.0, 3.0], [-1.5, 1.0]])
    assert (model.log_prob(outside) == -torch.inf).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_model_is_the_same_model(kind: str) -> None:
    theta = correlated(400)
    model = fit(kind, theta, FREE, wgan=BRIEF)
    restored = RESTORE[kind](model.state())
    assert torch.equal(model.sample(50, seed=2), restored.sample(50, seed=2))
    if kind in WITH_DENSITY:
        assert torch.equal(model.log_prob(theta), restored.log_prob(theta))


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(WITH_DENSITY)))
def test_a_network_of_noise_says_that_it_has_no_density(kind: str) -> None:
    model = RESTORE[kind](fit(kind, correlated(100), FREE, wgan=BRIEF).state())
    with pytest.raises(NotImplementedError, match=f"'{kind}' draws theta and has no density"):
        model.log_prob(torch.zeros(1, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_fits_and_draws_are_functions_of_their_seeds(kind: str) -> None:
    theta = correlated(300)
    first, second = (fit(kind, theta, FREE, seed=4, wgan=BRIEF) for _ in range(2))
    assert torch.equal(first.sample(20, seed=1), second.sample(20, seed=1))
    assert not torch.equal(first.sample(20, seed=1), first.sample(20, seed=2))


@pytest.mark.parametrize("kind", ["potnet", "wgan"])
def test_networks_of_noise_keep_separate_modes(kind: str) -> None:
    theta = torch.cat([correlated(700, 0), correlated(300, 1) + 12.0])
    draws = fit(kind, theta, FREE).sample(5_000, seed=0)
    # Collapse gives 0 or 1, and draws between the modes count for either.
    assert float((draws[:, 0] > 8.0).float().mean()) == pytest.approx(0.3, abs=0.15)


def test_the_loss_of_potnet_is_the_sum_of_exact_distances() -> None:
    u, v = correlated(200, 0), correlated(200, 1) + 1.0
    joint = metrics.wasserstein(u, v)
    first, second = (metrics.wasserstein(u[:, [j]], v[:, [j]]) for j in (0, 1))
    value = penalised_transport(u, v, marginal_weight=0.7)
    assert float(value) == pytest.approx(joint + 0.7 * (first + second), rel=1e-4)
    assert float(penalised_transport(u, u.flip(0), 1.0)) == pytest.approx(0.0, abs=1e-6)
    # Draws one sd off in both coordinates: pulled back along the diagonal, each an n-th as hard.
    moved = u.clone().requires_grad_()
    (slope,) = torch.autograd.grad(penalised_transport(u - 500.0, moved, 0.0), moved)
    expected = torch.full((200, 2), 0.5**0.5 / 200)
    torch.testing.assert_close(slope, expected, atol=2e-4, rtol=0.0)


def test_the_gradient_penalty_of_a_linear_critic_is_known() -> None:
    class Linear(nn.Module):
        def forward(self, u: Tensor, x: Tensor | None) -> Tensor:
            return u @ torch.tensor([[3.0], [4.0]])

    u, v = correlated(50, 0), correlated(50, 1)
    share = torch.rand(50, 1, generator=torch_generator(0))
    assert float(gradient_penalty(Linear(), u, v, None, share)) == pytest.approx(16.0, rel=1e-5)


def test_the_energy_score_is_least_at_the_truth() -> None:
    """u | x ~ N(x, 1) in one dimension: 1 / sqrt(pi), and more for what is moved or rescaled."""
    random = torch_generator(0)
    x = torch.randn(20_000, 1, generator=random)
    u = x + torch.randn(20_000, 1, generator=random)
    noise = torch.randn(8, 20_000, 1, generator=random)

    class Draws(nn.Module):
        def __init__(self, shift: float, sd: float) -> None:
            super().__init__()
            self.shift, self.sd = shift, sd

        def forward(self, noise: Tensor, x: Tensor) -> Tensor:
            return x + self.shift + self.sd * noise

    truth = float(energy_score(Draws(0.0, 1.0), noise, u, x))
    assert truth == pytest.approx(torch.pi**-0.5, abs=4 * 0.6 / 20_000**0.5)
    for shift, sd in [(0.3, 1.0), (0.0, 0.6), (0.0, 1.6)]:
        assert float(energy_score(Draws(shift, sd), noise, u, x)) > truth + 0.01


def test_one_component_matches_moments() -> None:
    theta = correlated(500)
    model = fit_mixture(theta, FREE, max_components=1, seed=0)
    torch.testing.assert_close(model.means[0], theta.mean(dim=0), atol=1e-4, rtol=1e-4)
    covariance = model.factors[0] @ model.factors[0].T
    torch.testing.assert_close(covariance, torch.cov(theta.T, correction=0), atol=1e-3, rtol=1e-3)


def test_the_mixture_finds_separate_modes() -> None:
    theta = torch.cat([correlated(500, 0), correlated(500, 1) + 12.0])
    model = fit_mixture(theta, FREE, max_components=5, seed=0)
    assert len(model.weights) == 2
    torch.testing.assert_close(model.weights, torch.tensor([0.5, 0.5]), atol=0.01, rtol=0.0)


def test_a_conditional_flow_is_read_at_one_context() -> None:
    """theta | c ~ N(c, 0.5^2): read at c = 1, whatever the law of c."""
    generator = torch_generator(0)
    context = torch.randn(4_000, 1, generator=generator)
    theta = context + 0.5 * torch.randn(4_000, 1, generator=generator)
    support = Support(torch.tensor([-torch.inf]), torch.tensor([torch.inf]))
    model, _ = fit_flow(
        theta,
        support,
        settings=FlowSettings(),
        training=TrainingSettings(max_epochs=30),
        seed=0,
        given=Conditioning(nn.Identity(), context, torch.tensor([1.0])),
    )
    draws = model.sample(10_000, seed=1)
    assert float(draws.mean()) == pytest.approx(1.0, abs=0.08)
    assert float(draws.std()) == pytest.approx(0.5, abs=0.06)
    restored = restore_flow(model.state())
    assert torch.equal(restored.sample(10, seed=0), model.sample(10, seed=0))


def test_an_encoder_learns_with_the_first_flow_and_is_left_as_it_was_given() -> None:
    """theta | x ~ N(|x_1|, 0.2^2): an encoder that has learned nothing of |x_1| must learn it."""
    x = torch.randn(3_000, 2, generator=torch_generator(1))
    theta = x[:, :1].abs() + 0.2 * torch.randn(3_000, 1, generator=torch_generator(2))
    with isolated_rng(0):
        encoder = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
    before = copy.deepcopy(encoder.state_dict())
    given = Conditioning(encoder, x, torch.tensor([-1.5, 0.3]))
    training = TrainingSettings(max_epochs=20)
    model = small_flow(theta, Support.everywhere(1), 32, training, num_flows=2, given=given)
    draws = model.sample(4_000, seed=1)
    assert float(draws.mean()) == pytest.approx(1.5, abs=0.1)
    assert float(draws.std()) == pytest.approx(0.2, abs=0.06)
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    assert model.context is not None
    assert torch.equal(model.context[0], model.context[1])  # it learns once, with the first
    restored = restore_flow(model.state())
    assert torch.equal(restored.log_prob(draws), model.log_prob(draws))


def test_two_encoders_learn_each_with_a_flow_of_its_own() -> None:
    """theta | x ~ N(|x_1|, 0.2^2), three flows: the third sees x through the first's encoder."""
    x = torch.randn(2_000, 2, generator=torch_generator(1))
    theta = x[:, :1].abs() + 0.2 * torch.randn(2_000, 1, generator=torch_generator(2))
    with isolated_rng(0):
        first, other = (
            nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 4)) for _ in range(2)
        )
    given = Conditioning(first, x, torch.tensor([-1.5, 0.3]), another=other)
    training = TrainingSettings(max_epochs=40)
    model = small_flow(theta, Support.everywhere(1), 32, training, num_flows=3, given=given)
    assert model.context is not None
    assert torch.equal(model.context[0], model.context[2])
    assert not torch.equal(model.context[0], model.context[1])
    read = ConditionalFlows.of(model)
    assert read is not None
    members = read.of_members(torch.tensor([0.8, -2.0]), 2_000, seed=0)
    torch.testing.assert_close(members.mean(dim=(1, 2)), torch.full((3,), 0.8), atol=0.1, rtol=0.0)
    draws = model.sample(50, seed=1)
    restored = restore_flow(model.state(), first)
    assert torch.equal(restored.log_prob(draws), model.log_prob(draws))
    again = ConditionalFlows.of(restored)
    assert again is not None
    assert torch.equal(again.log_prob(draws[None], x[:50]), read.log_prob(draws[None], x[:50]))


def test_several_flows_are_one_normalised_density_in_equal_parts() -> None:
    theta = torch.randn(600, 1, generator=torch_generator(0))
    support = Support(torch.tensor([-6.0]), torch.tensor([6.0]))
    model = small_flow(theta, support, 16, TrainingSettings(max_epochs=10), num_flows=3)
    grid = torch.linspace(-5.999, 5.999, 20_001)[:, None]
    density = model.log_prob(grid).exp()
    assert float(torch.trapezoid(density, grid[:, 0])) == pytest.approx(1.0, abs=1e-3)
    singles = [replace(model, flows=nn.ModuleList([flow])) for flow in model.flows]
    mean = torch.stack([single.log_prob(grid).exp() for single in singles]).mean(dim=0)
    torch.testing.assert_close(density, mean, atol=1e-5, rtol=1e-4)
    # Ten draws: shares of 4, 3 and 3, in random order; the same after a trip through the disk.
    draws = model.sample(10, seed=1)
    assert draws.shape == (10, 1)
    assert torch.equal(restore_flow(model.state()).sample(10, seed=1), draws)
    first, _, last = model.sample(3_000, seed=2).split(1_000)
    assert float(first.mean()) == pytest.approx(float(last.mean()), abs=4 * (2 / 1_000) ** 0.5)


def test_flows_make_as_many_passes_as_help() -> None:
    """Where x tells nothing, more passes only overfit; a law that few do not reach takes more."""
    x = torch.randn(400, 20, generator=torch_generator(0))
    noise = torch.randn(400, 2, generator=torch_generator(1))
    training = TrainingSettings(learning_rate=1e-2, batch_size=64, max_epochs=64)
    assert training.passes(400) == 64

    def passes(theta: Tensor) -> int:
        _, log = fit_flow(
            theta,
            FREE,
            settings=FlowSettings(num_transforms=1, hidden=(64,)),
            training=training,
            seed=0,
            given=Conditioning(nn.Identity(), x, x[0]),
        )
        return log.epochs

    assert passes(noise) == training.least_epochs
    assert passes(x[:, :2] ** 2 + 1e-2 * noise) > 3 * training.least_epochs


@pytest.mark.parametrize(("num_rows", "passes"), [(100, 30), (1_000, 30), (10_000, 14)])
def test_passes_are_bounded_by_their_number_and_by_the_steps(num_rows: int, passes: int) -> None:
    settings = TrainingSettings(batch_size=100, num_steps=1_200, max_epochs=30)
    assert settings.passes(num_rows) == passes  # 10,000 rows: 9,000 to train on, 90 steps a pass


def test_steps_see_more_at_once_where_they_would_make_few_passes() -> None:
    settings = TrainingSettings(batch_size=100, num_steps=1_200, max_epochs=30)
    assert settings.for_rows(6_000) == settings
    assert settings.for_rows(10_000).passes(10_000) == 20
    assert settings.for_rows(1_000_000).batch_size == 400  # a step has its price


@pytest.mark.parametrize(
    "prior",
    [
        Independent(Uniform(torch.tensor([-2.0, 0.0]), torch.tensor([1.0, 5.0])), 1),
        Independent(Exponential(torch.tensor([1.0, 3.0])), 1),
        Independent(Normal(torch.zeros(2), torch.ones(2)), 1),
        Gamma(torch.tensor([2.0, 3.0]), torch.tensor([1.0, 1.0])),
    ],
)
def test_the_map_to_the_real_line_is_a_bijection(prior: torch.distributions.Distribution) -> None:
    support = Support.of(prior, 2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theta = prior.sample((500,))
    z = support.to_real(theta)
    torch.testing.assert_close(support.from_real(z), theta, atol=1e-4, rtol=1e-4)
    assert allowed(prior, support, theta).all()
    # The Jacobian against differences: each coordinate has its own.
    step = 1e-3
    numeric = ((support.from_real(z + step) - support.from_real(z - step)) / (2 * step)).abs()
    middle = (z.abs() < 2.0).all(dim=1)
    torch.testing.assert_close(
        support.log_jacobian(z)[middle], numeric.log().sum(dim=1)[middle], atol=2e-2, rtol=1e-2
    )


def test_a_uniform_prior_becomes_a_standard_normal() -> None:
    support = Support(torch.tensor([2.0]), torch.tensor([10.0]))
    z = support.to_real(torch.linspace(2.0, 10.0, 10_001)[1:-1, None])
    assert float(z.mean()) == pytest.approx(0.0, abs=1e-3)
    assert float(z.std()) == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize("ends", [(1e-6, 1e2), (-1e2, -1e-6), (0.0, 1.0), (3.0, 4.0)])
def test_a_box_reaches_as_near_to_its_ends_as_float32_does(ends: tuple[float, float]) -> None:
    low, high = (torch.tensor([end]) for end in ends)
    support = Support(low, high)
    near = torch.logspace(-12.0, -0.31, 200, dtype=torch.float64)[:, None] * (high - low)
    for theta in ((low + near).float(), (high - near).float()):
        away = torch.minimum(theta - low, high - theta)
        told = away[:, 0] > 50.0 * torch.finfo(torch.float32).eps * theta.abs()[:, 0]
        back = support.from_real(support.to_real(theta))
        back = torch.minimum(back - low, high - back)
        torch.testing.assert_close(back[told], away[told], rtol=0.05, atol=0.0)
    # Strictly inside, in order, however far out.
    theta = support.from_real(torch.linspace(-30.0, 30.0, 2_001)[:, None])
    assert bool(((theta > low) & (theta < high)).all())
    assert bool((theta.diff(dim=0) >= 0.0).all())


def test_a_prior_with_a_density_cuts_the_box() -> None:
    prior = MG1(prior_kind="truncated").prior
    support = Support.of(prior, 3)
    theta = torch.tensor([[1.0, 2.0, 0.1], [6.0, 6.0, 0.1], [1.0, 2.0, 0.5]])
    assert allowed(prior, support, theta).tolist() == [True, False, False]


@pytest.mark.moves_global_rng  # importing sbi does
def test_priors_laid_side_by_side_keep_their_own_supports() -> None:
    from sbi.utils import MultipleIndependent

    prior = MultipleIndependent(
        [Uniform(torch.zeros(1), torch.ones(1)), Exponential(torch.ones(1))],
        validate_args=False,
    )
    support = Support.of(prior, 2)
    assert support.lower.tolist() == [0.0, 0.0]
    assert support.upper.tolist() == [1.0, torch.inf]


def test_the_default_configuration_survives_json() -> None:
    import json

    config = ABIConfig(
        hidden=(8, 8),
        tolerances=(2.0, 1.0),
        flow=FlowSettings(hidden=(4,)),
        potnet=POTNET,
        wgan=WGAN,
    )
    assert ABIConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        (WGANSettings, {"num_steps": 0}),
        (WGANSettings, {"critic_steps": 0}),
        (WGANSettings, {"penalty": -1.0}),
        (POTNetSettings, {"marginal_weight": -0.5}),
    ],
)
def test_settings_out_of_range_are_refused_by_name(
    settings: type[WGANSettings | POTNetSettings], values: dict[str, float]
) -> None:
    ((name, value),) = values.items()
    with pytest.raises(ValueError, match=f"`{name}` must be .*at least [01].*; got {value}"):
        settings(**values)  # type: ignore[arg-type]


def test_a_configuration_of_before_the_networks_of_noise_is_read() -> None:
    values = ABIConfig().to_dict()
    del values["potnet"], values["wgan"]
    assert ABIConfig.from_dict(values) == ABIConfig()
