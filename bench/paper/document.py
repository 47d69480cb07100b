"""A report as Markdown, as a self-contained page, and as tables on the terminal."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

STYLE = Path(__file__).resolve().parents[1] / "src" / "document.css"
"""The style of all reports of the project."""

EXTRA_STYLE = """\
td.best { font-weight: 700; }
tr.printed td { color: var(--soft); }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: 1rem; }
figure { max-width: none; }
svg.chart { display: block; width: 100%; height: auto; }
svg.chart text { fill: var(--ink); font: 11px system-ui, -apple-system, "Segoe UI", sans-serif; }
svg.chart text.soft { fill: var(--soft); }
svg.chart text.series { fill: var(--series); }
svg.chart .axis { stroke: var(--soft); fill: none; }
svg.chart .ideal { stroke: var(--soft); stroke-dasharray: 4 4; }
svg.chart .group { stroke: var(--ink); stroke-width: 4; stroke-linecap: round; }
svg.chart .line { fill: none; stroke-width: 1.4; stroke-linejoin: round; }
"""


@dataclass(frozen=True)
class Text:
    """A paragraph. Its only markup is `code` in backticks."""

    text: str


@dataclass(frozen=True)
class Heading:
    """The heading of a section."""

    text: str


@dataclass(frozen=True)
class Cell:
    """A table's cell."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Row:
    """A row of a table. A printed row quotes the paper."""

    cells: list[Cell]
    printed: bool = False


@dataclass(frozen=True)
class Table:
    """A table with the sentence above it."""

    caption: str
    head: list[str]
    rows: list[Row]
    name: str = ""
    """The name of its place in the documentation."""
    note: str = ""
    """The command, commit, machine and date."""


@dataclass(frozen=True)
class Points:
    """A list."""

    points: list[str]


@dataclass(frozen=True)
class Figure:
    """Charts side by side, omitted in Markdown."""

    caption: str
    charts: list[str]
    name: str = ""
    """The name of its file in the documentation."""


Block = Text | Heading | Table | Points | Figure


def to_markdown(title: str, blocks: list[Block]) -> str:
    """The blocks as Markdown, without figures."""
    parts = [f"# {title}"]
    for block in blocks:
        match block:
            case Text(text):
                parts.append(text)
            case Heading(text):
                parts.append(f"## {text}")
            case Points(points):
                parts.append("\n".join(f"- {point}" for point in points))
            case Table():
                parts.append(table_to_markdown(block))
    return "\n\n".join(parts) + "\n"


def table_to_markdown(table: Table) -> str:
    """A table with its caption and its note."""
    first = f"{table.caption.rstrip('.')}." + (f" Made by {table.note}" if table.note else "")
    lines = [first, "", "| " + " | ".join(table.head) + " |", "|---" + "|--:" * (len(table.head) - 1) + "|"]
    for row in table.rows:
        cells = [f"**{cell.text}**" if cell.best else cell.text for cell in row.cells]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def to_html(title: str, blocks: list[Block]) -> str:
    """The blocks as a page."""
    body = [f"<h1>{_inline(title)}</h1>"]
    for block in blocks:
        match block:
            case Text(text):
                body.append(f"<p>{_inline(text)}</p>")
            case Heading(text):
                body.append(f"<h2>{_inline(text)}</h2>")
            case Points(points):
                body.append("<ul>" + "".join(f"<li>{_inline(point)}</li>" for point in points) + "</ul>")
            case Table():
                body.append(_html_table(block))
            case Figure(caption, charts, _):
                panels = f'<div class="panels">{"".join(charts)}</div>' if len(charts) > 1 else "".join(charts)
                body.append(f"<figure><figcaption>{_inline(caption)}</figcaption>{panels}</figure>")
    style = STYLE.read_text(encoding="utf-8") + EXTRA_STYLE
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{_inline(text)}</th>" for text in table.head)
    rows = []
    for row in table.rows:
        cells = "".join(f"<td{' class=best' if c.best else ''}>{_inline(c.text)}</td>" for c in row.cells)
        rows.append(f"<tr{' class=printed' if row.printed else ''}>{cells}</tr>")
    made = f"<br><small>Made by {_inline(table.note)}</small>" if table.note else ""
    caption = f"<caption>{_inline(table.caption)}{made}</caption>"
    return (
        f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _inline(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text, quote=False))


def show(blocks: list[Block], console: Console) -> None:
    """The tables, on the terminal."""
    for block in blocks:
        if isinstance(block, Table):
            table = RichTable()
            for index, text in enumerate(block.head):
                table.add_column(text, justify="right" if index else "left", no_wrap=True)
            for row in block.rows:
                style = "dim" if row.printed else None
                table.add_row(*(f"[bold]{c.text}[/]" if c.best else c.text for c in row.cells), style=style)
            # Printed separately, because a table's title would be wrapped at the table's width.
            console.print(f"\n{block.caption}", highlight=False)
            console.print(table)
