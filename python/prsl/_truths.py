"""Converts users' truths to positions of categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._columns import Codes, as_columns, is_missing
from .errors import ArgumentError, UnknownCategoryError, UnknownLabelError

if TYPE_CHECKING:
    from ._prsl import Label

#: The categories of a yes/no label, in the order of arrays.
_YES_NO = ["no", "yes"]


def positions(labels: list[Label], truths: Any) -> Codes:
    """For each row and label the position of the true category, -1 if it is unknown.

    `truths` is a dictionary by label, a frame with the labels as columns, or an array with a column for each label.
    """
    if isinstance(truths, Mapping):
        return _of_mapping(labels, {str(name): np.asarray(values) for name, values in truths.items()})
    columns, names, _ = as_columns(truths)
    if names is not None:
        return _of_mapping(labels, dict(zip(names, columns.T, strict=True)))
    if columns.shape[1] != len(labels):
        raise ArgumentError(f"truths have {columns.shape[1]} columns, expected {len(labels)}, one for each label")
    found = [_column(label, columns[:, at]) for at, label in enumerate(labels)]
    return np.column_stack(found) if found else np.empty((len(columns), 0), dtype=np.int64)


def _of_mapping(labels: list[Label], truths: Mapping[str, npt.NDArray[Any]]) -> Codes:
    known = [label.name for label in labels]
    unknown = [name for name in truths if name not in known]
    if unknown:
        raise UnknownLabelError(f"unknown label `{unknown[0]}` among the truths; the model has {', '.join(known)}")
    lengths = {len(values) for values in truths.values()}
    if len(lengths) != 1:
        raise ArgumentError(f"the truths have different numbers of rows: {sorted(lengths)}")
    found = np.full((lengths.pop(), len(labels)), -1, dtype=np.int64)
    for at, label in enumerate(labels):
        if label.name in truths:
            found[:, at] = _column(label, truths[label.name])
    return found


def _column(label: Label, values: npt.NDArray[Any]) -> Codes:
    """The positions of the values of one label."""
    places = {"-1": -1} | {category: at for at, category in enumerate(label.categories)}
    if label.categories == _YES_NO:
        places |= {"0": 0, "1": 1}
    elif not any(category.lstrip("-").isdigit() for category in label.categories):
        # Numbers that are no categories are positions.
        places |= {str(at): at for at in range(len(label.categories))}
    known = np.flatnonzero(~is_missing(values))
    given = values[known]
    # Objects of several types cannot be sorted.
    of_rows = np.arange(len(given))
    if values.dtype != object:
        given, of_rows = np.unique(given, return_inverse=True)
    codes = np.array([places.get(_name(value, label.categories), -2) for value in given], dtype=np.int64)
    found = np.full(len(values), -1, dtype=np.int64)
    found[known] = codes[of_rows]
    wrong = np.flatnonzero(found == -2)
    if len(wrong):
        raise UnknownCategoryError(
            f"row {wrong[0]}, counted from 0: label `{label.name}` has no category `{values[wrong[0]]}`, "
            f"expected {_expected(label)}"
        )
    return found


def _name(value: Any, categories: list[str]) -> str:
    """The spelling of a truth: of numbers without a decimal point, of booleans as 0 or 1."""
    if isinstance(value, (bool, np.bool_)):
        return str(value) if str(value) in categories else str(int(value))
    if isinstance(value, (float, np.floating)) and value.is_integer():
        return str(value) if str(value) in categories else str(int(value))
    return str(value)


def _expected(label: Label) -> str:
    if label.categories == _YES_NO:
        return "0 or 1, a boolean, or `no` or `yes`"
    shown = ", ".join(label.categories[:10])
    return f"one of {shown}" if len(label.categories) <= 10 else f"one of {shown}, ..."
