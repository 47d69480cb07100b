"""The paper's base learners: for each label, a probability forest on the features."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from .datasets import DATASETS, Dataset, Fold, Forest, Part


class Grown:
    """A label's forest, with out-of-bag beliefs for its training rows. It is a constant if all training truths are equal."""

    def __init__(self, features: np.ndarray, truth: np.ndarray, forest: Forest, seed: int) -> None:
        n, positives = len(truth), int(truth.sum())
        self.prior = (positives + 0.5) / (n + 1.0)
        self.model: RandomForestClassifier | None = None
        self.out_of_bag = np.full(n, self.prior)
        if positives in (0, n):
            return
        self.model = RandomForestClassifier(
            forest.trees,
            min_samples_leaf=forest.min_leaf,
            min_samples_split=forest.min_split,
            oob_score=_no_score,
            random_state=seed,
            n_jobs=1,
        )
        # With a small number of trees, a row may be in the bags of all of them.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
            self.model.fit(features, truth)
        beliefs = self.model.oob_decision_function_[:, 1]
        self.out_of_bag = np.where(np.isfinite(beliefs), beliefs, self.prior)

    def beliefs(self, features: np.ndarray) -> np.ndarray:
        """P(label = 1) of other rows."""
        if self.model is None:
            return np.full(len(features), self.prior)
        return self.model.predict_proba(features)[:, 1]


def _no_score(truth: np.ndarray, predicted: np.ndarray) -> float:
    return 0.0


def setting_of(dataset: str, trees: int | None = None) -> Forest:
    """The settings of a dataset's forest, optionally with another number of trees."""
    forest = DATASETS[dataset].forest if dataset in DATASETS else Forest(500)
    return forest if trees is None else Forest(trees, forest.min_leaf, forest.min_split)


def forest_fold(dataset: Dataset, number: int, folder: Path, trees: int | None = None) -> Fold:
    """A fold with beliefs of forests fitted here. They are stored in `folder` for the next method."""
    split, arff = dataset.splits[number - 1], dataset.arff
    setting = setting_of(dataset.name, trees)
    kept = folder / f"{dataset.name}-{number}-{setting.trees}.npz"
    if kept.is_file():
        with np.load(kept) as arrays:
            beliefs = {part: arrays[part] for part in split}
    else:
        train, val, test = (arff.features[split[part]] for part in ("train", "val", "test"))
        columns: dict[str, list[np.ndarray]] = {part: [] for part in split}
        for seed, truth in enumerate(arff.labels[split["train"]].T):
            grown = Grown(train, truth, setting, seed)
            columns["train"].append(grown.out_of_bag)
            columns["val"].append(grown.beliefs(val))
            columns["test"].append(grown.beliefs(test))
        beliefs = {part: np.column_stack(labels) for part, labels in columns.items()}
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(".partial.npz")
        np.savez_compressed(partial, **beliefs)
        partial.replace(kept)
    parts = {part: Part(rows, beliefs[part], arff.labels[rows], arff.features[rows]) for part, rows in split.items()}
    return Fold(dataset.name, number, **parts)
