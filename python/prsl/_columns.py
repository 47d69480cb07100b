"""Columns of truths, from arrays and frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import ArgumentError, PrslError

Codes = npt.NDArray[np.int64]


def is_missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where a value is NaN or `None`."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values), dtype=bool)
    if values.dtype == object:
        return np.array([_is_unknown(value) for value in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def _is_unknown(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        # `pandas.NA` is neither equal to itself nor different.
        return True


def as_columns(y: Any) -> tuple[npt.NDArray[Any], list[str] | None, bool]:
    """`y` with two dimensions, the names of its columns if any, and whether it had one dimension."""
    names = None
    if hasattr(y, "column_names"):
        # A table of pyarrow.
        names = [str(name) for name in y.column_names]
        y = _side_by_side([np.asarray(column) for column in y.columns])
    elif hasattr(y, "columns"):
        names = [str(name) for name in y.columns]
    array = np.asarray(y)
    if array.dtype.kind == "c":
        raise ArgumentError("Complex data not supported: y holds complex numbers, expected classes")
    if array.ndim == 2 and array.shape[1] == 1:
        return array, names, True
    if array.ndim == 1:
        return array.reshape(-1, 1), names, True
    if array.ndim != 2:
        raise ArgumentError(f"y has {array.ndim} dimensions, expected 1, or 2 with a column for each label")
    return array, names, False


def _side_by_side(columns: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Columns as one array; of objects, unless all are numbers."""
    if not all(column.dtype.kind in "biuf" for column in columns):
        columns = [column.astype(object) for column in columns]
    return np.column_stack(columns)


def check_targets(columns: npt.NDArray[Any]) -> None:
    """Refuses infinite values and an empty array."""
    if columns.dtype.kind == "f" and np.isinf(columns).any():
        raise ArgumentError("Input y contains infinity or a value too large")
    if len(columns) == 0:
        raise PrslError("Found array with 0 sample(s) while a minimum of 1 is required")
