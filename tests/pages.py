"""A page read as text, and fits to make pages of."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import torch
from one_look import TASK
from torch import Tensor

import abi
from abi.generators.support import Support
from abi.report.fit_page import prepare
from abi.report.sources import FitRecord
from abi.verdict.judge import untold, verdict_of
from abi.verdict.record import Check, Distance, RoundCheck
from simulators import sample_joint
from validation import Report, validate
from validation.page import render
from validation.swaps.deviations import Deviation

X_O = torch.tensor([0.5, -0.5] * 3)


class Outline(HTMLParser):
    """Tags with their attributes, and the text a reader sees."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.hidden = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def sharp(num_samples: int, x: Tensor) -> Tensor:
    return x / 2 + 0.2 * torch.randn(num_samples, *x.shape)


def checked(q: Any, names: list[str], num_pairs: int = 80, **words: Any) -> Report:
    return validate(q, *sample_joint(TASK, num_pairs, 0), names, num_samples=40, **words)


def stub(dim: int, names: tuple[str, ...] | None = None) -> FitRecord:
    """A fit of ``dim`` independent normals that was never run."""

    class Normals:
        def sample(self, num_samples: int, seed: int) -> Tensor:
            return torch.randn(num_samples, dim, generator=torch.Generator().manual_seed(seed))

    rounds = tuple(
        abi.RoundRecord(t, 1.0 / t, 100, 0.0, 100, 50, 100, 0, "flat", None, None, 1.0)
        for t in (1, 2)
    )
    draws = Normals().sample(2_000, 0)
    posterior = abi.ABIPosterior(
        model=Normals(),  # type: ignore[arg-type]
        x_o=torch.zeros(3),
        parameter_names=names or tuple(f"theta_{j + 1}" for j in range(dim)),
        rounds=rounds,
        accepted=draws,
        seed=0,
        config=abi.ABIConfig(),
        verdict=untold("nothing was checked"),
    )
    ends = torch.full((dim,), torch.inf)
    return FitRecord(
        "stub", posterior, draws, 3 * draws, None, Support(-ends, ends), None, None, None, None, ()
    )


def check_of(dim: int, p_value: float = 0.4, bias: float = 0.05, seen: bool = True) -> Check:
    """A check of ``dim`` parameters, the last of which is off by ``bias``."""
    parts = tuple(
        Deviation(f"theta_{j + 1}", b, b - 0.2, b + 0.2, 1.0, 0.85, 1.2)
        for j, b in enumerate([0.05] * (dim - 1) + [bias])
    )
    tests = {"sbc": 0.5, "hpd": 0.3, "score_rank": p_value}
    controls = {"prior": 0.002, "wide": 0.002 if seen else 0.3}
    density = Deviation("log density", 0.0, -0.1, 0.1, 1.0, 0.9, 1.1)
    return Check(300, 2, p_value, tests, (*parts, density), controls)


def judged(
    record: FitRecord, check: Check, *, x_o_p_value: float = 0.5, rounds: bool = True
) -> FitRecord:
    """The same fit with the verdict that a check gives."""
    dim = record.posterior.theta_dim
    before = RoundCheck(1, 100, check_of(dim, 0.01, 0.6))
    verdict = verdict_of(
        check,
        x_o_p_value=x_o_p_value,
        num_calls=320,
        failures=0,
        rounds=(before,) if rounds else (),
        moved=Distance(0.3, 0.05) if rounds else None,
        marginals=Distance(0.06, 0.05),
    )
    last = record.posterior.rounds[-1]
    done = (*record.posterior.rounds[:-1], replace(last, x_o_p_value=x_o_p_value))
    return replace(record, posterior=replace(record.posterior, verdict=verdict, rounds=done))


def page_for(record: FitRecord, num_predictive: int = 0) -> str:
    from abi.report.assemble import page_of

    return render(page_of([prepare(record, num_predictive, 0, "fit1")], [], None, ()))
