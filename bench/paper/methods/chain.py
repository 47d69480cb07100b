"""A classifier chain of forests: each label from the features and the labels before it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..calibrate import PlattScaling, smooth
from ..datasets import Fold, Part
from ..forests import Grown, setting_of
from ..metrics import Prediction, row_log_likelihood
from .base import Method, Skipped


class Chain(Method):
    """Forests in the order of the labels. Together they define a joint distribution.

    The joint likelihood of a row follows its true labels down the chain; the prediction follows the decisions made on
    the way. The links are Platt-scaled on out-of-bag beliefs if that improves the joint likelihood of validation rows.
    """

    key, title, needs_features = "chain", "Classifier chain", True

    def settings(self) -> dict[str, Any]:
        return {"trees": self.trees}

    @property
    def trees(self) -> int:
        """The number of trees of each label's forest."""
        return 10 if self.quick else 100

    def fit(self, fold: Fold) -> dict[str, Any]:
        val = fold.val
        self._grow(fold.dataset, fold.train)
        values = {}
        for self.scaled in (False, True):
            values[self.scaled] = float(row_log_likelihood(self._followed(val), val.truths).mean())
        self.scaled = values[True] > values[False]
        return {"scaled": self.scaled}

    def refit(self, fold: Fold) -> dict[str, Any]:
        self._grow(fold.dataset, fold.both)
        return {"scaled": self.scaled}

    def _grow(self, dataset: str, part: Part) -> None:
        """Fit the forests, and Platt scaling on their out-of-bag beliefs."""
        setting = setting_of(dataset, self.trees)
        self.smallest = 1.0 / (len(part.rows) + 2.0)
        self.links: list[Grown] = []
        for label, truth in enumerate(part.truths.T):
            self.links.append(Grown(_known(part, part.truths[:, :label]), truth, setting, self.seed + label))
        out_of_bag = np.column_stack([link.out_of_bag for link in self.links])
        self.scaling = PlattScaling(1.0).fit(out_of_bag, part.truths)

    def _link(self, label: int, part: Part, before: np.ndarray) -> np.ndarray:
        """Beliefs in a label, given the labels before it."""
        belief = self.links[label].beliefs(_known(part, before[:, :label]))
        return smooth(self.scaling.apply_to(label, belief) if self.scaled else belief, self.smallest)

    def _followed(self, part: Part) -> np.ndarray:
        """Beliefs in every label, given the true labels before it."""
        return np.column_stack([self._link(label, part, part.truths) for label in range(len(self.links))])

    def predict(self, part: Part) -> Prediction:
        marginals = np.zeros(part.truths.shape)
        labels = np.zeros(part.truths.shape, dtype=np.int8)
        for label in range(len(self.links)):
            marginals[:, label] = self._link(label, part, labels)
            labels[:, label] = marginals[:, label] > 0.5
        return Prediction(marginals, labels, labels, row_log_likelihood(self._followed(part), part.truths))


def _known(part: Part, before: np.ndarray) -> np.ndarray:
    if part.features is None:
        raise Skipped("the classifier chain needs the features of the ARFF file")
    return np.hstack([part.features, before]).astype(np.float32)
