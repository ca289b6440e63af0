"""The study of the verdict in numbers and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...engine.tables import average, mean_of, table
from .cells import Worked
from .rates import RIGHT, shares

TITLE = "Is the verdict right?"
SETTING = (
    "Level and power: exact conditionals of five parameters, 50 draws of q at each of N pairs, "
    "level .05. Fits: defaults of abi.fit, observations drawn from prior and simulator, exact "
    "draws for the true bias, sd ratio and C2ST (sbibm's classifier, 1,500 draws a side)."
)


def summary(found: Mapping[str, Sequence[Worked]], seed: int) -> dict[str, Any]:
    """All that the page shows, in JSON's types."""
    return {
        "title": TITLE,
        "setting": SETTING,
        "seed": seed,
        **{name: _rows(found[name]) for name in ("level", "power", "rivals")},
        "truth": truth(found["fits"]),
        "fits": [dict(cell) for cell in found["fits"]],
        "price": price(found["fits"], found["price"]),
    }


def price(fits: Sequence[Worked], without: Sequence[Worked]) -> dict[str, Any]:
    """What check pairs cost: C2ST with them less that without, fit by fit, with a 95% interval."""
    of = {_fit_of(cell): cell["c2st"] for cell in fits}
    pairs = [(of[_fit_of(cell)], cell["c2st"]) for cell in without if _fit_of(cell) in of]
    if len(pairs) < 2:
        return {}
    mean, half = mean_of([with_pairs - alone for with_pairs, alone in pairs])
    half = half or 0.0  # None of a single pair alone
    return {
        "fits": len(pairs),
        "with": round(average([a for a, _ in pairs]), 4),
        "without": round(average([b for _, b in pairs]), 4),
        "more": round(mean, 4),
        "interval": [round(mean - half, 4), round(mean + half, 4)],
    }


def _fit_of(cell: Worked) -> tuple[Any, ...]:
    return cell["model"], cell["calls"], cell["observation"]


def truth(fits: Sequence[Worked]) -> dict[str, Any]:
    """What the fits say of the verdict: coverage, rank correlation, and who fails."""
    judged = [cell for cell in fits if cell["further"]["p_value"] is not None]
    if not judged:
        return {}
    from scipy.stats import spearmanr

    out: dict[str, Any] = {"fits": len(fits), "models": len({cell["model"] for cell in fits})}
    for name in ("verdict", "further"):
        some = [cell for cell in fits if cell[name]["p_value"] is not None]
        held = [_held(cell, name) for cell in some]
        bias, ratio = (sum(part[k] for part in held) for k in (0, 1))
        count = sum(part[2] for part in held)
        expected = [cell[name]["expected_c2st"] for cell in some]
        true = [cell["c2st"] for cell in some]
        groups = {
            outcome: [cell["c2st"] for cell in some if cell[name]["outcome"] == outcome]
            for outcome in ("passes", "cannot tell", "fails")
        }
        out[name] = {
            "judged": len(some),
            "bias_held": round(bias / count, 4),
            "sd_ratio_held": round(ratio / count, 4),
            "parameters": count,
            "spearman": round(float(spearmanr(expected, true)[0]), 3),
            "mean_c2st": {
                outcome: [len(values), round(average(values), 3)]
                for outcome, values in groups.items()
                if values
            },
        }
    seconds = sum(cell["fit_seconds"] for cell in fits)
    out["judge_share"] = round(sum(cell["judge_seconds"] for cell in fits) / seconds, 4)
    return out


def markdown(values: Mapping[str, Any]) -> str:
    """The page."""
    lines = [f"# {values['title']}", "", values["setting"], "", f"Seed {values['seed']}.", ""]
    if values["level"]:
        lines += ["## Level: q is right, share rejected at .05", ""]
        lines += [*_rate_table(values["level"]), ""]
    if values["power"]:
        lines += ["## Power: q is wrong, share rejected at .05", ""]
        lines += [*_rate_table(values["power"], best=True), ""]
    if values["rivals"]:
        lines += ["Tests of `validation` as they are, on pairs of the same law:", ""]
        lines += [*_rate_table(values["rivals"]), ""]
    if values["truth"]:
        lines += ["## Truth: honest fits beside exact posteriors", "", *_truth_lines(values)]
    if found := values["price"]:
        low, high = found["interval"]
        lines += [
            "## Price: the same fits with all calls for training",
            "",
            f"{found['fits']} fits: mean C2ST {found['with']:.4f} with check pairs, "
            f"{found['without']:.4f} without; the pairs cost {found['more']:+.4f} "
            f"(95%: {low:+.4f} to {high:+.4f}).",
            "",
        ]
    return "\n".join(lines)


def _rows(cells: Sequence[Worked]) -> list[dict[str, Any]]:
    return [
        {"law": law, "failure": failure, "num_pairs": size, "verdicts": count,
         "rejected": {name: round(value, 4) for name, value in rates.items()}}
        for (law, failure, size), (count, rates) in shares(cells).items()
    ]  # fmt: skip


def _rate_table(rows: Sequence[Mapping[str, Any]], *, best: bool = False) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row["rejected"]))
    heads = ["q", "N", "verdicts", *names, *(["below the best"] if best else [])]
    body = []
    for row in sorted(rows, key=lambda row: (row["law"], row["failure"], row["num_pairs"])):
        rates = row["rejected"]
        what = row["law"] if row["failure"] == RIGHT else row["failure"]
        entries = [what, row["num_pairs"], row["verdicts"], *(f"{rates[n]:.3f}" for n in names)]
        if best:
            others = max(value for name, value in rates.items() if name != "panel")
            entries.append(f"{max(0.0, others - rates['panel']):.3f}")
        body.append(entries)
    return table(heads, body)


def _held(cell: Worked, name: str) -> tuple[int, int, int]:
    """Parameters whose true bias and sd ratio lie in their intervals, and how many there are."""
    parts = cell[name]["parameters"]
    bias = sum(
        low <= true <= high for (low, high, *_), true in zip(parts, cell["bias"], strict=True)
    )
    ratio = sum(
        low <= true <= high for (*_, low, high), true in zip(parts, cell["sd_ratio"], strict=True)
    )
    return bias, ratio, len(parts)


def _truth_lines(values: Mapping[str, Any]) -> list[str]:
    found = values["truth"]
    heads = ["pairs", "judged", "bias held", "sd ratio held", "Spearman", "mean C2ST by outcome"]
    body = [
        [
            "7% of the calls" if name == "verdict" else "600 calls more",
            part["judged"],
            f"{part['bias_held']:.3f}",
            f"{part['sd_ratio_held']:.3f}",
            f"{part['spearman']:.2f}",
            "; ".join(f"{k} {v[1]:.3f} ({v[0]})" for k, v in part["mean_c2st"].items()),
        ]
        for name in ("verdict", "further")
        for part in [found[name]]
    ]
    lines = [
        f"{found['fits']} fits of {found['models']} models. Judging took "
        f"{found['judge_share']:.1%} of the fits' CPU time.",
        "",
        *table(heads, body),
        "",
    ]
    heads = ["model", "calls", "x_o", "C2ST", "expected", "outcome", "after 600 more", "fit s"]
    body = [
        [
            cell["model"],
            f"{cell['calls']:,}",
            cell["observation"],
            f"{cell['c2st']:.3f}",
            f"{cell['further']['expected_c2st'] or 0.5:.3f}",
            cell["verdict"]["headline"].split(":")[0],
            cell["further"]["headline"].split(":")[0],
            f"{cell['fit_seconds']:.0f}",
        ]
        for cell in sorted(values["fits"], key=lambda c: (c["model"], c["calls"]))
    ]
    return [*lines, *table(heads, body), ""]
