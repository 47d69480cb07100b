"""BOOMER, in a separate environment because it needs another version of Python."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ..calibrate import smooth
from ..datasets import Fold, Part
from ..metrics import Prediction, row_log_likelihood
from .base import Method, Skipped

VARIABLE = "PRSL_BOOMER_PYTHON"
"""Names the Python that has BOOMER; `bench/paper/run` sets it."""

WORKER = Path(__file__).parent.parent / "boomer_worker.py"


class Boomer(Method):
    """Boosted rules on the features, label-wise loss. Shrinkage, L2 weight and number of rules are chosen on validation rows."""

    key, title, paper_row, needs_features = "boomer", "BOOMER", "BOOMER", True
    loss = "logistic-decomposable"
    smallest = 1e-6

    def settings(self) -> dict[str, Any]:
        return {"loss": self.loss, "rules": self.rules, "grid": self.grid}

    @property
    def grid(self) -> list[tuple[float, float]]:
        """The candidate pairs of shrinkage and L2 weight. BOOMER's defaults are 0.3 and 1."""
        return [(0.3, 1.0)] if self.quick else [(0.3, 1.0), (0.1, 1.0), (0.5, 1.0), (0.3, 16.0), (0.1, 16.0), (0.5, 16.0)]

    @property
    def rules(self) -> list[int]:
        """The candidate numbers of rules. One model with the largest number serves all of them."""
        return [20, 50] if self.quick else [50, 100, 200, 500, 1000]

    def _inputs(self, part: Part) -> np.ndarray:
        if part.features is None:
            raise Skipped("BOOMER needs the features of the ARFF file")
        return part.features

    def fit(self, fold: Fold) -> dict[str, Any]:
        python = os.environ.get(VARIABLE)
        if not python:
            raise Skipped(f"{VARIABLE} names no Python 3.13 with mlrl-boomer 0.15; `bench/paper/run` sets one up")
        parts = {"train": fold.train, "val": fold.val, "test": fold.test}
        # One process fits and predicts, so no model has to be stored. It never gets the truths of test rows.
        arrays = {name: self._inputs(part).astype(np.float32) for name, part in parts.items()}
        with tempfile.TemporaryDirectory() as folder:
            task, answer = Path(folder, "task.npz"), Path(folder, "answer.npz")
            np.savez(task, allow_pickle=False, **arrays, train_truths=fold.train.truths, val_truths=fold.val.truths)
            options = json.dumps({**self.settings(), "seed": self.seed + 1})
            done = subprocess.run(
                [python, str(WORKER), str(task), str(answer), options], capture_output=True, text=True
            )
            if done.returncode != 0:
                raise RuntimeError(f"BOOMER failed: {done.stderr.strip()[-500:]}")
            with np.load(answer) as answers:
                self.answers = {name: answers[name] for name in answers.files}
        self.rows, self.name = fold.test.rows, "train"
        return self._chosen()

    def refit(self, fold: Fold) -> dict[str, Any]:
        """Switch to the answers of the model that the worker has refitted."""
        self.name = "both"
        return self._chosen()

    def _chosen(self) -> dict[str, Any]:
        shrinkage, l2 = float(self.answers["shrinkage"]), float(self.answers["l2"])
        return {"shrinkage": shrinkage, "l2": l2, "rules": int(self.answers["rules"])}

    def predict(self, part: Part) -> Prediction:
        if not np.array_equal(part.rows, self.rows):
            raise ValueError("BOOMER answers about the test rows of its fold only")
        marginals = smooth(self.answers[f"{self.name}_marginals"], self.smallest)
        labels = self.answers[f"{self.name}_labels"].astype(np.int8)
        return Prediction(marginals, labels, labels, row_log_likelihood(marginals, part.truths))


class BoomerStacked(Boomer):
    """BOOMER on the beliefs with the joint loss, as in the paper. The same three hyperparameters are chosen on validation rows."""

    key, title, needs_features = "boomer-stacked", "BOOMER on beliefs", False
    loss = "logistic-non-decomposable"

    @property
    def rules(self) -> list[int]:
        """Fewer than for `Boomer`, because a rule of the joint loss is about all labels and takes much longer to find."""
        return [20, 50] if self.quick else [20, 50, 100, 200]

    def _inputs(self, part: Part) -> np.ndarray:
        return part.beliefs
