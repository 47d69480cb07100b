"""The paper's table of training, validation and test figures."""

from __future__ import annotations

from .document import Cell, Row, Table
from .metrics import METRICS
from .printed import PRINTED_PARTS
from .results import TRAIN, Result
from .summary import Scores
from .tables import datasets_of, digits, note, number

PARTS = {"train": "training", "val": "validation", "test": "test"}
TABLES = {
    "joint_accuracy": "overfitting-accuracy",
    "median_joint": "overfitting-joint",
    "median_labelwise": "overfitting-labelwise",
    "hamming_loss": "overfitting-hamming",
}
"""The name of the table of each metric of the paper."""
ROWS = {
    "prsl-paper": "recipe `paper`, raw beliefs, exact",
    "prsl-paper-platt": "recipe `paper`, Platt, exact",
    "prsl-paper-loopy": "recipe `paper`, raw beliefs, loopy",
    "prsl-paper-loopy-platt": "recipe `paper`, Platt, loopy",
    "prsl": "prsl, training rows alone",
}


def overfitting(results: list[Result], metric: str) -> Table:
    """A metric on the parts of the folds, for models that learned from training rows alone."""
    used = [result for result in results if result.method in ROWS]
    scores, datasets = Scores(used, TRAIN), datasets_of(results)
    rows = [_quoted(metric, part, datasets) for part in PARTS]
    rows = [row for row in rows if any(cell.text for cell in row.cells[2:])]
    for key, title in ROWS.items():
        for part, name in PARTS.items():
            texts = [_text(scores, dataset, key, metric, part) for dataset in datasets]
            if any(texts):
                rows.append(Row([Cell(title), Cell(name), *map(Cell, texts)]))
    title, more = METRICS[metric]
    caption = (
        f"{title} ({'higher' if more else 'lower'} is better) on training, validation and test rows, mean ± standard "
        "deviation between folds"
    )
    return Table(caption, ["", "rows", *datasets], rows, TABLES[metric], note(used) if used else "")


def _quoted(metric: str, part: str, datasets: list[str]) -> Row:
    pairs = [PRINTED_PARTS.get((metric, part, dataset)) for dataset in datasets]
    texts = [f"{pair[0]:.3f} ± {pair[1]:.3f}" if pair else "" for pair in pairs]
    return Row([Cell("(pRSL in the paper)"), Cell(PARTS[part]), *map(Cell, texts)], printed=True)


def _text(scores: Scores, dataset: str, key: str, metric: str, part: str) -> str:
    mean = scores.mean(dataset, key, metric, part)
    return "" if mean is None else number(mean, scores.sd(dataset, key, metric, part), digits(metric))
