"""The README's Python examples run and print what it shows, and its commands exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from invoked_commands import invoke

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
_BLOCK = r"((?:(?!```).)*)```"
SHOWN = dict(re.findall(rf"```python\n{_BLOCK}\n\n```text\n{_BLOCK}", README, flags=re.DOTALL))
CUT = "--- cut between blocks ---"
# The exact posterior of the ball that the README throws, on a grid.
GRID = """
speed, angle = torch.meshgrid(
    torch.linspace(1.0, 10.0, 2001, dtype=torch.float64),
    torch.linspace(0.2, 1.4, 1001, dtype=torch.float64),
    indexing="ij",
)
time = torch.linspace(0.1, 1.0, 8).double()[:, None, None]
flight = torch.cat([speed * angle.cos() * time, speed * angle.sin() * time - 4.9 * time**2])
misfit = (x_o.double()[:, None, None] - flight).square().sum(dim=0)
weight = torch.softmax(-misfit.flatten() / (2 * 0.1**2), dim=0)
for value in (speed.flatten(), angle.flatten()):
    mean = weight @ value
    print(f"{mean:.3f} ± {(weight @ (value - mean) ** 2).sqrt():.3f}")
"""
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each block prints, run one after the other, and the grid's answer last."""
    done = subprocess.run(
        [sys.executable, "-c", f"\nprint({CUT!r})\n".join([*BLOCKS, GRID])],
        capture_output=True,
        text=True,
        cwd=tmp_path_factory.mktemp("readme"),
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(f"{CUT}\n")


def test_there_are_examples_and_outputs() -> None:
    assert len(BLOCKS) >= 2
    assert len(SHOWN) >= 2


@pytest.mark.parametrize("block", list(SHOWN), ids=range(len(SHOWN)))
def test_a_block_prints_what_is_shown_below_it(printed: list[str], block: str) -> None:
    """The words exactly; numbers to a tenth, those of a fit to a third.

    Another processor or torch rounds differently, and training makes of it what another seed would.
    """
    shown, found = SHOWN[block], printed[BLOCKS.index(block)]
    assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", found).split()
    numbers = [float(number) for number in NUMBER.findall(shown)]
    near = pytest.approx(numbers, rel=1 / 3 if "abi.fit(" in block else 0.1, abs=0.005)
    assert [float(number) for number in NUMBER.findall(found)] == near


def test_the_ball_is_fitted_as_the_exact_posterior_has_it(printed: list[str]) -> None:
    """Means within two exact sds, sds within a third of theirs: one small fit, of any seed."""
    number = next(i for i, block in enumerate(BLOCKS) if "def throw" in block)
    moments, _ = printed[number].splitlines()
    found = [float(value) for value in NUMBER.findall(moments)]
    exact = [[float(value) for value in line.split(" ± ")] for line in printed[-1].splitlines()]
    for mean, sd, (exact_mean, exact_sd) in zip(found[:2], found[2:], exact, strict=True):
        assert abs(mean - exact_mean) < 2.0 * exact_sd
        assert sd == pytest.approx(exact_sd, rel=1 / 3)


def test_the_exact_posterior_of_the_ball_is_the_one_named(printed: list[str]) -> None:
    speed, angle = printed[-1].splitlines()
    assert f"has {speed} and {angle}." in README


def test_files_the_readme_points_to_exist() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_options_the_readme_shows_exist() -> None:
    shown = dict[str, str]()
    for command, words in re.findall(
        r"^abi (\w+)((?: [^\n]*\\\n)*[^\n]*)$", README, flags=re.MULTILINE
    ):
        if command not in shown:
            done = invoke(command, "--help")
            assert done.exit_code == 0, done.output
            shown[command] = done.output
        for option in re.findall(r"--[a-z-]+", words):
            assert option in shown[command], f"abi {command} {option}"
