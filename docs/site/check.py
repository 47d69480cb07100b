"""Checks the built site: no page loads anything from elsewhere, and no internal link is broken."""

from __future__ import annotations

import html.parser
import pathlib
import sys
import urllib.parse

SITE = pathlib.Path(__file__).resolve().parents[2] / "target" / "site"
#: Attributes that make a browser load something.
LOADING = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href"), ("object", "data")}
#: Kinds of `link` that load nothing.
HARMLESS = {"canonical", "prev", "next", "alternate", "author", "license"}


class Page(html.parser.HTMLParser):
    """The loaded addresses, links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if not (tag == "link" and set(values.get("rel", "").split()) & HARMLESS):
            self.loaded += [values[name] for kind, name in LOADING if kind == tag and name in values]


def main() -> None:
    own = [path for path in sorted(SITE.rglob("*.html")) if path.relative_to(SITE).parts[0] != "rust"]
    pages = {path: Page(path.read_text()) for path in own}
    problems = []
    for path, page in pages.items():
        place = path.relative_to(SITE)
        problems += [f"{place} loads {url}" for url in page.loaded if is_external(url)]
        for link in page.links:
            problems += [f"{place} links to {link}, which is not there"] if is_broken(link, path, pages) else []
    for path in SITE.rglob("*.html"):
        if path not in pages:
            problems += [f"{path.relative_to(SITE)} loads {url}" for url in Page(path.read_text()).loaded if is_external(url)]
    for style in SITE.rglob("*.css"):
        if "url(http" in style.read_text() or "@import" in style.read_text():
            problems.append(f"{style.relative_to(SITE)} loads something from elsewhere")
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"{len(own)} pages: all links lead somewhere, nothing is loaded from elsewhere")


def is_external(url: str) -> bool:
    return bool(urllib.parse.urlsplit(url).netloc)


def is_broken(link: str, page: pathlib.Path, pages: dict[pathlib.Path, Page]) -> bool:
    parts = urllib.parse.urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    # The page for missing pages has links from the root.
    base = SITE if parts.path.startswith("/") else page.parent
    target = (base / urllib.parse.unquote(parts.path).lstrip("/")).resolve() if parts.path else page
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return True
    fragment = urllib.parse.unquote(parts.fragment)
    return bool(fragment) and target in pages and fragment not in pages[target].ids and not fragment.startswith("__")


if __name__ == "__main__":
    main()
