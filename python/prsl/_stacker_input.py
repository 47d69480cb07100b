"""Beliefs and truths of a stacker: from the order of classes to the order of a model's categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from . import _prsl
from ._beliefs import as_beliefs, as_numbers, is_named, rows
from ._columns import Codes, as_columns
from ._labels import Binding, Target
from ._model import Model
from .errors import ArgumentError, LengthError

Numbers = npt.NDArray[np.float64]


class StackerInput:
    """Reads what users give a stacker."""

    normalize: bool
    _targets: list[Target]
    _binding: Binding

    def _codes(self, columns: npt.NDArray[Any]) -> Codes:
        if columns.shape[1] != len(self._targets):
            raise ArgumentError(f"y has {columns.shape[1]} columns, expected {len(self._targets)}")
        return np.column_stack([target.codes(columns[:, j]) for j, target in enumerate(self._targets)])

    def _truths(self, y: Any) -> Codes:
        return self._binding.truths(self._codes(as_columns(y)[0]))

    def _rows(self, X: Any, model: Model, raw: bool = False) -> _prsl.Rows:
        """Beliefs in the order of classes as beliefs in the order of categories."""
        if isinstance(X, _prsl.Rows):
            return X
        if issparse(X):
            raise TypeError("sparse arrays of beliefs are not supported; pass `X.toarray()`")
        if not is_named(X):
            X = self._by_label(X, model)
        return rows(model._core, X, normalize=self.normalize, raw=raw)

    def _by_label(self, X: Any, model: Model) -> dict[str, Any]:
        names = [target.name for target in self._targets]
        if isinstance(X, dict):
            arrays = {name: X[name] for name in names if name in X and not isinstance(X[name], Mapping)}
            # Of labels that only the rules contain, and columns by category.
            extra = {name: values for name, values in X.items() if name not in arrays}
            return extra | {name: self._of_label(names.index(name), values, model) for name, values in arrays.items()}
        if isinstance(X, np.ndarray) and X.ndim == 2 or not isinstance(X, (list, tuple)) or np.ndim(X[0]) == 1:
            array = np.asarray(X)
            X = self._split(array if array.dtype.kind == "f" else as_numbers(array))
        if len(X) != len(names):
            raise LengthError(f"X has beliefs about {len(X)} labels, expected {len(names)}")
        return {name: self._of_label(j, X[j], model) for j, name in enumerate(names) if X[j] is not None}

    def _split(self, X: Numbers) -> list[Numbers]:
        """One array with the columns of all labels side by side."""
        if X.ndim != 2:
            raise LengthError(f"X has {X.ndim} dimensions, expected 2. Reshape your data: a row for each instance")
        if X.shape[1] == 0:
            raise LengthError(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
        widths = [len(target.classes) for target in self._targets]
        if X.shape[1] == len(widths) and all(width <= 2 for width in widths):
            return [X[:, j] for j in range(len(widths))]
        if X.shape[1] != sum(widths):
            raise LengthError(
                f"X has {X.shape[1]} columns, expected {sum(widths)}, one for each class of each label"
                + (f", or {len(widths)} with the probability of the second" if max(widths) == 2 else "")
            )
        return np.split(X, np.cumsum(widths)[:-1], axis=1)

    def _of_label(self, target: int, values: Any, model: Model) -> Numbers:
        """Beliefs in the classes of a label as beliefs in its categories."""
        label = model.labels[self._binding.labels[target]]
        places = self._binding.categories[target]
        array = as_beliefs(values)
        if array.ndim == 1 and len(places) <= 2:
            array = np.column_stack([1.0 - array, array]) if len(places) == 2 else array.reshape(-1, 1)
        if array.ndim != 2 or array.shape[1] != len(places):
            raise LengthError(
                f"beliefs about label `{label.name}` have the shape {array.shape}, expected (n, {len(places)})"
            )
        if len(label.categories) == array.shape[1] and (places == np.arange(len(places))).all():
            return array
        ordered = np.zeros((len(array), len(label.categories)))
        ordered[np.isnan(array).all(axis=1)] = np.nan
        ordered[:, places] = array
        return ordered


def n_columns(X: Any) -> int:
    """The number of columns with beliefs, in any form of `X`."""
    if hasattr(X, "columns") and not isinstance(X, dict):
        return len(X.columns)
    if hasattr(X, "shape") and len(X.shape) == 2:
        return int(X.shape[1])
    if hasattr(X, "__array__"):
        return int(np.asarray(X).shape[1])
    if isinstance(X, dict):
        X = list(X.values())
    if not isinstance(X, (list, tuple)):
        return 0
    if np.ndim(X[0]) == 1 and not isinstance(X[0], np.ndarray):
        return len(X[0])
    by_category = sum(len(values) for values in X if isinstance(values, Mapping))
    shapes = [np.shape(values) for values in X if values is not None and not isinstance(values, Mapping)]
    return by_category + sum(shape[1] if len(shape) == 2 else 1 for shape in shapes)
