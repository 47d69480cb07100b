"""The tables of the benchmark, from its results."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .datasets import DATASETS, Dataset
from .document import Cell, Row, Table
from .methods import METHODS
from .metrics import METRICS
from .printed import DATASET_FACTS, PRINTED
from .provenance import Origin
from .results import BOTH, TRAIN, Result
from .summary import Ranks, Scores, ranks

COMMAND = "make benchmark"
RANKED = ("joint_accuracy", "mean_joint")
METRIC_TABLES = {
    "joint_accuracy": "accuracy",
    "mean_joint": "mean-joint",
    "median_joint": "median-joint",
    "hamming_loss": "hamming",
    "mean_labelwise": "mean-labelwise",
    "median_labelwise": "median-labelwise",
    "calibration_error": "calibration-error",
}
"""The name of each metric's table."""


def datasets_of(results: Iterable[Result]) -> list[str]:
    """The datasets of some results, from small to large."""
    found = {result.dataset for result in results}
    return [name for name in DATASETS if name in found] + sorted(found - DATASETS.keys())


def methods_of(results: Iterable[Result], in_tables: bool = True) -> list[str]:
    """The methods of some results, in the order of the tables."""
    used = {result.method for result in results}
    return [key for key, method in METHODS.items() if key in used and (method.in_tables or not in_tables)]


def note(results: Iterable[Result]) -> str:
    """The command, the commits, the machines and the days of some results."""
    found = list(results)
    own = {result.origin for result in found if result.method.startswith("prsl")}
    others = {result.origin for result in found} - own if own else {result.origin for result in found}
    texts = [f"`{COMMAND}`", _commits(own, others)]
    text = ", ".join(text for text in [*texts, *_where(own | others)] if text) + "."
    gaps = incomplete(Scores(found), datasets_of(found), methods_of(found, in_tables=False))
    return text + (f" Not complete: {', '.join(gaps)}." if gaps else "")


def note_of(*origins: Origin, command: str = COMMAND) -> str:
    """The same for values that are no results of methods."""
    return ", ".join([f"`{command}`", _commits(set(origins), set()), *_where(set(origins))]) + "."


def _commits(own: set[Origin], others: set[Origin]) -> str:
    def shown(origins: set[Origin]) -> str:
        commits = sorted({origin.commit for origin in origins})
        return f"{'commits' if len(commits) > 1 else 'commit'} {', '.join(commits)}"

    if not own or not others or {origin.commit for origin in others} <= {origin.commit for origin in own}:
        return shown(own | others)
    return f"{shown(own)} for prsl, {shown(others)} for methods that do not use it"


def _where(origins: set[Origin]) -> list[str]:
    machines = sorted({origin.machine for origin in origins})
    days = sorted({origin.date for origin in origins})
    return ["; ".join(machines), days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"]


def incomplete(scores: Scores, datasets: list[str], methods: list[str]) -> list[str]:
    """Methods with fewer folds than others, and the datasets with the number of folds that they have."""
    most = {dataset: max(len(scores.folds(dataset, key)) for key in methods) for dataset in datasets}
    gaps = []
    for key in methods:
        counts = {dataset: len(scores.folds(dataset, key)) for dataset in datasets}
        short = [f"{dataset} {count} of {most[dataset]}" for dataset, count in counts.items() if count < most[dataset]]
        if short:
            gaps.append(f"{METHODS[key].title} ({', '.join(short)} folds)")
    return gaps


def digits(metric: str) -> int:
    """The number of decimals of a metric."""
    return 4 if metric in ("hamming_loss", "calibration_error") else 3


def number(mean: float, sd: float, decimals: int) -> str:
    """A mean with its standard deviation."""
    # Two log-likelihoods of -300 and -320 need no third decimal.
    decimals = decimals if abs(mean) < 100 else 1
    return f"{mean:.{decimals}f} ± {sd:.{decimals}f}"


def dataset_table(datasets: list[Dataset], origin: Origin) -> Table:
    """Sizes of the datasets, beside those that the paper prints."""
    rows = []
    for dataset in datasets:
        split = dataset.fold(1, False)
        truths = np.vstack([part.truths for part in (split.train, split.val, split.test)])
        n, labels = truths.shape
        cardinality = truths.sum() / n
        paper = DATASET_FACTS.get(dataset.name)
        texts = [
            f"{n}",
            f"{labels}",
            f"{cardinality:.3f}",
            f"{cardinality / labels:.3f}",
            " / ".join(paper) if paper else "not comparable",
            f"{len(np.unique(truths, axis=0))}",
            f"{int((truths.sum(axis=1) == 0).sum())}",
            f"{len(dataset.splits)}",
        ]
        rows.append(Row([Cell(dataset.name), *map(Cell, texts)]))
    head = ["", "instances", "labels", "cardinality", "density", "in the paper", "label sets", "without a label", "folds"]
    caption = (
        "Datasets. Cardinality: mean number of labels per instance. Density: cardinality divided by the number of labels. "
        "In the paper: labels / cardinality / density."
    )
    return Table(caption, head, rows, "datasets", note_of(origin))


def metric_table(results: list[Result], metric: str) -> Table:
    """A metric of all methods on all datasets, with the rows of the paper."""
    scores, datasets, methods = Scores(results), datasets_of(results), methods_of(results)
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
            rows += printed_row(metric, printed, datasets)
    caption = f"{title} ({'higher' if more else 'lower'} is better), mean ± standard deviation between folds"
    return Table(caption, ["", *datasets], rows, METRIC_TABLES[metric], note(results))


def printed_row(metric: str, printed: str, datasets: list[str]) -> list[Row]:
    """The row of the paper's table, if it has numbers for these datasets."""
    quoted = [PRINTED.get((metric, printed, dataset)) for dataset in datasets]
    if not any(quoted):
        return []
    texts = [f"{pair[0]:.3f} ± {pair[1]:.3f}" if pair else "" for pair in quoted]
    return [Row([Cell(f"({printed} in the paper)"), *map(Cell, texts)], printed=True)]


def _cell(scores: Scores, dataset: str, key: str, metric: str, winner: str | None) -> Cell:
    mean = scores.mean(dataset, key, metric)
    if mean is None or winner is None:
        return Cell("")
    text = number(mean, scores.sd(dataset, key, metric), digits(metric))
    gap = scores.difference(dataset, key, winner, metric)
    tied = key != winner and gap is not None and gap.verdict != "behind"
    return Cell(text + (" =" if tied else ""), best=key == winner)


def train_alone(results: list[Result]) -> Table:
    """Accuracy and mean joint log-likelihood by the rows learned from."""
    datasets, methods = datasets_of(results), methods_of(results)
    rows = []
    for key in methods:
        for learned_from in (TRAIN, BOTH):
            scores = Scores([result for result in results if result.method == key], learned_from)
            means = [[scores.mean(dataset, key, metric) for metric in RANKED] for dataset in datasets]
            if any(mean[0] is not None for mean in means):
                texts = ["" if None in mean else f"{mean[0]:.3f} / {mean[1]:.3f}" for mean in means]
                rows.append(Row([Cell(METHODS[key].title), Cell(learned_from), *map(Cell, texts)]))
    caption = "Joint accuracy / mean joint log-likelihood on test rows, by the rows learned from"
    return Table(caption, ["", "rows", *datasets], rows, "learned-from", note(results))


def summary(results: list[Result]) -> Table:
    """Accuracy and mean joint log-likelihood of prsl, of the raw beliefs and of the best other method."""
    scores, datasets = Scores(results), datasets_of(results)
    own = ("br", "prsl-paper", "prsl")
    others = [key for key in methods_of(results) if key not in own]

    def best_other(dataset: str, metric: str) -> str | None:
        return scores.best(dataset, others, metric)

    chosen = {
        "raw beliefs": lambda dataset, metric: "br",
        "best of the other methods": best_other,
        "prsl, recipe `paper`": lambda dataset, metric: "prsl-paper",
        "prsl": lambda dataset, metric: "prsl",
    }
    rows = []
    for title, choose in chosen.items():
        cells = [Cell(title)]
        for dataset in datasets:
            keys = [choose(dataset, metric) for metric in RANKED]
            means = [scores.mean(dataset, key, metric) if key else None for key, metric in zip(keys, RANKED)]
            cells.append(Cell("" if None in means else f"{means[0]:.3f} / {means[1]:.3f}"))
        rows.append(Row(cells))
    caption = (
        "Joint accuracy / mean joint log-likelihood on test rows, means over folds. The best of "
        f"{len(others)} other methods is chosen by its test score, for each number"
    )
    return Table(caption, ["", *datasets], rows, "summary", note(results))


def standing(results: list[Result]) -> Table:
    """prsl with its defaults against the best of all others, metric by metric."""
    scores, datasets, methods = Scores(results), datasets_of(results), methods_of(results)
    others = [key for key in methods if key != "prsl"]
    rows = []
    for metric, (title, _) in METRICS.items():
        cells = [Cell(title)]
        for dataset in datasets:
            rival = scores.best(dataset, others, metric)
            gap = scores.difference(dataset, "prsl", rival, metric) if rival else None
            if rival is None or gap is None:
                cells.append(Cell(""))
                continue
            decimals = digits(metric)
            text = f"{gap.mean:+.{decimals}f} ± {gap.error:.{decimals}f} {METHODS[rival].title}"
            cells.append(Cell(text, best=gap.verdict == "ahead"))
        rows.append(Row(cells))
    caption = (
        "prsl against the best other method on test rows: difference ± its standard error over folds, and the other "
        "method. Positive: prsl is better. Bold: by more than one standard error. Negative: prsl is not best, by this much."
    )
    return Table(caption, ["", *datasets], rows, "standing", note(results))


def rank_table(results: list[Result]) -> tuple[Table, dict[str, Ranks]]:
    """Average ranks with the tests of Friedman and Nemenyi."""
    scores, datasets, methods = Scores(results), datasets_of(results), methods_of(results)
    found = {metric: ranks(scores, datasets, methods, metric) for metric in RANKED}
    rankings = {metric: ranking for metric, ranking in found.items() if ranking is not None}
    ranked = [key for key in methods if rankings and all(key in ranking.average for ranking in rankings.values())]
    rows = [
        Row([Cell(METHODS[key].title), *(_rank_cell(ranking, key) for ranking in rankings.values())])
        for key in sorted(ranked, key=lambda key: sum(ranking.average[key] for ranking in rankings.values()))
    ]
    rows.append(Row([Cell("Friedman p"), *(Cell(f"{r.p_value:.2g}") for r in rankings.values())], printed=True))
    differences = [Cell(f"{r.critical_difference:.2f}") for r in rankings.values()]
    rows.append(Row([Cell("critical difference"), *differences], printed=True))
    head = ["", *(METRICS[metric][0].lower() for metric in rankings)]
    caption = f"Average ranks over {len(datasets)} datasets, 1 is best; Nemenyi's critical difference at 5 %"
    return Table(caption, head, rows, "ranks", note(results)), rankings


def _rank_cell(ranking: Ranks, key: str) -> Cell:
    return Cell(f"{ranking.average[key]:.2f}", best=key == next(iter(ranking.average)))


def duration(seconds: float) -> str:
    """A duration with three digits and a unit."""
    unit, size = next((pair for pair in (("s", 1.0), ("ms", 1e-3)) if seconds >= pair[1]), ("µs", 1e-6))
    value = seconds / size
    return f"{value:.0f} {unit}" if value >= 100.0 else f"{value:.3g} {unit}"


def times(results: list[Result]) -> Table:
    """Times to learn and to predict."""
    scores, datasets = Scores(results), datasets_of(results)
    rows = []
    for key in methods_of(results, in_tables=False):
        cells = [Cell(METHODS[key].title)]
        for dataset in datasets:
            folds = scores.folds(dataset, key).values()
            fit = [result.seconds[result.learned_from] for result in folds]
            row = [result.row_seconds for result in folds]
            cells.append(Cell(f"{duration(np.mean(fit))} / {duration(np.mean(row))}" if fit else ""))
        rows.append(Row(cells))
    caption = (
        "CPU time of one thread to learn one fold from all rows that the method may learn from, choices included, and to "
        "predict one row (BOOMER does both at once)"
    )
    return Table(caption, ["", *datasets], rows, "times", note(results))


def sizes(results: list[Result]) -> Table:
    """Sizes of the models of prsl, and BOOMER's hyperparameters."""
    scores, datasets = Scores(results), datasets_of(results)
    rows = []
    for key in methods_of(results, in_tables=False):
        cells = []
        for dataset in datasets:
            chosen = [result.chosen[result.learned_from] for result in scores.folds(dataset, key).values()]
            cells.append(Cell(_size(chosen)))
        if any(cell.text for cell in cells):
            rows.append(Row([Cell(METHODS[key].title), *cells]))
    caption = (
        "Sizes, means over folds. prsl: rules / typical combinations. BOOMER: rules, and the most frequent choice of "
        "shrinkage and L2 weight"
    )
    return Table(caption, ["", *datasets], rows, "sizes", note(results))


def _size(chosen: list[dict]) -> str:
    if not chosen or "rules" not in chosen[0]:
        return ""
    rules = f"{np.mean([one['rules'] for one in chosen]):.0f}"
    if "combinations" in chosen[0]:
        return f"{rules} / {np.mean([one['combinations'] for one in chosen]):.0f}"
    pairs = [(one["shrinkage"], one["l2"]) for one in chosen]
    shrinkage, l2 = max(sorted(set(pairs)), key=pairs.count)
    return f"{rules}, {shrinkage:g}, {l2:g}"
