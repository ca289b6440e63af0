"""The documentation site: pages by need, notebooks, formulas, and the docstrings.

    make docs

Sphinx with autodoc reads the docstrings (they are Google style with reStructuredText roles), MyST
reads Markdown, and myst-nb executes the notebooks. Every warning is an error.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from sphinx.util import logging

_log = logging.getLogger(__name__)
HERE = Path(__file__).parent
_PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]

project = _PROJECT["name"]
release = version = _PROJECT["version"]
copyright = "the authors of abi-toolkit"  # noqa: A001 - Sphinx's name
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "generated"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_timeout = 900  # for a busy machine
nb_execution_raise_on_error = True
nb_execution_cache_path = str(HERE / "_build" / "notebooks")
nb_merge_streams = True

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = ["Returns"]  # as text: its colons do not end a type
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"abi-toolkit {release}"
html_show_sphinx = False

_attribute_docs: dict[str, list[str]] = {}


def formulas_stand_out(
    _app: Any, _what: str, _name: str, _obj: Any, _o: Any, lines: list[str]
) -> None:
    """Indented formulas of a docstring become literal blocks, as they look in the source.

    In plain reStructuredText they would be block quotes whose lines run together and whose bars
    are substitutions. Bars in running text are escaped for the same reason.
    """
    out: list[str] = []
    quoted = False
    for number, line in enumerate(lines):
        indented = line.startswith("    ")
        if not line.strip():
            out.append(line)
            continue
        if indented and not quoted and number and not lines[number - 1].strip():
            quoted = True
            before = next((text for text in reversed(out) if text.strip()), "")
            if not before.startswith("..") and not before.endswith("::"):
                out += ["::", ""]
        elif not indented:
            quoted = False
        out.append(line if quoted else _escaped(line))
    lines[:] = out


def keep_attribute(_app: Any, what: str, name: str, _obj: Any, _o: Any, lines: list[str]) -> None:
    """Napoleon reads "words: more words" below an attribute as a type; keep the words."""
    if what in ("attribute", "data"):
        _attribute_docs[name] = list(lines)


def restore_attribute(
    _app: Any, _what: str, name: str, _obj: Any, _o: Any, lines: list[str]
) -> None:
    """What :func:`keep_attribute` kept, once napoleon is done."""
    lines[:] = _attribute_docs.pop(name, lines)


def _escaped(line: str) -> str:
    parts = re.split(r"(``.*?``|`[^`]+`)", line)
    return "".join(p if p.startswith("`") else p.replace("|", r"\|") for p in parts)


def write_derivations(_app: Any) -> None:
    """A list of the modules of each package whose docstrings derive what they compute."""
    folder = HERE / "generated"
    folder.mkdir(exist_ok=True)
    for package in ("abi", "simulators", "validation"):
        entries = []
        for path in sorted((HERE.parent / package).rglob("*.py")):
            docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
            if path.stem == "__init__" or "cli" in path.parts or docstring.count("\n") < 3:
                continue
            module = ".".join(path.relative_to(HERE.parent).with_suffix("").parts)
            title = f"``{module}``"
            entries.append(
                f"{title}\n{'~' * len(title)}\n\n.. automodule:: {module}\n   :no-members:\n"
            )
        (folder / f"{package}_modules.rst").write_text("\n".join(entries))


def write_comparison(_app: Any) -> None:
    """The table of the benchmark ecosystem.json, as it was measured."""
    measured = json.loads((HERE.parent / "examples/benchmarks/ecosystem.json").read_text())
    exact = measured["exact"]
    lines = [
        "| | lines: fit | CPU s | speed | angle | lines: check | CPU s | p-values | pictures |",
        "|---|---|---|---|---|---|---|---|---|",
        f"| exact | | | {_spread(exact, 0)} | {_spread(exact, 1)} | | | | |",
    ]
    missing = []
    for name, row in measured["libraries"].items():
        fit, check = row["fit"], row["check"] or {}
        lines.append(
            f"| {name} {row['version']} | {fit['lines']} | {fit['cpu_seconds']:.0f} | "
            f"{_spread(fit, 0)} | {_spread(fit, 1)} | {check.get('lines', 'none')} | "
            f"{check.get('cpu_seconds', '')} | {len(check.get('p_values', []))} tests | "
            f"{len(fit['pictures']) + len(check.get('pictures', []))} |"
        )
        missing += [f"- **{name}**: {'; '.join(row['missing'])}."]
    table = "\n".join([*lines, "", "## What is missing in each", "", *missing, ""])
    (HERE / "generated" / "comparison.md").write_text(table)


def _spread(found: dict[str, Any], j: int) -> str:
    return f"{found['mean'][j]:.3f} ± {found['sd'][j]:.3f}"


def write_command_line(_app: Any) -> None:
    """The help of every command, as it is now, for the page on the command line."""
    import os

    from typer.testing import CliRunner

    from abi.cli.app import app as commands

    os.environ["TERM"] = "dumb"
    runner = CliRunner()
    pages = []
    for name in ("", *(command.name for command in commands.registered_commands)):
        words = [name, "--help"] if name else ["--help"]
        shown = runner.invoke(commands, words, env={"COLUMNS": "92"}, prog_name="abi").stdout
        text = "\n".join(line.rstrip() for line in shown.splitlines()).strip("\n")
        pages.append(f"## abi {name}".rstrip() + f"\n\n```text\n{text}\n```\n")
    folder = HERE / "generated"
    folder.mkdir(exist_ok=True)
    (folder / "commands.md").write_text("\n".join(pages))


def visit_inline(self: Any, node: Any) -> None:
    """A formula in a line as MathML, which browsers draw without scripts or a network."""
    _draw(self, node, "inline")


def visit_block(self: Any, node: Any) -> None:
    """A formula of its own as MathML."""
    _draw(self, node, "block")


def _barred(formula: str) -> str:
    """Bars of absolute values and norms as they open and close, as tall as a line and no taller."""
    ends = itertools.cycle(("prefix", "postfix"))
    return re.sub(
        r'<mo(?: stretchy="false")?>(&#x0007C;|&#x02016;)</mo>',
        lambda bar: f'<mo form="{next(ends)}" stretchy="false">{bar[1]}</mo>',
        formula,
    )


def _draw(self: Any, node: Any, display: str) -> None:
    from docutils import nodes
    from latex2mathml.converter import convert

    drawn = _barred(convert(node.astext().strip(), display=display))
    if "\\" in drawn:  # a command that the converter does not know stays as it is
        _log.warning("formula with an unknown command: %s", node.astext(), location=node)
    block = f"{self.starttag(node, 'div', CLASS='math')}{drawn}</div>"
    self.body.append(drawn if display == "inline" else block)
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Hooks of the build."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("builder-inited", write_derivations)
    app.connect("builder-inited", write_comparison)
    app.connect("builder-inited", write_command_line)
    app.connect("autodoc-process-docstring", formulas_stand_out, priority=100)
    app.connect("autodoc-process-docstring", keep_attribute, priority=200)
    app.connect("autodoc-process-docstring", restore_attribute, priority=900)
