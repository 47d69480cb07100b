"""Converts between scikit-learn's targets and the labels of a model."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._columns import Codes, is_missing
from ._model import Model
from .errors import ArgumentError, ExamplesError, ModelError, UnknownCategoryError

if TYPE_CHECKING:
    from ._prsl import Label


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

    @classmethod
    def of_label(cls, label: Label) -> Target:
        """The target of a model's label: 0 and 1 for yes/no, otherwise its categories, as numbers if all are."""
        if label.categories == ["no", "yes"]:
            return cls(label.name, np.array([0, 1]), ["no", "yes"])
        if all(str(_whole(category)) == category for category in label.categories):
            classes: npt.NDArray[Any] = np.unique([int(category) for category in label.categories])
        else:
            classes = np.unique(label.categories)
        return cls(label.name, classes, [str(value) for value in classes])

    def extended(self, classes: npt.NDArray[Any]) -> Target:
        """The target with further classes, which a fitted classifier knows."""
        is_text = [known.dtype.kind in "USO" for known in (self.classes, classes)]
        if is_text[0] != is_text[1]:
            raise ArgumentError(
                f"the classes of label `{self.name}` are {self.classes[:3].tolist()}, "
                f"and its fitted classifier knows {classes[:3].tolist()}"
            )
        together = np.unique(np.concatenate([self.classes, classes]))
        if len(together) == len(self.classes):
            return self
        return Target(self.name, together, _category_names(together))

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


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _is_yes_or_no(classes: npt.NDArray[Any]) -> bool:
    return classes.dtype.kind in "biuf" and set(classes.tolist()) <= {0, 1}


def _category_names(classes: npt.NDArray[Any]) -> list[str]:
    """The category of each class: yes for 1 and no for 0, otherwise the name of the class."""
    if _is_yes_or_no(classes):
        return ["yes" if value else "no" for value in classes]
    # Whole numbers that an array stores as floats are named without a decimal point.
    names = [str(int(value)) if classes.dtype.kind == "f" else str(value) for value in classes]
    if len(set(names)) < len(names) or "" in names:
        raise ExamplesError(f"the classes {classes.tolist()} cannot be told apart by what they are called")
    return names


def label_names(given: Any, columns: list[str] | None, single: bool, n_columns: int) -> list[str]:
    """The names of the labels: as given, else those of the columns, else `y`, or `y0`, `y1`, ..."""
    if given is None:
        return columns or (["y"] if single else [f"y{j}" for j in range(n_columns)])
    if isinstance(given, str):
        raise ArgumentError(f"labels is the text `{given}`, expected a list of names: [{given!r}]")
    names = [str(name) for name in given]
    if len(names) != n_columns:
        raise ArgumentError(f"there are {len(names)} names for {n_columns} labels")
    return names


def base_model(targets: Sequence[Target], rules: Any) -> Model:
    """The initial model: the labels of the targets, and the given rules."""
    if isinstance(rules, Model):
        for target in targets:
            _check(rules, target)
        _refuse_contradictions(rules)
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
    else:
        lines = rule_lines(rules)
    model = Model.parse("\n".join([text, *lines]) + "\n")
    _refuse_contradictions(model)
    return model


def _refuse_contradictions(model: Model) -> None:
    if any(rule.probability in (0.0, 1.0) for rule in model.rules):
        for finding in model.check():
            if finding.code == "contradiction":
                raise ModelError(finding.message)


def rule_lines(rules: Any) -> list[str]:
    """Lines of a model file, from a text, a list of rules, or a dictionary of formulas and their probabilities."""
    if isinstance(rules, str):
        return rules.splitlines()
    if isinstance(rules, Mapping):
        return [_line((probability, formula)) for formula, probability in rules.items()]
    return [_line(rule) for rule in rules]


def _line(rule: Any) -> str:
    """A line of a model file, from such a line, a formula that always holds, or a pair of probability and formula."""
    if isinstance(rule, str):
        words = rule.split(maxsplit=1)
        keywords = {"rule", "noisy_or", "typical", "label", "fixed", "expect", "calibrate"}
        return rule if words and words[0] in keywords else f"rule {rule}" if ":" in rule else f"rule 1: {rule}"
    try:
        probability, formula = rule
    except (TypeError, ValueError):
        probability, formula = None, None
    if isinstance(formula, str) and isinstance(probability, numbers.Real):
        return f"rule {float(probability)!r}: {formula}"
    raise ArgumentError(f"the rule {rule!r} is neither a text nor a pair of probability and formula")


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
