"""Converts between scikit-learn's targets and the labels of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._model import Model
from .errors import ArgumentError, ExamplesError, UnknownCategoryError

Codes = npt.NDArray[np.int64]


@dataclass
class Target:
    """One column of `y`: its name, its classes, and the category of each class."""

    name: str
    classes: npt.NDArray[Any]
    categories: list[str]

    @classmethod
    def of(cls, name: str, values: npt.NDArray[Any], *, of_several: bool = False) -> Target:
        """The target of a column. If there are several columns, one with only 0 or only 1 gets both classes."""
        known = values[~is_missing(values)]
        if len(known) == 0:
            raise ExamplesError(f"label `{name}` has no known value; leave it out, or declare it among the rules")
        try:
            classes = np.unique(known)
        except TypeError as error:
            raise ExamplesError(f"label `{name}` mixes values that cannot be compared: {error}") from error
        if classes.dtype == object:
            classes = np.array(classes.tolist())
        if classes.dtype.kind == "f" and np.isinf(classes).any():
            raise ExamplesError(f"label `{name}`: input contains infinity, expected classes")
        if classes.dtype.kind == "f" and (classes == np.round(classes)).all():
            # NaN for missing values turns integers into floats.
            classes = classes.astype(np.int64) if is_missing(values).any() else classes
        elif classes.dtype.kind == "f":
            raise ExamplesError(
                f"Unknown label type: label `{name}` holds continuous values, expected classes"
            )
        if of_several and _is_yes_or_no(classes):
            classes = np.array([0, 1]).astype(classes.dtype)
        return cls(name, classes, _category_names(classes))

    @property
    def is_binary(self) -> bool:
        """Whether the classes are 0 and 1, so that the label is a yes/no label."""
        return _is_yes_or_no(self.classes)

    def codes(self, values: npt.NDArray[Any]) -> Codes:
        """The positions of the classes, -1 where missing."""
        codes = np.full(len(values), -1, dtype=np.int64)
        known = ~is_missing(values)
        given = values[known]
        if given.dtype == object:
            given = np.array(given.tolist()) if len(given) else np.array([], dtype=self.classes.dtype)
        found = np.searchsorted(self.classes, given) if len(given) else np.array([], dtype=np.int64)
        found = np.minimum(found, len(self.classes) - 1)
        wrong = self.classes[found] != given
        if np.any(wrong):
            row = np.flatnonzero(known)[np.flatnonzero(wrong)[0]]
            raise UnknownCategoryError(
                f"row {row}, counted from 0: label `{self.name}` has no class `{values[row]}`"
            )
        codes[known] = found
        return codes


def _is_yes_or_no(classes: npt.NDArray[Any]) -> bool:
    return classes.dtype.kind in "biuf" and set(classes.tolist()) <= {0, 1}


def _category_names(classes: npt.NDArray[Any]) -> list[str]:
    """The category of each class: yes for 1 and no for 0, otherwise the name of the class."""
    if _is_yes_or_no(classes):
        return ["yes" if value else "no" for value in classes]
    names = [str(value) for value in classes]
    if len(set(names)) < len(names) or "" in names:
        raise ExamplesError(f"the classes {classes.tolist()} cannot be told apart by what they are called")
    return names


def is_missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where a value is NaN or `None`."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values), dtype=bool)
    if values.dtype == object:
        return np.array([value is None or value != value for value in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def as_columns(y: Any) -> tuple[npt.NDArray[Any], list[str] | None, bool]:
    """`y` with two dimensions, the names of its columns if any, and whether it had one dimension."""
    names = None
    if hasattr(y, "columns"):
        names = [str(name) for name in y.columns]
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    array = np.asarray(y)
    if array.dtype.kind == "c":
        raise ArgumentError("Complex data not supported: y holds complex numbers, expected classes")
    if array.ndim == 2 and array.shape[1] == 1 and names is None:
        return array, names, True
    if array.ndim == 1:
        return array.reshape(-1, 1), names, True
    if array.ndim != 2:
        raise ArgumentError(f"y has {array.ndim} dimensions, expected 1, or 2 with a column for each label")
    return array, names, False


def base_model(targets: Sequence[Target], rules: Any) -> Model:
    """The initial model: the labels of the targets, and the given rules."""
    if isinstance(rules, Model):
        for target in targets:
            _check(rules, target)
        return rules
    builder = Model.builder()
    for target in targets:
        if target.is_binary:
            builder.label(target.name)
        else:
            # A label needs two categories, even if only one was seen.
            other = ["(other)"] if len(target.categories) == 1 else []
            builder.label(target.name, target.categories + other)
    text = builder.build().text
    if rules is None:
        lines: list[str] = []
    elif isinstance(rules, str):
        lines = rules.splitlines()
    else:
        lines = [_line(rule) for rule in rules]
    return Model.parse("\n".join([text, *lines]) + "\n")


def _line(rule: Any) -> str:
    """A line of a model file, from such a line, a formula that always holds, or a pair of probability and formula."""
    if isinstance(rule, str):
        words = rule.split(maxsplit=1)
        keywords = {"rule", "noisy_or", "typical", "label", "fixed", "expect", "calibrate"}
        return rule if words and words[0] in keywords else f"rule {rule}" if ":" in rule else f"rule 1: {rule}"
    probability, formula = rule
    return f"rule {probability}: {formula}"


def _check(model: Model, target: Target) -> None:
    label = {label.name: label for label in model.labels}.get(target.name)
    if label is None:
        known = ", ".join(label.name for label in model.labels)
        raise ArgumentError(f"the model has no label `{target.name}`; its labels are {known}")
    unknown = [category for category in target.categories if category not in label.categories]
    if unknown:
        raise UnknownCategoryError(
            f"unknown category `{unknown[0]}` of label `{target.name}`, which has {', '.join(label.categories)}"
        )


@dataclass
class Binding:
    """The mapping between labels and targets, and between categories and classes."""

    #: For each target the position of its label.
    labels: list[int]
    #: For each target and class the position of the category.
    categories: list[Codes]
    n_labels: int

    @classmethod
    def of(cls, model: Model, targets: Sequence[Target]) -> Binding:
        """Finds targets in a model that has them."""
        places = {label.name: index for index, label in enumerate(model.labels)}
        labels = [places[target.name] for target in targets]
        of_label = [model.labels[label].categories for label in labels]
        categories = [
            np.array([known.index(name) for name in target.categories], dtype=np.int64)
            for known, target in zip(of_label, targets, strict=True)
        ]
        return cls(labels, categories, len(model.labels))

    def truths(self, codes: Codes) -> Codes:
        """Positions of classes, target by target, as positions of categories, label by label."""
        truths = np.full((len(codes), self.n_labels), -1, dtype=np.int64)
        for column, (label, categories) in enumerate(zip(self.labels, self.categories, strict=True)):
            of_target = codes[:, column]
            truths[:, label] = np.where(of_target >= 0, categories[of_target], -1)
        return truths

    def codes(self, assignments: Codes) -> Codes:
        """The inverse of `truths`; -1 for a category without a class."""
        codes = np.full((len(assignments), len(self.labels)), -1, dtype=np.int64)
        for column, (label, categories) in enumerate(zip(self.labels, self.categories, strict=True)):
            for code, category in enumerate(categories):
                codes[assignments[:, label] == category, column] = code
        return codes
