"""Label powerset: one forest whose classes are the label sets of the training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from ..calibrate import PlattScaling, smooth
from ..datasets import Fold, Part
from ..forests import setting_of
from ..metrics import Prediction, row_log_likelihood
from .base import Method, Skipped

RIDGE = 1.0


class LabelPowerset(Method):
    """A forest on the features with label sets as classes, mixed with Platt-scaled beliefs so that no set is impossible.

        P(s | x)  =  (1 - m) · forest(s | x)  +  m ∏ⱼ b(sⱼ)

    The share m of the beliefs is chosen on validation rows.
    """

    key, title, needs_features = "powerset", "Label powerset", True
    mixtures = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)

    def settings(self) -> dict[str, Any]:
        return {"mixtures": self.mixtures, "trees": self.trees, "ridge": RIDGE}

    @property
    def trees(self) -> int | None:
        """The number of trees; `None` for that of the dataset's forests."""
        return 10 if self.quick else None

    def fit(self, fold: Fold) -> dict[str, Any]:
        self._grow(fold.dataset, fold.train)
        values = {}
        for self.mixture in self.mixtures:
            values[self.mixture] = float(self._joint(fold.val).mean())
        self.mixture = max(values, key=lambda mixture: values[mixture])
        return {"mixture": self.mixture}

    def refit(self, fold: Fold) -> dict[str, Any]:
        self._grow(fold.dataset, fold.both)
        return {"mixture": self.mixture}

    def _grow(self, dataset: str, part: Part) -> None:
        setting = setting_of(dataset, self.trees)
        self.sets, classes = np.unique(part.truths, axis=0, return_inverse=True)
        self.forest = RandomForestClassifier(
            setting.trees,
            min_samples_leaf=setting.min_leaf,
            min_samples_split=setting.min_split,
            random_state=self.seed,
            n_jobs=1,
        ).fit(_features(part), classes.ravel())
        self.scaling = PlattScaling(RIDGE).fit(part.beliefs, part.truths)
        self.cached: tuple[Part, np.ndarray] | None = None

    def _of_sets(self, part: Part) -> np.ndarray:
        """Per row, the forest's probability of every label set. That of the last rows is kept."""
        if self.cached is None or self.cached[0] is not part:
            self.cached = part, self.forest.predict_proba(_features(part))
        return self.cached[1]

    def _beliefs(self, part: Part) -> np.ndarray:
        return smooth(self.scaling.apply(part.beliefs), 1e-6)

    def _joint(self, part: Part) -> np.ndarray:
        """The log-probability of each row's true label set."""
        places = {tuple(labels): place for place, labels in enumerate(self.sets)}
        of_sets = self._of_sets(part)
        found = [places.get(tuple(labels)) for labels in part.truths]
        seen = np.array([0.0 if place is None else of_sets[row, place] for row, place in enumerate(found)])
        alone = row_log_likelihood(self._beliefs(part), part.truths)
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log1p(-self.mixture) + np.log(seen), np.log(self.mixture) + alone)

    def predict(self, part: Part) -> Prediction:
        beliefs, of_sets = self._beliefs(part), self._of_sets(part)
        marginals = (1.0 - self.mixture) * (of_sets @ self.sets) + self.mixture * beliefs
        alone = np.log(beliefs) @ self.sets.T + np.log1p(-beliefs) @ (1.0 - self.sets).T
        values = (1.0 - self.mixture) * of_sets + self.mixture * np.exp(alone)
        # Among all other sets, only the most probable one under the beliefs can be the mode.
        own = (beliefs > 0.5).astype(np.int8)
        own_value = self.mixture * np.maximum(beliefs, 1.0 - beliefs).prod(axis=1)
        winner = self.sets[values.argmax(axis=1)]
        mode = np.where((values.max(axis=1) >= own_value)[:, None], winner, own).astype(np.int8)
        labels = (marginals > 0.5).astype(np.int8)
        return Prediction(np.clip(marginals, 0.0, 1.0), labels, mode, self._joint(part))


def _features(part: Part) -> np.ndarray:
    if part.features is None:
        raise Skipped("the label powerset needs the features of the ARFF file")
    return part.features.astype(np.float32)
