"""Linear stacking: every label's truth as a weighted sum of all labels' beliefs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..calibrate import SMALLEST, smooth
from ..datasets import Fold, Part
from ..metrics import Prediction, independent
from .base import Method, best, mean_log_likelihood


class Linear:
    """Weights (input labels x output labels) and an intercept. Predictions are clipped to [0.001, 0.999]."""

    def __init__(self, weights: np.ndarray, center: np.ndarray, prior: np.ndarray) -> None:
        self.weights, self.center, self.prior = weights, center, prior

    def apply(self, beliefs: np.ndarray) -> np.ndarray:
        """The stacked beliefs."""
        return smooth(self.prior + (beliefs - self.center) @ self.weights)


def ridge(beliefs: np.ndarray, truths: np.ndarray, strength: float) -> Linear:
    """Least squares with a penalty strength / 2 times the squared weights, both averaged over rows."""
    center, prior = beliefs.mean(axis=0), truths.mean(axis=0)
    x, y = beliefs - center, truths - prior
    n, labels = x.shape
    return Linear(np.linalg.solve(x.T @ x / n + strength * np.eye(labels), x.T @ y / n), center, prior)


class Ridge(Method):
    """Plain ridge stacking."""

    key, title = "ridge", "Ridge"
    strengths = tuple(10.0**k for k in range(-6, 2))

    def settings(self) -> dict[str, Any]:
        return {"strengths": self.strengths, "smallest": SMALLEST}

    def fit(self, fold: Fold) -> dict[str, Any]:
        train, val = fold.train, fold.val
        models = {strength: ridge(train.beliefs, train.truths, strength) for strength in self.strengths}
        strength = best(models, lambda s: mean_log_likelihood(models[s].apply(val.beliefs), val.truths))
        self.model = models[strength]
        self.strength = strength
        return {"strength": strength}

    def refit(self, fold: Fold) -> dict[str, Any]:
        self.model = ridge(fold.both.beliefs, fold.both.truths, self.strength)
        return {"strength": self.strength}

    def predict(self, part: Part) -> Prediction:
        return independent(self.model.apply(part.beliefs), part.truths)


def dissimilarity(truths: np.ndarray) -> np.ndarray:
    """1 minus the cosine between the labels' columns of truths: 0 for labels that always occur together."""
    counts = (truths.T @ truths.astype(float)).astype(float)
    norms = np.sqrt(np.maximum(np.diag(counts), 1.0))
    cosine = counts / np.outer(norms, norms)
    np.fill_diagonal(cosine, 1.0)
    return 1.0 - cosine


def mlwse(
    beliefs: np.ndarray,
    truths: np.ndarray,
    sparsity: float,
    correlation: float,
    steps: int = 500,
    start: np.ndarray | None = None,
) -> Linear:
    """Weighted stacking after Xia, Chen and Yang (Information Sciences 557, 2021).

    Minimizes over W, beliefs X and truths Y centered, n rows,

        ||X W - Y||² / 2n  +  sparsity · sum |W|  +  correlation / 2 · tr(R Wᵀ W),     R = `dissimilarity`,

    by accelerated proximal gradient steps. The L1 term selects classifiers; the trace lets labels that occur together
    share weights, as wⱼ · wₖ costs more the less alike j and k are. R need not be positive semidefinite; its negative
    eigenvalues are set to 0, which keeps the objective convex.
    """
    center, prior = beliefs.mean(axis=0), truths.mean(axis=0)
    x, y = beliefs - center, truths - prior
    n, labels = x.shape
    gram, cross = x.T @ x / n, x.T @ y / n
    values, vectors = np.linalg.eigh(dissimilarity(truths))
    values = np.maximum(values, 0.0)
    relation = correlation * (vectors * values) @ vectors.T
    lipschitz = np.linalg.eigvalsh(gram)[-1] + correlation * values[-1] + 1e-12
    weights = np.zeros((labels, labels)) if start is None else start
    ahead, momentum = weights, 1.0
    for _ in range(steps):
        gradient = gram @ ahead - cross + ahead @ relation
        moved = ahead - gradient / lipschitz
        following = np.sign(moved) * np.maximum(np.abs(moved) - sparsity / lipschitz, 0.0)
        momentum_after = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = following + (momentum - 1.0) / momentum_after * (following - weights)
        change = np.abs(following - weights).max()
        weights, momentum = following, momentum_after
        if change < 1e-6:
            break
    return Linear(weights, center, prior)


class Mlwse(Method):
    """Weighted linear stacking with sparse weights and regularization by label correlations."""

    key, title, paper_row = "mlwse", "MLWSE", "MLWSE"
    sparsities = (1e-5, 1e-4, 1e-3)
    correlations = (0.0, 1e-5, 1e-4, 1e-3, 1e-2)

    def settings(self) -> dict[str, Any]:
        return {"sparsities": self.sparsities, "correlations": self.correlations, "steps": self.steps}

    @property
    def steps(self) -> int:
        """Maximum number of proximal steps."""
        return 100 if self.quick else 1000

    def fit(self, fold: Fold) -> dict[str, Any]:
        train, val = fold.train, fold.val
        models: dict[tuple[float, float], Linear] = {}
        start = None
        for sparsity in sorted(self.sparsities, reverse=True):
            for correlation in sorted(self.correlations, reverse=True):
                model = mlwse(train.beliefs, train.truths, sparsity, correlation, self.steps, start)
                models[sparsity, correlation] = model
                start = model.weights
        chosen = best(models, lambda pair: mean_log_likelihood(models[pair].apply(val.beliefs), val.truths))
        self.model, self.chosen = models[chosen], chosen
        return {"sparsity": chosen[0], "correlation": chosen[1]}

    def refit(self, fold: Fold) -> dict[str, Any]:
        sparsity, correlation = self.chosen
        both, start = fold.both, self.model.weights
        self.model = mlwse(both.beliefs, both.truths, sparsity, correlation, self.steps, start)
        return {"sparsity": sparsity, "correlation": correlation}

    def predict(self, part: Part) -> Prediction:
        return independent(self.model.apply(part.beliefs), part.truths)
