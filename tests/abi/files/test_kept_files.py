"""Posteriors that earlier versions of this package wrote, kept as they were written.

Each is of a fit to x = theta + 0.3 noise at x_o = (0.5, -0.5) with 600 calls and the smallest flow.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import abi
from abi.files.parts import FORMAT_VERSION, read_parts

KEPT = Path(__file__).parent / "earlier"
THETA = torch.tensor([[0.5, -0.5], [0.2, -0.3], [1.0, 0.0]])
OF_ONE_FIT = [-0.975789, -1.494056, -1.010405]
# What the version that wrote the file said of log q(THETA): 2 to 6 made the same flow.
LOG_PROB = dict.fromkeys(range(2, 7), OF_ONE_FIT) | {
    7: [-1.369682, -1.752731, -1.369170],
    8: [0.649809, 0.158965, -2.320498],
    9: [0.057228, -0.709294, -1.249269],
    10: [0.385263, -0.319507, -1.753007],
    11: [0.556122, -0.275960, -2.099918],
    12: [0.414354, -0.419295, -2.028327],
    13: [0.386904, -0.306636, -1.769460],
    14: [0.509552, -0.159443, -2.212071],
    15: [0.608200, -0.375687, -1.861485],
    16: [0.509552, -0.159443, -2.212071],
    17: [0.725642, 0.129685, -2.397414],
    18: [0.725642, 0.129685, -2.397414],
    19: [0.684261, 0.130923, -2.525000],
    20: [0.674586, 0.160604, -2.572626],
    21: [0.748079, -0.070322, -2.586710],
    22: [0.748079, -0.070322, -2.586710],
    23: [0.416632, 0.132004, -2.978632],
    24: [0.609821, 0.259304, -2.499039],
}


def test_there_is_a_file_of_every_earlier_format() -> None:
    assert sorted(LOG_PROB) == list(range(2, FORMAT_VERSION))
    assert len(list(KEPT.iterdir())) == FORMAT_VERSION - 1


@pytest.mark.parametrize("version", LOG_PROB)
def test_a_kept_file_has_the_density_that_it_was_written_with(version: int) -> None:
    path = KEPT / f"posterior_v{version}.safetensors"
    assert read_parts(path, "abi-posterior")[1]["version"] == version
    posterior = abi.load(path)
    # To float32: the order of sums has changed since.
    torch.testing.assert_close(
        posterior.log_prob(THETA), torch.tensor(LOG_PROB[version]), rtol=0.0, atol=1e-4
    )
    assert posterior.sample((20,)).isfinite().all()
    assert (posterior.verdict.num_calls == 0) == (version < 7)
    unsure = version < 7 or version in range(19, 25)  # these have few check pairs, and say so
    assert (posterior.verdict.outcome == "cannot tell") == unsure


def test_version_1_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="has format version 1; this abi reads 2 to") as refused:
        abi.load(KEPT / "posterior_v1.safetensors")
    assert "\n" not in str(refused.value)
