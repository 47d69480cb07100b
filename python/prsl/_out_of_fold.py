"""Classifiers fitted to all rows, with the beliefs of such classifiers about rows that they were not fitted to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing

from ._columns import Codes
from ._labeled import Labeled
from ._labels import Target

Numbers = npt.NDArray[np.float64]

#: Rows to fit to and rows to predict.
Split = tuple[Codes, Codes]


@dataclass
class Splitting:
    """How rows are split: the settings `cv` and `random_state`, and the groups of the rows."""

    cv: Any
    groups: Any
    random: np.random.RandomState

    def listed(self, X: Any) -> list[Split] | None:
        """The splits of `cv` if it lists them: their rows are those of `X`, with and without known truths."""
        if isinstance(self.cv, (int, np.integer)) or self.cv is None or hasattr(self.cv, "split"):
            return None
        return [(np.asarray(train), np.asarray(test)) for train, test in check_cv(self.cv).split(X, groups=self.groups)]

    def of_label(self, X: Any, codes: Codes, known: Codes) -> list[Split]:
        """Splits of the rows with a known truth; none if there are too few of them."""
        codes = codes[known]
        groups = None if self.groups is None else _safe_indexing(self.groups, known)
        if isinstance(self.cv, (int, np.integer)):
            n_splits = min(int(self.cv), len(codes) if groups is None else len(np.unique(groups)))
            if n_splits < 2:
                return []
            splitter = self._folds(n_splits, codes, groups)
        else:
            splitter = check_cv(self.cv, codes, classifier=True)
        parts = splitter.split(_safe_indexing(X, known), codes, groups)
        return [(known[train], known[test]) for train, test in parts]

    def _folds(self, n_splits: int, codes: Codes, groups: Any) -> Any:
        """Folds that keep groups together if there are any, otherwise stratified ones if every class has enough rows."""
        seed = self.random.randint(2**31 - 1)
        if groups is not None:
            return GroupKFold(n_splits)
        counts = np.bincount(codes)
        is_stratified = counts[counts > 0].min() >= n_splits
        return (StratifiedKFold if is_stratified else KFold)(n_splits, shuffle=True, random_state=seed)


def fit_out_of_fold(
    X: Any,
    codes: Codes,
    targets: list[Target],
    prototypes: list[tuple[Any, dict[str, Any]]],
    weights: Numbers | None,
    splitting: Splitting,
    tell: Callable[[int, int, str], object],
) -> tuple[list[list[Labeled]], list[list[Numbers]]]:
    """For each label, its classifiers fitted to all rows and their out-of-fold beliefs; NaN without such a belief.

    `prototypes` are the classifiers with the arguments of their `fit`. `tell` is called with the number of labels that
    are done, their number and the name of the last.
    """
    fitted, beliefs = [], []
    listed = splitting.listed(X)
    for j, target in enumerate(targets):
        is_known = codes[:, j] >= 0
        known = np.flatnonzero(is_known)
        # Rows of weight 0 are not predicted, because nothing is learned from them.
        unknown = np.flatnonzero(~is_known & (True if weights is None else weights > 0))
        parts = splitting.of_label(X, codes[:, j], known) if listed is None else listed
        parts = [(train[is_known[train]], test[is_known[test]]) for train, test in parts]
        of_label, probabilities = [], []
        for prototype, params in prototypes:
            estimator = Labeled.fit(prototype, X, known, codes[:, j], target, params)
            of_label.append(estimator)
            folds = [
                (Labeled.fit(prototype, X, train, codes[:, j], target, params), test)
                for train, test in parts
                if len(train) and len(test)
            ]
            alone = unknown if parts else np.concatenate([unknown, known])
            probabilities.append(_means([(estimator, alone), *folds], X, len(target.classes)))
        fitted.append(of_label)
        beliefs.append(probabilities)
        tell(j + 1, len(targets), target.name)
    return fitted, beliefs


def _means(parts: list[tuple[Labeled, Codes]], X: Any, n_classes: int) -> Numbers:
    """The mean belief of each row over the classifiers that predict it; NaN if none does."""
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    total, counts = np.zeros((n_rows, n_classes)), np.zeros(n_rows)
    for estimator, rows in parts:
        if len(rows):
            total[rows] += estimator.predict_proba(_safe_indexing(X, rows))
            counts[rows] += 1
    total[counts == 0] = np.nan
    return np.asarray(total / np.maximum(counts, 1)[:, None])
