"""Binary relevance: the forests' beliefs, raw and calibrated label by label."""

from __future__ import annotations

from typing import Any

from ..calibrate import IsotonicScaling, PlattScaling
from ..datasets import Fold, Part
from ..metrics import Prediction, independent
from .base import Method, best, mean_log_likelihood

RIDGES = (0.01, 0.1, 1.0, 10.0)


class BinaryRelevance(Method):
    """The beliefs themselves."""

    key, title, paper_row, refits = "br", "BR", "BR", False

    def settings(self) -> dict[str, Any]:
        return {}

    def fit(self, fold: Fold) -> dict[str, Any]:
        return {}

    def predict(self, part: Part) -> Prediction:
        return independent(part.beliefs, part.truths)


def fit_platt(fold: Fold) -> PlattScaling:
    """Platt scaling on out-of-bag beliefs, with the ridge penalty selected on validation rows."""
    fits = [PlattScaling(ridge).fit(fold.train.beliefs, fold.train.truths) for ridge in RIDGES]
    return best(fits, lambda fit: mean_log_likelihood(fit.apply(fold.val.beliefs), fold.val.truths))


class Platt(Method):
    """Platt scaling of every label."""

    key, title = "platt", "BR + Platt"

    def settings(self) -> dict[str, Any]:
        return {"ridges": RIDGES}

    def fit(self, fold: Fold) -> dict[str, Any]:
        self.scaling = fit_platt(fold)
        return {"ridge": self.scaling.ridge}

    def refit(self, fold: Fold) -> dict[str, Any]:
        self.scaling = PlattScaling(self.scaling.ridge).fit(fold.both.beliefs, fold.both.truths)
        return {"ridge": self.scaling.ridge}

    def predict(self, part: Part) -> Prediction:
        return independent(self.scaling.apply(part.beliefs), part.truths)


class Isotonic(Method):
    """Isotonic calibration of every label."""

    key, title, chooses = "isotonic", "BR + isotonic", False

    def settings(self) -> dict[str, Any]:
        return {}

    def fit(self, fold: Fold) -> dict[str, Any]:
        self.scaling = IsotonicScaling().fit(fold.train.beliefs, fold.train.truths)
        return {}

    def refit(self, fold: Fold) -> dict[str, Any]:
        self.scaling = IsotonicScaling().fit(fold.both.beliefs, fold.both.truths)
        return {}

    def predict(self, part: Part) -> Prediction:
        return independent(self.scaling.apply(part.beliefs), part.truths)
