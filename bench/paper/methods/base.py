"""What every method of the benchmark has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..datasets import Fold, Part
from ..metrics import Prediction, row_log_likelihood

Candidate = TypeVar("Candidate")


class Skipped(Exception):
    """A method cannot run here; the message says why."""


class Method(ABC):
    """Fits on a fold's training part, chooses on its validation part, answers about its test part."""

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
        """What a cached result depends on."""

    @abstractmethod
    def fit(self, fold: Fold) -> dict[str, Any]:
        """Fit on training rows and return what was chosen on validation rows."""

    @abstractmethod
    def predict(self, part: Part) -> Prediction:
        """Answer about rows; the truths only serve to say how probable they were held to be."""


def best(candidates: Iterable[Candidate], value: Callable[[Candidate], float]) -> Candidate:
    """The candidate with the largest value, the first among equals."""
    return max(candidates, key=value)


def mean_log_likelihood(marginals: np.ndarray, truths: np.ndarray) -> float:
    """The criterion by which methods with independent labels choose on validation rows."""
    return float(row_log_likelihood(marginals, truths).mean())
