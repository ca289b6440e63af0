"""From paths to one page: fits first, then validations and power maps, one verdict over all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from validation import load_report
from validation.page import Cell, Page, Section, Table, Written, render
from validation.page.power_map import (
    is_power_map,
    load_power_map,
    power_map_facts,
    power_map_section,
    power_map_verdict,
)
from validation.page.validation_page import validation_facts, validation_sections
from validation.words import listing, plural

from .. import __version__
from ..files.parts import write_bytes
from .fit_page import (
    Fit,
    answer_sections,
    facts_section,
    first_screen,
    fit_words,
    prepare,
    run_sections,
)
from .observation import x_o_notice
from .page_verdict import Named, page_verdict, progress
from .sources import Wanted, is_fit, read_fit

_MOST_COMPARED = 12


def write_page(
    paths: Sequence[Path],
    out: Path,
    title: str | None,
    parameters: tuple[str, ...],
    wanted: Wanted,
    num_predictive: int | None,
) -> dict[str, Any]:
    """Read the paths, write their page, and say what it holds, in JSON's types.

    Raises:
        ValueError: if a path holds none of what a page can show, or a parameter has no such name.
    """
    if out.suffix not in (".html", ".htm"):
        raise ValueError(f"`--out` must end in .html; got {out.name}.")
    fits: list[Fit] = []
    tests: list[tuple[str, dict[str, Any]]] = []
    maps: list[tuple[str, dict[str, Any]]] = []
    for path in paths:
        if not path.exists():
            raise ValueError(
                f"`paths`: there is nothing at {path}; name a run folder (run_dir of abi.fit, "
                "--out of abi fit), a saved posterior (.safetensors), or a saved validation or "
                "power map (.json)."
            )
        if is_fit(path):
            record = read_fit(path, wanted)
            fits.append(prepare(record, num_predictive, wanted.seed, f"fit{len(fits) + 1}"))
        elif is_power_map(path):
            maps.append((str(path), load_power_map(path)))
        else:
            tests.append((str(path), load_report(path)))
    _require_known(parameters, fits)
    _require_same_problem(fits, tests)
    page = page_of(fits, _named(tests, fits), title, parameters, maps)
    write_bytes(out, render(page).encode())
    return {
        "page": str(out),
        "bytes": out.stat().st_size,
        "verdict": {
            "tone": page.verdict.tone,
            "headline": page.verdict.headline,
            "words": page.verdict.words,
            "warnings": [f"{one.headline}. {one.words}" for one in page.notices],
            "rests_on": list(page.verdict.rests_on),
        },
        "fits": [fit.record.name for fit in fits],
        "validations": [name for name, _ in tests],
        "power_maps": [name for name, _ in maps],
    }


def page_of(
    fits: Sequence[Fit],
    tests: Named,
    title: str | None,
    parameters: tuple[str, ...],
    maps: Named = (),
) -> Page:
    """The page of fits, validations and power maps that were read."""
    named = len(fits) > 1
    notices = (x_o_notice(fit, fit.record.name if named else "") for fit in fits)
    return Page(
        title=title or _title(fits, tests),
        subtitle=_subtitle(fits, [name for name, _ in (*tests, *maps)]),
        verdict=page_verdict(fits, tests) if fits or tests else power_map_verdict(maps[0][1]),
        facts=_facts(fits, tests, maps),
        sections=_sections(fits, tests, parameters, maps),
        made_by=f"abi-toolkit {__version__}",
        first=first_screen(fits[0]) if len(fits) == 1 else (),
        notices=tuple(filter(None, notices)),
    )


def _sections(
    fits: Sequence[Fit], tests: Named, parameters: tuple[str, ...], maps: Named
) -> tuple[Section, ...]:
    """Answers, then tests, then how both came about."""
    sections: list[Section] = []
    last: list[Section] = []
    if len(fits) > 1:
        sections.append(Section("side-by-side", "Side by side", (_comparison(fits),)))
    for fit in fits:
        first, then = answer_sections(fit, parameters), run_sections(fit)
        if len(fits) > 1:
            title, facts = f"Fit {fit.record.name}", (facts_section(fit),)
            sections.append(Section(fit.key, title, facts, (*first, *then)))
        else:
            sections += first
            last += then
    for number_, (name, data) in enumerate(tests, 1):
        tested, repeat = validation_sections(data, f"v{number_}-" if len(tests) > 1 else "")
        if len(tests) > 1:
            sections.append(Section(f"v{number_}", f"Validation {name}", (), (tested, repeat)))
        else:
            sections.append(tested)
            last.append(repeat)
    for number_, (name, data) in enumerate(maps, 1):
        heading = "Power map" if len(maps) == 1 else f"Power map {name}"
        sections.append(power_map_section(data, f"power{number_}", heading))
    return (*sections, *last)


def _subtitle(fits: Sequence[Fit], others: Sequence[str]) -> str:
    """What the page is of; of one fit, what it cost."""
    if len(fits) == 1:
        return " · ".join([fit_words(fits[0]), *(Path(name).name for name in others)])
    return ", ".join(Path(name).name for name in [*(fit.record.name for fit in fits), *others])


def _facts(fits: Sequence[Fit], tests: Named, maps: Named) -> tuple[tuple[str, str], ...]:
    """The numbers at the top of a page of one validation or map."""
    if fits or len(tests) + len(maps) != 1:
        return ()
    return validation_facts(tests[0][1]) if tests else power_map_facts(maps[0][1])


def _title(fits: Sequence[Fit], tests: Named) -> str:
    if not fits:
        return "Validation of a posterior" if tests else "Which test sees which failure"
    if len(fits) > 1:
        return f"{len(fits)} posteriors"
    names = fits[0].record.posterior.parameter_names
    return f"Posterior of {listing(names)}" if len(names) <= 4 else (
        f"Posterior of {plural(len(names), 'parameter')}"
    )  # fmt: skip


def _require_known(parameters: Sequence[str], fits: Sequence[Fit]) -> None:
    """Refuse to draw a parameter that no fit has."""
    if parameters and not fits:
        raise ValueError(
            "`--parameter` draws a parameter of a fit, and `paths` name none; leave it out."
        )
    known = {name for fit in fits for name in fit.record.posterior.parameter_names}
    unknown = [name for name in parameters if name not in known]
    if unknown:
        raise ValueError(
            f"`--parameter` must be one of {', '.join(sorted(known))}; got {unknown[0]}."
        )


def _require_same_problem(fits: Sequence[Fit], tests: Named) -> None:
    """Refuse a validation that cannot be of any of the fits."""
    widths = {len(fit.record.posterior.parameter_names) for fit in fits}
    for name, data in tests:
        width = data["asked"].get("theta_dim")
        if widths and width is not None and width not in widths:
            raise ValueError(
                f"`paths`: {name} is the validation of a posterior of {width} parameters, and no "
                f"fit given here has so many ({', '.join(map(str, sorted(widths)))}). Make a page "
                "of its own for it."
            )


def _named(
    tests: Sequence[tuple[str, dict[str, Any]]], fits: Sequence[Fit]
) -> list[tuple[str, Mapping[str, Any]]]:
    """Validations with the fits' parameter names where they have none and the numbers agree."""
    named: list[tuple[str, Mapping[str, Any]]] = []
    for name, data in tests:
        own = data.get("parameter_names")
        for fit in fits:
            names = fit.record.posterior.parameter_names
            if own is None and data["asked"].get("theta_dim") == len(names):
                own = list(names)
        named.append((name, {**data, "parameter_names": own}))
    return named


def _comparison(fits: Sequence[Fit]) -> Table:
    """One row a fit: what it cost, and mean ± sd of the parameters all of them share."""
    shared = [
        name
        for name in fits[0].record.posterior.parameter_names
        if all(name in fit.record.posterior.parameter_names for fit in fits)
    ][:_MOST_COMPARED]
    rows: list[tuple[Cell, ...]] = []
    for fit in fits:
        posterior = fit.record.posterior
        cells = []
        for name in shared:
            m = fit.marginals[posterior.parameter_names.index(name)]
            cells.append(Written(f"{m.near(m.mean, 2)} ± {m.near(m.sd, 2)}", m.mean))
        seconds = sum(r.seconds for r in posterior.rounds)
        rounds: Cell = len(posterior.rounds)
        if not fit.record.finished:
            rounds = Written(f"unfinished: {progress(fit)}", float(len(posterior.rounds)))
        name, calls = fit.record.name, posterior.num_simulations
        rows.append((name, calls, rounds, round(seconds, 1), *cells))
    return Table(
        "Calls, cost, and mean ± standard deviation of each shared parameter",
        ("fit", "calls", "rounds", "seconds", *shared),
        tuple(rows),
        sortable=True,
    )
