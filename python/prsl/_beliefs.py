"""Converts users' beliefs to the library's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _prsl
from ._columns import is_missing
from .errors import ArgumentError, LengthError, UnknownCategoryError, UnknownLabelError

if TYPE_CHECKING:
    from ._prsl import Label

Numbers = npt.NDArray[np.float64]

#: Largest distance from 1 of the sum of beliefs in half or single precision. Half precision changes a belief by at most
#: 1 / 2048 of it, hence a sum by about 0.0005. Beliefs in double precision must sum to 1 within 1e-6.
_ROUNDING = 1e-3


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
    labels = core.labels
    if is_named(beliefs):
        found = _of_arrow(core, beliefs, normalize, ignore_extra, missing, raw)
        if found is not None:
            return found
        beliefs = _of_frame(labels, beliefs)
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


def index_of(beliefs: Any) -> Any:
    """The index of a pandas frame, otherwise `None`."""
    return beliefs.index if hasattr(beliefs, "columns") and hasattr(beliefs, "index") else None


def is_named(beliefs: object) -> bool:
    """Whether it is a table whose columns have names."""
    return is_frame(beliefs) or _has_columns(beliefs)


def _has_columns(beliefs: object) -> bool:
    """Whether it is a frame of a library without the Arrow interface, such as pandas before 2.2."""
    return not isinstance(beliefs, Mapping) and hasattr(beliefs, "columns") and hasattr(beliefs, "__getitem__")


def _of_arrow(
    core: _prsl.Model, frame: Any, normalize: bool, ignore_extra: bool, missing: Sequence[str], raw: bool
) -> _prsl.Rows | None:
    """Rows through the Arrow interface; `None` if the frame lacks it, or has numbers of low precision."""
    if not is_frame(frame) or _has_low_precision(frame):
        return None
    if index_of(frame) is not None:
        # Otherwise the index would be a column of the Arrow table.
        frame = frame.reset_index(drop=True)
    try:
        return _prsl.Rows.from_table(core, frame, normalize, ignore_extra, list(missing), raw)
    except ImportError:
        # The Arrow interface of pandas needs pyarrow.
        return None


def _column_names(frame: Any) -> list[Any]:
    return list(frame.column_names if hasattr(frame, "column_names") else getattr(frame, "columns", []))


def _has_low_precision(frame: Any) -> bool:
    """Whether some column is in half or single precision."""
    try:
        return any(_is_low_precision(np.asarray(frame[name][:0])) for name in _column_names(frame))
    except (AttributeError, KeyError, TypeError, ValueError):
        # A table whose columns cannot be selected by name.
        return False


def _of_frame(labels: list[Label], frame: Any) -> dict[str, Any]:
    """The columns of a frame by label. A column is named `label=category`, or like a label, or like a category that
    only one label has."""
    names = {label.name for label in labels}
    counts = Counter(category for label in labels for category in label.categories)
    places: dict[str, tuple[str, str]] = {}
    for label in labels:
        for category in label.categories:
            own = [f"{label.name}={category}"] + [category] * (counts[category] == 1)
            places |= {name: (label.name, category) for name in own if name not in names}
    found: dict[str, dict[str | None, Any]] = {}
    for name in _column_names(frame):
        values = np.asarray(frame[name])
        # The caller reports unknown names.
        of_label, of_category = places.get(str(name), (str(name), None))
        columns = found.setdefault(of_label, {})
        if of_category in columns or None in columns or (of_category is None and columns):
            raise ArgumentError(f"column `{name}` gives beliefs about label `{of_label}` that another column gives, too")
        columns[of_category] = values
    return {name: columns.get(None, columns) for name, columns in found.items()}


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
    ends = np.cumsum([len(label.categories) for label in labels])
    blocks = np.split(beliefs, ends[:-1], axis=1)
    return list(enumerate(as_beliefs(block) for block in blocks))


def _column(label: Label, values: Any, missing: Sequence[str]) -> npt.NDArray[Any]:
    """Two dimensions: beliefs. One dimension: P(yes) of a yes/no label, or observed categories."""
    if isinstance(values, Mapping):
        return _of_categories(label, values)
    array = np.asarray(values)
    if array.ndim == 1 and _is_text(array):
        return _observed(label, array, missing)
    array = as_beliefs(array)
    n_categories = len(label.categories)
    if array.ndim == 1 and label.categories == ["no", "yes"]:
        return np.column_stack([np.full(len(array), np.nan), array])
    if array.ndim != 2 or array.shape[1] != n_categories:
        raise LengthError(
            f"beliefs for label `{label.name}` have the shape {array.shape}, expected (n, {n_categories}): "
            f"a column for each of {', '.join(label.categories)}"
        )
    return array


def _of_categories(label: Label, columns: Mapping[str, Any]) -> Numbers:
    """Beliefs by category; categories that are not given are missing."""
    unknown = [name for name in columns if name not in label.categories]
    if unknown:
        known = ", ".join(label.categories)
        raise UnknownCategoryError(f"unknown category `{unknown[0]}` of label `{label.name}`, expected one of {known}")
    given = {name: np.asarray(values) for name, values in columns.items()}
    if len({len(values) for values in given.values()}) != 1:
        raise ArgumentError(f"the categories of label `{label.name}` have different numbers of rows")
    n_rows = len(next(iter(given.values())))
    array = np.column_stack([as_numbers(given.get(name, np.full(n_rows, np.nan))) for name in label.categories])
    return _without_rounding(array) if any(_is_low_precision(values) for values in given.values()) else array


def _observed(label: Label, values: npt.NDArray[Any], missing: Sequence[str]) -> npt.NDArray[np.int64]:
    places = {category: index for index, category in enumerate(label.categories)}
    found = np.full(len(values), -1, dtype=np.int64)
    unknown = is_missing(values)
    for row, value in enumerate(values):
        if unknown[row] or value in missing:
            continue
        if value not in places:
            known = ", ".join(label.categories)
            raise UnknownCategoryError(
                f"row {row}, counted from 0: unknown category `{value}` of label `{label.name}`, expected one of {known}"
            )
        found[row] = places[value]
    return found


def _is_text(values: npt.NDArray[Any]) -> bool:
    """Whether some value is a text, or none is known."""
    if values.dtype.kind != "O":
        return values.dtype.kind in "UST"
    known = values[~is_missing(values)]
    return len(known) == 0 or any(isinstance(value, str) for value in known)


def as_beliefs(values: Any) -> Numbers:
    """Beliefs about one label as numbers. In half and single precision, sums that differ from 1 by rounding become 1."""
    given = np.asarray(values)
    array = as_numbers(given)
    return _without_rounding(array) if array.ndim == 2 and _is_low_precision(given) else array


def _is_low_precision(values: npt.NDArray[Any]) -> bool:
    return values.dtype.kind == "f" and values.dtype.itemsize < 8


def _without_rounding(beliefs: Numbers) -> Numbers:
    """Beliefs whose sums are 1 where they are almost 1."""
    totals = beliefs.sum(axis=1, keepdims=True)
    is_near = np.abs(totals - 1.0) <= _ROUNDING
    return np.where(is_near, beliefs / np.where(is_near, totals, 1.0), beliefs)


def as_numbers(values: Any) -> Numbers:
    """Numbers in double precision, NaN where they are missing."""
    array = np.asarray(values)
    if array.dtype.kind == "O":
        missing = is_missing(array.ravel()).reshape(array.shape)
        array = np.where(missing, np.nan, array)
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"beliefs are not numbers: {error}") from error
