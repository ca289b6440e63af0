"""The documentation: its link check finds what is broken, and its pages name what exists."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from abi.cli.ending import EXIT_STATUS

DOCS = Path(__file__).parents[2] / "docs"


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, DOCS / "check_links.py", folder],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("b.html", None),
        ("b.html#there", None),
        ("#here", None),
        ("https://example.org/a", None),
        ("c.html", "no such file"),
        ("b.html#gone", "no such place in the page"),
        ("#gone", "no such place in the page"),
        ("http://example.org", "not a well-formed https address"),
        ("https://nowhere", "not a well-formed https address"),
    ],
)
def test_the_link_check_finds_broken_links_and_passes_sound_ones(
    tmp_path: Path, link: str, problem: str | None
) -> None:
    (tmp_path / "a.html").write_text(f'<p id="here"><a href="{link}">x</a></p>')
    (tmp_path / "b.html").write_text('<p id="there">x</p>')
    done = check(tmp_path)
    assert done.returncode == (0 if problem is None else 1)
    if problem is not None:
        assert done.stdout == f"a.html: {link}: {problem}\n"


def test_the_page_on_the_command_line_lists_the_exit_statuses() -> None:
    page = (DOCS / "reference/command_line.md").read_text().replace("`", "")
    for code, meaning in EXIT_STATUS.items():
        assert f"| {code} | {meaning}" in page


@pytest.mark.parametrize("package", ["abi", "simulators", "validation"])
def test_the_reference_has_every_public_name(package: str) -> None:
    page = (DOCS / f"reference/{package}.rst").read_text()
    shown = set(re.findall(rf"^\.\. auto\w+:: {package}\.(\w+)$", page, flags=re.MULTILINE))
    assert shown == set(import_module(package).__all__) - {"__version__"}


def test_every_page_is_listed_on_the_landing_page() -> None:
    index = (DOCS / "index.md").read_text()
    pages = [*DOCS.glob("*.md"), *DOCS.glob("*/*.md"), *DOCS.glob("*/*.rst")]
    for page in pages:
        name = page.relative_to(DOCS).with_suffix("").as_posix()
        if name != "index" and not name.startswith(("generated/", "_build/")):
            assert f"\n{name}\n" in index, name


def test_every_formula_stands_beside_code_that_exists() -> None:
    text = (DOCS / "explanation/formulas.md").read_text()
    shown = re.findall(r"literalinclude\} \.\./\.\./(\S+)\n:pyobject: (\S+)", text)
    assert len(shown) >= 10
    for path, name in shown:
        source = (DOCS.parent / path).read_text()
        assert re.search(rf"(def|class) {name.split('.')[-1]}\b", source), f"{path}: {name}"
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        assert "$$" in section, section.splitlines()[0]
        assert "literalinclude" in section, section.splitlines()[0]
