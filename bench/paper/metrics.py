"""Predictions for test rows, and the paper's metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LOG_FLOOR = float(np.log(1e-300))
"""The log-likelihood of what was held to be impossible."""

BINS = 10
"""Strata of belief in a reliability curve, as many as in the paper's figure."""


@dataclass(frozen=True)
class Prediction:
    """Answers for n rows and J labels."""

    marginals: np.ndarray
    """P(label = 1), n x J."""
    labels: np.ndarray
    """The decision label by label, n x J of 0 and 1."""
    mode: np.ndarray
    """The most probable label set, n x J of 0 and 1."""
    joint: np.ndarray | None
    """Log-probability of the row's true label set, n; `None` if the method has none."""


def independent(marginals: np.ndarray, truths: np.ndarray) -> Prediction:
    """The prediction of a method whose joint distribution is the product of its label beliefs."""
    labels = (marginals > 0.5).astype(np.int8)
    return Prediction(marginals, labels, labels, row_log_likelihood(marginals, truths))


def row_log_likelihood(marginals: np.ndarray, truths: np.ndarray) -> np.ndarray:
    """For each row, the log of the product of the beliefs in its true labels, not below `LOG_FLOOR`."""
    of_truth = np.where(truths == 1, marginals, 1.0 - marginals)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(np.maximum(of_truth, 0.0)).sum(axis=1), LOG_FLOOR)


@dataclass(frozen=True)
class Reliability:
    """Per bin of beliefs: their number, their sum, and the number of labels that were 1."""

    count: np.ndarray
    belief: np.ndarray
    positive: np.ndarray

    def calibration_error(self) -> float:
        """Mean distance between belief and frequency, with bins weighted by their number of beliefs."""
        return float(np.abs(self.belief - self.positive).sum() / self.count.sum())


def reliability(marginals: np.ndarray, truths: np.ndarray) -> Reliability:
    """Bins of equal width over all beliefs P(label = 1). A belief of 1 is in the last bin."""
    beliefs = np.clip(marginals.ravel(), 0.0, 1.0)
    stratum = np.minimum((beliefs * BINS).astype(int), BINS - 1)
    return Reliability(
        np.bincount(stratum, minlength=BINS),
        np.bincount(stratum, weights=beliefs, minlength=BINS),
        np.bincount(stratum, weights=truths.ravel().astype(float), minlength=BINS),
    )


METRICS = {
    "joint_accuracy": ("Joint accuracy", True),
    "mean_joint": ("Mean joint log-likelihood", True),
    "median_joint": ("Median joint log-likelihood", True),
    "hamming_loss": ("Hamming loss", False),
    "mean_labelwise": ("Mean label-wise log-likelihood", True),
    "median_labelwise": ("Median label-wise log-likelihood", True),
    "calibration_error": ("Expected calibration error", False),
}
"""Each metric's title and whether more is better."""


def score(prediction: Prediction, truths: np.ndarray) -> dict[str, float]:
    """All of `METRICS` for one part; without the joint ones if there is no joint log-likelihood."""
    joint = prediction.joint
    if not np.isfinite(prediction.marginals).all() or (joint is not None and np.isnan(joint).any()):
        raise ValueError("a prediction contains values that are not numbers")
    labelwise = row_log_likelihood(prediction.marginals, truths)
    scores = {
        "joint_accuracy": float((prediction.mode == truths).all(axis=1).mean()),
        "hamming_loss": float((prediction.labels != truths).mean()),
        "mean_labelwise": float(labelwise.mean()),
        "median_labelwise": float(np.median(labelwise)),
        "calibration_error": reliability(prediction.marginals, truths).calibration_error(),
    }
    if joint is not None:
        joint = np.maximum(joint, LOG_FLOOR)
        scores |= {"mean_joint": float(joint.mean()), "median_joint": float(np.median(joint))}
    return scores
