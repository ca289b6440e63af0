"""Section 4.2 of the L-C2ST paper: is an estimate of the Jansen-Rit model right at every gain?

Differs from the paper: x is the logarithm of the power spectrum (33 values), for the flow and the
classifier alike; the paper leaves what the flow sees of the 1024 values to Rodrigues et al. (2021).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from simulators import sample_joint
from simulators.random import child_seed
from validation import ValidationResult, as_posterior, fit_lc2st, hpd, sbc
from validation.posteriors.protocol import progress_bar

from ....baselines.guest import guest
from ....files.parts import read_parts, write_parts
from ..experiment import Place
from .estimate import Recipe, digest, estimate, from_base
from .parts import GainPart

_KIND = "abi-benchmark-gains"
_NUM_RANKED = 100
_CENTRE = (135.0, 220.0, 2000.0)
SHOWN = 10.0
"""The gain whose draws the paper's Figure 4 shows."""


@dataclass(frozen=True, eq=False)
class GainStudy:
    """L-C2ST-NF over the gain, and the two global tests beside it."""

    part: GainPart
    values: dict[str, Any]
    """As JSON has them: a row a gain, and p-values of the global tests."""
    at_shown: ValidationResult
    """Of L-C2ST-NF at the gain of Figure 4, its draws mapped back to theta."""


def gain_study(part: GainPart, place: Place) -> GainStudy | None:
    """Train the flow and the classifiers, and read them at every gain; kept once it is done.

    None where nothing is kept and the time is up.
    """
    folder, seed = place.cells, place.seed
    folder.mkdir(parents=True, exist_ok=True)
    own = child_seed(seed, 0)
    how = Recipe(part.label, part.num_train, own, "maf", part.num_transforms, part.max_epochs)
    request = {k: v for k, v in asdict(part).items() if k != "task"} | {"seed": seed}
    path = how.path(folder).with_suffix(f".gains-{digest(request)}.safetensors")
    if path.is_file():
        return _restored(part, path)
    if not place.seconds_left:
        return None
    with progress_bar(4, part.label, place.progress) as advance:
        flow = estimate(part.task, how, folder)
        advance()
        with guest(child_seed(seed, 1)):
            worked = _worked(part, flow, seed, advance)
    header = {"request": request, "values": worked.values}
    write_parts(path, _KIND, _tensors(worked.at_shown), header)
    return worked


def _worked(part: GainPart, flow: Any, seed: int, advance: Callable[[], None]) -> GainStudy:
    q = as_posterior(flow)
    theta, x = sample_joint(part.task, part.num_cal, child_seed(seed, 2))
    checks = [
        test(q, theta, x, num_samples=_NUM_RANKED, seed=child_seed(seed, 4)) for test in (sbc, hpd)
    ]
    advance()
    fitted = fit_lc2st(q, theta, x, flow=True, num_nulls=part.num_nulls, seed=child_seed(seed, 5))
    advance()
    theta_o = torch.tensor([[*_CENTRE, gain] for gain in part.gains])
    x_o = part.task(theta_o, child_seed(seed, 3))
    found = [fitted.test(row, num_samples=part.num_samples) for row in x_o]
    advance()
    shown = part.gains.index(SHOWN)
    at_shown = _with_theta(found[shown], flow, x_o[shown])
    rows = [_row(gain, result) for gain, result in zip(part.gains, found, strict=True)]
    settings = {k: v for k, v in asdict(part).items() if k not in ("label", "task", "gains")}
    values = {
        "label": part.label,
        "settings": settings,
        "global": {check.method: check.p_value for check in checks},
        "offset": _offset(at_shown, theta_o[shown], part.task.parameter_names),
        "gains": rows,
        "u_shape": u_shape(rows),
        "theta_o": theta_o[shown].tolist(),
    }
    return GainStudy(part, values, at_shown)


def u_shape(rows: list[dict[str, float]]) -> dict[str, float]:
    """Mean statistic where |g| is 15 or more, where it is 5 or less, and their ratio."""
    outer = [row["statistic"] for row in rows if abs(row["gain"]) >= 15]
    inner = [row["statistic"] for row in rows if abs(row["gain"]) <= 5]
    means = sum(outer) / len(outer), sum(inner) / len(inner)
    return {"borders": means[0], "centre": means[1], "ratio": means[0] / means[1]}


def _row(gain: float, result: ValidationResult) -> dict[str, float]:
    """The statistic at one gain beside its null."""
    null = torch.as_tensor(result.null_statistics)
    low, middle, high = (float(torch.quantile(null, level)) for level in (0.025, 0.5, 0.975))
    return {
        "gain": gain, "statistic": result.statistic, "p_value": result.p_value,
        "null_low": low, "null_median": middle, "null_high": high,
    }  # fmt: skip


def _with_theta(result: ValidationResult, flow: Any, x_o: Tensor) -> ValidationResult:
    """The result with its base draws mapped to theta = T(z; x_o), as Figure 4 shows them."""
    theta = from_base(flow, result.details["theta_o"][:, 0], x_o)
    return replace(result, details={**result.details, "theta_o": theta[:, None]})


def _offset(result: ValidationResult, theta_o: Tensor, names: tuple[str, ...]) -> dict[str, float]:
    """Mean of q's draws less the true parameters, in standard deviations of q."""
    draws = result.details["theta_o"][:, 0]
    offset = (draws.mean(dim=0) - theta_o) / draws.std(dim=0)
    return dict(zip(names, offset.tolist(), strict=True))


def _tensors(result: ValidationResult) -> dict[str, Tensor]:
    """What the pictures at one gain are drawn from."""
    curves = {f"pp.{name}": curve for name, curve in result.details["pp"].items()}
    return curves | {key: result.details[key] for key in ("theta_o", "probabilities")}


def _restored(part: GainPart, path: Path) -> GainStudy:
    tensors, header = read_parts(path, _KIND)
    values = header["values"]
    (row,) = (row for row in values["gains"] if row["gain"] == SHOWN)
    curves = {k.removeprefix("pp."): v for k, v in tensors.items() if k.startswith("pp.")}
    details = {"pp": curves, **{key: tensors[key] for key in ("theta_o", "probabilities")}}
    seed = header["request"]["seed"]
    result = ValidationResult("lc2st_nf", row["statistic"], row["p_value"], seed, details=details)
    return GainStudy(part, values, result)
