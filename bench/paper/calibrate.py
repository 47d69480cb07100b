"""Calibration of beliefs, one label at a time."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

SMALLEST = 0.001
"""Beliefs of exactly 0 and 1 are common; they are moved this far inside before taking logs."""


def smooth(beliefs: np.ndarray, smallest: float = SMALLEST) -> np.ndarray:
    """Beliefs clipped away from 0 and 1."""
    return np.clip(beliefs, smallest, 1.0 - smallest)


def platt(belief: np.ndarray, truth: np.ndarray, ridge: float, steps: int = 30) -> tuple[float, float]:
    """Slope and intercept of a logistic fit on the belief's log-odds, with a ridge penalty toward the identity.

    Newton's method on the mean cross-entropy plus ridge / n times half the squared distance from (1, 0).
    """
    x = np.column_stack([logit(smooth(belief)), np.ones(len(belief))])
    start = np.array([1.0, 0.0])
    weights = start.copy()

    def loss(w: np.ndarray) -> float:
        odds = x @ w
        return float(np.logaddexp(0.0, odds).sum() - truth @ odds + 0.5 * ridge * ((w - start) ** 2).sum())

    current = loss(weights)
    for _ in range(steps):
        p = expit(x @ weights)
        gradient = x.T @ (p - truth) + ridge * (weights - start)
        hessian = (x * (p * (1.0 - p))[:, None]).T @ x + (ridge + 1e-9) * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while size > 1e-6 and loss(weights - size * step) > current:
            size /= 2.0
        weights = weights - size * step
        previous, current = current, loss(weights)
        if previous - current < 1e-9:
            break
    return float(weights[0]), float(weights[1])


class PlattScaling:
    """A logistic map per label."""

    def __init__(self, ridge: float) -> None:
        self.ridge = ridge

    def fit(self, beliefs: np.ndarray, truths: np.ndarray) -> PlattScaling:
        """Fit a map for every label."""
        fits = [platt(belief, truth.astype(float), self.ridge) for belief, truth in zip(beliefs.T, truths.T)]
        self.slope, self.intercept = np.array(fits).T
        return self

    def apply(self, beliefs: np.ndarray) -> np.ndarray:
        """The calibrated beliefs."""
        return expit(self.slope * logit(smooth(beliefs)) + self.intercept)

    def apply_to(self, label: int, belief: np.ndarray) -> np.ndarray:
        """The calibrated beliefs in one label."""
        return expit(self.slope[label] * logit(smooth(belief)) + self.intercept[label])


class IsotonicScaling:
    """A nondecreasing step function per label, at least 1 / (n + 2) away from 0 and 1."""

    def fit(self, beliefs: np.ndarray, truths: np.ndarray) -> IsotonicScaling:
        """Fit a map for every label."""
        self.smallest = 1.0 / (len(beliefs) + 2.0)
        self.maps = [
            IsotonicRegression(out_of_bounds="clip").fit(belief, truth) for belief, truth in zip(beliefs.T, truths.T)
        ]
        return self

    def apply(self, beliefs: np.ndarray) -> np.ndarray:
        """The calibrated beliefs."""
        calibrated = [label.predict(belief) for label, belief in zip(self.maps, beliefs.T)]
        return smooth(np.column_stack(calibrated), self.smallest)
