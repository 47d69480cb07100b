"""Pools of several classifiers' beliefs about one label."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from ._columns import Codes

Numbers = npt.NDArray[np.float64]

#: Lower bound on beliefs before their logarithms are pooled.
_SMALLEST = 1e-4


def pooled(probabilities: list[Numbers], weights: Numbers) -> Numbers:
    """The pooled probabilities: ∏ p_e^w_e, normalized."""
    logs = np.tensordot(weights, _logs(probabilities), axes=1)
    logs -= logs.max(axis=1, keepdims=True)
    pooled = np.exp(logs)
    return np.asarray(pooled / pooled.sum(axis=1, keepdims=True))


def pool_weights(probabilities: list[Numbers], codes: Codes, sample_weight: Numbers | None) -> Numbers:
    """The non-negative weights with the largest likelihood on out-of-fold rows."""
    is_complete = np.logical_and.reduce([has_belief(own) for own in probabilities])
    known = np.flatnonzero((codes >= 0) & is_complete)
    n, start = len(probabilities), np.full(len(probabilities), 1.0 / len(probabilities))
    if len(known) == 0 or probabilities[0].shape[1] < 2:
        return start
    logs, truth = _logs(probabilities)[:, known], codes[known]
    counts = np.ones(len(known)) if sample_weight is None else sample_weight[known]
    chosen = logs[:, np.arange(len(known)), truth]

    def loss(weights: Numbers) -> tuple[float, Numbers]:
        pooled = np.tensordot(weights, logs, axes=1)
        pooled -= pooled.max(axis=1, keepdims=True)
        p = np.exp(pooled)
        totals = p.sum(axis=1)
        p /= totals[:, None]
        own = weights @ chosen
        largest = np.tensordot(weights, logs, axes=1).max(axis=1)
        value = -(counts * (own - largest - np.log(totals))).sum() / counts.sum()
        slope = -((chosen - (logs * p).sum(axis=2)) @ counts) / counts.sum()
        # A weak ridge penalty toward equal weights, worth about one row.
        return value + ((weights - start) ** 2).sum() / counts.sum(), slope + 2 * (weights - start) / counts.sum()

    found = minimize(loss, start, jac=True, bounds=[(0.0, None)] * n, method="L-BFGS-B")
    return np.asarray(found.x, dtype=np.float64)


def has_belief(probabilities: Numbers) -> npt.NDArray[np.bool_]:
    """Which rows have a belief."""
    return np.asarray(~np.isnan(probabilities).any(axis=1), dtype=bool)


def _logs(probabilities: list[Numbers]) -> Numbers:
    """The clipped log probabilities: classifiers x rows x classes."""
    return np.stack([np.log(np.clip(values, _SMALLEST, 1.0)) for values in probabilities])
