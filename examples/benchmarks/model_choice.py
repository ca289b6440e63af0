"""Which model? Log Bayes factors of abi.compare_models beside exact ones, and the same by hand.

Two pairs of models whose evidences are known in closed form: ten normal items about a mean that is
known nearly or not at all, and eight counts, Poisson with a Gamma prior against geometric with a
Beta prior. Each way gets the same 10,000 simulations; 50 observations, 25 of each model, say how
far its log odds are from the exact ones. By hand: rejection ABC, the share of each model among the
nearest 1% of the standardised x; and scikit-learn's logistic regression and MLP on standardised x.
Errors of log odds are over the x whose exact ones lie within 4; the divergence of the probabilities
is over all x. The ways by hand see x as it is, and no summaries that one might think of.

    python examples/benchmarks/model_choice.py

A few minutes of a core, with model_choice.json and model_choice.md beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measure import cpu_seconds, save, versions
from torch import Tensor
from torch.distributions import Beta, Gamma, Independent, MultivariateNormal, Normal

import abi
from abi.studies.engine import tables
from simulators import from_function, sample_joint
from simulators.random import child_seed

SEED, CALLS, EACH = 2026, 10_000, 25
ITEMS, COUNTS, LARGEST = 10, 8, 4.0
SDS = {"known mean": 0.05, "unknown mean": 1.0}


def items(theta: Tensor) -> Tensor:
    return theta + torch.randn(len(theta), ITEMS)


def poisson(theta: Tensor) -> Tensor:
    return torch.poisson(theta.expand(-1, COUNTS))


def geometric(theta: Tensor) -> Tensor:
    u = torch.rand(len(theta), COUNTS).clamp_min(1e-12)
    return torch.floor(u.log() / torch.log1p(-theta))


def one(distribution: Any) -> Any:
    return Independent(distribution, 1)


CASES = {
    "normal items": {
        name: from_function(items, one(Normal(torch.zeros(1), sd)), True)
        for name, sd in SDS.items()
    },
    "counts": {
        "poisson": from_function(poisson, one(Gamma(torch.tensor([4.0]), 1.0)), True),
        "geometric": from_function(
            geometric, one(Beta(torch.tensor([3.0]), torch.tensor([10.0]))), True
        ),
    },
}


def exact_items(x: Tensor) -> Tensor:
    """Log evidence of the first model over the second, x (n, 10) -> (n,)."""
    parts = [
        MultivariateNormal(
            torch.zeros(ITEMS), torch.eye(ITEMS) + sd**2 * torch.ones(ITEMS, ITEMS)
        ).log_prob(x)
        for sd in SDS.values()
    ]
    return (parts[0] - parts[1]).double()


def exact_counts(x: Tensor) -> Tensor:
    """The same of counts, x (n, 8) -> (n,)."""
    x = x.double()
    total = x.sum(dim=1)
    first = torch.lgamma(4 + total) - math.lgamma(4.0) - (4 + total) * math.log(1.0 + COUNTS)
    first = first - torch.lgamma(x + 1).sum(dim=1)

    def log_beta(a: Any, b: Any) -> Tensor:
        a, b = torch.as_tensor(a).double(), torch.as_tensor(b).double()
        return torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)

    return first - log_beta(3 + COUNTS, 10 + total) + log_beta(3, 10)


EXACT = {"normal items": exact_items, "counts": exact_counts}


def by_abi(models: Any, x: Tensor) -> tuple[Tensor, dict[str, Any]]:
    """Log odds of the first model at each x, and what intervals and verdicts said."""
    found = abi.compare_models(models, x[0], num_simulations=CALLS, seed=SEED, progress=False)
    odds = found.probabilities_at(x).log()
    kept = {"verdict": found.verdict.headline, "encoder": found.classifier.encoder}
    return odds[:, 0] - odds[:, 1], kept | {"comparison": found}


def by_abc(made: list[Tensor], x: Tensor) -> Tensor:
    """The share of the first model among the nearest hundredth, half a pair added to each."""
    together = torch.cat(made)
    sd = together.std(dim=0)
    near = torch.cdist(x / sd, together / sd).topk(len(together) // 100, largest=False).indices
    first = (near < len(made[0])).double().sum(dim=1)
    return torch.log((first + 0.5) / (near.shape[1] - first + 0.5))


def by_sklearn(classifier: Any, made: list[Tensor], x: Tensor) -> Tensor:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    together = torch.cat(made).numpy()
    model = [k for k, part in enumerate(made) for _ in part]
    fitted = make_pipeline(StandardScaler(), classifier).fit(together, model)
    log_q = torch.from_numpy(fitted.predict_log_proba(x.numpy())).double()
    return log_q[:, 0] - log_q[:, 1]


def scores(odds: Tensor, exact: Tensor) -> dict[str, float]:
    """Root mean square error of the log odds within reach, and mean divergence in nats."""
    within = exact.abs() < LARGEST
    error = (odds - exact)[within].square().mean().sqrt()
    cut, true = odds.clamp(-20.0, 20.0), exact.clamp(-20.0, 20.0)
    p = true.sigmoid()
    nats = p * (_log(true) - _log(cut)) + (1.0 - p) * (_log(-true) - _log(-cut))
    return {
        "rms_error_of_log_odds": round(float(error), 3),
        "divergence_in_nats": round(float(nats.mean()), 4),
        "observations_within": int(within.sum()),
    }


def _log(odds: Tensor) -> Tensor:
    return torch.nn.functional.logsigmoid(odds)


def intervals(found: Any, x: Tensor, exact: Tensor) -> dict[str, Any]:
    """How many intervals hold the exact value, their widths, and what it took."""
    first, second = found.names
    at = [found.at(row).log_bayes_factor(first, second) for row in x]
    held = [f.low <= value <= f.high for f, value in zip(at, exact.tolist(), strict=True)]
    widths = sorted(f.high - f.low for f in at if f.bounded)
    return {
        "hold_the_exact": sum(held),
        "of": len(held),
        "at_least_or_at_most": sum(not f.bounded for f in at),
        "median_width": round(widths[len(widths) // 2], 2),
    }


def case(name: str) -> dict[str, Any]:
    """One pair of models, every way."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    models, tasks = CASES[name], list(CASES[name].values())
    drawn = [sample_joint(task, EACH, child_seed(SEED, 0, k))[1] for k, task in enumerate(tasks)]
    x = torch.cat(drawn)
    exact = EXACT[name](x)
    result: dict[str, Any] = {}
    started = cpu_seconds()
    odds, told = by_abi(models, x)
    result["abi.compare_models"] = {"cpu_seconds": round(cpu_seconds() - started, 1)}
    result["abi.compare_models"] |= scores(odds, exact)
    found = told["comparison"]
    result["abi.compare_models"] |= {key: told[key] for key in ("verdict", "encoder")}
    result["abi.compare_models"]["intervals"] = intervals(found, x, exact)
    made = [
        sample_joint(task, CALLS // 2, child_seed(SEED, 1, k))[1] for k, task in enumerate(tasks)
    ]
    rivals: dict[str, Callable[[], Tensor]] = {
        "rejection ABC, nearest 1%": lambda: by_abc(made, x),
        "logistic regression on x": lambda: by_sklearn(LogisticRegression(), made, x),
        "MLP on x": lambda: by_sklearn(
            MLPClassifier((64, 64), early_stopping=True, random_state=SEED), made, x
        ),
    }
    for way, run in rivals.items():
        started = cpu_seconds()
        found_odds = run()
        result[way] = {"cpu_seconds": round(cpu_seconds() - started, 1)} | scores(found_odds, exact)
    return result


def table(results: dict[str, Any]) -> str:
    heads = "models", "way", "error of log odds (rms)", "divergence, nats", "CPU seconds"
    forms = {"rms_error_of_log_odds": ".2f", "divergence_in_nats": ".4f", "cpu_seconds": ".1f"}
    rows = [
        [name, way, *(f"{row[key]:{form}}" for key, form in forms.items())]
        for name, ways in results.items()
        for way, row in ways.items()
    ]
    lines = tables.table(heads, rows)
    for name, ways in results.items():
        row = ways["abi.compare_models"]["intervals"]
        lines.append(
            f"\n{name.capitalize()}: {row['hold_the_exact']} of {row['of']} intervals of 95% hold "
            f"the exact log Bayes factor, median width {row['median_width']}; "
            f"{row['at_least_or_at_most']} say at least or at most."
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    torch.set_num_threads(1)
    results = {name: case(name) for name in CASES}
    Path(__file__).with_suffix(".md").write_text(table(results))
    what = f"Log Bayes factors of two models at {2 * EACH} x, {CALLS:,} simulations, one run each"
    about = {"what": what, "seed": SEED, "versions": versions("torch", "scikit-learn")}
    save(__file__, about | {"results": results})


if __name__ == "__main__":
    main()
