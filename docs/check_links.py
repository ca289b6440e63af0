"""Check the links of a built site: internal ones lead somewhere, external ones are well formed.

    python docs/check_links.py docs/_build/html

Nothing is fetched, so that the check needs no network.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places in it that a link may lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids, and what the tag points to."""
        values = dict(attrs)
        self.places.update(filter(None, (values.get("id"), values.get("name"))))
        link = values.get("href") or values.get("src")
        if link and tag in ("a", "img", "link", "script"):
            self.links.append(link)


def problems_of(root: Path) -> list[str]:
    """Every link of the site that leads nowhere, with the page it is on."""
    pages = {path.resolve(): Page(path) for path in root.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for link in page.links:
            problem = _problem(path, link, pages)
            if problem:
                found.append(f"{path.relative_to(root.resolve())}: {link}: {problem}")
    return sorted(set(found))


def _problem(path: Path, link: str, pages: dict[Path, Page]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme in ("data", "mailto"):
        return None
    if parts.scheme:
        fine = parts.scheme == "https" and "." in parts.netloc and " " not in link
        return None if fine else "not a well-formed https address"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return "no such file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
        return "no such place in the page"
    return None


def main() -> None:
    """Print the problems of the site; exit status 1 if there are any."""
    root = Path(sys.argv[1])
    found = problems_of(root)
    print("\n".join(found) or f"every link of {len(list(root.rglob('*.html')))} pages is sound")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
