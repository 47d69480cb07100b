"""Fits BOOMER to the arrays of one file and writes its predictions to another. Runs in BOOMER's own environment."""

import json
import sys

import numpy as np
from mlrl.boosting import BoomerClassifier


def log_likelihood(marginals: np.ndarray, truths: np.ndarray) -> float:
    """The mean over rows of the log-likelihood of all labels."""
    beliefs = np.clip(marginals, 1e-6, 1.0 - 1e-6)
    return float(np.log(np.where(truths == 1, beliefs, 1.0 - beliefs)).sum(axis=1).mean())


def dense(matrix: object) -> np.ndarray:
    """A prediction as a dense array."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


def main(task: str, answer: str, options: str) -> None:
    """Fit, select the number of rules on validation rows, and predict test rows."""
    wanted = json.loads(options)
    with np.load(task) as arrays:
        data = {name: arrays[name] for name in arrays.files}
    model = BoomerClassifier(
        random_state=wanted["seed"],
        loss=wanted["loss"],
        max_rules=max(wanted["rules"]),
        parallel_rule_refinement="false",
        parallel_statistic_update="false",
        parallel_prediction="false",
    ).fit(data["train"], data["train_truths"].astype(np.uint8))
    values = {
        rules: log_likelihood(dense(model.predict_proba(data["val"], max_rules=rules)), data["val_truths"])
        for rules in wanted["rules"]
    }
    rules = max(values, key=lambda number: values[number])
    np.savez(
        answer,
        rules=rules,
        marginals=dense(model.predict_proba(data["test"], max_rules=rules)),
        labels=dense(model.predict(data["test"], max_rules=rules)),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
