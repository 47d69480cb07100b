"""prsl itself."""

from __future__ import annotations

from typing import Any

from ..datasets import Fold, Part
from ..metrics import Prediction
from ..provenance import recipe_version
from ..rule_stacker import Stacker
from .base import Method, Skipped

PARTS = ("train", "val", "test")


class Prsl(Method):
    """prsl with its defaults. It needs no validation rows."""

    key, title, paper_row, chooses, scored = "prsl", "prsl", "pRSL", False, PARTS

    def settings(self) -> dict[str, Any]:
        return {"recipe": "clauses"}

    def version(self) -> str:
        return recipe_version("clauses")

    def fit(self, fold: Fold) -> dict[str, Any]:
        return self._learn(fold.train)

    def refit(self, fold: Fold) -> dict[str, Any]:
        return self._learn(fold.both)

    def _learn(self, part: Part) -> dict[str, Any]:
        self.stacker = _stacker(seed=self.seed + 1)
        return self.stacker.fit(part.beliefs, part.truths)

    def predict(self, part: Part) -> Prediction:
        return self.stacker.predict(part.beliefs, part.truths)


class PrslPaper(Method):
    """prsl with the paper's recipe: raw beliefs, exact gradients and queries. The number of rules is chosen on validation rows."""

    key, title, paper_row, refits, scored = "prsl-paper", "prsl (paper)", "pRSL", False, PARTS
    calibration, queries = "none", "exact"

    def settings(self) -> dict[str, Any]:
        return {"recipe": "paper", "calibration": self.calibration, "queries": self.queries, "steps": self.steps}

    @property
    def steps(self) -> int | None:
        """The maximum number of steps; `None` for that of the recipe."""
        return 50 if self.quick else None

    def version(self) -> str:
        return recipe_version("paper")

    def fit(self, fold: Fold) -> dict[str, Any]:
        self.stacker = _stacker(
            seed=self.seed + 1,
            engine="loopy" if self.queries == "loopy" else "auto",
            recipe="paper",
            calibration=self.calibration,
            gradients=self.queries,
            max_iter=self.steps,
        )
        validation = (fold.val.beliefs, fold.val.truths)
        return self.stacker.fit(fold.train.beliefs, fold.train.truths, validation)

    def predict(self, part: Part) -> Prediction:
        return self.stacker.predict(part.beliefs, part.truths)


class PrslPaperPlatt(PrslPaper):
    """The same with Platt-scaled beliefs, as in the paper's last experiment."""

    key, title, in_tables = "prsl-paper-platt", "prsl (paper), Platt", False
    calibration = "platt"


class PrslPaperLoopy(PrslPaper):
    """The paper's recipe with loopy gradients and queries, as the paper has them for its three larger datasets."""

    key, title, in_tables = "prsl-paper-loopy", "prsl (paper), loopy", False
    queries = "loopy"


class PrslPaperLoopyPlatt(PrslPaperLoopy):
    """The same with Platt-scaled beliefs."""

    key, title = "prsl-paper-loopy-platt", "prsl (paper), loopy, Platt"
    calibration = "platt"


def _stacker(**settings: Any) -> Stacker:
    try:
        return Stacker(**settings)
    except ImportError as error:
        raise Skipped(f"the Python package `prsl` is not installed here: {error}") from error
