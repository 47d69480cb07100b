"""The conventions of scikit-learn."""

from __future__ import annotations

import functools
import io
import re
import warnings
from typing import Any
from unittest import SkipTest

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

from prsl import Model, RuleStacker, RuleStackingClassifier
from prsl.metrics import SCORERS, scorer


def fast(**settings: object) -> RuleStackingClassifier:
    given = {"estimator": LogisticRegression(), "random_state": 0, "cv": 3}
    return RuleStackingClassifier(**(given | settings))


@parametrize_with_checks([fast()])
def test_the_classifier_follows_the_conventions(estimator: object, check: object) -> None:
    check(estimator)  # type: ignore[operator]


def test_several_outputs() -> None:
    estimator_checks.check_classifier_multioutput("RuleStackingClassifier", fast())


class OfFeatures(RuleStacker):
    """The stacker behind a fixed function from features to beliefs, because the checks give features."""

    def _rows(self, X: Any, model: Model, raw: bool = False) -> Any:
        X = validate_data(self, X, dtype=np.float64, reset=raw)
        beliefs = []
        for target in self._targets:
            weights = np.random.default_rng(1).normal(size=(X.shape[1], len(target.classes)))
            scores = np.exp(np.tanh(X) @ weights)
            beliefs.append(scores / scores.sum(axis=1, keepdims=True))
        return super()._rows(beliefs, model, raw)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> OfFeatures:
        if hasattr(self, "model_"):
            validate_data(self, X, reset=False)
        return super().partial_fit(X, y, classes, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The function knows nothing of the classes.
        tags.classifier_tags.poor_score = True
        tags.input_tags.allow_nan = False
        return tags


@parametrize_with_checks([OfFeatures()])
def test_the_stacker_follows_the_conventions(estimator: object, check: object) -> None:
    check(estimator)  # type: ignore[operator]


def needs_features(name: str) -> bool:
    """Whether a check of the stacker fails only because its `X` is not a belief for each class."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            checks = [check for check in stacker_checks() if check_name(check) == name]
            for check in checks:
                check(RuleStacker())
    except SkipTest:
        return False
    except Exception as error:
        causes = [error, error.__cause__, error.__context__]
        is_about_beliefs = [re.search("X has \\d+ columns, expected|belief for|does not know column", str(cause)) for cause in causes]
        assert any(is_about_beliefs), f"{name}: {error}"
        return True
    return False


def check_name(check: Any) -> str:
    while isinstance(check, functools.partial):
        check = check.func
    return str(check.__name__)


def stacker_checks() -> list[Any]:
    return [check for _, check in estimator_checks.estimator_checks_generator(RuleStacker())]


@pytest.mark.parametrize("name", sorted({check_name(check) for check in stacker_checks()}))
def test_the_stacker_itself_fails_no_check_that_gives_beliefs(name: str) -> None:
    if needs_features(name):
        pytest.skip("its X are features, no beliefs; OfFeatures passes it")


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    return make_multilabel_classification(n_samples=240, n_features=8, n_classes=4, random_state=1)


def test_pipelines_searches_and_cross_validation(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), fast())
    assert pipeline.fit(X, y).predict(X).shape == y.shape
    assert pipeline[-1].feature_names_in_.tolist() == [f"x{j}" for j in range(8)]
    search = GridSearchCV(fast(), {"n_rules": [0, 1]}, scoring=scorer("joint_log_likelihood"), cv=2).fit(X, y)
    assert set(search.best_params_) == {"n_rules"} and search.best_score_ < 0
    scores = cross_validate(fast(n_rules=1), X, y, scoring=SCORERS, cv=2)
    assert all(np.isfinite(scores[f"test_{name}"]).all() for name in SCORERS)
    predicted = cross_val_predict(fast(n_rules=0), X, y, cv=2)
    assert predicted.shape == y.shape and (predicted == y).mean() > 0.6
    assert len(cross_val_predict(fast(n_rules=0), X, y, cv=2, method="predict_proba")) == 4


def test_clones_and_pickles(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    classifier = fast().fit(X, y)
    file = io.BytesIO()
    joblib.dump(classifier, file)
    file.seek(0)
    again = joblib.load(file)
    np.testing.assert_array_equal(again.predict(X), classifier.predict(X))
    assert again.model_ == classifier.model_ == clone(classifier).fit(X, y).model_


def test_strings_missing_values_and_frames(rows: tuple[np.ndarray, np.ndarray]) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = rows
    names = np.array(["low", "high"], dtype=object)
    frame = pandas.DataFrame({f"label {j}": names[y[:, j]] for j in range(3)})
    frame["level"] = y.sum(axis=1).clip(max=2)
    frame.iloc[::5, 0] = None
    frame.iloc[::7, 1] = np.nan
    classifier = fast(rules='rule 0.7: "label 0"=high -> "label 1"=high').fit(X, frame)
    assert [label.name for label in classifier.model_.labels] == list(frame.columns)
    assert [len(classes) for classes in classifier.classes_] == [2, 2, 2, 3]
    predicted = classifier.predict(X)
    assert predicted.dtype == object and set(predicted[:, 0]) <= {"low", "high"} and set(predicted[:, 3]) <= {0, 1, 2}
    assert 0 <= classifier.score(X, frame) <= 1
    assert np.isfinite(classifier.joint_log_likelihood(X, frame)).all()


@pytest.mark.parametrize("combine", ["pool", "labels"])
def test_several_classifiers_for_one_label(rows: tuple[np.ndarray, np.ndarray], combine: str) -> None:
    X, y = rows
    pair = [LogisticRegression(), GaussianNB()]
    classifier = fast(estimator=pair, combine=combine).fit(X, y[:, :2])
    assert classifier.predict(X).shape == (len(X), 2) and len(classifier.predict_proba(X)) == 2
    if combine == "pool":
        assert all((weights >= 0).all() and len(weights) == 2 for weights in classifier.weights_)
    else:
        assert [label.name for label in classifier.model_.labels] == ["y0", "y1", "y0 by 2", "y1 by 2"]
    assert classifier.score(X, y[:, :2]) > 0.5
    single = fast(estimator=pair, combine=combine).fit(X, y[:, 0])
    assert single.predict(X).shape == (len(X),) and single.predict_proba(X).shape == (len(X), 2)


def test_prefit(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    together = MultiOutputClassifier(LogisticRegression()).fit(X[:120], y[:120])
    forest = RandomForestClassifier(20, random_state=0).fit(X[:120], y[:120])
    apart = [LogisticRegression().fit(X[:120], y[:120, j]) for j in range(4)]
    for estimator in (together, forest, apart):
        classifier = fast(estimator=estimator, cv="prefit").fit(X[120:], y[120:])
        assert classifier.predict(X).shape == y.shape
    single = fast(estimator=apart[0], cv="prefit").fit(X[120:], y[120:, 0])
    assert single.predict(X).shape == (len(X),)
    with pytest.raises(ValueError, match="1 fitted classifiers, and 4 labels"):
        fast(estimator=apart[:1], cv="prefit").fit(X, y)


def test_rules_help_out_of_sample() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 500)
    y = np.column_stack([truth, truth, truth])
    X = np.column_stack([truth + 1.2 * rng.normal(size=500) for _ in range(3)])
    columns = [LogisticRegression().fit(X[:200, [j]], truth[:200]) for j in range(3)]

    beliefs = [columns[j].predict_proba(X[200:, [j]]) for j in range(3)]
    stacker = RuleStacker(random_state=0).fit([b[:150] for b in beliefs], y[200:350])
    stacked = stacker.score([b[150:] for b in beliefs], y[350:])
    alone = np.mean(np.all([b[150:].argmax(axis=1) == truth[350:] for b in beliefs], axis=0))
    assert stacked > alone + 0.1


def test_rows_do_not_influence_each_other(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    classifier = fast().fit(X, y)
    whole = np.stack(classifier.predict_proba(X))
    order = np.random.default_rng(4).permutation(len(X))
    np.testing.assert_array_equal(np.stack(classifier.predict_proba(X[order])), whole[:, order])
    one_by_one = np.stack([np.stack(classifier.predict_proba(X[[row]]))[:, 0] for row in range(20)], axis=1)
    np.testing.assert_allclose(one_by_one, whole[:, :20], atol=1e-12)


def test_wrong_settings(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    with pytest.raises(ValueError, match="unknown combine"):
        fast(combine="vote").fit(X, y)
    with pytest.raises(ValueError, match="no classifier"):
        fast(estimator=StandardScaler()).fit(X, y)
    with pytest.raises(ValueError, match="no known value"):
        fast().fit(X, np.column_stack([y[:, 0], np.full(len(y), np.nan)]))
    with pytest.raises(ValueError, match="infinity"):
        fast().fit(X, np.where(y == 1, np.inf, 0.0))
