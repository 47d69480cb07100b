"""Converts users' beliefs to the library's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _prsl
from .errors import ArgumentError, LengthError, UnknownCategoryError, UnknownLabelError

if TYPE_CHECKING:
    from ._prsl import Label

Numbers = npt.NDArray[np.float64]


def rows(
    core: _prsl.Model,
    beliefs: Any,
    *,
    normalize: bool = False,
    ignore_extra: bool = False,
    missing: Sequence[str] = (),
    raw: bool = False,
) -> _prsl.Rows:
    """Rows of beliefs, from a dictionary or a list of arrays, one array with all categories, or a frame.

    Cells that equal one of the texts in `missing` are missing.
    """
    if isinstance(missing, str):
        raise ArgumentError(f"missing is the text `{missing}`, expected a list of texts: [{missing!r}]")
    if isinstance(beliefs, _prsl.Rows):
        return beliefs
    if is_frame(beliefs):
        return _prsl.Rows.from_table(core, beliefs, normalize, ignore_extra, list(missing), raw)
    labels = core.labels
    if isinstance(beliefs, Mapping):
        columns = _of_mapping(labels, beliefs, ignore_extra, missing)
    elif isinstance(beliefs, np.ndarray) and beliefs.ndim == 2:
        columns = _of_table(labels, beliefs)
    elif isinstance(beliefs, (Sequence, np.ndarray)):
        columns = _of_list(labels, list(beliefs), missing)
    else:
        raise ArgumentError(
            f"beliefs are a {type(beliefs).__name__}, expected a dictionary or a list of arrays, an array or a frame"
        )
    lengths = {len(column) for _, column in columns}
    if len(lengths) > 1:
        counted = ", ".join(f"`{labels[index].name}` has {len(column)}" for index, column in columns)
        raise ArgumentError(f"the labels have different numbers of rows: {counted}")
    n_rows = lengths.pop() if lengths else 0
    return _prsl.Rows.from_arrays(core, n_rows, columns, normalize, raw)


def is_frame(beliefs: object) -> bool:
    """Whether it is a table of pyarrow, polars, pandas or another library with the Arrow interface."""
    return hasattr(beliefs, "__arrow_c_stream__") or hasattr(beliefs, "__arrow_c_array__")


def _of_mapping(
    labels: list[Label], beliefs: Mapping[str, Any], ignore_extra: bool, missing: Sequence[str]
) -> list[tuple[int, Any]]:
    places = {label.name: index for index, label in enumerate(labels)}
    columns = []
    for name, values in beliefs.items():
        if name in places:
            columns.append((places[name], _column(labels[places[name]], values, missing)))
        elif not ignore_extra:
            known = ", ".join(f"`{label}`" for label in list(places)[:10])
            raise UnknownLabelError(f"unknown label `{name}` among the beliefs; the model has {known}")
    return columns


def _of_list(labels: list[Label], beliefs: Sequence[Any], missing: Sequence[str]) -> list[tuple[int, Any]]:
    if len(beliefs) != len(labels):
        raise ArgumentError(f"there are {len(beliefs)} arrays of beliefs, expected {len(labels)}, one for each label")
    given = [(index, values) for index, values in enumerate(beliefs) if values is not None]
    return [(index, _column(labels[index], values, missing)) for index, values in given]


def _of_table(labels: list[Label], beliefs: npt.NDArray[Any]) -> list[tuple[int, Any]]:
    n_categories = sum(len(label.categories) for label in labels)
    if beliefs.shape[1] != n_categories:
        raise LengthError(
            f"the array of beliefs has {beliefs.shape[1]} columns, expected {n_categories}, one for each category"
        )
    values = _numbers(beliefs)
    ends = np.cumsum([len(label.categories) for label in labels])
    blocks = np.split(values, ends[:-1], axis=1)
    return list(enumerate(blocks))


def _column(label: Label, values: Any, missing: Sequence[str]) -> npt.NDArray[Any]:
    """Two dimensions: beliefs. One dimension: P(yes) of a label with two categories, or observed categories."""
    array = np.asarray(values)
    if array.dtype.kind in "OUST" and array.ndim == 1:
        return _observed(label, array, missing)
    array = _numbers(array)
    n_categories = len(label.categories)
    if array.ndim == 1 and n_categories == 2:
        return np.column_stack([array, np.full(len(array), np.nan)])
    if array.ndim != 2 or array.shape[1] != n_categories:
        raise LengthError(
            f"beliefs for label `{label.name}` have the shape {array.shape}, expected (n, {n_categories}): "
            f"a column for each of {', '.join(label.categories)}"
        )
    return array


def _observed(label: Label, values: npt.NDArray[Any], missing: Sequence[str]) -> npt.NDArray[np.int64]:
    places = {category: index for index, category in enumerate(label.categories)}
    found = np.full(len(values), -1, dtype=np.int64)
    for row, value in enumerate(values):
        if value is None or value != value or value in missing:
            continue
        if value not in places:
            known = ", ".join(label.categories)
            raise UnknownCategoryError(
                f"row {row}, counted from 0: unknown category `{value}` of label `{label.name}`, expected one of {known}"
            )
        found[row] = places[value]
    return found


def _numbers(values: npt.NDArray[Any]) -> Numbers:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"beliefs are not numbers: {error}") from error
