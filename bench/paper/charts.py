"""Figures as inline SVG: reliability curves and a critical-difference diagram."""

from __future__ import annotations

import html

from .summary import Ranks

SIZE, MARGIN = 200.0, 30.0
COLORS = 5
"""Series colors of the shared style."""


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
