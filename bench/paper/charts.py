"""Figures as SVG: reliability curves, curves over a share or a number, and a critical-difference diagram."""

from __future__ import annotations

import html
import re

from .summary import Ranks

SIZE, MARGIN = 200.0, 30.0
COLORS = 5
"""Series colors of the shared style."""

GAP = 16.0
STANDALONE_STYLE = """\
:root { --ink: #1c1c1a; --soft: #5c5b57; }
.series-0 { --series: #2a78d6; } .series-1 { --series: #d95f28; } .series-2 { --series: #158a61; }
.series-3 { --series: #a87400; } .series-4 { --series: #6a4fc0; }
@media (prefers-color-scheme: dark) {
:root { --ink: #ecebe6; --soft: #a9a7a0; }
.series-0 { --series: #5a9df0; } .series-1 { --series: #ec8354; } .series-2 { --series: #3cbf90; }
.series-3 { --series: #d9a52e; } .series-4 { --series: #a596f0; }
}
text { fill: var(--ink); font: 11px system-ui, -apple-system, "Segoe UI", sans-serif; }
text.soft { fill: var(--soft); } text.series { fill: var(--series); }
.axis { stroke: var(--soft); fill: none; } .ideal { stroke: var(--soft); stroke-dasharray: 4 4; }
.group { stroke: var(--ink); stroke-width: 4; stroke-linecap: round; }
.line { fill: none; stroke-width: 1.4; stroke-linejoin: round; }
"""
"""The style of reports for a figure in a file of its own."""


def reliability_chart(title: str, curves: list[tuple[str, dict[str, list[float]]]]) -> str:
    """Frequency of label 1 against belief by bin, one line per curve. The dashed line is perfect calibration."""
    inner = SIZE - MARGIN - 8.0

    def place(belief: float, frequency: float) -> str:
        return f"{MARGIN + belief * inner:.1f},{8.0 + (1.0 - frequency) * inner:.1f}"

    parts = [
        f'<path class="ideal" d="M{place(0, 0)} L{place(1, 1)}"/>',
        f'<path class="axis" d="M{place(0, 1)} L{place(0, 0)} L{place(1, 0)}"/>',
    ]
    for tick in (0.0, 0.5, 1.0):
        x, y = place(tick, 0.0).split(",")
        parts.append(f'<text class="soft" x="{x}" y="{float(y) + 14}" text-anchor="middle">{tick:g}</text>')
        x, y = place(0.0, tick).split(",")
        parts.append(f'<text class="soft" x="{float(x) - 5}" y="{float(y) + 4}" text-anchor="end">{tick:g}</text>')
    for index, (name, strata) in enumerate(curves):
        points = [
            place(belief / count, positive / count)
            for count, belief, positive in zip(strata["count"], strata["belief"], strata["positive"])
            if count
        ]
        # If there are more curves than colors, colors repeat in a paler shade.
        opacity = 1.0 if index < COLORS else 0.55
        style = f"stroke: var(--series); opacity: {opacity}"
        line = f'<polyline class="line" style="{style}" points="{" ".join(points)}">'
        parts.append(f'<g class="series-{index % COLORS}">{line}<title>{html.escape(name)}</title></polyline></g>')
    label = f'<text x="{MARGIN + inner / 2}" y="{SIZE + 10}" text-anchor="middle">{html.escape(title)}</text>'
    return _svg(SIZE, SIZE + 16, title, "".join(parts) + label)


def curve_chart(
    title: str, across: str, ticks: list[float], curves: list[tuple[str, list[tuple[float, float]]]], percent: bool
) -> str:
    """Values against a share or a number, one line per curve, with their names at the right end."""
    width, height, left, right, top, bottom = 320.0, 200.0, 44.0, 78.0, 22.0, 36.0
    values = [value for _, points in curves for _, value in points]
    low, high = min(values), max(values)
    low, high = low - 0.05 * (high - low + 1e-9), high + 0.05 * (high - low + 1e-9)

    def x(at: float) -> float:
        return left + (at - ticks[0]) / (ticks[-1] - ticks[0]) * (width - left - right)

    def y(value: float) -> float:
        return top + (high - value) / (high - low) * (height - top - bottom)

    parts = [f'<path class="axis" d="M{left},{top} V{height - bottom} H{width - right}"/>']
    for tick in ticks:
        shown = f"{100 * tick:.0f} %" if percent else f"{tick:g}"
        parts.append(
            f'<text class="soft" x="{x(tick):.1f}" y="{height - bottom + 14}" text-anchor="middle">{shown}</text>'
        )
    for value in (low + 0.1 * (high - low), (low + high) / 2, high - 0.1 * (high - low)):
        parts.append(
            f'<text class="soft" x="{left - 5}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>'
            f'<path class="axis" d="M{left - 3},{y(value):.1f} h3"/>'
        )
    ends = _apart([y(points[-1][1]) for _, points in curves])
    for index, ((name, points), end) in enumerate(zip(curves, ends)):
        drawn = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in points)
        parts.append(
            f'<g class="series-{index % COLORS}"><polyline class="line" style="stroke: var(--series)" points="{drawn}"/>'
            f'<text class="series" x="{width - right + 5}" y="{end + 4:.1f}">{html.escape(name)}</text></g>'
        )
    parts.append(f'<text x="{left}" y="12">{html.escape(title)}</text>')
    middle = (left + width - right) / 2
    parts.append(f'<text class="soft" x="{middle}" y="{height - 6}" text-anchor="middle">{html.escape(across)}</text>')
    return _svg(width, height, title, "".join(parts))


def _apart(places: list[float], distance: float = 12.0) -> list[float]:
    """Heights of texts, moved down where they would overlap."""
    moved, last = dict[int, float](), float("-inf")
    for index in sorted(range(len(places)), key=lambda index: places[index]):
        last = max(places[index], last + distance)
        moved[index] = last
    return [moved[index] for index in range(len(places))]


def standalone(caption: str, charts: list[str]) -> str:
    """Charts as one SVG file, in at most three columns."""
    boxes = [re.match(r'<svg class="chart" viewBox="0 0 (\d+) (\d+)"', chart) for chart in charts]
    sizes = [(float(box[1]), float(box[2])) for box in boxes if box]
    columns = 1 if sizes[0][0] > 400 else 2 if sizes[0][0] > 250 else 3
    cell_width, cell_height = max(size[0] for size in sizes), max(size[1] for size in sizes)
    columns = min(columns, len(sizes))
    rows = -(-len(sizes) // columns)
    placed = []
    for index, (chart, (width, height)) in enumerate(zip(charts, sizes)):
        at_x, at_y = (index % columns) * (cell_width + GAP), (index // columns) * (cell_height + GAP)
        place = f'<svg x="{at_x:.0f}" y="{at_y:.0f}" width="{width:.0f}" height="{height:.0f}" '
        placed.append(chart.replace('<svg class="chart" ', place, 1))
    total_width, total_height = columns * (cell_width + GAP) - GAP, rows * (cell_height + GAP) - GAP
    label = html.escape(caption)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total_width:.0f} {total_height:.0f}" role="img">'
        f"<title>{label}</title>\n<style>\n{STANDALONE_STYLE}</style>\n" + "\n".join(placed) + "\n</svg>\n"
    )


def pooled(curves: list[dict[str, list[float]]]) -> dict[str, list[float]]:
    """The bins of several folds together."""
    keys = ("count", "belief", "positive")
    return {key: [sum(values) for values in zip(*(curve[key] for curve in curves))] for key in keys}


def rank_chart(title: str, ranks: Ranks, titles: dict[str, str]) -> str:
    """Methods on a scale of average ranks. A bar connects methods that do not differ significantly."""
    width, left, right = 640.0, 150.0, 150.0
    count = len(ranks.average)
    inner = width - left - right

    def x(rank: float) -> float:
        return left + (rank - 1.0) / (count - 1.0) * inner

    top = 44.0
    groups = _groups(ranks)
    below = top + 14.0 + 9.0 * len(groups)
    half = (count + 1) // 2
    parts = [f'<path class="axis" d="M{x(1):.1f},{top} H{x(count):.1f}"/>']
    for tick in range(1, count + 1):
        parts.append(f'<path class="axis" d="M{x(tick):.1f},{top} v-5"/>')
        parts.append(f'<text class="soft" x="{x(tick):.1f}" y="{top - 9}" text-anchor="middle">{tick}</text>')
    end = min(1.0 + ranks.critical_difference, float(count))
    parts.append(f'<path class="axis" d="M{x(1):.1f},14 H{x(end):.1f} M{x(1):.1f},10 v8 M{x(end):.1f},10 v8"/>')
    parts.append(
        f'<text class="soft" x="{x(end) + 6:.1f}" y="18">critical difference {ranks.critical_difference:.2f}</text>'
    )
    for index, (method, rank) in enumerate(ranks.average.items()):
        first = index < half
        y = below + 16.0 * (index if first else count - 1 - index) + 10.0
        edge, anchor, shift = (left - 8, "end", -4) if first else (width - right + 8, "start", 4)
        parts.append(f'<path class="axis" d="M{x(rank):.1f},{top} V{y} H{edge}"/>')
        name = html.escape(f"{titles[method]} {rank:.2f}")
        parts.append(f'<text x="{edge + shift}" y="{y + 4}" text-anchor="{anchor}">{name}</text>')
    for level, (start, stop) in enumerate(groups):
        y = top + 10.0 + 9.0 * level
        parts.append(f'<path class="group" d="M{x(start) - 3:.1f},{y} H{x(stop) + 3:.1f}"/>')
    return _svg(width, below + 16.0 * half + 14.0, title, "".join(parts))


def _groups(ranks: Ranks) -> list[tuple[float, float]]:
    """The largest groups of ranks within the critical difference."""
    values = list(ranks.average.values())
    runs: list[tuple[float, float]] = []
    for index, start in enumerate(values):
        inside = [value for value in values[index:] if value - start <= ranks.critical_difference]
        if len(inside) > 1 and (not runs or inside[-1] > runs[-1][1]):
            runs.append((start, inside[-1]))
    return runs


def _svg(width: float, height: float, title: str, content: str) -> str:
    label = html.escape(title, quote=True)
    return f'<svg class="chart" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{label}">{content}</svg>'
