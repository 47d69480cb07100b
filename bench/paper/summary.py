"""Means over folds, paired differences, and ranks over datasets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from .metrics import METRICS
from .results import Result, Score


@dataclass(frozen=True)
class Difference:
    """The difference between two methods, over the folds that both have."""

    mean: float
    error: float
    """The standard error of the mean, from the differences fold by fold."""

    @property
    def verdict(self) -> str:
        """`ahead`, `tied` (within one standard error) or `behind`."""
        if abs(self.mean) <= self.error or self.mean == 0.0:
            return "tied"
        return "ahead" if self.mean > 0.0 else "behind"


class Scores:
    """Results by dataset, method and fold: scores on test rows of models that learned from as many rows as they can.

    With `learned_from`, only models that learned from these rows count.
    """

    def __init__(self, results: Iterable[Result], learned_from: str | None = None) -> None:
        self.results: dict[tuple[str, str], dict[int, Result]] = {}
        self.learned_from = learned_from
        for result in results:
            if learned_from is None or learned_from in result.scores:
                self.results.setdefault((result.dataset, result.method), {})[result.fold] = result

    def folds(self, dataset: str, method: str) -> dict[int, Result]:
        """The results of a method on a dataset by fold."""
        return self.results.get((dataset, method), {})

    def score(self, result: Result, part: str = "test") -> Score:
        """The scores of a result on a part of its fold."""
        return result.scores[self.learned_from or result.learned_from][part]

    def values(self, dataset: str, method: str, metric: str, part: str = "test") -> dict[int, float]:
        """A metric by fold, without folds that do not have it."""
        found = {fold: self.score(result, part).metrics for fold, result in self.folds(dataset, method).items()}
        return {fold: metrics[metric] for fold, metrics in found.items() if metric in metrics}

    def reliability(self, dataset: str, method: str) -> dict[int, dict[str, list[float]]]:
        """The reliability curves by fold."""
        return {fold: self.score(result).reliability for fold, result in self.folds(dataset, method).items()}

    def mean(self, dataset: str, method: str, metric: str, part: str = "test") -> float | None:
        """A metric's mean over folds."""
        values = list(self.values(dataset, method, metric, part).values())
        return float(np.mean(values)) if values else None

    def sd(self, dataset: str, method: str, metric: str, part: str = "test") -> float:
        """A metric's standard deviation between folds."""
        values = list(self.values(dataset, method, metric, part).values())
        return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0

    def best(self, dataset: str, methods: Iterable[str], metric: str) -> str | None:
        """The method with the best mean, among those with as many folds as any."""
        counts = {method: len(self.values(dataset, method, metric)) for method in methods}
        most = max(counts.values(), default=0)
        complete = [method for method, count in counts.items() if most and count == most]
        sign = 1.0 if METRICS[metric][1] else -1.0
        return max(complete, key=lambda method: sign * (self.mean(dataset, method, metric) or 0.0), default=None)

    def difference(self, dataset: str, method: str, other: str, metric: str) -> Difference | None:
        """The difference between `method` and `other`. A positive one means that `method` is better, for every metric."""
        ours, theirs = self.values(dataset, method, metric), self.values(dataset, other, metric)
        folds = sorted(ours.keys() & theirs.keys())
        if not folds:
            return None
        sign = 1.0 if METRICS[metric][1] else -1.0
        gaps = sign * np.array([ours[fold] - theirs[fold] for fold in folds])
        error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else 0.0
        return Difference(float(gaps.mean()), error)


@dataclass(frozen=True)
class Ranks:
    """Average ranks over datasets, 1 is best, with the tests of Friedman and Nemenyi."""

    average: dict[str, float]
    """By method, best first."""
    datasets: int
    p_value: float
    """Friedman: how often methods that are all alike would rank as differently."""
    critical_difference: float
    """Nemenyi at 5 %: methods whose average ranks are closer cannot be told apart."""


def ranks(scores: Scores, datasets: list[str], methods: list[str], metric: str) -> Ranks | None:
    """Ranks of the methods with results on all datasets; `None` for fewer than three methods or two datasets."""
    methods = [m for m in methods if all(scores.folds(dataset, m) for dataset in datasets)]
    if len(methods) < 3 or len(datasets) < 2:
        return None
    sign = -1.0 if METRICS[metric][1] else 1.0
    table = np.array([[sign * (scores.mean(d, m, metric) or 0.0) for m in methods] for d in datasets])
    average = stats.rankdata(table, axis=1).mean(axis=0)
    k, n = len(methods), len(datasets)
    constant = bool((table == table[:, :1]).all())
    p_value = 1.0 if constant else float(stats.friedmanchisquare(*table.T).pvalue)
    quantile = float(stats.studentized_range.ppf(0.95, k, np.inf)) / np.sqrt(2.0)
    ordered = sorted(zip(methods, average), key=lambda pair: pair[1])
    return Ranks({m: float(r) for m, r in ordered}, n, p_value, quantile * float(np.sqrt(k * (k + 1) / (6.0 * n))))
