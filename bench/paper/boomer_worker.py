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


def fitted(inputs: np.ndarray, truths: np.ndarray, wanted: dict, shrinkage: float, l2: float, rules: int) -> BoomerClassifier:
    """A model with these hyperparameters, on one thread."""
    return BoomerClassifier(
        random_state=wanted["seed"],
        loss=wanted["loss"],
        max_rules=rules,
        shrinkage=shrinkage,
        l2_regularization_weight=l2,
        parallel_rule_refinement="false",
        parallel_statistic_update="false",
        parallel_prediction="false",
    ).fit(inputs, truths.astype(np.uint8))


def search(data: dict, wanted: dict) -> tuple[tuple[float, float, int], BoomerClassifier]:
    """The best hyperparameters on validation rows, and the model with them. One model serves all numbers of rules."""
    best_value, best = -np.inf, None
    for shrinkage, l2 in wanted["grid"]:
        model = fitted(data["train"], data["train_truths"], wanted, shrinkage, l2, max(wanted["rules"]))
        for rules in wanted["rules"]:
            value = log_likelihood(dense(model.predict_proba(data["val"], max_rules=rules)), data["val_truths"])
            if value > best_value:
                best_value, best = value, ((shrinkage, l2, rules), model)
    return best


def main(task: str, answer: str, options: str) -> None:
    """Fit and choose, predict test rows, refit to training and validation rows, and predict again."""
    wanted = json.loads(options)
    with np.load(task) as arrays:
        data = {name: arrays[name] for name in arrays.files}
    (shrinkage, l2, rules), model = search(data, wanted)
    both = np.vstack([data["train"], data["val"]])
    both_truths = np.vstack([data["train_truths"], data["val_truths"]])
    again = fitted(both, both_truths, wanted, shrinkage, l2, rules)
    answers = {"shrinkage": shrinkage, "l2": l2, "rules": rules}
    for name, found in (("train", model), ("both", again)):
        answers[f"{name}_marginals"] = dense(found.predict_proba(data["test"], max_rules=rules))
        answers[f"{name}_labels"] = dense(found.predict(data["test"], max_rules=rules))
    np.savez(answer, **answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
