"""Pictures and numbers of a posterior: they show the draws, their prior and the truth, no more."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex
from pages import check_of, judged, stub
from torch import Tensor
from torch.distributions import Independent, Normal

import abi
from abi.pictures.density import levels_of_mass, surface
from abi.pictures.fit import draws_of
from abi.report.summary import summarise
from abi.rounds.record import Moments
from simulators.random import child_seed
from validation.palette import LIGHT


def normal_prior(dim: int, sd: float = 3.0) -> Any:
    return Independent(Normal(torch.zeros(dim), sd * torch.ones(dim)), 1)


def three_values(theta: Tensor) -> Tensor:
    return theta[:, :1] + torch.randn(len(theta), 3)


def fit_of(dim: int, names: tuple[str, ...] | None = None, x_dim: int = 3) -> abi.ABIPosterior:
    return replace(stub(dim, names).posterior, x_o=torch.zeros(x_dim))


def seen(figure: Any) -> list[Any]:
    return [axes for axes in figure.axes if axes.get_visible()]


@pytest.mark.parametrize("dim", [1, 3, 10])
def test_a_picture_has_a_panel_a_parameter_and_a_pair(dim: int) -> None:
    figure = fit_of(dim).plot(num_samples=500)
    assert len(seen(figure)) == dim * (dim + 1) // 2
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_of_many_parameters_the_first_ten_are_shown_or_those_asked_for() -> None:
    posterior = fit_of(12)
    many = posterior.plot(num_samples=200)
    assert len(seen(many)) == 55
    assert "the first 10 of 12 parameters" in many.get_suptitle()
    two = posterior.plot(parameters=["theta_12", "theta_3"], num_samples=200)
    assert [axes.get_xlabel() for axes in seen(two)] == ["", "theta_12", "theta_3"]


def test_truth_prior_and_exact_draws_are_drawn_where_they_are_given() -> None:
    posterior = fit_of(2)
    exact = torch.randn(500, 2, generator=torch.Generator().manual_seed(1))
    figure = posterior.plot(
        prior=normal_prior(2), exact=exact, truth={"theta_2": 0.25}, num_samples=500
    )
    (legend,) = figure.legends
    told = [text.get_text() for text in legend.get_texts()]
    assert told == ["posterior, 50%", "posterior, 90%", "prior", "exact posterior", "truth"]
    first, pair, second = seen(figure)
    orange = LIGHT["observed"]
    for axes, lines in ((first, 0), (pair, 1), (second, 1)):
        found = [line for line in axes.lines if to_hex(line.get_color()) == orange]
        assert len(found) == lines
    assert list(found[0].get_xdata()) == [0.25, 0.25]
    alone = posterior.plot(num_samples=500)
    assert len(alone.legends[0].get_texts()) == 2


def test_a_truth_beside_the_posterior_is_in_view_and_one_far_away_does_not_squeeze_it() -> None:
    posterior = fit_of(1)
    near, far = (seen(posterior.plot(truth=[value]))[0].get_xlim() for value in (5.0, 500.0))
    assert near[1] > 5.0
    assert far[1] < 6.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"parameters": ["mass"]}, "`parameters` must name parameters, theta_1, .*; got 'mass'"),
        ({"parameters": []}, "`parameters` must name one at least"),
        ({"truth": [1.0]}, "`truth` must be 2 values, of theta_1, theta_2"),
        ({"truth": {"mass": 1.0}}, "`truth` must name parameters"),
        ({"exact": torch.zeros(5, 3)}, r"`exact` must give draws of shape \(n, 2\).*got \(5, 3\)"),
        ({"prior": normal_prior(3)}, r"`prior` must give draws of shape \(n, 2\)"),
    ],
)
def test_what_does_not_belong_to_the_parameters_is_refused(words: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_of(2).plot(**words)


def test_without_matplotlib_a_line_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulators.lazy.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"`plot` needs matplotlib: install abi-toolkit\[plots\]"):
        fit_of(2).plot()


def test_a_thin_ring_stays_thin() -> None:
    random = np.random.default_rng(0)
    angle, radius = random.uniform(0, 2 * np.pi, 10_000), random.normal(1.0, 0.02, 10_000)
    num, span = 96, (-1.3, 1.3)
    density = surface(radius * np.cos(angle), radius * np.sin(angle), (span, span), num)
    (level,) = levels_of_mass(density, (0.9,))
    area = float((density >= level).sum()) * (2.6 / num) ** 2
    # 90% of the ring covers 2 pi (2 x 1.64 x 0.02) = 0.41; a bin is 0.027 wide. Scott's width, 0.2,
    # would cover some 3.
    assert area < 3 * 0.41


def test_a_summary_is_that_of_its_normal_law() -> None:
    found = fit_of(2).summary(prior=normal_prior(2))
    part = found["theta_2"]
    error = found.num_samples**-0.5
    assert part.mean == pytest.approx(0.0, abs=4 * error)
    assert part.sd == pytest.approx(1.0, abs=4 * error / 2**0.5)
    assert part.median == pytest.approx(0.0, abs=4 * 1.25 * error)
    # The density at the quantile is 0.058: its error is sqrt(0.025 x 0.975) / 0.058 = 2.7 units.
    assert part.interval == pytest.approx((-1.96, 1.96), abs=4 * 2.7 * error)
    # 1 - 1/9; of the ratio of variances the relative error is 2 units.
    assert part.contraction == pytest.approx(8 / 9, abs=4 * 2 * error / 9)
    assert [one.name for one in fit_of(3).summary(parameters=["theta_3"]).parameters] == ["theta_3"]
    with pytest.raises(KeyError, match="'mass' is none of theta_1, theta_2"):
        found["mass"]


def test_a_summary_has_the_numbers_of_the_command_line_and_fits_in_json() -> None:
    posterior = fit_of(3)
    found = posterior.summary(seed=4)
    draws = draws_of(posterior, None, child_seed(4, 0))
    assert found.to_dict()["posterior"] == summarise(posterior, draws, None, {})["posterior"]
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    assert len(str(found).splitlines()) == 1 + 3 + 2


def test_a_notebook_shows_a_posterior_as_a_table_with_its_verdict() -> None:
    html = fit_of(20, ("<b>", *(f"p{j}" for j in range(19))))._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "8 more: <code>posterior.summary()</code>" in html
    assert "nothing was checked" in html
    assert "200 simulator calls in 2 rounds" in html


@pytest.mark.parametrize(
    ("x_dim", "words", "panels"), [(3, {}, 3), (8, {}, 1), (8, {"num_series": 2}, 2)]
)
def test_predicted_data_are_drawn_beside_x_o(x_dim: int, words: Any, panels: int) -> None:
    posterior = fit_of(2, x_dim=x_dim)

    def noise(theta: Tensor) -> Tensor:
        return torch.randn(len(theta), x_dim)

    figure = posterior.plot_predictive(noise, num_simulations=40, **words)
    assert len(seen(figure)) == panels
    assert f"100% of the {x_dim} values of x_o lie inside the central 90%" in figure.get_suptitle()
    far = replace(posterior, x_o=torch.full((x_dim,), 9.0))
    assert figure.get_suptitle().replace("100%", "0%") == (
        far.plot_predictive(noise, num_simulations=40, **words).get_suptitle()
    )


def test_predictions_that_cannot_be_made_are_refused_in_one_line() -> None:
    posterior = fit_of(2)
    for words, message in (
        ({}, "`simulator` must be given: a loaded posterior holds none"),
        ({"simulator": three_values, "num_simulations": 5}, "`num_simulations` .* at least 20"),
        ({"simulator": three_values, "num_series": 2}, "`num_series` must divide the 3 values"),
        ({"simulator": three_values, "times": [1.0]}, "`times` must be 3, one a value"),
        (
            {"simulator": lambda theta: three_values(theta) * torch.nan},
            "0 of 200 simulations gave a usable",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            posterior.plot_predictive(**words)  # type: ignore[arg-type]


def test_rounds_show_how_an_answer_moved_and_which_were_wrong() -> None:
    posterior = judged(stub(2), check_of(2)).posterior
    moments = Moments((0.0, 1.0), (0.5, 0.25))
    told = tuple(replace(record, answer=moments) for record in posterior.rounds)
    figure = replace(posterior, rounds=told).plot_rounds()
    mean, bias = seen(figure)[3:5]  # of theta_2, whose bias was 0.6 ± 0.2 in the first round
    (path,) = [line for line in mean.lines if line.get_marker() == "o"]
    assert list(path.get_xdata()) == [100, 200]
    assert list(path.get_ydata()) == [1.0, 1.0]
    orange = {
        line.get_xdata()[0] for line in bias.lines if to_hex(line.get_color()) == LIGHT["observed"]
    }
    assert orange == {100}
    assert len(seen(posterior.plot_rounds())) == 6  # of an earlier version: no means are known
