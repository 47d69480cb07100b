"""The report of a benchmark: its tables and figures, from its results."""

from __future__ import annotations

import inspect
from pathlib import Path

from .charts import pooled, rank_chart, reliability_chart
from .document import Block, Figure, Heading, Points, Table, Text, to_html, to_markdown
from .methods import METHODS
from .metrics import METRICS
from .overfitting import TABLES as OVERFITTING
from .overfitting import overfitting
from .results import Result
from .summary import Ranks, Scores
from .tables import (
    datasets_of,
    incomplete,
    metric_table,
    methods_of,
    rank_table,
    sizes,
    standing,
    summary,
    times,
    train_alone,
)

TITLE = "The paper's benchmark"
CALIBRATED = ("br", "platt", "nn", "prior", "prsl")
"""The methods of the second calibration figure, as many as there are colors."""


def build(results: list[Result], extra: list[Block] | None = None) -> list[Block]:
    """All blocks of the report. `extra` has those that are not about results of methods."""
    ranking, rankings = rank_table(results)
    return [
        Text(
            "Scores are of test rows. All methods that stack get the same beliefs. Methods make their choices on "
            "validation rows and then learn from training and validation rows, unless a table says otherwise. Cells are "
            "mean ± standard deviation between folds. The best of a column is bold; `=` marks what is within one "
            "standard error of it, judged by the differences fold by fold. Rows in parentheses quote the paper."
        ),
        *_gaps(results),
        *(metric_table(results, metric) for metric in METRICS),
        train_alone(results),
        Heading("prsl against the others"),
        summary(results),
        standing(results),
        *_rank_blocks(ranking, rankings),
        Heading("Training, validation and test rows"),
        *(overfitting(results, metric) for metric in OVERFITTING),
        Heading("Times and sizes"),
        times(results),
        sizes(results),
        *_calibration(results),
        *(extra or []),
        Heading("Methods"),
        Points([f"{METHODS[key].title} (`{key}`): {_sentence(key)}" for key in methods_of(results, in_tables=False)]),
        Text(
            "Where the mean of a log-likelihood is far below its median, a few rows decide: a label set held to be "
            "impossible scores ln 1e-300 = -691. Methods without a joint distribution multiply their label beliefs, so "
            "both log-likelihoods are the same for them. `mediamill2k` is a reduction to 2000 rows and is not compared "
            "with the paper's mediamill."
        ),
    ]


def _sentence(key: str) -> str:
    return (inspect.getdoc(METHODS[key]) or "").splitlines()[0]


def _gaps(results: list[Result]) -> list[Block]:
    gaps = incomplete(Scores(results), datasets_of(results), methods_of(results, in_tables=False))
    return [Text(f"Not complete: {', '.join(gaps)}.")] if gaps else []


def _rank_blocks(table: Table, rankings: dict[str, Ranks]) -> list[Block]:
    if not rankings:
        return []
    titles = {key: method.title for key, method in METHODS.items()}
    charts = [rank_chart(METRICS[metric][0], ranking, titles) for metric, ranking in rankings.items()]
    return [
        Heading("Ranks"),
        Text(
            "Friedman's test and Nemenyi's critical difference are over the means of datasets, not over folds: these share "
            "most of their training rows, and tests over them would find differences that other data would not show. So "
            "few datasets tell apart only what is far apart."
        ),
        table,
        Figure("Average ranks. Bars connect methods that do not differ significantly", charts, "ranks"),
    ]


def _calibration(results: list[Result]) -> list[Block]:
    scores, datasets, methods = Scores(results), datasets_of(results), methods_of(results)
    blocks: list[Block] = []
    if "br" in methods:
        charts = []
        for dataset in datasets:
            curves = scores.reliability(dataset, "br")
            charts.append(reliability_chart(dataset, [(f"fold {n}", curves[n]) for n in sorted(curves)]))
        caption = "How often labels are positive, by the forests' belief; a line per fold (the paper's last figure)"
        blocks.append(Figure(caption, charts, "calibration-forests"))
    shown = [key for key in CALIBRATED if key in methods]
    if len(shown) > 1:
        charts = []
        for dataset in datasets:
            curves = [(METHODS[key].title, pooled(list(scores.reliability(dataset, key).values()))) for key in shown]
            charts.append(reliability_chart(dataset, curves))
        names = ("blue", "orange", "green", "ochre", "violet")
        legend = ", ".join(f"{METHODS[key].title} {color}" for key, color in zip(shown, names))
        blocks.append(Figure(f"The same, all folds together: {legend}", charts, "calibration"))
    return [Heading("Calibration"), *blocks] if blocks else []


def write(blocks: list[Block], folder: Path) -> tuple[Path, Path]:
    """Write `report.md` and `report.html`, the latter with the figures."""
    markdown, page = folder / "report.md", folder / "report.html"
    folder.mkdir(parents=True, exist_ok=True)
    markdown.write_text(to_markdown(TITLE, blocks), encoding="utf-8")
    page.write_text(to_html(TITLE, blocks), encoding="utf-8")
    return markdown, page
