"""Scores of predictions, where truths may be missing (NaN or `None` in `y_true`).

Functions take the truth first. :data:`SCORERS` has the scorers for `GridSearchCV` and `cross_val_score`, and
:func:`scorer` finds one by its name.

>>> joint_accuracy([[1, 0], [1, 1]], [[1, 0], [1, 0]])
0.5
>>> hamming([[1, 0], [1, float("nan")]], [[1, 1], [1, 0]])
0.333...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._columns import Codes, as_columns, is_missing
from ._labels import Target
from .errors import ArgumentError

__all__ = [
    "IMPOSSIBLE",
    "SCORERS",
    "expected_calibration_error",
    "hamming",
    "joint_accuracy",
    "joint_log_likelihood",
    "label_log_likelihood",
    "scorer",
]

#: The log-likelihood of a truth of probability 0.
IMPOSSIBLE = float(np.log(1e-300))

Numbers = npt.NDArray[np.float64]


def joint_accuracy(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """The share of rows whose known truths are all predicted."""
    right, known = _hits(y_true, y_pred)
    counted = np.asarray(known.any(axis=1), dtype=bool)
    return _mean(np.asarray((right | ~known).all(axis=1), dtype=bool)[counted], sample_weight, counted)


def hamming(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """The share of known truths that are not predicted."""
    right, known = _hits(y_true, y_pred)
    weights = np.ones(len(known)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    cells = known * weights[:, None]
    return float((cells * ~right).sum() / cells.sum()) if cells.sum() > 0 else float("nan")


def joint_log_likelihood(log_likelihoods: Any, *, sample_weight: Any = None) -> float:
    """The mean of ln P(known truths of a row), as returned by `joint_log_likelihood` of an estimator.

    A truth of probability 0 counts as :data:`IMPOSSIBLE`. Rows without a known truth, which are NaN, do not count.
    """
    values = np.asarray(log_likelihoods, dtype=np.float64)
    counted = ~np.isnan(values)
    return _mean(np.maximum(values[counted], IMPOSSIBLE), sample_weight, counted)


def label_log_likelihood(y_true: Any, probabilities: Any, *, classes: Any = None, sample_weight: Any = None) -> float:
    """The mean over rows of the sum of ln P(truth) over known labels.

    `probabilities` are as `predict_proba` returns them: (n, M), or a list of such arrays.
    """
    codes, listed = _coded(y_true, probabilities, classes)
    total = np.zeros(len(codes))
    for j, values in enumerate(listed):
        known = codes[:, j] >= 0
        chosen = values[np.flatnonzero(known), codes[known, j]]
        with np.errstate(divide="ignore"):
            total[known] += np.maximum(np.log(np.nan_to_num(chosen)), IMPOSSIBLE)
    counted = np.asarray((codes >= 0).any(axis=1), dtype=bool)
    return _mean(total[counted], sample_weight, counted)


def expected_calibration_error(y_true: Any, probabilities: Any, *, classes: Any = None, n_bins: int = 15) -> float:
    """Mean difference between predicted probabilities and observed frequencies in bins of equal width, over the classes of
    all labels. Of two classes, only the second counts."""
    codes, listed = _coded(y_true, probabilities, classes)
    errors = []
    for j, values in enumerate(listed):
        known = codes[:, j] >= 0
        if not known.any():
            continue
        for code in range(values.shape[1]) if values.shape[1] != 2 else [1]:
            p = values[known, code]
            hit = codes[known, j] == code
            bins = np.minimum((p * n_bins).astype(np.int64), n_bins - 1)
            gaps = np.bincount(bins, weights=p - hit, minlength=n_bins)
            errors.append(np.abs(gaps).sum() / len(p))
    return float(np.mean(errors)) if errors else float("nan")


def scorer(name: str) -> Callable[[Any, Any, Any], float]:
    """A scorer by name: "joint_accuracy", "joint_accuracy_mpe", "hamming", "joint_log_likelihood", "label_log_likelihood" or
    "expected_calibration_error". Larger is better: losses are negative."""
    if name not in SCORERS:
        raise ArgumentError(f"unknown scorer `{name}`, expected one of {', '.join(SCORERS)}")
    return SCORERS[name]


def _score_joint_accuracy(estimator: Any, X: Any, y: Any) -> float:
    return joint_accuracy(y, estimator.predict(X))


def _score_joint_accuracy_mpe(estimator: Any, X: Any, y: Any) -> float:
    return joint_accuracy(y, estimator.predict_mpe(X))


def _score_hamming(estimator: Any, X: Any, y: Any) -> float:
    return -hamming(y, estimator.predict(X))


def _score_joint_log_likelihood(estimator: Any, X: Any, y: Any) -> float:
    return joint_log_likelihood(estimator.joint_log_likelihood(X, y))


def _score_label_log_likelihood(estimator: Any, X: Any, y: Any) -> float:
    return label_log_likelihood(y, estimator.predict_proba(X), classes=estimator.classes_)


def _score_expected_calibration_error(estimator: Any, X: Any, y: Any) -> float:
    return -expected_calibration_error(y, estimator.predict_proba(X), classes=estimator.classes_)


#: Scorers by name; larger is better.
SCORERS: dict[str, Callable[[Any, Any, Any], float]] = {
    "joint_accuracy": _score_joint_accuracy,
    "joint_accuracy_mpe": _score_joint_accuracy_mpe,
    "hamming": _score_hamming,
    "joint_log_likelihood": _score_joint_log_likelihood,
    "label_log_likelihood": _score_label_log_likelihood,
    "expected_calibration_error": _score_expected_calibration_error,
}


def _hits(y_true: Any, y_pred: Any) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Where predictions are right, and where truths are known."""
    truth, predicted = as_columns(y_true)[0], as_columns(y_pred)[0]
    if truth.shape != predicted.shape:
        raise ArgumentError(f"truths have the shape {truth.shape}, and predictions {predicted.shape}")
    known = np.column_stack([~is_missing(truth[:, j]) for j in range(truth.shape[1])])
    if truth.dtype == object:
        # A comparison with `pandas.NA` is neither true nor false.
        truth = truth.copy()
        truth[~known] = None
    return np.asarray(truth == predicted, dtype=bool), known


def _coded(y_true: Any, probabilities: Any, classes: Any) -> tuple[Codes, list[Numbers]]:
    """Truths as positions of classes, and probabilities label by label."""
    truth = as_columns(y_true)[0]
    is_single = not isinstance(probabilities, (list, tuple)) or (len(probabilities) > 0 and np.ndim(probabilities[0]) < 2)
    listed = [np.asarray(values, dtype=np.float64) for values in ([probabilities] if is_single else probabilities)]
    if len(listed) != truth.shape[1]:
        raise ArgumentError(f"there are probabilities for {len(listed)} labels, and truths for {truth.shape[1]}")
    of_labels: Sequence[Any] = [None] * len(listed) if classes is None else [classes] if is_single else classes
    codes = np.empty(truth.shape, dtype=np.int64)
    for j, (values, of_label) in enumerate(zip(listed, of_labels, strict=True)):
        column = truth[:, j]
        if of_label is None:
            of_label = _classes(column, values.shape[1], j)
        codes[:, j] = Target(f"y{j}", np.asarray(of_label), []).codes(column)
        if len(values) != len(column):
            raise ArgumentError(f"there are {len(values)} rows of probabilities, and {len(column)} of truths")
    return codes, listed


def _classes(truth: npt.NDArray[Any], n_classes: int, label: int) -> npt.NDArray[Any]:
    """The classes of a label, if they are not given: whole numbers from 0, no and yes, or all values of the truth."""
    if is_missing(truth).all():
        return np.arange(n_classes)
    seen = Target.of(f"y{label}", truth).classes
    if seen.dtype.kind in "biuf" and 0 <= seen.min() and seen.max() < n_classes:
        return np.arange(n_classes)
    if n_classes == 2 and set(seen.tolist()) <= {"no", "yes"}:
        return np.array(["no", "yes"])
    if len(seen) != n_classes:
        raise ArgumentError(
            f"there are probabilities for {n_classes} classes of label {label}, and {len(seen)} classes in its truths; "
            "give `classes`"
        )
    return seen


def _mean(values: Any, sample_weight: Any, counted: npt.NDArray[np.bool_]) -> float:
    if not counted.any():
        return float("nan")
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[counted]
    return float(np.average(np.asarray(values, dtype=np.float64), weights=weights))
