"""The interface of all methods of the benchmark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..datasets import Fold, Part
from ..metrics import Prediction, row_log_likelihood

Candidate = TypeVar("Candidate")


class Skipped(Exception):
    """A method cannot run here. The message gives the reason."""


class Method(ABC):
    """Fits to a fold's training rows, selects on its validation rows, and predicts its test rows."""

    key: ClassVar[str]
    """The name on the command line."""
    title: ClassVar[str]
    """The name in tables."""
    needs_features: ClassVar[bool] = False
    paper_row: ClassVar[str | None] = None
    """The row of the paper's table to print beside this one."""

    def __init__(self, seed: int = 0, quick: bool = False) -> None:
        self.seed = seed
        self.quick = quick

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The settings that a cached result depends on."""

    @abstractmethod
    def fit(self, fold: Fold) -> dict[str, Any]:
        """Fit to training rows, and return the settings selected on validation rows."""

    @abstractmethod
    def predict(self, part: Part) -> Prediction:
        """Predict rows. The truths are used only to compute their likelihood."""


def best(candidates: Iterable[Candidate], value: Callable[[Candidate], float]) -> Candidate:
    """The candidate with the largest value, the first of equal ones."""
    return max(candidates, key=value)


def mean_log_likelihood(marginals: np.ndarray, truths: np.ndarray) -> float:
    """The selection criterion on validation rows for methods with independent labels."""
    return float(row_log_likelihood(marginals, truths).mean())
