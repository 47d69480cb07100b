"""HTML of models and posteriors for notebooks, in light and dark themes."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._model import Model
    from ._posterior import Posterior

_STYLE = """<style>
.prsl{font:13px/1.5 system-ui,sans-serif;max-width:100em;color:inherit}
.prsl p{margin:.3em 0}
.prsl table{border-collapse:collapse;margin:.4em 0;font:inherit;color:inherit}
.prsl td,.prsl th{padding:.15em .8em .15em 0;text-align:left!important;vertical-align:top;border:0;background:none}
.prsl th{font-weight:600;white-space:nowrap;opacity:.65;border-bottom:1px solid #8886}
.prsl code{font:12px/1.4 ui-monospace,monospace;background:none;color:inherit}
.prsl .bar{display:inline-block;position:relative;width:7em;height:.65em;background:#8883;border-radius:.2em;margin-right:.5em}
.prsl .bar b{position:absolute;top:-.15em;width:2px;height:.95em;background:currentColor;opacity:.7}
.prsl .bar i{display:block;height:100%;background:#3b7dd8;border-radius:.2em}
.prsl .bar i.down{background:#d8683b}
.prsl .nowrap{white-space:nowrap}
.prsl .faint{opacity:.6}
.prsl .moves{padding-left:1em}
.prsl .conflict{color:#d8683b}
.prsl .beside{display:flex;flex-wrap:wrap;gap:0 2.5em;align-items:flex-start}
.prsl .beside>div{flex:1 1 34em;min-width:0}
</style>"""

#: Maximum length of a list.
_LISTED = 30


def page(*parts: str) -> str:
    """Parts with their style."""
    return f'{_STYLE}<div class="prsl">{"".join(parts)}</div>'


def bar(share: float, text: str, kind: str = "", mark: float | None = None) -> str:
    """A bar with a text, and a mark at another share."""
    width = max(0.0, min(1.0, share)) * 100
    at = "" if mark is None else f'<b style="left:{max(0.0, min(1.0, mark)) * 100:.1f}%"></b>'
    bar = f'<span class="bar"><i class="{kind}" style="width:{width:.1f}%"></i>{at}</span>'
    return f'<span class="nowrap">{bar}{text}</span>'


def _number(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.3f}"


def table(head: list[str], lines: list[list[str]], left_out: int = 0) -> str:
    """A table, and the number of lines that are not shown."""
    header = "".join(f"<th>{name}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in line)}</tr>" for line in lines)
    more = f'<p class="faint">and {left_out} more</p>' if left_out > 0 else ""
    return f"<table><tr>{header}</tr>{body}</table>{more}"


def model_page(model: Model) -> str:
    """Labels, and rules with bars for their probabilities."""
    labels = [
        [escape(label.name), escape(", ".join(label.categories)), escape(label.calibrator or "")]
        for label in model.labels[:_LISTED]
    ]
    rules = [
        [
            bar(rule.probability, _number(rule.probability)),
            escape(rule.name or ""),
            f"<code>{escape(rule.text)}</code>",
            f'<span class="faint">{escape(rule.sentence)}</span>',
        ]
        for rule in model.rules[:_LISTED]
    ]
    typical = [
        [f"{combination.weight:.3g}", f"<code>{escape(combination.text)}</code>"]
        for combination in model.typical[:_LISTED]
    ]
    parts = [table(["label", "categories", "calibrator"], labels, len(model.labels) - _LISTED)]
    if rules:
        parts.append(table(["holds with", "name", "rule", "in words"], rules, len(model.rules) - _LISTED))
    if typical:
        parts.append(table(["weight", "typical"], typical, len(model.typical) - _LISTED))
    return page(*parts)


def posterior_page(posterior: Posterior) -> str:
    """The first rows: a bar for every category of the first labels."""
    lines = []
    labels = posterior._labels[:_LISTED]
    n_rows = min(len(posterior), _LISTED)
    positions = posterior.positions
    assignments = [] if positions is None else posterior._assignments(positions[:n_rows, :1])
    for row in range(n_rows):
        cells = [str(row)]
        for label in labels:
            if posterior.values is None:
                cells.append(escape(assignments[row][0][label.name]) if assignments[row] else "")
                continue
            values = posterior[label.name][row]
            bars = list(zip(label.categories, values, strict=True))
            lines_of_cell = [bar(value, f"{_number(value)} {escape(name)}") for name, value in bars[:_LISTED]]
            cells.append("<br>".join(lines_of_cell + ["..."] * (len(bars) > _LISTED)))
        lines.append([*cells, escape(str(posterior.status[row]))])
    head = ["row", *(escape(label.name) for label in labels), "status"]
    left_out = len(posterior._labels) - len(labels)
    more = f'<p class="faint">{left_out} more labels are not shown</p>' if left_out else ""
    return page(table(head, lines, len(posterior) - n_rows), more)
