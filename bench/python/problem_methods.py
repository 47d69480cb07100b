"""Multi-label methods with a common interface, for `problems.py`.

Truths are positions of classes: rows x labels, -1 where unknown. The classes of a label are 0 to M - 1.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prsl import RuleStackingClassifier

Numbers = npt.NDArray[np.float64]
Truths = npt.NDArray[np.int64]


def base_classifier() -> Any:
    """The base classifier of all methods."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))


class Method(Protocol):
    """What the comparison needs."""

    def fit(self, X: Numbers, y: Truths) -> Self: ...
    def predict(self, X: Numbers) -> Truths: ...
    def log_probability(self, X: Numbers, y: Truths) -> Numbers:
        """ln P(all truths of the row)."""


def _log(probabilities: Numbers, classes: Any, truth: Truths) -> Numbers:
    """ln P(truth) by one classifier; -inf for classes that it does not know."""
    found = np.full(len(truth), -np.inf)
    for column, known in enumerate(classes):
        rows = truth == known
        found[rows] = np.log(np.maximum(probabilities[rows, column], 1e-300))
    return found


class Independent:
    """One classifier per label, fitted to the rows whose truth is known."""

    def fit(self, X: Numbers, y: Truths) -> Self:
        known = y >= 0
        self.own = [base_classifier().fit(X[known[:, j]], y[known[:, j], j]) for j in range(y.shape[1])]
        return self

    def predict(self, X: Numbers) -> Truths:
        return np.column_stack([classifier.predict(X) for classifier in self.own])

    def log_probability(self, X: Numbers, y: Truths) -> Numbers:
        of_labels = [_log(own.predict_proba(X), own.classes_, y[:, j]) for j, own in enumerate(self.own)]
        return np.asarray(sum(of_labels))


class Chain:
    """scikit-learn's classifier chain, yes/no labels first, because it takes classes as numbers."""

    def fit(self, X: Numbers, y: Truths) -> Self:
        complete = (y >= 0).all(axis=1)
        self.order = sorted(range(y.shape[1]), key=lambda j: int(y[:, j].max()) > 1)
        self.chain = ClassifierChain(base_classifier(), order=self.order).fit(X[complete], y[complete])
        return self

    def predict(self, X: Numbers) -> Truths:
        return np.asarray(self.chain.predict(X)).astype(np.int64)

    def log_probability(self, X: Numbers, y: Truths) -> Numbers:
        total = np.zeros(len(X))
        for at, (j, own) in enumerate(zip(self.order, self.chain.estimators_, strict=True)):
            given = np.column_stack([X, y[:, self.order[:at]]])
            total += _log(own.predict_proba(given), own.classes_, y[:, j])
        return total


class Powerset:
    """One multi-class model whose classes are the label sets of the training rows."""

    def fit(self, X: Numbers, y: Truths) -> Self:
        complete = (y >= 0).all(axis=1)
        self.sets, places = np.unique(y[complete], axis=0, return_inverse=True)
        self.own = base_classifier().fit(X[complete], places.ravel())
        return self

    def predict(self, X: Numbers) -> Truths:
        return np.asarray(self.sets[self.own.predict(X)])

    def log_probability(self, X: Numbers, y: Truths) -> Numbers:
        places = {tuple(one): place for place, one in enumerate(self.sets.tolist())}
        truth = np.array([places.get(tuple(one), -1) for one in y.tolist()])
        return _log(self.own.predict_proba(X), self.own.classes_, truth)


class Stacked:
    """prsl's classifier with its defaults."""

    def __init__(self, labels: list[str], rules: list[str] | None, **settings: Any) -> None:
        self.stacked = RuleStackingClassifier(base_classifier(), rules, labels=labels, random_state=0, **settings)

    @property
    def has_soft_rules(self) -> bool:
        """Whether the model has rules or combinations, and none is hard: joint and marginal predictions may differ."""
        model = self.stacked.model_
        has_hard = any(rule.probability in (0.0, 1.0) for rule in model.rules)
        return not has_hard and self.stacked.n_rules != 0

    def fit(self, X: Numbers, y: Truths) -> Self:
        self.stacked.fit(X, np.where(y >= 0, y, np.nan))
        return self

    def predict(self, X: Numbers) -> Truths:
        return np.asarray(self.stacked.predict(X)).astype(np.int64)

    def predict_joint(self, X: Numbers) -> Truths:
        """The most probable assignments."""
        return np.asarray(self.stacked.predict_mpe(X)).astype(np.int64)

    def log_probability(self, X: Numbers, y: Truths) -> Numbers:
        return self.stacked.joint_log_likelihood(X, y)
