"""``abi compare``: what it prints, keeps and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import invoke

import abi

MODULE = """
import torch
from torch.distributions import Independent, Normal

prior = Independent(Normal(torch.zeros(1), torch.ones(1)), 1)
wide_prior = Independent(Normal(torch.zeros(1), 4.0 * torch.ones(1)), 1)

def looks(theta):
    return theta + torch.randn(len(theta), 3)

class Brings:
    prior = prior

    def __call__(self, theta):
        return looks(theta)
"""
MODELS = ("--model", "narrow=compared:Brings", "--model", "wide=compared:looks",
          "--prior", "wide=compared:wide_prior")  # fmt: skip
FEW = ("--observed", "x.csv", "--num-simulations", "700", "--no-progress")


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("compared.py").write_text(MODULE)
    np.savetxt("x.csv", [[6.0, 7.0, 8.0]], delimiter=",")


def test_it_names_the_model_that_the_data_are_of_and_keeps_the_comparison() -> None:
    """At a mean of 7 the wide prior is ahead by 13 nats."""
    said = invoke("compare", *MODELS, *FEW, "--json", "--out", "kept.safetensors")
    assert said.exit_code == 0
    kept = abi.ModelComparison.load("kept.safetensors")
    assert kept.best == "wide"
    assert json.loads(said.stdout) == json.loads(json.dumps(kept.to_dict()))
    assert torch.equal(kept.x_o, torch.tensor([6.0, 7.0, 8.0]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--model", "compared:looks", *MODELS), "`--model` must be NAME=module:object"),
        (("--model", "wide=compared:Brings", *MODELS), "each name once; got 'wide=compared:l"),
        (("--model", "a=compared:Brings"), "`models` must be two or more; got 1"),
        ((*MODELS, "--prior", "flat=compared:prior"), "there is no model 'flat'"),
        (("--model", "a=compared:looks", *MODELS), "`--prior` is needed"),
    ],
)
def test_what_is_no_comparison_is_told(words: tuple[str, ...], message: str) -> None:
    said = invoke("compare", *words, *FEW)
    assert said.exit_code == 2 or isinstance(said.exception, ValueError)
    assert message in said.output + str(said.exception)
