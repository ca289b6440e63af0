"""Corrupted images: nothing at strength 0, more with strength, and safe files."""

from __future__ import annotations

import math
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

from abi.cli.app import app
from simulators.random import isolated_rng, torch_generator
from validation import ScoreTest, TrainedScore, Training, power
from validation.perturbations import CORRUPTIONS, image_corruption, load_cifar10, load_inception

SHAPE = (3, 32, 32)


def smooth_images(n: int, seed: int = 0) -> Tensor:
    """Random images with structure: noise on a coarse grid, scaled up."""
    coarse = torch.rand(n, 3, 6, 6, generator=torch_generator(seed))
    return nn.functional.interpolate(coarse, size=(32, 32), mode="bilinear").clamp(0.0, 1.0)


def random_features(width: int = 12) -> nn.Module:
    with isolated_rng(3):
        return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, width), nn.Tanh())


def write_records(path: Path, n: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    records = generator.integers(0, 256, (n, 3_073), dtype=np.uint8)
    records[:, 0] = np.arange(n) % 10
    path.parent.mkdir(parents=True, exist_ok=True)
    records.tofile(path)
    return records


# ------------------------------------------------------------------------------- corruptions


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_strength_zero_is_the_image_and_more_strength_is_further_from_it(name: str) -> None:
    corrupt, strengths = CORRUPTIONS[name]
    images = smooth_images(8)
    assert strengths[0] == 0.0
    assert torch.equal(corrupt(images, 0.0, 1), images)
    away = [float((corrupt(images, s, 1) - images).norm()) for s in (0.2, 0.4, 0.8, 1.6)]
    assert 0.0 < away[0] < away[1] < away[2] < away[3]
    changed = corrupt(images, 0.5, 1)
    assert changed.shape == images.shape
    assert changed.dtype == images.dtype
    assert torch.equal(changed, corrupt(images, 0.5, 1))


def test_blur_spreads_a_point_into_a_gaussian_and_keeps_its_light() -> None:
    blur, _ = CORRUPTIONS["blur"]
    point = torch.zeros(1, *SHAPE)
    point[0, 1, 16, 16] = 1.0
    found = blur(point, 2.0, 0)[0]
    assert float(found.sum()) == pytest.approx(1.0, abs=1e-5)
    assert float(found[0].abs().max()) == 0.0  # channels apart
    offset = torch.arange(32.0) - 16
    assert float((found[1].sum(dim=0) * offset**2).sum()) == pytest.approx(4.0, rel=0.01)
    ratio = float(found[1, 16, 18] / found[1, 16, 16])
    assert ratio == pytest.approx(math.exp(-0.5), rel=0.01)


def test_swirl_turns_about_the_centre_by_its_law_and_leaves_rings_alone() -> None:
    swirl, _ = CORRUPTIONS["swirl"]
    at = torch.arange(32.0) - 15.5
    away = torch.hypot(at[:, None], at)
    rings = (0.5 + 0.5 * torch.cos(away / 4)).expand(1, 3, 32, 32)
    inside = away < 15  # where no reflection reaches
    # Bilinear interpolation alone differs: the second derivative, 1/32, over 4.
    assert float((swirl(rings, 2.0, 0) - rings)[0, 0][inside].abs().max()) < 0.02
    # A linear ramp shows the angle itself: right -> rho cos(angle).
    ramp = (0.5 + at / 40).expand(1, 3, 32, 32)
    angle = torch.atan2(at[:, None].expand(32, 32), at) + 0.7 * torch.exp(
        -5 * away / (math.log(2.0) * 32)
    )
    expected = 0.5 + away * angle.cos() / 40
    assert torch.allclose(swirl(ramp, 0.7, 0)[0, 0][inside], expected[inside], atol=1e-4)


def test_noise_has_half_the_strength_in_pixels_and_is_clipped() -> None:
    noise, _ = CORRUPTIONS["noise"]
    grey = torch.full((20, *SHAPE), 0.5)
    added = noise(grey, 0.1, 4) - grey
    # 61,440 draws: the deviation is good to 0.3%; 4 standard errors.
    assert float(added.std()) == pytest.approx(0.05, rel=0.012)
    assert not torch.equal(noise(grey, 0.1, 5), noise(grey, 0.1, 4))
    wild = noise(grey, 50.0, 4)
    assert (float(wild.min()), float(wild.max())) == (-1.0, 2.0)


# ---------------------------------------------------------------------------- as a posterior


def test_draws_keep_the_class_and_strength_zero_is_the_truth(tmp_path: Path) -> None:
    images, labels = smooth_images(60), torch.arange(60) % 3
    features = random_features()
    failure = image_corruption("swirl", images, labels, features, folder=tmp_path)
    nothing = failure.at(0.0)
    x = failure.observe(40, 1)
    assert x.shape == (40, 3)
    draws = nothing.p.sample(5, x, seed=2)
    assert draws.shape == (5, 40, 12)
    assert torch.equal(draws, nothing.q.sample(5, x, seed=2))
    whole = features(images).detach()
    rows = torch.cdist(draws.flatten(0, 1), whole).argmin(dim=1)
    assert torch.allclose(whole[rows], draws.flatten(0, 1), atol=1e-6)
    assert torch.equal(labels[rows], x.argmax(dim=1).repeat(5))
    assert not torch.equal(failure.at(0.5).q.sample(5, x, seed=2), draws)
    with pytest.raises(NotImplementedError, match="draws only"):
        nothing.p.log_prob(draws, x)


def test_features_are_kept_and_clean_ones_shared_by_all_corruptions(tmp_path: Path) -> None:
    class Counts(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            calls.append(len(images))
            return images.mean(dim=(2, 3))

    calls: list[int] = []
    images, labels = smooth_images(60), torch.arange(60) % 2
    for name in CORRUPTIONS:
        image_corruption(name, images, labels, Counts(), folder=tmp_path).at(0.0)
    assert sum(calls) == 60
    blurred = image_corruption("blur", images, labels, Counts(), folder=tmp_path)
    blurred.at(0.37)
    blurred.at(0.37)
    assert sum(calls) == 120
    assert len(list(tmp_path.iterdir())) == 2
    other = image_corruption("blur", images.flip(0), labels, Counts(), folder=tmp_path)
    assert other.name != blurred.name


def test_the_level_is_kept_and_a_strong_corruption_is_seen() -> None:
    images, labels = smooth_images(400), torch.arange(400) % 2
    failure = image_corruption("blur", images, labels, random_features())
    training = Training(hidden=(32, 32), max_epochs=40, patience=10)
    tests = {
        kind: TrainedScore(ScoreTest(kind, 10, 99), training=training)
        for kind in ("uniform", "multiple", "c2st")
    }
    found = power(tests, failure, [0.0, 9.0], num_pairs=300, repetitions=20, seed=2)
    for name in tests:
        assert found.rate(name, 0.0).rejections <= 5  # P(more) at 0.05 is below 0.001
        assert (found.rate(name, 9.0).rate or 0.0) >= 0.8, name


def test_mistakes_about_images_are_named() -> None:
    images, labels = smooth_images(4), torch.arange(4)
    for arguments, message in (
        (("fog", images, labels), r"`name`.*'fog'"),
        (("blur", images[:, :1], labels), r"`images`.*\(4, 1, 32, 32\)"),
        (("blur", 255 * images, labels), r"`images`.*divide bytes by 255"),
        (("blur", images, labels[:3]), r"`labels`.*\(3,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            image_corruption(*arguments, random_features())


@pytest.mark.parametrize(
    ("labels", "message"),
    [(torch.zeros(4), r"`labels` must be whole numbers; got torch\.float32"),
     (torch.tensor([0, 1, -1, 0]), r"`labels` must be 0 or more; got -1")],
)  # fmt: skip
def test_labels_are_classes(labels: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        image_corruption("blur", torch.full((4, 3, 8, 8), 0.5), labels, nn.Flatten())


def test_labels_of_one_byte_are_classes_too() -> None:
    labels = torch.tensor([0, 1, 1, 0], dtype=torch.uint8)
    images = torch.rand(4, 3, 8, 8, generator=torch_generator(0))
    failure = image_corruption("blur", images, labels, nn.Flatten())
    assert failure.observe(3, 1).shape == (3, 2)


# ------------------------------------------------------------------------------------- files


def test_the_binary_files_are_read_in_order(tmp_path: Path) -> None:
    first = write_records(tmp_path / "data_batch_1.bin", 12, seed=1)
    second = write_records(tmp_path / "data_batch_2.bin", 5, seed=2)
    images, labels = load_cifar10(tmp_path)
    assert images.shape == (17, *SHAPE)
    assert torch.equal(labels[:12], torch.arange(12) % 10)
    # Red, then green, then blue; row by row.
    assert float(images[0, 0, 0, 0]) == pytest.approx(first[0, 1] / 255)
    assert float(images[0, 1, 0, 5]) == pytest.approx(first[0, 1 + 1_024 + 5] / 255)
    assert float(images[13, 2, 31, 31]) == pytest.approx(second[1, 3_072] / 255)
    few, _ = load_cifar10(tmp_path, most=14)
    assert torch.equal(few, images[:14])


def test_the_folder_of_the_archive_is_found(tmp_path: Path) -> None:
    write_records(tmp_path / "cifar-10-batches-bin" / "data_batch_1.bin", 3)
    assert len(load_cifar10(tmp_path)[0]) == 3


def test_files_that_are_not_the_binary_version_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no folder .*nothing; unpack cifar-10-binary"):
        load_cifar10(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"has no data_batch"):
        load_cifar10(tmp_path)
    (tmp_path / "data_batch_1").write_bytes(b"\x80\x04.")
    with pytest.raises(ValueError, match=r"pickled.*cifar-10-binary\.tar\.gz") as refused:
        load_cifar10(tmp_path)
    assert "\n" not in str(refused.value)
    path = tmp_path / "data_batch_1.bin"
    write_records(path, 3)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"9218 bytes.*cut off"):
        load_cifar10(tmp_path)
    records = write_records(path, 3)
    records[1, 0] = 200
    records.tofile(path)
    with pytest.raises(ValueError, match="class 200"):
        load_cifar10(tmp_path)


class StandIn(nn.Module):
    """Has the shape of torchvision's network, as far as the loader looks."""

    def __init__(self, **keywords: object) -> None:
        super().__init__()
        assert keywords["weights"] is None
        self.scale = nn.Parameter(torch.ones(1))
        self.fc: nn.Module = nn.Linear(3, 5)

    def forward(self, images: Tensor) -> Tensor:
        assert images.shape[-2:] == (299, 299)
        found: Tensor = self.fc(self.scale * images.mean(dim=(2, 3)))
        return found


@pytest.fixture
def torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    models = types.ModuleType("torchvision.models")
    models.inception_v3 = StandIn  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision", types.ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)


def weights_file(path: Path, factor: float = 1.0) -> Path:
    with isolated_rng(1):
        network = StandIn(weights=None)
    network.scale.data.fill_(factor)
    torch.save(network.state_dict(), path)
    return path


@pytest.mark.usefixtures("torchvision")
def test_inception_is_read_from_a_file_and_loses_its_last_layer(tmp_path: Path) -> None:
    features = load_inception(weights_file(tmp_path / "inception_v3_google-0.pth", 2.0))
    images = torch.full((2, *SHAPE), 0.75)
    # 0.75 is 0.5 on the scale from -1 to 1.
    assert torch.allclose(features(images), torch.full((2, 3), 1.0))
    assert not any(weight.requires_grad for weight in features.parameters())
    torch.save({"other": torch.zeros(2)}, tmp_path / "other.pth")
    with pytest.raises(ValueError, match="does not hold Inception-v3's weights"):
        load_inception(tmp_path / "other.pth")


def test_what_inception_lacks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"`weights`: no file .*inception_v3_google"):
        load_inception(tmp_path / "none.pth")
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(ValueError, match="pip install torchvision"):
        load_inception(weights_file(tmp_path / "w.pth"))


# ------------------------------------------------------------------------------- the command


@pytest.mark.usefixtures("torchvision")
def test_the_command_reads_a_folder(tmp_path: Path) -> None:
    write_records(tmp_path / "data_batch_1.bin", 200)
    weights_file(tmp_path / "inception_v3_google-0.pth")
    words = ["benchmark", "conformal", "--quick", "--part", "images,noise", "--test", "C2ST, b"]
    words += ["--repetitions", "1", "--no-progress", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*words, "--images", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "## images,noise" in done.output
    assert "| C2ST, b = 0.95 | 0.008 |" in done.output


def test_the_command_says_what_images_it_needs(tmp_path: Path) -> None:
    words = ["benchmark", "conformal", "--quick", "--out", str(tmp_path), "--part", "images"]
    refused = CliRunner().invoke(app, words)
    assert "`--images`" in str(refused.exception)
    assert "cifar-10-binary.tar.gz" in str(refused.exception)
    assert "\n" not in str(refused.exception)
