"""The paper's table of results beside the same methods here, all learned from training rows alone as in the paper."""

from __future__ import annotations

from .document import Cell, Row, Table
from .printed import PRINTED
from .results import TRAIN, Result
from .summary import Scores
from .tables import datasets_of, digits, note, number

HERE = {
    "BR": {"br": "BR"},
    "NN": {"nn": "NN"},
    "MLWSE": {"mlwse": "MLWSE"},
    "BOOMER": {"boomer-stacked": "BOOMER on beliefs"},
    "pRSL": {
        "prsl-paper": "recipe `paper`, exact",
        "prsl-paper-loopy": "recipe `paper`, loopy",
        "prsl": "default recipe",
    },
}
"""The methods of this benchmark that belong to a row of the paper."""

LARGE = ("medical", "enron", "mediamill2k")
TABLES = {
    "paper-accuracy": "Joint accuracy (higher is better)",
    "paper-likelihood": "Median log-likelihood (higher is better): joint on the first three datasets, label-wise on the others",
    "paper-hamming": "Hamming loss (lower is better)",
}


def _metric(name: str, dataset: str) -> str:
    if name == "paper-likelihood":
        return "median_labelwise" if dataset in LARGE else "median_joint"
    return {"paper-accuracy": "joint_accuracy", "paper-hamming": "hamming_loss"}[name]


def comparison(results: list[Result], name: str) -> Table:
    """One block of the paper's table of results."""
    used = [result for result in results if any(result.method in keys for keys in HERE.values())]
    scores, datasets = Scores(used, TRAIN), datasets_of(used)
    rows = []
    for printed, methods in HERE.items():
        quoted = [PRINTED.get((_metric(name, dataset), printed, dataset)) for dataset in datasets]
        if any(quoted):
            texts = [f"{pair[0]:.3f} ± {pair[1]:.3f}" if pair else "" for pair in quoted]
            rows.append(Row([Cell(f"({printed} in the paper)"), *map(Cell, texts)], printed=True))
        for key, title in methods.items():
            texts = [_text(scores, dataset, key, _metric(name, dataset)) for dataset in datasets]
            if any(texts):
                rows.append(Row([Cell(title), *map(Cell, texts)]))
    caption = f"{TABLES[name]}, mean ± standard deviation between folds"
    return Table(caption, ["", *datasets], rows, name, note(used) if used else "")


def _text(scores: Scores, dataset: str, key: str, metric: str) -> str:
    mean = scores.mean(dataset, key, metric)
    return "" if mean is None else number(mean, scores.sd(dataset, key, metric), digits(metric))
