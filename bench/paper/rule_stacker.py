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
    """A `prsl.RuleStacker` over plain matrices of P(label = 1), where NaN is a missing belief or truth."""

    def __init__(self, seed: int, engine: str = "auto", **settings: Any) -> None:
        from prsl import RuleStacker

        self.engine = engine
        self.stacker: Any = RuleStacker(random_state=seed, n_jobs=1, **settings)

    def fit(
        self, beliefs: np.ndarray, truths: np.ndarray, validation: tuple[np.ndarray, np.ndarray] | None = None
    ) -> dict[str, Any]:
        """Learn rules, and return the size of the model."""
        valid = None if validation is None else (pairs(validation[0]), validation[1])
        model = self.stacker.fit(pairs(beliefs), truths, validation=valid).model_
        return {"rules": len(model.rules), "combinations": len(model.typical)}

    def predict(self, beliefs: np.ndarray, truths: np.ndarray) -> Prediction:
        """Marginals, the most probable label set and the log-likelihood of the true label sets.

        Loopy propagation gives no joint log-likelihood.
        """
        table = pairs(beliefs)
        if self.engine == "loopy":
            marginals = np.column_stack([label[:, 1] for label in self._loopy(table, "marginals").marginals])
            mode = self._loopy(table, "mpe").positions[:, 0, :]
            return Prediction(marginals, (marginals > 0.5).astype(np.int8), mode, None)
        marginals = np.column_stack([label[:, 1] for label in self.stacker.predict_proba(table)])
        joint = np.asarray(self.stacker.joint_log_likelihood(table, truths))
        return Prediction(marginals, (marginals > 0.5).astype(np.int8), self.stacker.predict_mpe(table), joint)

    def _loopy(self, table: list[np.ndarray], query: str) -> Any:
        return self.stacker.posterior(table, query, engine="loopy")
