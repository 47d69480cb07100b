"""The interface of all methods of the benchmark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..datasets import Fold, Part
from ..metrics import Prediction, row_log_likelihood
from ..provenance import method_version

Candidate = TypeVar("Candidate")


class Skipped(Exception):
    """A method cannot run here. The message gives the reason."""


class Method(ABC):
    """Fits to a fold's training rows, chooses on its validation rows, and predicts its test rows."""

    key: ClassVar[str]
    """The name on the command line."""
    title: ClassVar[str]
    """The name in tables."""
    needs_features: ClassVar[bool] = False
    paper_row: ClassVar[str | None] = None
    """The row of the paper's table to print beside this one."""
    refits: ClassVar[bool] = True
    """Whether the method can learn from training and validation rows."""
    chooses: ClassVar[bool] = True
    """Whether it needs validation rows first. If not, the time to refit does not include that of the first fit."""
    scored: ClassVar[tuple[str, ...]] = ("test",)
    """The parts of a fold that are scored after learning from training rows alone."""
    in_tables: ClassVar[bool] = True
    """Whether the method is a row of the tables of results."""

    def __init__(self, seed: int = 0, quick: bool = False) -> None:
        self.seed = seed
        self.quick = quick

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The settings that a cached result depends on."""

    def version(self) -> str:
        """The version of the code that a cached result depends on."""
        return method_version(type(self).__module__.rsplit(".", 1)[-1])

    @abstractmethod
    def fit(self, fold: Fold) -> dict[str, Any]:
        """Fit to training rows, and return what was chosen on validation rows."""

    def refit(self, fold: Fold) -> dict[str, Any]:
        """Fit to training and validation rows, with the choices of `fit`."""
        raise NotImplementedError(f"{self.key} does not refit")

    @abstractmethod
    def predict(self, part: Part) -> Prediction:
        """Predict rows. The truths are used only to compute their likelihood."""


def best(candidates: Iterable[Candidate], value: Callable[[Candidate], float]) -> Candidate:
    """The candidate with the largest value, the first of equal ones."""
    return max(candidates, key=value)


def mean_log_likelihood(marginals: np.ndarray, truths: np.ndarray) -> float:
    """The criterion of choices on validation rows, for methods with independent labels."""
    return float(row_log_likelihood(marginals, truths).mean())
