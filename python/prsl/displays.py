"""Matplotlib plots in the style of scikit-learn's displays.

>>> import matplotlib; matplotlib.use("Agg")
>>> from prsl.displays import ReliabilityDisplay
>>> display = ReliabilityDisplay.from_predictions([1, 0, 1, 1], [[0.2, 0.8], [0.7, 0.3], [0.4, 0.6], [0.1, 0.9]])
>>> display.ax_.get_xlabel()
'predicted probability'
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ._learned import Learned
from ._model import Model
from .errors import ArgumentError
from .metrics import _coded

__all__ = ["InfluenceDisplay", "LearningCurveDisplay", "ReliabilityDisplay", "RuleGraphDisplay"]

Numbers = npt.NDArray[np.float64]

_BLUE, _ORANGE, _GRAY = "#3b7dd8", "#d8683b", "#888888"


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def _model(estimator: Any) -> Model:
    return estimator if isinstance(estimator, Model) else estimator.model_


@dataclass
class ReliabilityDisplay:
    """Predicted probabilities against observed frequencies, over all classes of all labels."""

    #: For each curve the mean probability, the frequency and the number of predictions of each bin.
    curves: dict[str, tuple[Numbers, Numbers, npt.NDArray[np.int64]]]
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_predictions(
        cls, y_true: Any, probabilities: Any, *, classes: Any = None, n_bins: int = 10, name: str = "predictions", ax: Any = None
    ) -> ReliabilityDisplay:
        """From probabilities as `predict_proba` returns them."""
        return cls({name: _reliability(y_true, probabilities, classes, n_bins)}).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, n_bins: int = 10, ax: Any = None) -> ReliabilityDisplay:
        """From an estimator; if it has its own classifiers, also before calibration and rules."""
        curves = {}
        if hasattr(estimator, "beliefs"):
            curves["classifiers alone"] = _reliability(y, estimator.beliefs(X), estimator.classes_, n_bins)
        curves["with rules"] = _reliability(y, estimator.predict_proba(X), estimator.classes_, n_bins)
        return cls(curves).plot(ax)

    def plot(self, ax: Any = None) -> ReliabilityDisplay:
        """Draws the curves."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        self.ax_.plot([0, 1], [0, 1], color=_GRAY, linewidth=1, linestyle=":")
        colors = [_ORANGE, _BLUE] if len(self.curves) > 1 else [_BLUE]
        for (name, (probability, frequency, counts)), color in zip(self.curves.items(), colors, strict=False):
            used = counts > 0
            self.ax_.plot(probability[used], frequency[used], marker="o", markersize=4, color=color, label=name)
        self.ax_.set(xlabel="predicted probability", ylabel="frequency", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        self.ax_.legend(loc="upper left", frameon=False)
        return self


def _reliability(
    y_true: Any, probabilities: Any, classes: Any, n_bins: int
) -> tuple[Numbers, Numbers, npt.NDArray[np.int64]]:
    codes, listed = _coded(y_true, probabilities, classes)
    predicted, hits = [], []
    for j, values in enumerate(listed):
        known = codes[:, j] >= 0
        for code in range(values.shape[1]) if values.shape[1] != 2 else [1]:
            predicted.append(values[known, code])
            hits.append(codes[known, j] == code)
    p, hit = np.concatenate(predicted), np.concatenate(hits)
    bins = np.minimum((p * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    total = np.maximum(counts, 1)
    return (
        np.bincount(bins, weights=p, minlength=n_bins) / total,
        np.bincount(bins, weights=hit, minlength=n_bins) / total,
        counts,
    )


@dataclass
class LearningCurveDisplay:
    """The log-likelihood by the number of learned rules. With the recipe "paper", by the number of steps, on batches and
    on the validation set."""

    learned: Learned
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> LearningCurveDisplay:
        """From a fitted estimator."""
        learned = getattr(getattr(estimator, "stacker_", estimator), "learned_", None)
        if learned is None:
            raise ArgumentError("the estimator has not learned anything; fit it first")
        return cls(learned).plot(ax)

    @classmethod
    def from_predictions(cls, learned: Learned, *, ax: Any = None) -> LearningCurveDisplay:
        """From the result of learning."""
        return cls(learned).plot(ax)

    def plot(self, ax: Any = None) -> LearningCurveDisplay:
        """Draws the curves, and the log-likelihood without learned rules for comparison."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        learned = self.learned
        if learned.recipe == "paper":
            steps, training, validation = np.array(learned.curve, dtype=np.float64).reshape(-1, 3).T
            self.ax_.plot(steps, training, color=_ORANGE, linewidth=1, alpha=0.7, label="training")
            self.ax_.plot(steps, validation, color=_BLUE, label="validation")
        else:
            n_rules = np.cumsum([0, *(len(addition.rules) for addition in learned.path)])
            values = [learned.base_alone, *(addition.log_likelihood for addition in learned.path)]
            self.ax_.plot(n_rules, values, color=_BLUE, marker=".", label="training")
        self.ax_.axhline(self.learned.base_alone, color=_GRAY, linewidth=1, linestyle=":", label="calibrated beliefs")
        self.ax_.set(xlabel="step" if learned.recipe == "paper" else "learned rules", ylabel="mean joint log-likelihood")
        self.ax_.legend(loc="lower right", frameon=False)
        return self


@dataclass
class InfluenceDisplay:
    """Effect of rules on labels: for one row, or on average."""

    #: The text of each rule, and the largest change of a probability that it causes.
    influences: list[tuple[str, float]]
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, n_rows: int = 50, n_rules: int = 15, ax: Any = None) -> InfluenceDisplay:
        """From an estimator or a model: the mean of the largest change over the first rows."""
        model = _model(estimator)
        n_given = len(estimator.posterior(X)) if hasattr(estimator, "posterior") else len(model.predict(X))
        explained = [estimator.explain(X, row) for row in range(min(n_rows, n_given))]
        changes = np.array([[rule["largest_change"] or 0.0 for rule in explanation.rules] for explanation in explained])
        means = np.abs(changes).mean(axis=0) if changes.size else np.zeros(len(model.rules))
        named = [(rule.name or rule.text, float(mean)) for rule, mean in zip(model.rules, means, strict=True)]
        return cls(sorted(named, key=lambda item: -item[1])[:n_rules]).plot(ax)

    @classmethod
    def from_predictions(cls, explanation: Any, *, n_rules: int = 15, ax: Any = None) -> InfluenceDisplay:
        """From one explanation."""
        named = [(rule["name"] or rule["text"], abs(rule["largest_change"] or 0.0)) for rule in explanation.rules]
        return cls(sorted(named, key=lambda item: -item[1])[:n_rules]).plot(ax)

    def plot(self, ax: Any = None) -> InfluenceDisplay:
        """Draws a bar for each rule, the largest on top."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        names = [name if len(name) <= 60 else f"{name[:59]}…" for name, _ in self.influences]
        self.ax_.barh(range(len(names)), [value for _, value in self.influences], color=_BLUE, height=0.7)
        self.ax_.set_yticks(range(len(names)), names)
        self.ax_.invert_yaxis()
        self.ax_.set(xlabel="largest change of a probability")
        return self


@dataclass
class RuleGraphDisplay:
    """Graph of rules: labels on a circle, a line for each pair of labels in a rule."""

    labels: list[str]
    #: Pairs of labels, with the certainty |2 p - 1| of the most certain rule about both.
    edges: dict[tuple[int, int], float]
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> RuleGraphDisplay:
        """From a fitted estimator or a model."""
        model = _model(estimator)
        names = [label.name for label in model.labels]
        edges: dict[tuple[int, int], float] = {}
        for rule in model.rules:
            places = sorted(names.index(label) for label in rule.labels)
            for at, first in enumerate(places):
                for second in places[at + 1 :]:
                    pair = (first, second)
                    edges[pair] = max(edges.get(pair, 0.0), abs(2.0 * rule.probability - 1.0))
        return cls(names, edges).plot(ax)

    #: The same, because a graph of rules has no predictions.
    from_predictions = from_estimator

    def plot(self, ax: Any = None) -> RuleGraphDisplay:
        """Draws the labels and the lines."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        angles = np.pi / 2 - 2 * np.pi * np.arange(len(self.labels)) / max(len(self.labels), 1)
        x, y = np.cos(angles), np.sin(angles)
        for (first, second), strength in self.edges.items():
            self.ax_.plot(x[[first, second]], y[[first, second]], color=_BLUE, alpha=0.15 + 0.6 * strength, linewidth=1.5)
        self.ax_.scatter(x, y, color=_ORANGE, zorder=3)
        for name, at_x, at_y in zip(self.labels, x, y, strict=True):
            side = "left" if at_x > 0.1 else "right" if at_x < -0.1 else "center"
            self.ax_.annotate(name, (at_x * 1.07, at_y * 1.07), ha=side, va="center")
        self.ax_.set(xlim=(-1.7, 1.7), ylim=(-1.3, 1.3), aspect="equal")
        self.ax_.set_axis_off()
        return self
