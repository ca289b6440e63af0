"""Principal axes: as many as there are, whatever the units and however loud; stored as they are."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fits import SMALL, X_O, quick_fit
from torch import Tensor

from abi import ABIConfig
from abi.encoders.choice import build_encoder
from abi.encoders.layout import PLAIN, Layout
from abi.encoders.principal import PrincipalScores, autocorrelations, principal_axes
from abi.files.parts import read_parts, write_parts
from abi.files.run_folder import RunFolder
from abi.quantiles.encoder_race import EncoderRace
from abi.quantiles.kernel import LearnedKernel, train_kernel
from abi.training.loop import TrainingSettings
from simulators import Cosine, sample_joint
from simulators.random import torch_generator

FAST = TrainingSettings(max_epochs=10)


def planted(rows: int, width: int, strengths: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """Signals of the given sds along orthonormal directions (width, k), in N(0, 1) noise."""
    generator = torch_generator(0)
    basis = torch.linalg.qr(torch.randn(width, len(strengths), generator=generator)).Q
    scores = torch.randn(rows, len(strengths), generator=generator) * torch.tensor(strengths)
    return scores @ basis.T + torch.randn(rows, width, generator=generator), basis


@pytest.mark.parametrize(("rows", "width"), [(4_000, 100), (300, 60), (200, 2_000)])
def test_the_axes_above_the_noise_are_found_and_counted(rows: int, width: int) -> None:
    """A signal of variance s^2 is seen where s^2 > sqrt(p / n) (Baik, Ben Arous & Peche 2005)."""
    ratio = width / rows
    least = ratio**0.25
    x, basis = planted(rows, width, (8.0 * least, 6.0 * least, 4.0 * least))
    axes = principal_axes(x - x.mean(dim=0))
    count = axes.shape[1]
    assert 3 <= count <= 4  # the largest of the noise lies beyond its edge now and then
    torch.testing.assert_close(axes.T @ axes, torch.eye(count), atol=1e-4, rtol=0.0)
    weakest = (4.0 * least) ** 2
    cosine = ((1.0 - ratio / weakest**2) / (1.0 + ratio / weakest)) ** 0.5  # Paul (2007)
    assert float(torch.linalg.svdvals(axes.T @ basis)[2]) == pytest.approx(cosine, abs=0.04)


def test_noise_alone_has_one_axis_at_most_by_chance() -> None:
    counts = [
        principal_axes(torch.randn(2_000, 50, generator=torch_generator(seed))).shape[1]
        for seed in range(20)
    ]
    assert max(counts) <= 2  # one is the least that is kept


def test_units_and_loudness_do_not_set_the_axes() -> None:
    x, _ = planted(2_000, 40, (6.0, 4.0))
    units = 10.0 ** torch.linspace(-4.0, 4.0, 40)
    features = PrincipalScores(x, PLAIN, lags=False)(x)
    rescaled = PrincipalScores(x * units, PLAIN, lags=False)(x * units)
    torch.testing.assert_close(rescaled.abs(), features.abs(), atol=2e-2, rtol=2e-2)
    loud = x * torch.exp(3.0 * torch.randn(2_000, 1, generator=torch_generator(5)))
    quiet_axes, loud_axes = (PrincipalScores(rows, PLAIN, lags=False).axes for rows in (x, loud))
    assert float(torch.linalg.svdvals(quiet_axes[:, :2].T @ loud_axes[:, :2]).min()) > 0.97


def test_what_the_axes_leave_tells_how_noisy_x_is() -> None:
    signal, _ = planted(3_000, 50, (20.0,))
    sigma = torch.exp(torch.rand(3_000, 1, generator=torch_generator(1)) * 3.0 - 2.0)
    noise = torch.randn(3_000, 50, generator=torch_generator(2))
    quiet = signal[:, :1] * torch.ones(50)
    x = quiet + sigma * noise
    encoder = PrincipalScores(x, PLAIN, lags=False)
    size, left = encoder(x)[:, -2:].unbind(dim=1)
    level = torch.log(sigma[:, 0])
    assert float(torch.corrcoef(torch.stack([left, level]))[0, 1]) > 0.5
    assert float(torch.corrcoef(torch.stack([size, quiet[:, 0].abs().log()]))[0, 1]) > 0.5


def test_autocorrelations_are_those_of_the_textbook() -> None:
    series = torch.randn(3, 40, 2, generator=torch_generator(0))
    values = autocorrelations(series, 5).reshape(3, 5, 2)
    for row, channel in ((0, 0), (2, 1)):
        y = series[row, :, channel].double().numpy()
        y = y - y.mean()
        expected = [np.sum(y[lag:] * y[:-lag]) / np.sum(y**2) for lag in range(1, 6)]
        torch.testing.assert_close(
            values[row, :, channel], torch.tensor(expected).float(), atol=1e-5, rtol=1e-4
        )
    assert torch.equal(autocorrelations(torch.ones(2, 40, 1), 5), torch.zeros(2, 5))


def test_the_features_are_axes_size_rest_and_lags_of_each_channel() -> None:
    x, _ = planted(1_000, 120, (9.0, 7.0))
    encoder = PrincipalScores(x, Layout(2), lags=False)
    assert encoder(x[:4]).shape == (4, encoder.axes.shape[1] + 2)
    num_lags = int(10.0 * math.log10(60))
    lagged = build_encoder("principal+lags", x, Layout(2))(x[:4])
    assert torch.equal(lagged[:, : -2 * num_lags], encoder(x[:4]))


def test_weights_go_into_an_encoder_that_was_built_without_data() -> None:
    x, _ = planted(1_000, 30, (9.0, 7.0, 5.0))
    encoder = build_encoder("principal+lags", x)
    other = build_encoder("principal+lags", torch.zeros(2, 30))
    other.load_state_dict(encoder.state_dict())
    assert torch.equal(other(x), encoder(x))


def test_a_wave_is_seen_by_its_axes_before_its_values() -> None:
    """Cosine near an observation: held-out quantile losses, values in their order against axes."""
    task = Cosine(num_steps=60)
    theta, x = sample_joint(task, 1_500, seed=1)
    losses = {}
    for name in ("flat", "principal", "principal+lags"):
        config = ABIConfig(encoder=name, network_training=FAST)
        losses[name] = train_kernel(theta, x, x[0], config, seed=0)[1].validation_loss
    assert max(losses["principal"], losses["principal+lags"]) < 0.95 * losses["flat"]


def test_each_round_tries_the_better_half_again_and_the_last_both_that_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raced: list[int] = []
    ranked = EncoderRace.ranked

    def counted(race: EncoderRace, names: Sequence[str], *rest: Any, **options: Any) -> list[str]:
        raced.append(len(names))
        return ranked(race, names, *rest, **options)

    monkeypatch.setattr(EncoderRace, "ranked", counted)
    task = Cosine(num_steps=20)
    theta, x = sample_joint(task, 400, seed=1)
    config = ABIConfig(network_training=TrainingSettings(max_epochs=2))
    kernel: LearnedKernel | None = None
    names: list[tuple[str, ...]] = []
    for seed in range(5):
        kernel, _ = train_kernel(
            theta,
            x,
            x[0],
            config,
            seed=seed,
            previous=kernel,
            extent="whole" if seed == 4 else "encoder",
        )
        left = (kernel.encoder, *kernel.rivals)
        assert not names or set(left) <= set(names[-1])
        names.append(left)
    # Of eight at first, or nine where chance tries both_orders as well.
    assert raced in ([8, 4, 2], [8, 5, 3, 2])
    assert len(names[-1]) == 2


def test_the_encoders_still_in_the_running_are_kept_with_a_run(tmp_path: Path) -> None:
    config = replace(SMALL, encoder="auto")
    quick_fit(config=config, num_rounds=2, run_dir=tmp_path)
    folder = RunFolder.open(tmp_path)
    plan, x_o, _, _ = folder.request()
    state = folder.last_state(plan, x_o, None)
    assert state is not None
    assert isinstance(state.kernel, LearnedKernel)
    path = sorted(tmp_path.glob("round_*.safetensors"))[-1]
    tensors, header = read_parts(path, "abi-round")
    assert header["kernel"]["rivals"] == list(state.kernel.rivals)
    # As written before version 4.
    del header["kernel"]["rivals"], header["format"], header["version"]
    header["kernel"]["rival"] = None
    write_parts(path, "abi-round", tensors, json.loads(json.dumps(header)))
    older = folder.last_state(plan, x_o, None)
    assert older is not None
    assert isinstance(older.kernel, LearnedKernel)
    assert older.kernel.rivals == ()
    assert X_O.shape == x_o.shape
