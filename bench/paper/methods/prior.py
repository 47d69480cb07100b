"""Beliefs times the empirical prior of the label sets seen in training."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ..calibrate import PlattScaling, smooth
from ..datasets import Fold, Part
from ..metrics import Prediction, row_log_likelihood
from .base import Method
from .relevance import fit_platt


class LabelSetPrior(Method):
    """A label set's frequency times the beliefs in it, mixed with the beliefs alone so that no set is impossible.

        P(s | x)  =  (1 - m) · freq(s)^a ∏ⱼ b(sⱼ) / f(sⱼ)^d / Z  +  m ∏ⱼ b(sⱼ)

    with the labels' own frequencies f. The form of the beliefs (clipped or Platt-scaled) and a, d and m are selected on validation rows.
    """

    key, title = "prior", "Label-set prior"
    powers = (0.0, 0.25, 0.5, 0.75, 1.0)
    discounts = (0.0, 0.25, 0.5, 0.75, 1.0)
    mixtures = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)

    def settings(self) -> dict[str, Any]:
        return {"powers": self.powers, "discounts": self.discounts, "mixtures": self.mixtures}

    def fit(self, fold: Fold) -> dict[str, Any]:
        self._count(fold.train)
        platt = fit_platt(fold)
        maps = {"smoothed": smooth, "platt": _clipped(platt)}
        positions = self._positions(fold.val.truths)
        best_value = -np.inf
        chosen: dict[str, Any] = {}
        for name, calibrate in maps.items():
            beliefs = calibrate(fold.val.beliefs)
            alone, of_truth = self._alone(beliefs), row_log_likelihood(beliefs, fold.val.truths)
            for power, discount in product(self.powers, self.discounts):
                self.power, self.discount = power, discount
                of_set = _pick(self._seen(alone), positions)
                for mixture in self.mixtures:
                    value = float(_mix(of_set, of_truth, mixture).mean())
                    if value > best_value:
                        best_value = value
                        chosen = {"beliefs": name, "power": power, "discount": discount, "mixture": mixture}
        self.calibrate = maps[chosen["beliefs"]]
        self.power, self.discount, self.mixture = chosen["power"], chosen["discount"], chosen["mixture"]
        self.chosen = chosen | {"ridge": platt.ridge}
        return self.chosen

    def refit(self, fold: Fold) -> dict[str, Any]:
        both = fold.both
        self._count(both)
        if self.chosen["beliefs"] == "platt":
            self.calibrate = _clipped(PlattScaling(self.chosen["ridge"]).fit(both.beliefs, both.truths))
        return self.chosen

    def _count(self, part: Part) -> None:
        """The frequencies of label sets and of labels."""
        sets, counts = np.unique(part.truths, axis=0, return_counts=True)
        self.sets, self.log_frequency = sets.astype(float), np.log(counts / counts.sum())
        frequency = (part.truths.sum(axis=0) + 0.5) / (len(part.rows) + 1.0)
        self.log_marginal = self.sets @ np.log(frequency) + (1.0 - self.sets) @ np.log1p(-frequency)

    def _positions(self, truths: np.ndarray) -> np.ndarray:
        """The index of each row's true set among the training sets, -1 if it is not among them."""
        index = {tuple(row): position for position, row in enumerate(self.sets.astype(int))}
        return np.array([index.get(tuple(row), -1) for row in truths.astype(int)])

    def _alone(self, beliefs: np.ndarray) -> np.ndarray:
        """Per row, the log-probability of every training set under the beliefs alone."""
        return np.log(beliefs) @ self.sets.T + np.log1p(-beliefs) @ (1.0 - self.sets).T

    def _seen(self, alone: np.ndarray) -> np.ndarray:
        """Per row, the log-probability of every training set in the first part of the mixture."""
        weights = alone + self.power * self.log_frequency - self.discount * self.log_marginal
        return weights - logsumexp(weights, axis=1, keepdims=True)

    def predict(self, part: Part) -> Prediction:
        beliefs = self.calibrate(part.beliefs)
        alone = self._alone(beliefs)
        seen = self._seen(alone)
        marginals = (1.0 - self.mixture) * (np.exp(seen) @ self.sets) + self.mixture * beliefs
        # Among all other sets, only the most probable one under the beliefs can be the mode.
        own = (beliefs > 0.5).astype(np.int8)
        own_value = np.log(self.mixture) + np.log(np.maximum(beliefs, 1.0 - beliefs)).sum(axis=1)
        values = _mix(seen, alone, self.mixture)
        winner = self.sets[values.argmax(axis=1)]
        mode = np.where((values.max(axis=1) >= own_value)[:, None], winner, own).astype(np.int8)
        joint = _mix(_pick(seen, self._positions(part.truths)), row_log_likelihood(beliefs, part.truths), self.mixture)
        return Prediction(np.clip(marginals, 0.0, 1.0), (marginals > 0.5).astype(np.int8), mode, joint)


def _clipped(platt: PlattScaling) -> Callable[[np.ndarray], np.ndarray]:
    return lambda beliefs: smooth(platt.apply(beliefs), 1e-6)


def _pick(seen: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Each row's value at its position, minus infinity if that is -1."""
    return np.where(positions >= 0, seen[np.arange(len(seen)), positions], -np.inf)


def _mix(first: np.ndarray, second: np.ndarray, mixture: float) -> np.ndarray:
    """The log of (1 - m) exp(first) + m exp(second)."""
    return np.logaddexp(np.log1p(-mixture) + first, np.log(mixture) + second)
