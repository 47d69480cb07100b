"""prsl itself."""

from __future__ import annotations

from typing import Any

from ..datasets import Fold, Part
from ..metrics import Prediction
from ..rule_stacker import Stacker
from .base import Method, Skipped


class Prsl(Method):
    """prsl at its defaults."""

    key, title, paper_row = "prsl", "prsl", "pRSL"
    recipe, calibration = "clauses", "joint"

    def settings(self) -> dict[str, Any]:
        return {"recipe": self.recipe, "calibration": self.calibration}

    def fit(self, fold: Fold) -> dict[str, Any]:
        try:
            self.stacker = Stacker(self.recipe, self.calibration, self.seed)
        except ImportError as error:
            raise Skipped(f"the Python package `prsl` is not installed here: {error}") from error
        train, val = fold.train, fold.val
        return {"size": self.stacker.fit(train.beliefs, train.truths, (val.beliefs, val.truths))}

    def predict(self, part: Part) -> Prediction:
        return self.stacker.predict(part.beliefs, part.truths)


class PrslPaper(Prsl):
    """prsl with the paper's recipe: random scopes, no calibration."""

    key, title = "prsl-paper", "prsl (paper)"
    recipe, calibration = "paper", "none"
