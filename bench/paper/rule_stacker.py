"""The one place that knows the Python package `prsl`; imported late, so that everything else runs without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .metrics import Prediction, independent, row_log_likelihood


class Arff(NamedTuple):
    """The features and labels of a Mulan dataset, rows in the order of the file."""

    features: np.ndarray
    labels: np.ndarray
    label_names: list[str]


def read_arff(path: Path, xml: Path) -> Arff:
    """Read an ARFF file and its label file with `prsl`."""
    from prsl.data import read_arff as read

    data = read(str(path), str(xml))
    labels = np.asarray(data.labels, dtype=np.int8)
    if not np.isin(labels, (0, 1)).all():
        raise ValueError(f"{path.name} has labels that are neither 0 nor 1")
    return Arff(np.asarray(data.features, dtype=float), labels, list(data.label_names))


def pairs(beliefs: np.ndarray) -> list[np.ndarray]:
    """The beliefs as `prsl` takes them: for each label an array with a column for 0 and one for 1."""
    return [np.column_stack([1.0 - belief, belief]) for belief in beliefs.T.astype(float)]


class Stacker:
    """A `prsl.RuleStacker` over plain matrices of P(label = 1).

    Labels that are all 0 or all 1 in training have no second class to learn about: they keep their beliefs.
    """

    def __init__(self, recipe: str, calibration: str, seed: int) -> None:
        from prsl import RuleStacker

        self.stacker: Any = RuleStacker(recipe=recipe, calibration=calibration, random_state=seed, n_jobs=1)

    def fit(self, beliefs: np.ndarray, truths: np.ndarray, validation: tuple[np.ndarray, np.ndarray]) -> str:
        """Learn rules from the training rows; returns how much was learned, as the validation rows would have it."""
        val_beliefs, val_truths = validation
        self.varied = truths.min(axis=0) < truths.max(axis=0)
        self.stacker.fit(
            pairs(beliefs[:, self.varied]),
            truths[:, self.varied],
            validation=(pairs(val_beliefs[:, self.varied]), val_truths[:, self.varied]),
        )
        return str(self.stacker.learned_.size)

    def predict(self, beliefs: np.ndarray, truths: np.ndarray) -> Prediction:
        """Marginals, joint mode and the log-likelihood of the true label sets."""
        table, constant = pairs(beliefs[:, self.varied]), ~self.varied
        alone = independent(beliefs, truths)
        marginals, labels, mode = alone.marginals.copy(), alone.labels.copy(), alone.mode.copy()
        marginals[:, self.varied] = np.column_stack([label[:, 1] for label in self.stacker.predict_proba(table)])
        labels[:, self.varied] = self.stacker.predict(table)
        mode[:, self.varied] = self.stacker.predict_mpe(table)
        joint = np.asarray(self.stacker.joint_log_likelihood(table, truths[:, self.varied]))
        return Prediction(
            marginals, labels, mode, joint + row_log_likelihood(beliefs[:, constant], truths[:, constant])
        )
