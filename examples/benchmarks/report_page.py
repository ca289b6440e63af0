"""How heavy a report is, and how long a browser takes to open and to answer it.

Fits of the conjugate Gaussian model with 10 parameters (10,000 posterior draws) and with 100 (2,000
draws); times are medians of five openings in a headless Chromium without a network. Needs
chromium and chromedriver. Run: python examples/benchmarks/report_page.py
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import save, versions

import abi
import simulators

NUM_OPENINGS = 5
CASES = {"10 parameters": (10, 10_000), "100 parameters": (100, 2_000)}
READ = """
const t = performance.getEntriesByType("navigation")[0];
const paint = performance.getEntriesByName("first-contentful-paint")[0];
return {first_paint_ms: paint ? paint.startTime : null, loaded_ms: t.loadEventEnd,
        elements: document.querySelectorAll("*").length};
"""
ANSWER = """
const start = performance.now();
arguments[0].click();
document.body.getBoundingClientRect();
return performance.now() - start;
"""


def browser(profile: str) -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    words = "headless no-sandbox disable-gpu disable-quic no-first-run disable-sync"
    words += " disable-background-networking disable-component-update"
    for word in (*words.split(), f"user-data-dir={profile}"):
        options.add_argument(f"--{word}")
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def measure(page: Path) -> dict[str, float]:
    """Medians over fresh openings, and the time of a click: sort a table, choose a parameter."""
    seen: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as profile:
        found = browser(profile)
        for _ in range(NUM_OPENINGS):
            found.get(page.as_uri())
            time.sleep(0.5)
            values = found.execute_script(READ)
            for name, where in (
                ("sort_ms", "table[data-sortable] thead button"),
                ("choose_ms", ".choices input"),
            ):
                element = found.find_element("css selector", where)
                values[name] = found.execute_script(ANSWER, element)
            seen.append(values)
        found.quit()
    return {name: round(statistics.median(v[name] for v in seen), 1) for name in seen[0]}


def main() -> None:
    cases = {}
    for name, (dim, num_samples) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            run, page = Path(folder) / "run", Path(folder) / "page.html"
            task = simulators.GaussianLinear(dim, 1.0, 0.3)
            words = {"num_simulations": 4_000, "num_rounds": 2, "seed": 0, "progress": False}
            abi.fit(task.prior, task, task.observation, run_dir=run, **words)
            start = time.perf_counter()
            make = [sys.executable, "-m", "abi", "report", str(run), "--out", str(page)]
            subprocess.run([*make, "--num-samples", str(num_samples)], check=True)
            seconds = time.perf_counter() - start
            cases[name] = {
                "posterior_draws": num_samples,
                "megabytes": round(page.stat().st_size / 1e6, 3),
                "seconds_to_make": round(seconds, 1),
                **measure(page),
            }
            print(name, cases[name])
    result = {
        "what": "one self-contained HTML page a fit, opened from disk",
        "cases": cases,
        "openings": NUM_OPENINGS,
        "seed": 0,
        "versions": versions("matplotlib", "jinja2", "selenium"),
    }
    save(__file__, result)


if __name__ == "__main__":
    main()
