"""Classifiers of single labels: fitted, aligned with the classes of their label, and asked out of fold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter

from ._columns import Codes
from ._labels import Target
from .errors import ArgumentError

Numbers = npt.NDArray[np.float64]


class Labeled:
    """A fitted classifier of one label, which may not have seen all classes."""

    def __init__(self, estimator: Any, classes: npt.NDArray[Any], target: Target, n_rows: int = 0) -> None:
        self.estimator = estimator
        self.classes = classes
        self.target = target
        self.n_rows = n_rows

    @classmethod
    def of(cls, estimator: Any, target: Target) -> Labeled:
        """Wraps a fitted classifier."""
        check_is_fitted(estimator)
        return cls(estimator, np.asarray(estimator.classes_), target)

    @classmethod
    def fit(
        cls, prototype: Any, X: Any, rows: Codes, codes: Codes, target: Target, params: dict[str, Any]
    ) -> Labeled:
        """Fits a classifier to some rows. Fits none if the rows have only one class."""
        seen = np.unique(codes[rows])
        if len(seen) < 2:
            return cls(None, target.classes[seen], target, len(rows))
        estimator = clone(prototype)
        given = _check_method_params(X, params, indices=rows)
        estimator.fit(_safe_indexing(X, rows), target.classes[codes[rows]], **given)
        return cls(estimator, np.asarray(estimator.classes_), target)

    def predict_proba(self, X: Any, target: Target | None = None) -> Numbers:
        """Probabilities of all classes of the label."""
        target = self.target if target is None else target
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if self.estimator is None:
            n_classes = len(self.target.classes)
            if n_classes == 1:
                return np.ones((n_rows, 1))
            # At most one class is in the rows. A pseudo-count of half a row is added for each class.
            probabilities = np.full((n_rows, n_classes), 0.5 / (self.n_rows + 0.5 * n_classes))
            seen = np.searchsorted(self.target.classes, self.classes)
            probabilities[:, seen] += self.n_rows / (self.n_rows + 0.5 * n_classes)
            return probabilities
        return aligned(np.asarray(self.estimator.predict_proba(X)), self.classes, target)


def indexable(X: Any) -> Any:
    """Features whose rows can be selected. They are not converted otherwise, because the classifiers check them."""
    if issparse(X):
        return X.tocsr()
    return X if hasattr(X, "shape") or isinstance(X, (list, tuple)) else np.asarray(X)


def weight_name(estimator: Any) -> str | None:
    """The argument of `fit` that takes sample weights. A pipeline passes them to its last step."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__sample_weight" if has_fit_parameter(last, "sample_weight") else None
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def fit_params(prototype: Any, weights: Numbers | None) -> dict[str, Any]:
    """The arguments of `fit` with the weights, if the classifier takes them."""
    name = weight_name(prototype)
    return {} if weights is None or name is None else {name: weights}


def aligned(values: Numbers, classes: npt.NDArray[Any], target: Target) -> Numbers:
    """Probabilities of some classes as probabilities of all classes of a label."""
    if len(classes) == len(target.classes) and (classes == target.classes).all():
        return np.asarray(values, dtype=np.float64)
    probabilities = np.zeros((len(values), len(target.classes)))
    for column, known in enumerate(classes):
        place = np.flatnonzero(target.classes == known)
        if len(place) == 0:
            raise ArgumentError(f"a classifier of label `{target.name}` knows the class `{known}`, which y has not")
        probabilities[:, place[0]] = values[:, column]
    return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))


def classes_of(estimators: Any, n_labels: int) -> list[npt.NDArray[Any]]:
    """For each label the classes that its fitted classifier knows."""
    if isinstance(estimators, list):
        return [of_label[0].classes for of_label in estimators]
    classes = estimators.classes_
    if isinstance(classes, list):
        if len(classes) != n_labels:
            raise ArgumentError(f"the fitted classifier knows {len(classes)} labels, and y has {n_labels}")
        return [np.asarray(known) for known in classes]
    # A multi-label classifier has the labels as its classes, and predicts 0 or 1 for each.
    return [np.asarray(classes)] if n_labels == 1 else [np.array([0, 1])] * n_labels


def beliefs_of(estimators: Any, targets: list[Target], X: Any) -> list[list[Numbers]]:
    """For each label the beliefs of its classifiers: of lists of classifiers, or of one classifier for all labels."""
    if isinstance(estimators, list):
        pairs = zip(estimators, targets, strict=True)
        return [[estimator.predict_proba(X, target) for estimator in of_label] for of_label, target in pairs]
    probabilities = estimators.predict_proba(X)
    probabilities = probabilities if isinstance(probabilities, list) else [probabilities]
    if len(probabilities) == 1 and len(targets) > 1:
        # Several labels in one array: probabilities of 1, as multi-label classifiers return them.
        of_one = probabilities[0]
        probabilities = [np.column_stack([1.0 - of_one[:, j], of_one[:, j]]) for j in range(of_one.shape[1])]
    if len(probabilities) != len(targets):
        raise ArgumentError(f"the fitted classifier knows {len(probabilities)} labels, and y has {len(targets)}")
    return [
        [aligned(np.asarray(values), np.asarray(known), target)]
        for values, known, target in zip(probabilities, classes_of(estimators, len(targets)), targets, strict=True)
    ]
