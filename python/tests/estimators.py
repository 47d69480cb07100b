"""Estimators for several tests."""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression

from prsl import RuleStacker, RuleStackingClassifier


def fast(**settings: object) -> RuleStackingClassifier:
    """A classifier that learns no rules."""
    return RuleStackingClassifier(**({"estimator": LogisticRegression(), "n_rules": 0, "random_state": 0, "cv": 3} | settings))


def plain(rules: object = None, **settings: object) -> RuleStacker:
    """A stacker that learns nothing."""
    return RuleStacker(labels=["a", "b", "c"], rules=rules, n_rules=0, calibration="none", random_state=0, **settings)
