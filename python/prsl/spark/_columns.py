"""Columns of a data frame that belong to the labels of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._model import Model, ModelBuilder
from ..errors import ArgumentError, UnknownCategoryError, UnknownLabelError

#: By label: a column with the probability of yes or with observed categories; a list of columns, one for each category in
#: the order of `Label.categories`; or a dictionary of columns by category.
Beliefs = Mapping[str, str | Sequence[str] | Mapping[str, str]]


@dataclass(frozen=True)
class Columns:
    """Columns of a data frame, with the names by which the library knows them."""

    #: The columns with beliefs, and `label=category` or `label` for each.
    beliefs: tuple[tuple[str, str], ...]
    #: The columns with truths, and the label of each.
    truths: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> dict[str, str]:
        """The users' names of columns with beliefs by the library's names, for messages."""
        return {ours: theirs for theirs, ours in self.beliefs}

    @property
    def truth_names(self) -> dict[str, str]:
        """The users' names of columns with truths by their labels, for messages."""
        return {label: theirs for theirs, label in self.truths}


def belief_columns(model: Model, frame: Any, beliefs: Beliefs | None) -> tuple[tuple[str, str], ...]:
    """The columns with beliefs. Without `beliefs`, all columns that are named `label=category`, or like a yes/no label."""
    if beliefs is None:
        known = {f"{label.name}={category}" for label in model.labels for category in label.categories}
        known |= {label.name for label in model.labels if label.categories == ["no", "yes"]}
        found = tuple((name, name) for name in frame.columns if name in known)
        if not found:
            raise ArgumentError(
                f"the data frame has no column `{sorted(known)[0]}` or the like; name its columns with `beliefs`"
            )
        return found
    labels = {label.name: label for label in model.labels}
    pairs: list[tuple[str, str]] = []
    for name, given in beliefs.items():
        if name not in labels:
            raise UnknownLabelError(f"unknown label `{name}` among the beliefs; the model has {_listed(labels)}")
        pairs += _of_label(name, labels[name].categories, given)
    _check(frame, [column for column, _ in pairs], "beliefs")
    return tuple(pairs)


def truth_columns(model: Model, frame: Any, truth: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """The columns with truths, by label."""
    if not truth:
        raise ArgumentError('there are no truths; name their columns, such as truth={"activity": "true_activity"}')
    labels = {label.name for label in model.labels}
    for name in truth:
        if name not in labels:
            raise UnknownLabelError(f"unknown label `{name}` among the truths; the model has {_listed(labels)}")
    _check(frame, list(truth.values()), "truths")
    return tuple((column, label) for label, column in truth.items())


def new_model(beliefs: Beliefs | None) -> Model:
    """A model without rules: yes/no labels with one column, and labels whose categories are named."""
    if not beliefs:
        raise ArgumentError("a new model takes its labels from `beliefs`; or name a model with `rules`")
    builder = ModelBuilder()
    for name, given in beliefs.items():
        if isinstance(given, str):
            builder = builder.label(name)
        elif isinstance(given, Mapping):
            builder = builder.label(name, list(given))
        else:
            raise ArgumentError(
                f"the categories of label `{name}` have no names; give its columns as a dictionary by category, "
                "or a model with `rules`"
            )
    return builder.build()


def check_column(frame: Any, column: str | None, what: str) -> None:
    """Refuses the name of a column that is not there."""
    if column is not None:
        _check(frame, [column], what)


def _of_label(name: str, categories: list[str], given: Any) -> list[tuple[str, str]]:
    if isinstance(given, str):
        return [(given, name)]
    if isinstance(given, Mapping):
        for category in given:
            if category not in categories:
                known = ", ".join(categories)
                raise UnknownCategoryError(f"unknown category `{category}` of label `{name}`, which has {known}")
        return [(column, f"{name}={category}") for category, column in given.items()]
    columns = list(given)
    if len(columns) != len(categories):
        raise ArgumentError(
            f"label `{name}` has {len(columns)} columns, expected {len(categories)}, one for each of {', '.join(categories)}"
        )
    return [(column, f"{name}={category}") for column, category in zip(columns, categories, strict=True)]


def _check(frame: Any, columns: Sequence[str], what: str) -> None:
    for column in columns:
        if column not in frame.columns:
            raise ArgumentError(f"there is no column `{column}` with {what}; the data frame has {_listed(frame.columns)}")


def _listed(names: Any) -> str:
    shown = [f"`{name}`" for name in list(names)[:10]]
    return ", ".join(shown) + (", ..." if len(list(names)) > 10 else "")
