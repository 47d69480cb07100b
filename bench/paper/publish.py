"""Writes tables into the documentation, between markers, and figures beside it.

A table's place is `<!-- table: NAME -->`, the lines that are replaced, and `<!-- end -->`. A page may have several places,
and a table may have places in several pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from .charts import standalone
from .document import Block, Figure, Table, table_to_markdown

PLACE = re.compile(r"(<!-- table: ([a-z0-9-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
OPENING = re.compile(r"<!-- table: ([a-z0-9-]+) -->")


class BrokenPlace(Exception):
    """A page has a marker without an end, or a table without a place."""


def pages(root: Path) -> list[Path]:
    """The pages with tables."""
    return [path for path in (root / "README.md", *sorted((root / "docs").glob("*.md"))) if path.is_file()]


def places(text: str, page: str) -> list[str]:
    """The names of the tables that a page has places for."""
    found = [match[2] for match in PLACE.finditer(text)]
    opened = OPENING.findall(text)
    if found != opened or text.count("<!-- end -->") != len(opened):
        raise BrokenPlace(f"{page}: each `<!-- table: NAME -->` needs an `<!-- end -->` before the next one")
    return found


def publish(blocks: Iterable[Block], root: Path) -> list[Path]:
    """Replace the tables in the pages below `root`, write the figures, and return the changed files."""
    blocks = list(blocks)
    tables = {block.name: block for block in blocks if isinstance(block, Table) and block.name}
    changed, placed = [], set()
    for page in pages(root):
        old = page.read_text(encoding="utf-8")
        placed.update(places(old, page.name))
        new = PLACE.sub(lambda match: _filled(match, tables), old)
        if new != old:
            page.write_text(new, encoding="utf-8")
            changed.append(page)
    homeless = sorted(tables.keys() - placed)
    if homeless:
        raise BrokenPlace(f"no page has a place `<!-- table: {homeless[0]} -->`")
    for block in blocks:
        if isinstance(block, Figure) and block.name:
            path = root / "docs" / "figures" / f"{block.name}.svg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(standalone(block.caption, block.charts), encoding="utf-8")
            changed.append(path)
    return changed


def _filled(match: re.Match[str], tables: dict[str, Table]) -> str:
    table = tables.get(match[2])
    if table is None:
        return match[0]
    return f"{match[1]}{table_to_markdown(table)}\n{match[4]}"
