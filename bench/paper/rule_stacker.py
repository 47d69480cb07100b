"""The only module that imports the Python package `prsl`. It is imported late, so that everything else runs without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .metrics import Prediction


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
    """The beliefs in the form of `prsl`: for each label, an array with a column for 0 and one for 1."""
    return [np.column_stack([1.0 - belief, belief]) for belief in beliefs.T.astype(float)]


class Stacker:
    """A `prsl.RuleStacker` over plain matrices of P(label = 1)."""

    def __init__(self, recipe: str, calibration: str, seed: int) -> None:
        from prsl import RuleStacker

        self.stacker: Any = RuleStacker(recipe=recipe, calibration=calibration, random_state=seed, n_jobs=1)

    def fit(self, beliefs: np.ndarray, truths: np.ndarray, validation: tuple[np.ndarray, np.ndarray]) -> str:
        """Learn rules, and return their number. The default recipe learns from all rows, the paper's validates."""
        val_beliefs, val_truths = validation
        if self.stacker.recipe == "paper":
            self.stacker.fit(pairs(beliefs), truths, validation=(pairs(val_beliefs), val_truths))
        else:
            self.stacker.fit(pairs(np.vstack([beliefs, val_beliefs])), np.vstack([truths, val_truths]))
        return f"{len(self.stacker.learned_.model.rules)} rules"

    def predict(self, beliefs: np.ndarray, truths: np.ndarray) -> Prediction:
        """Marginals, joint mode and the log-likelihood of the true label sets."""
        table = pairs(beliefs)
        marginals = np.column_stack([label[:, 1] for label in self.stacker.predict_proba(table)])
        joint = np.asarray(self.stacker.joint_log_likelihood(table, truths))
        return Prediction(marginals, self.stacker.predict(table), self.stacker.predict_mpe(table), joint)
