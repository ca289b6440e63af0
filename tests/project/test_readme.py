"""The front page: its examples run and print what it shows, its commands and files exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import invoke

from abi.studies.benchmark.tasks.results import KNOWN

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
VERDICT_PAGE = (ROOT / "docs/how_to/reading_a_verdict.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
_BLOCK = r"((?:(?!```).)*)```"
SHOWN = dict(re.findall(rf"```python\n{_BLOCK}\n\n```text\n{_BLOCK}", README, flags=re.DOTALL))
CUT = "--- cut between blocks ---"
# The whole verdict, the answer, and the exact posterior of the ball on a grid.
BEHIND = """
print(posterior.verdict)
print(CUT)
for column in posterior.sample((4_000,)).T:
    print(f"{column.mean():.3f} ± {column.std():.3f}")
print(CUT)
speed, angle = np.meshgrid(np.linspace(1, 10, 2001), np.linspace(0.2, 1.4, 1001), indexing="ij")
t = np.linspace(0.1, 1.0, 8)[:, None, None]
flight = np.concatenate([speed * np.cos(angle) * t, speed * np.sin(angle) * t - 4.9 * t**2])
weight = np.exp(-((x_o[:, None, None] - flight) ** 2).sum(axis=0) / (2 * 0.1**2))
weight /= weight.sum()
for value in (speed, angle):
    mean = (weight * value).sum()
    print(f"{mean:.3f} ± {(weight * (value - mean) ** 2).sum() ** 0.5:.3f}")
"""
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each block prints, run one after the other, and what stands behind the first."""
    cut = f"\nprint({CUT!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", f"CUT = {CUT!r}\n" + cut.join([*BLOCKS, BEHIND])],
        capture_output=True,
        text=True,
        cwd=tmp_path_factory.mktemp("readme"),
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(f"{CUT}\n")


def test_the_front_page_is_short_and_every_block_shows_what_it_prints() -> None:
    assert len(README.splitlines()) <= 130
    assert len(SHOWN) == len(BLOCKS) >= 2


@pytest.mark.parametrize("block", list(SHOWN), ids=range(len(SHOWN)))
def test_a_block_prints_what_is_shown_below_it(printed: list[str], block: str) -> None:
    """The words exactly; numbers to a tenth, those of a verdict within what another seed changes.

    Another processor or torch rounds differently, and training makes of it what another seed would.
    """
    shown, found = SHOWN[block], printed[BLOCKS.index(block)]
    assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", found).split()
    if "abi.fit(" not in block:
        near = pytest.approx(
            [float(number) for number in NUMBER.findall(shown)], rel=0.1, abs=0.005
        )
        assert [float(number) for number in NUMBER.findall(found)] == near


def test_the_page_on_verdicts_explains_the_lines_that_this_one_has(printed: list[str]) -> None:
    shown = re.search(r"```text\n(.*?)```", VERDICT_PAGE, flags=re.DOTALL)
    assert shown is not None
    labels = [re.match(r"\s*\S+(?: \S+)*", line) for line in printed[-3].splitlines()]
    for label in filter(None, labels):
        words = NUMBER.sub("#", label.group().split("  ")[0])
        assert words in NUMBER.sub("#", shown.group(1)), words


def test_the_ball_is_fitted_as_the_exact_posterior_has_it(printed: list[str]) -> None:
    """Means within a half of an exact sd, sds within a third: what the verdict allows."""
    answers, exact = (
        [[float(number) for number in line.split(" ± ")] for line in part.splitlines()]
        for part in printed[-2:]
    )
    for (mean, sd), (exact_mean, exact_sd) in zip(answers, exact, strict=True):
        assert abs(mean - exact_mean) < 0.5 * exact_sd
        assert sd == pytest.approx(exact_sd, rel=1 / 3)


def test_files_the_readme_points_to_exist() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", README):
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


TASKS = {
    "two moons": "two_moons",
    "SLCP": "slcp",
    "SLCP with distractors": "slcp_distractors",
    "Gaussian mixture": "gaussian_mixture",
    "Gaussian linear": "gaussian_linear",
    "Gaussian linear, uniform prior": "gaussian_linear_uniform",
    "Bernoulli GLM": "bernoulli_glm",
    "Bernoulli GLM, raw": "bernoulli_glm_raw",
    "SIR epidemic": "sir",
    "Lotka-Volterra": "lotka_volterra",
}
MODELS = {"M/G/1 queue": "MG1", "noisy wave": "Cosine"}


def test_the_table_of_results_is_what_was_measured() -> None:
    """C2ST by task: ours, and the lowest in print or the best rival on the same data."""
    tasks = json.loads((ROOT / "examples/benchmarks/tasks.json").read_text())["cells"]
    study = json.loads((ROOT / "examples/paper/accuracy.json").read_text())["cells"]

    def c2st(cells: list[dict], model: str, method: str, budget: int) -> str:
        found = [
            cell["scores"]["c2st"]
            for cell in cells
            if (cell["model"], cell["method"], cell["budget"]) == (model, method, budget)
            and not cell["error"]
        ]
        return f"{sum(found) / len(found):.2f}"

    rows = re.findall(r"^\| (.+?) \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \|", README, re.MULTILINE)
    assert [row[0] for row in rows] == [*TASKS, *MODELS]
    for name, calls, ours, rival in rows:
        budget = int(calls.replace(",", ""))
        if name in TASKS:
            assert ours == c2st(tasks, TASKS[name], "abi", budget)
            known = KNOWN[TASKS[name]][budget]
            assert rival == f"{known.since or known.best_2021:.2f}"
        else:
            assert ours == c2st(study, MODELS[name], "abi", budget)
            rivals = ("snpe_1", "snle_1", "wgan_gp", "smc_abc", "wabc", "abc_ss")
            assert rival == min(c2st(study, MODELS[name], method, budget) for method in rivals)
