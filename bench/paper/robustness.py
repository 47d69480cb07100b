"""Robustness of prsl: learning with missing truths, and predicting with classifiers removed one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .calibrate import PlattScaling, smooth
from .charts import curve_chart
from .datasets import Dataset, Fold, Part
from .document import Block, Cell, Figure, Heading, Row, Table, Text
from .metrics import METRICS, Prediction, independent, score
from .provenance import Origin, code_version, origin, recipe_version
from .results import read_json, write_json
from .rule_stacker import Stacker
from .tables import note_of

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FEW_SHARES = (0.0, 0.3, 0.6, 0.9)
SHOWN = ("emotions", "yeast")
"""The datasets of the figure, with all shares and all folds. The others have few shares and `FEW_FOLDS` folds."""
FEW_FOLDS = 2
RIDGE = 1.0
MEASURED = ("joint_accuracy", "mean_joint")
KINDS = {"missing": "truths missing in training", "removed": "classifiers removed after learning"}
TABLES = {"missing": "robustness-missing", "removed": "robustness-removed"}


@dataclass(frozen=True)
class Curve:
    """Scores of one method on one fold, by level: the share of missing truths, or the number of removed classifiers."""

    dataset: str
    fold: int
    kind: str
    key: dict[str, Any]
    origin: Origin
    levels: list[float]
    scores: dict[str, list[dict[str, float]]]
    """By method and level."""


def folds_of(dataset: Dataset, quick: bool) -> list[int]:
    """The folds of the study."""
    count = len(dataset.splits)
    if quick:
        return [1]
    return list(range(1, count + 1 if dataset.name in SHOWN else FEW_FOLDS + 1))


def key_of(dataset: Dataset, kind: str, quick: bool) -> dict[str, Any]:
    """What a stored curve depends on."""
    code = code_version("robustness.py", "calibrate.py", "metrics.py")
    return {"version": recipe_version("clauses"), "code": code, "data": dataset.version, "levels": _shares(dataset, kind, quick)}


def _shares(dataset: Dataset, kind: str, quick: bool) -> list[float] | None:
    """The shares of missing truths; `None` for the other kind, whose levels are numbers of classifiers."""
    if kind != "missing":
        return None
    return [0.0, 0.5] if quick else list(SHARES if dataset.name in SHOWN else FEW_SHARES)


def load(folder: Path, dataset: Dataset, fold: int, kind: str, quick: bool) -> Curve | None:
    """A stored curve; `None` if there is none with the current key."""
    kept = read_json(_path(folder, dataset.name, fold, kind))
    if kept.get("key") != key_of(dataset, kind, quick):
        return None
    return Curve(**kept | {"origin": Origin(**kept["origin"])})


def measure(folder: Path, dataset: Dataset, fold: Fold, kind: str, quick: bool) -> Curve:
    """Measure a curve and store it."""
    shares = _shares(dataset, kind, quick)
    levels, scores = missing(fold, shares) if shares is not None else removed(fold)
    curve = Curve(dataset.name, fold.number, kind, key_of(dataset, kind, quick), origin(), levels, scores)
    write_json(_path(folder, dataset.name, fold.number, kind), asdict(curve))
    return curve


def _path(folder: Path, dataset: str, fold: int, kind: str) -> Path:
    return folder / "robustness" / f"{dataset}-{fold}-{kind}.json"


def missing(fold: Fold, shares: list[float]) -> tuple[list[float], dict[str, list[dict[str, float]]]]:
    """Learn with a share of the truths missing at random. Truths that are missing at one share are missing at all larger ones."""
    both, test = fold.both, fold.test
    uniform = np.random.default_rng(fold.number).random(both.truths.shape)
    scores: dict[str, list[dict[str, float]]] = {"prsl": [], "BR + Platt": []}
    for share in shares:
        known = uniform >= share
        stacker = Stacker(seed=1)
        stacker.fit(both.beliefs, np.where(known, both.truths, np.nan))
        scores["prsl"].append(_kept(stacker.predict(test.beliefs, test.truths), test))
        marginals = _platt(both, known, test.beliefs)
        scores["BR + Platt"].append(_kept(independent(marginals, test.truths), test))
    return shares, scores


def removed(fold: Fold) -> tuple[list[float], dict[str, list[dict[str, float]]]]:
    """Learn once, then take the beliefs about more and more labels away from the test rows, in a random order."""
    both, test = fold.both, fold.test
    order = np.random.default_rng(fold.number).permutation(test.truths.shape[1])
    stacker = Stacker(seed=1)
    stacker.fit(both.beliefs, both.truths)
    calibrated = _platt(both, np.ones(both.truths.shape, bool), test.beliefs)
    base_rates = (both.truths.sum(axis=0) + 0.5) / (len(both.rows) + 1.0)
    scores: dict[str, list[dict[str, float]]] = {"prsl": [], "BR + Platt": []}
    for count in range(len(order) + 1):
        gone = np.isin(np.arange(len(order)), order[:count])
        beliefs = np.where(gone, np.nan, test.beliefs)
        scores["prsl"].append(_kept(stacker.predict(beliefs, test.truths), test))
        scores["BR + Platt"].append(_kept(independent(np.where(gone, base_rates, calibrated), test.truths), test))
    return list(range(len(order) + 1)), scores


def _platt(part: Part, known: np.ndarray, beliefs: np.ndarray) -> np.ndarray:
    """Platt-scaled beliefs, fitted label by label to the known truths."""
    columns = []
    for label, rows in enumerate(known.T):
        scaling = PlattScaling(RIDGE).fit(part.beliefs[rows][:, [label]], part.truths[rows][:, [label]])
        columns.append(scaling.apply(beliefs[:, [label]])[:, 0])
    return smooth(np.column_stack(columns), 1e-6)


def _kept(prediction: Prediction, part: Part) -> dict[str, float]:
    scores = score(prediction, part.truths)
    return {metric: scores[metric] for metric in MEASURED}


def blocks(curves: list[Curve]) -> list[Block]:
    """The tables of the study and its figure."""
    if not curves:
        return []
    tables = [_table([curve for curve in curves if curve.kind == kind], kind) for kind in KINDS]
    charts = list(_charts(curves))
    caption = "Robustness on emotions and yeast, means over folds"
    return [
        Heading("Robustness"),
        Text(
            "Truths are removed at random from training and validation rows. Classifiers are removed in a random order from "
            "the test rows of a model that was learned with all of them; base rates replace them for BR + Platt."
        ),
        *tables,
        *([Figure(caption, charts, "robustness")] if charts else []),
    ]


def _means(curves: list[Curve], method: str, metric: str) -> list[tuple[float, float]]:
    """The level and the mean over folds."""
    values = np.mean([[scores[metric] for scores in curve.scores[method]] for curve in curves], axis=0)
    return list(zip(curves[0].levels, values))


def _table(curves: list[Curve], kind: str) -> Table:
    names = list(dict.fromkeys(curve.dataset for curve in curves))
    rows = []
    for name in names:
        of_dataset = [curve for curve in curves if curve.dataset == name]
        levels = of_dataset[0].levels
        step = max(1, (len(levels) - 1) // 6)
        for at in [*range(0, len(levels) - 1, step), len(levels) - 1]:
            cells = [name, f"{100 * levels[at]:.0f} %" if kind == "missing" else f"{levels[at]:.0f} of {levels[-1]:.0f}"]
            for metric in MEASURED:
                cells += [f"{_means(of_dataset, method, metric)[at][1]:.3f}" for method in ("prsl", "BR + Platt")]
            rows.append(Row([*map(Cell, cells), Cell(str(len(of_dataset)))]))
    titles = [METRICS[metric][0].lower() for metric in MEASURED]
    head = ["", "missing" if kind == "missing" else "removed"]
    head += [f"{title}, {method}" for title in titles for method in ("prsl", "BR + Platt")]
    caption = f"Robustness: {KINDS[kind]}, means over folds, test rows"
    return Table(caption, [*head, "folds"], rows, TABLES[kind], note_of(*{curve.origin for curve in curves}))


def _charts(curves: list[Curve]) -> Iterator[str]:
    for kind, across in KINDS.items():
        for metric in MEASURED:
            for name in SHOWN:
                found = [curve for curve in curves if curve.kind == kind and curve.dataset == name]
                if found:
                    levels = found[0].levels
                    ticks = [levels[0], levels[-1]] if kind == "missing" else [0.0, levels[-1] // 2, levels[-1]]
                    lines = [(method, _means(found, method, metric)) for method in ("prsl", "BR + Platt")]
                    title = f"{name}: {METRICS[metric][0].lower()}"
                    yield curve_chart(title, across, ticks, lines, percent=kind == "missing")
