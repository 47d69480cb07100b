"""The paper's neural network on the beliefs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier

from ..calibrate import smooth
from ..datasets import Fold, Part
from ..metrics import Prediction, independent
from .base import Method, mean_log_likelihood


class Network(Method):
    """Two hidden layers of 2J units, label-wise cross-entropy, stopped early on validation rows."""

    key, title, paper_row = "nn", "NN", "NN"
    batch, step, smallest = 32, 0.001, 1e-6

    def settings(self) -> dict[str, Any]:
        return {"batch": self.batch, "step": self.step, "epochs": self.epochs, "patience": self.patience}

    @property
    def epochs(self) -> int:
        """Maximum number of epochs."""
        return 20 if self.quick else 500

    @property
    def patience(self) -> int:
        """Number of epochs without improvement on validation rows before stopping."""
        return 5 if self.quick else 20

    def fit(self, fold: Fold) -> dict[str, Any]:
        train, val = fold.train, fold.val
        self.network = self._new(train)
        best_value, best_epoch, best_weights = -np.inf, 0, None
        for epoch in range(1, self.epochs + 1):
            self._epoch(train)
            value = mean_log_likelihood(self._marginals(val), val.truths)
            if value > best_value:
                best_value, best_epoch = value, epoch
                best_weights = [w.copy() for w in self.network.coefs_ + self.network.intercepts_]
            elif epoch - best_epoch >= self.patience:
                break
        if best_weights is None:
            raise ValueError("the neural network found no finite log-likelihood on the validation rows")
        layers = len(self.network.coefs_)
        self.network.coefs_, self.network.intercepts_ = best_weights[:layers], best_weights[layers:]
        self.best_epoch = best_epoch
        return {"epochs": best_epoch}

    def refit(self, fold: Fold) -> dict[str, Any]:
        """Train a new network for the chosen number of epochs."""
        both = fold.both
        self.network = self._new(both)
        for _ in range(self.best_epoch):
            self._epoch(both)
        return {"epochs": self.best_epoch}

    def _new(self, part: Part) -> MLPClassifier:
        units = 2 * part.truths.shape[1]
        return MLPClassifier(
            hidden_layer_sizes=(units, units),
            alpha=0.0,
            batch_size=min(self.batch, len(part.rows)),
            learning_rate_init=self.step,
            random_state=self.seed,
        )

    def _epoch(self, part: Part) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.network.partial_fit(part.beliefs, part.truths, classes=np.arange(part.truths.shape[1]))

    def _marginals(self, part: Part) -> np.ndarray:
        return smooth(self.network.predict_proba(part.beliefs), self.smallest)

    def predict(self, part: Part) -> Prediction:
        return independent(self._marginals(part), part.truths)
