"""The house as a picture, drawn from the imports of the code as they are.

    python docs/draw_rooms.py docs/rooms.svg

A box is a room (a folder, or a file at the top of a package), wider the more lines it has; a room
stands above every room of its package that it imports. Lines lead from a room to those it imports,
but for those that another of them imports in turn. abi imports validation and simulators,
validation imports simulators; these lines are not drawn.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("abi", "validation", "simulators")
WIDTHS, STEP, HEIGHT, GAP = (420, 360, 420), 56, 30, 10
_COLOURS = {"abi": "#4c72b0", "validation": "#b0604c", "simulators": "#4c9a6a"}


def room_of(module: str) -> str:
    """Package and first folder or file below it: ``abi.rounds.steps`` -> ``abi.rounds``."""
    return ".".join(module.split(".")[:2])


def modules() -> dict[str, Path]:
    """Every module of the three packages, by name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(module: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules that a module imports, inside functions and for types too."""
    here = module.split(".") if path.stem == "__init__" else module.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            names = {f"{name}.{alias.name}" for alias in node.names} | {name}
            found |= names & known.keys()
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & known.keys()
    return found


def house() -> tuple[dict[str, int], dict[str, set[str]]]:
    """Lines of every room, and the rooms that it imports."""
    known = modules()
    lines: dict[str, int] = {}
    arrows: dict[str, set[str]] = {}
    for module, path in known.items():
        room = room_of(module)
        if room in PACKAGES:  # a package's face only hands names on
            continue
        lines[room] = lines.get(room, 0) + len(path.read_text().splitlines())
        to = {room_of(name) for name in imported(module, path, known)} - {room, *PACKAGES}
        arrows.setdefault(room, set()).update(to)
    return lines, arrows


def reached(room: str, arrows: dict[str, set[str]]) -> set[str]:
    """All rooms below a room."""
    below = set(arrows[room])
    for other in arrows[room]:
        below |= reached(other, arrows)
    return below


def floors(arrows: dict[str, set[str]]) -> dict[str, int]:
    """How high a room stands: one above the highest room it imports."""
    heights: dict[str, int] = {}

    def height(room: str) -> int:
        if room not in heights:
            heights[room] = 1 + max((height(other) for other in arrows[room]), default=-1)
        return heights[room]

    for room in arrows:
        height(room)
    return heights


def draw() -> str:
    """The picture as SVG: a building a package, side by side on one ground."""
    lines, arrows = house()
    parts, left, tallest = [], 0.0, 0
    for package, width in zip(PACKAGES, WIDTHS, strict=True):
        inside = {
            room: {other for other in below if other.startswith(f"{package}.")}
            for room, below in arrows.items()
            if room.startswith(f"{package}.") and not room.endswith("__main__")
        }
        heights = floors(inside)
        places = _places(heights, lines, left, width)
        for room, below in inside.items():
            direct = below - {far for near in below for far in reached(near, inside)}
            parts += [_line(places[room], places[other]) for other in sorted(direct)]
        parts += [_box(room, place, lines[room]) for room, place in places.items()]
        parts.append(
            f'<text x="{left + width / 2:.0f}" y="{GAP + 14}" text-anchor="middle" '
            f'font-size="15" font-weight="bold" fill="{_COLOURS[package]}">{package}</text>'
        )
        left += width
        tallest = max(tallest, *heights.values())
    ground = -STEP * (tallest + 1) + GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {ground} {sum(WIDTHS)} '
        f'{-ground + 3 * GAP}" font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, *parts, "</svg>", ""])


def _places(
    heights: dict[str, int], lines: dict[str, int], left: float, width: float
) -> dict[str, tuple[float, float, float]]:
    """Left edge, top and width of every room of a building; the ground is at 0."""
    places = {}
    for floor in set(heights.values()):
        row = sorted(room for room in heights if heights[room] == floor)
        free = width - GAP * (len(row) + 1)
        least = min(84.0, free / len(row))
        share = (free - least * len(row)) / max(6_000, sum(lines[room] for room in row))
        used = sum(least + share * lines[room] for room in row) + GAP * (len(row) - 1)
        at = left + (width - used) / 2
        for room in row:
            size = least + share * lines[room]
            places[room] = (at, -STEP * (floor + 1) + STEP - HEIGHT, size)
            at += size + GAP
    return places


def _line(high: tuple[float, float, float], low: tuple[float, float, float]) -> str:
    x1, y1, x2, y2 = high[0] + high[2] / 2, high[1] + HEIGHT, low[0] + low[2] / 2, low[1]
    middle = (y1 + y2) / 2
    return (
        f'<path d="M{x1:.0f} {y1:.0f} C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} '
        f'{y2:.0f}" fill="none" stroke="#999" stroke-width="1"/>'
    )


def _box(room: str, place: tuple[float, float, float], lines: int) -> str:
    x, y, width = place
    package, name = room.split(".")
    return (
        f'<g><title>{room}: {lines} lines</title><rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" '
        f'height="{HEIGHT}" rx="5" fill="{_COLOURS[package]}"/><text x="{x + width / 2:.0f}" '
        f'y="{y + 20}" text-anchor="middle" fill="white">{name}</text></g>'
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw())
