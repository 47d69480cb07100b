"""The tables and figures of a benchmark, from its results."""

from __future__ import annotations

import inspect
from pathlib import Path

from .charts import pooled, rank_chart, reliability_chart
from .datasets import DATASETS
from .document import Block, Cell, Figure, Heading, Points, Row, Table, Text, to_html, to_markdown
from .methods import METHODS
from .metrics import METRICS
from .printed import PRINTED
from .results import Result
from .summary import Ranks, Scores, ranks

TITLE = "The paper's benchmark"
RANKED = ("joint_accuracy", "mean_joint")
CALIBRATED = ("br", "platt", "nn", "prior", "prsl")
"""The methods of the second calibration figure, as many as there are colors."""


def build(results: list[Result]) -> list[Block]:
    """All blocks of the report."""
    scores = Scores(results)
    found = {result.dataset for result in results}
    datasets = [name for name in DATASETS if name in found] + sorted(found - DATASETS.keys())
    used = {result.method for result in results}
    methods = [key for key in METHODS if key in used]
    return [
        Text(
            "Fitted on training rows, chosen on validation rows, reported on test rows; mean ± standard deviation "
            "between folds. All methods that stack get the same beliefs. The best of a column is bold; `=` marks what "
            "is within one standard error of it, judged by the differences fold by fold. Rows in parentheses quote the "
            "paper."
        ),
        *_incomplete(scores, datasets, methods),
        *(_metric_table(scores, datasets, methods, metric) for metric in METRICS),
        *_standing(scores, datasets, methods),
        *_rank_blocks(scores, datasets, methods),
        _times(scores, datasets, methods),
        *_calibration(scores, datasets, methods),
        Heading("Methods"),
        Points([f"{METHODS[key].title} (`{key}`): {_sentence(key)}" for key in methods]),
        Text(
            "Where the mean of a log-likelihood is far below its median, a few rows decide: a label set held to be "
            "impossible scores ln 1e-300 = -691. Methods without a joint distribution multiply their label beliefs, so "
            "both log-likelihoods are the same for them. `mediamill2k` is a reduction to 2000 rows and is not compared "
            "with the paper's mediamill."
        ),
    ]


def _sentence(key: str) -> str:
    return (inspect.getdoc(METHODS[key]) or "").splitlines()[0]


def _incomplete(scores: Scores, datasets: list[str], methods: list[str]) -> list[Block]:
    """A note about methods with fewer folds than others."""
    gaps = []
    for dataset in datasets:
        most = max(len(scores.folds(dataset, key)) for key in methods)
        for key in methods:
            count = len(scores.folds(dataset, key))
            if count < most:
                gaps.append(f"{METHODS[key].title} on {dataset} ({count} of {most} folds)")
    return [Text(f"Not complete: {', '.join(gaps)}.")] if gaps else []


def _digits(metric: str) -> int:
    return 4 if metric in ("hamming_loss", "calibration_error") else 3


def _number(mean: float, sd: float, digits: int) -> str:
    # Two log-likelihoods of -300 and -320 need no third decimal.
    digits = digits if abs(mean) < 100 else 1
    return f"{mean:.{digits}f} ± {sd:.{digits}f}"


def _metric_table(scores: Scores, datasets: list[str], methods: list[str], metric: str) -> Table:
    title, more = METRICS[metric]
    winners = {dataset: scores.best(dataset, methods, metric) for dataset in datasets}
    rows = []
    for key in methods:
        cells = [Cell(METHODS[key].title)]
        for dataset in datasets:
            cells.append(_cell(scores, dataset, key, metric, winners[dataset]))
        rows.append(Row(cells))
        printed = METHODS[key].paper_row
        # A printed row is placed below the last method that it belongs to.
        if printed and not any(METHODS[other].paper_row == printed for other in methods[methods.index(key) + 1 :]):
            quoted = [PRINTED.get((metric, printed, dataset)) for dataset in datasets]
            if any(quoted):
                texts = [f"{pair[0]:.3f} ± {pair[1]:.3f}" if pair else "" for pair in quoted]
                rows.append(Row([Cell(f"({printed} in the paper)"), *map(Cell, texts)], printed=True))
    return Table(f"{title} ({'more' if more else 'less'} is better)", ["", *datasets], rows)


def _cell(scores: Scores, dataset: str, key: str, metric: str, winner: str | None) -> Cell:
    mean = scores.mean(dataset, key, metric)
    if mean is None or winner is None:
        return Cell("")
    text = _number(mean, scores.sd(dataset, key, metric), _digits(metric))
    gap = scores.difference(dataset, key, winner, metric)
    tied = key != winner and gap is not None and gap.verdict != "behind"
    return Cell(text + (" =" if tied else ""), best=key == winner)


def _standing(scores: Scores, datasets: list[str], methods: list[str]) -> list[Block]:
    """prsl at its defaults against the best of all others."""
    if "prsl" not in methods:
        return []
    others = [key for key in methods if key not in ("prsl", "prsl-paper")]
    rows = []
    for metric in RANKED:
        for dataset in datasets:
            rival = scores.best(dataset, others, metric)
            gap = scores.difference(dataset, "prsl", rival, metric) if rival else None
            if rival is None or gap is None:
                continue
            ours, theirs = scores.mean(dataset, "prsl", metric), scores.mean(dataset, rival, metric)
            texts = [
                METRICS[metric][0],
                dataset,
                f"{ours:.3f}",
                METHODS[rival].title,
                f"{theirs:.3f}",
                f"{gap.mean:+.3f} ± {gap.error:.3f}",
                gap.verdict,
            ]
            rows.append(Row([Cell(text) for text in texts]))
    head = ["", "dataset", "prsl", "best of the others", "", "difference ± standard error", ""]
    caption = "prsl at its defaults against the method that is best on the test rows; tied: within one standard error"
    return [Heading("Where the defaults stand"), Table(caption, head, rows)] if rows else []


def _rank_blocks(scores: Scores, datasets: list[str], methods: list[str]) -> list[Block]:
    titles = {key: METHODS[key].title for key in methods}
    found = {metric: ranks(scores, datasets, methods, metric) for metric in RANKED}
    rankings = {metric: ranking for metric, ranking in found.items() if ranking is not None}
    if not rankings:
        return []
    ranked = [key for key in methods if any(key in ranking.average for ranking in rankings.values())]
    rows = [
        Row([Cell(titles[key]), *(_rank_cell(ranking, key) for ranking in rankings.values())])
        for key in sorted(ranked, key=lambda key: sum(ranking.average[key] for ranking in rankings.values()))
    ]
    rows.append(Row([Cell("Friedman p"), *(Cell(f"{r.p_value:.2g}") for r in rankings.values())], printed=True))
    rows.append(
        Row(
            [Cell("critical difference"), *(Cell(f"{r.critical_difference:.2f}") for r in rankings.values())],
            printed=True,
        )
    )
    head = ["", *(METRICS[metric][0].lower() for metric in rankings)]
    return [
        Heading("Ranks"),
        Text(
            f"Friedman's test and Nemenyi's critical difference at 5 % over the means of {len(datasets)} datasets, not "
            "over their folds: these share most of their training rows, and tests over them would find "
            "differences that other data would not show. So few datasets tell apart only what is far apart."
        ),
        Table("Average ranks over datasets, 1 is best", head, rows),
        *(
            Figure(f"Average ranks: {METRICS[metric][0].lower()}", [rank_chart(METRICS[metric][0], ranking, titles)])
            for metric, ranking in rankings.items()
        ),
    ]


def _rank_cell(ranking: Ranks, key: str) -> Cell:
    return Cell(f"{ranking.average[key]:.2f}", best=key == next(iter(ranking.average)))


def _duration(seconds: float) -> str:
    """A duration with three digits and a unit."""
    unit, size = next((pair for pair in (("s", 1.0), ("ms", 1e-3)) if seconds >= pair[1]), ("µs", 1e-6))
    value = seconds / size
    return f"{value:.0f} {unit}" if value >= 100.0 else f"{value:.3g} {unit}"


def _times(scores: Scores, datasets: list[str], methods: list[str]) -> Table:
    rows = []
    for key in methods:
        cells = [Cell(METHODS[key].title)]
        for dataset in datasets:
            folds = scores.folds(dataset, key).values()
            if not folds:
                cells.append(Cell(""))
                continue
            fit = sum(result.fit_seconds for result in folds) / len(folds)
            row = sum(result.predict_seconds for result in folds) / sum(result.rows for result in folds)
            cells.append(Cell(f"{_duration(fit)} / {_duration(row)}"))
        rows.append(Row(cells))
    caption = "Processor time to learn one fold, choosing included, and to predict one row (BOOMER does both at once)"
    return Table(caption, ["", *datasets], rows)


def _calibration(scores: Scores, datasets: list[str], methods: list[str]) -> list[Block]:
    blocks: list[Block] = []
    if "br" in methods:
        charts = []
        for dataset in datasets:
            folds = scores.folds(dataset, "br")
            charts.append(reliability_chart(dataset, [(f"fold {n}", folds[n].reliability) for n in sorted(folds)]))
        caption = "How often labels are positive, by the forests' belief; a line per fold (the paper's last figure)"
        blocks.append(Figure(caption, charts))
    shown = [key for key in CALIBRATED if key in methods]
    if len(shown) > 1:
        charts = []
        for dataset in datasets:
            curves = []
            for key in shown:
                strata = [result.reliability for result in scores.folds(dataset, key).values()]
                curves.append((METHODS[key].title, pooled(strata)))
            charts.append(reliability_chart(dataset, curves))
        names = ("blue", "orange", "green", "ochre", "violet")
        legend = ", ".join(f"{METHODS[key].title} {color}" for key, color in zip(shown, names))
        blocks.append(Figure(f"The same, all folds together: {legend}", charts))
    return [Heading("Calibration"), *blocks] if blocks else []


def write(results: list[Result], folder: Path) -> tuple[Path, Path]:
    """Write `report.md` and `report.html`, the latter with the figures."""
    blocks = build(results)
    markdown, page = folder / "report.md", folder / "report.html"
    folder.mkdir(parents=True, exist_ok=True)
    markdown.write_text(to_markdown(TITLE, blocks), encoding="utf-8")
    page.write_text(to_html(TITLE, blocks), encoding="utf-8")
    return markdown, page
