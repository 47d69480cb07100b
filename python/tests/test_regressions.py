"""Mistakes of earlier versions, each named after what went wrong."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

import prsl
from prsl import Model, PrslWarning, RuleStacker, RuleStackingClassifier, errors

Arrays = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def rows() -> Arrays:
    return make_multilabel_classification(n_samples=150, n_features=6, n_classes=3, random_state=2)


def fast(**settings: object) -> RuleStackingClassifier:
    return RuleStackingClassifier(**({"estimator": LogisticRegression(), "n_rules": 0, "random_state": 0, "cv": 3} | settings))


def plain(rules: object = None, **settings: object) -> RuleStacker:
    """A stacker that learns nothing."""
    return RuleStacker(labels=["a", "b", "c"], rules=rules, n_rules=0, calibration="none", random_state=0, **settings)


# Impossible rows


@pytest.mark.parametrize("decision", ["auto", "marginal", "joint"])
def test_impossible_rows_predicted_the_last_class(equal_labels: Arrays, decision: str) -> None:
    stacker = plain("rule 1: a <-> b", decision=decision).fit(*equal_labels)
    contradiction = np.array([[0.7, 0.7, 0.5], [1.0, 0.0, 0.2], [0.0, 1.0, 0.9]])
    with pytest.warns(PrslWarning, match="2 of 3 rows have no possible answer: rows 1, 2"):
        predicted = stacker.predict(contradiction)
    assert predicted[1:].tolist() == [[1, 0, 0], [0, 1, 1]]
    assert stacker.predict_status(contradiction).tolist() == ["ok", "impossible", "impossible"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stacker.predict(contradiction[:1]).tolist()[0][:2] == [1, 1]
    classes, probabilities = stacker.predict_top(contradiction, 2)
    assert classes[1, 0].tolist() == [1, 0, 0] and np.isnan(probabilities[1]).all()


def test_the_classifier_tells_the_status_of_rows(rows: Arrays) -> None:
    X, y = rows
    assert set(fast().fit(X, y).predict_status(X)) == {"ok"}


# Numbers of threads


def test_negative_n_jobs_failed_after_the_classifiers_were_fitted(equal_labels: Arrays, rows: Arrays) -> None:
    yes, y = equal_labels
    for n_jobs in (None, -1, -2, -100, 1, 2):
        stacker = plain(n_jobs=n_jobs).fit(yes, y)
        assert stacker.predict(yes).shape == y.shape and stacker.explain(yes).possible
        assert len(stacker.joint_log_likelihood(yes, y)) == stacker.evaluate(yes, y)["rows"] == 600
    assert fast(n_jobs=-1).fit(*rows).predict(rows[0]).shape == rows[1].shape
    model = Model.parse("label a")
    assert model.predict({"a": [0.5]}, threads=-1).status.tolist() == ["ok"]
    for wrong in (0, 1.5, "all"):
        with pytest.raises(errors.ArgumentError, match="n_jobs is"):
            plain(n_jobs=wrong).fit(*equal_labels)
    with pytest.raises(errors.ArgumentError, match="threads is 0"):
        model.predict({"a": [0.5]}, threads=0)


def test_n_jobs_is_checked_before_classifiers_are_fitted(rows: Arrays) -> None:
    with pytest.raises(errors.ArgumentError, match="n_jobs is 0"):
        fast(estimator=Unfittable(), n_jobs=0).fit(*rows)


def test_n_jobs_none_follows_the_setting_of_joblib(monkeypatch: pytest.MonkeyPatch) -> None:
    from prsl._jobs import of_jobs

    assert of_jobs(None) == 1
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert of_jobs(None) == 2


def test_few_rows_were_validated_on_training_rows(equal_labels: Arrays) -> None:
    yes, y = equal_labels
    with pytest.raises(errors.ExamplesError, match="of 4 rows, the validation set has none"):
        RuleStacker(recipe="paper", n_rules=1, max_iter=10, random_state=0).fit(yes[:4], y[:4])
    given = RuleStacker(recipe="paper", n_rules=1, max_iter=10, random_state=0)
    given.fit(yes[:4], y[:4], validation=(yes[4:8], y[4:8]))


# Truths


def test_truths_of_0_and_1_were_inverted() -> None:
    model = Model.parse("label rain\nlabel sky: clear, dark")
    beliefs = {"rain": [0.9, 0.2, 0.8], "sky": [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]}
    forms: list[object] = [
        {"rain": [1, 0, np.nan], "sky": ["clear", "dark", None]},
        {"rain": [True, False, None], "sky": ["clear", "dark", None]},
        {"rain": ["yes", "no", None], "sky": ["clear", "dark", None]},
        {"rain": [1.0, 0.0, -1], "sky": [0, 1, -1]},
        np.array([[1, 0], [0, 1], [-1, -1]]),
        np.array([["yes", "clear"], ["no", "dark"], [None, None]], dtype=object),
    ]
    pandas = pytest.importorskip("pandas")
    forms.append(pandas.DataFrame({"sky": ["clear", "dark", None], "rain": [1, 0, pandas.NA]}))
    for form in forms:
        assert model.evaluate(beliefs, form)["hamming_loss"] == 0.0
        np.testing.assert_allclose(
            model.joint_log_likelihood(beliefs, form)[:2], [np.log(0.81), np.log(0.64)], atol=1e-12
        )
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    timid = np.where(truth == 1, 0.6, 0.4)
    after = Model.parse("label rain").calibrate({"rain": timid}, truth, "platt").predict({"rain": [0.6, 0.4]})
    assert after["rain"][0, 1] > 0.8 and after["rain"][1, 1] < 0.2


def test_truths_that_are_numerals_are_names_of_categories() -> None:
    model = Model.parse('label digit: "3", "1", "2"')
    beliefs = {"digit": [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]}
    assert model.evaluate(beliefs, {"digit": [3, 2]})["hamming_loss"] == 0.0
    with pytest.raises(errors.UnknownCategoryError, match="row 1.*label `digit` has no category `0`"):
        model.evaluate(beliefs, {"digit": [3, 0]})


@pytest.mark.parametrize("wrong", [2, 7, "maybe", 0.5, -2, np.inf])
def test_truths_out_of_range_panicked(wrong: object) -> None:
    model = Model.parse("label sky: clear, dark\nlabel rain")
    beliefs = {"rain": [0.5, 0.5]}
    for call in (model.evaluate, model.joint_log_likelihood, model.calibrate):
        with pytest.raises(ValueError, match="row 1, counted from 0: label `rain` has no category"):
            call(beliefs, {"rain": [1, wrong]})
    with pytest.raises(ValueError, match="unknown label `snow`"):
        model.evaluate(beliefs, {"snow": [1, 0]})
    with pytest.raises(ValueError, match="3 columns, expected 2"):
        model.evaluate(beliefs, np.zeros((2, 3)))


def test_the_compiled_part_checks_truths_too() -> None:
    from prsl import _prsl
    from prsl._beliefs import rows as read

    model = Model.parse("label rain")
    beliefs = read(model._core, {"rain": [0.5]})
    with pytest.raises(ValueError, match="row 0, counted from 0: the truth of label `rain` is category 2"):
        _prsl.evaluate(model._core, beliefs, np.array([[2]]), 10, None)


# Beliefs and posteriors


def test_impossible_rows_became_uniform_if_a_label_has_more_categories_than_classes() -> None:
    truth = np.random.default_rng(1).integers(0, 2, 100)
    model = Model.parse("label size: big, small, unseen\nlabel a\nlabel b\nrule 1: a <-> b")
    y = np.column_stack([np.where(truth == 1, "big", "small"), truth.astype(object), truth.astype(object)])
    yes = 0.2 + 0.6 * truth
    stacker = RuleStacker(labels=["size", "a", "b"], rules=model, n_rules=0, calibration="none", random_state=0)
    stacker.fit([np.column_stack([yes, 1 - yes]), yes, yes], y)
    given = [np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([1.0, 0.5]), np.array([0.0, 0.5])]
    with pytest.warns(PrslWarning, match="impossible under the hard rules: row 0"):
        size, of_a, _ = stacker.predict_proba(given)
    assert np.isnan(size[0]).all() and np.isnan(of_a[0]).all() and not np.isnan(size[1]).any()
    with pytest.warns(PrslWarning, match="no possible answer: row 0"):
        assert stacker.predict(given)[0].tolist() == ["big", 1, 0]


def test_posteriors_could_not_be_pickled(warehouse: str) -> None:
    model = Model.parse(warehouse)
    posterior = model.predict({"feet": [[0.2, 0.8]]}, "both")
    again = pickle.loads(pickle.dumps(posterior))
    np.testing.assert_array_equal(again["activity"], posterior["activity"])
    assert again.assignments == posterior.assignments and again.status.tolist() == ["ok"]
    assert posterior.__getstate__()["version"] == prsl.__version__


def test_parts_of_a_model_could_not_be_pickled() -> None:
    text = "label a prior 0.2, 0.8\nlabel b\nrule 0.9 r: a -> b  # learned: gain 12.3, broken 3 of 214, expected 41.2, sure\n"
    model = Model.parse(text + "rule 0.5: b\ntypical 2: a, b\ncalibrate b platt 1.5 0.1")
    for part in (*model.labels, *model.rules, *model.typical, *model.check()):
        again = pickle.loads(pickle.dumps(part))
        names = [name for name in dir(part) if not name.startswith("_")]
        assert names and [getattr(again, name) for name in names] == [getattr(part, name) for name in names]
        assert part.__reduce__()[1][1] == prsl.__version__
    from prsl._pickles import restore

    with pytest.raises(errors.PrslError, match="pickled by prsl 9.9.9 and cannot be read"):
        restore("Label", "9.9.9", ("only a name",))


class Frame:
    """A frame without the Arrow interface."""

    def __init__(self, columns: dict[str, list[object]]) -> None:
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> list[object]:
        return self._columns[name]

    def __len__(self) -> int:
        return len(self._columns[self.columns[0]])


def test_frames_without_the_arrow_interface_were_taken_by_position(warehouse: str) -> None:
    model = Model.parse(warehouse)
    expected = model.predict({"feet": [[0.1, 0.9]], "hands": ["low"]})
    frame = Frame({"hands": ["low"], "feet=standing": [0.9], "feet=gait": [0.1]})
    np.testing.assert_array_equal(model.predict(frame).values, expected.values)
    with pytest.raises(errors.UnknownLabelError, match="`foot=gait`"):
        model.predict(Frame({"foot=gait": [0.1]}))
    np.testing.assert_array_equal(model.predict(Frame({"gait": [0.1], "hands": ["low"]})).values, expected.values)
    for columns in ({"feet=gait": [0.1], "gait": [0.1]}, {"feet=gait": [0.1], "feet": ["gait"]}):
        with pytest.raises(errors.ArgumentError, match="label `feet` that another column gives, too"):
            model.predict(Frame(columns))
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="column"):
        model.predict(pandas.DataFrame([[0.1, 0.9]]))

    class WithoutArrow(pandas.DataFrame):  # type: ignore[misc]
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ImportError("no pyarrow")

    np.testing.assert_array_equal(model.predict(WithoutArrow(frame._columns)).values, expected.values)


def test_pool_weights_saw_the_truths_of_the_validation_set(rows: Arrays) -> None:
    X, y = rows
    stacker = RuleStacker(recipe="paper", n_rules=1, max_iter=5, validation_fraction=0.3)
    pair = [LogisticRegression(), GaussianNB()]
    splits = [(np.arange(50), np.arange(50, 150))]

    def weights(truth: np.ndarray) -> np.ndarray:
        return np.stack(fast(estimator=pair, stacker=stacker, n_rules=1, cv=splits).fit(X, truth).weights_)

    fitted = fast(estimator=pair, stacker=stacker, n_rules=1, cv=splits).fit(X, y)
    training = 50 + fitted.stacker_._training_rows(np.ones(100, dtype=bool))
    validation = np.setdiff1d(np.arange(50, 150), training)
    assert len(validation) == 30
    changed = y.copy()
    changed[validation] = 1 - changed[validation]
    np.testing.assert_array_equal(weights(changed), weights(y))
    changed[training[:20]] = 1 - changed[training[:20]]
    assert not np.array_equal(weights(changed), weights(y))


# Forked processes


def _predict_and_fit(queue: multiprocessing.Queue) -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, (400, 1)).repeat(2, axis=1)
    yes = np.clip(0.5 + 0.2 * (truth - 0.5) + 0.1 * rng.normal(size=truth.shape), 0.01, 0.99)
    model = Model.parse("label a\nlabel b\nrule 0.9: a -> b")
    predicted = model.predict({"a": yes[:, 0], "b": yes[:, 1]})
    queue.put(float(predicted["a"].sum()))
    queue.put(len(RuleStacker(random_state=0, n_jobs=None).fit(yes, truth).model_.rules))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_predictions_in_a_forked_process_hung() -> None:
    context = multiprocessing.get_context("fork")
    own: multiprocessing.Queue = context.Queue()
    _predict_and_fit(own)
    expected = [own.get(timeout=10), own.get(timeout=10)]
    queue: multiprocessing.Queue = context.Queue()
    child = context.Process(target=_predict_and_fit, args=(queue,))
    child.start()
    try:
        assert [queue.get(timeout=60), queue.get(timeout=60)] == expected
    finally:
        child.kill()
        child.join()


# Cross-validation


@pytest.mark.parametrize("cv", [TimeSeriesSplit(3), ShuffleSplit(4, test_size=0.2, random_state=0)], ids=["time", "shuffle"])
def test_rows_without_a_split_got_uninitialized_beliefs(rows: Arrays, cv: object) -> None:
    X, y = rows
    seen: list[np.ndarray] = []

    class Spy(RuleStacker):
        def fit(self, X: object, y: object, **others: object) -> RuleStacker:
            seen.extend(X)  # type: ignore[call-overload]
            return super().fit(X, y, **others)

    classifier = fast(cv=cv, stacker=Spy()).fit(X, y)
    n_predicted = len(np.unique(np.concatenate([test for _, test in cv.split(X)])))  # type: ignore[attr-defined]
    assert n_predicted < len(X) and all(len(beliefs) == n_predicted for beliefs in seen)
    assert all(np.allclose(beliefs.sum(axis=1), 1) for beliefs in seen)
    assert classifier.score(X, y) > 0.3


def test_a_list_of_splits_and_rows_without_truth_or_weight_failed(rows: Arrays) -> None:
    X, y = rows
    order = np.random.default_rng(0).permutation(len(X))
    splits = [(order[75:], order[:75]), (order[:75], order[75:])]
    weights = np.ones(len(X))
    weights[::3] = 0
    holes = y.astype(float)
    holes[::5, 1] = np.nan
    weighted = fast(cv=splits).fit(X, holes, sample_weight=weights)
    kept = np.flatnonzero(weights)
    place = np.full(len(X), -1)
    place[kept] = np.arange(len(kept))
    of_kept = [tuple(place[part][place[part] >= 0] for part in split) for split in splits]
    removed = fast(cv=of_kept).fit(X[kept], holes[kept])
    np.testing.assert_allclose(np.stack(weighted.predict_proba(X)), np.stack(removed.predict_proba(X)), atol=1e-8)


def test_groups_stay_together_in_cross_validation(rows: Arrays) -> None:
    X, y = rows
    groups = np.arange(len(X)) // 10
    by_group = fast(cv=GroupKFold(3)).fit(X, y, groups=groups)
    by_splits = fast(cv=list(GroupKFold(3).split(X, y[:, 0], groups))).fit(X, y)
    np.testing.assert_allclose(np.stack(by_group.predict_proba(X)), np.stack(by_splits.predict_proba(X)), atol=1e-8)


# Rules


def test_a_dictionary_of_rules_became_hard_rules(equal_labels: Arrays, rows: Arrays) -> None:
    stacker = plain({"a -> b": 0.6, "a -> !c": 0.9}).fit(*equal_labels)
    assert [(rule.text, rule.probability) for rule in stacker.model_.rules] == [("a -> b", 0.6), ("a -> !c", 0.9)]
    for wrong in ([("a -> b", 0.6)], [("a", "b")], [0.6], {"a -> b": "often"}, {"a -> b": None}):
        with pytest.raises(errors.ArgumentError, match="neither a text nor a pair"):
            plain(wrong).fit(*equal_labels)
    with pytest.raises(ValueError, match="1.5"):
        plain({"a -> b": 1.5}).fit(*equal_labels)
    both = fast(estimator=[LogisticRegression(), GaussianNB()], combine="labels", rules={"y0 -> y1": 0.6}).fit(*rows)
    assert both.model_.rules[0].text == "y0 -> y1"


def test_classes_stored_as_floats_had_names_with_a_decimal_point(rows: Arrays) -> None:
    X, y = rows
    y = np.column_stack([y.sum(axis=1), y[:, 0]]).astype(float)
    classifier = fast(rules='rule 0.9: y0="2" -> y1').fit(X, y)
    assert classifier.model_.labels[0].categories == ["0", "1", "2", "3"]
    assert classifier.classes_[0].dtype == float and set(classifier.predict(X)[:, 0]) <= {0.0, 1.0, 2.0, 3.0}


class Unfittable(ClassifierMixin, BaseEstimator):
    """A classifier whose `fit` is not reached."""

    def fit(self, X: object, y: object) -> Unfittable:
        raise AssertionError("fitted too early")

    def predict_proba(self, X: object) -> None: ...


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("rule 0.9: y0 ->", "1:|expected"),
        ("rule 0.9: nobody", "nobody"),
        ("rule 1: y0\nrule 1: !y0", "y0"),
        (Model.parse("label other"), "no label `y0`"),
        ({"y0 -> y1": "often"}, "neither a text nor a pair"),
    ],
)
def test_rules_were_checked_after_the_classifiers_were_fitted(rows: Arrays, rules: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fast(estimator=Unfittable(), rules=rules).fit(*rows)


# Pages and frames


def test_frames_and_pages_of_many_rows_took_seconds() -> None:
    model = Model.parse("\n".join(f"label l{at}" for at in range(60)))
    beliefs = {f"l{at}": np.full(5000, 0.3) for at in range(60)}
    for query in ("mpe", "both"):
        posterior = model.predict(beliefs, query)
        began = time.perf_counter()
        page = posterior._repr_html_()
        assert time.perf_counter() - began < 1.0 and len(page) < 1_000_000
        assert "and 4970 more" in page and "30 more labels" in page
    pytest.importorskip("pandas")
    began = time.perf_counter()
    assert len(posterior.to_pandas()) == 5000 and time.perf_counter() - began < 2.0
    page = model.explain({name: values[:1] for name, values in beliefs.items()})._repr_html_()
    assert "60 labels did not move" in page and len(page) < 5000


def test_frames_dropped_samples_and_all_but_the_first_assignment(warehouse: str) -> None:
    pandas = pytest.importorskip("pandas")
    model = Model.parse(warehouse)
    beliefs = pandas.DataFrame({"feet=gait": [0.2, 0.7]}, index=["x", "y"])
    drawn = model.predict(beliefs, "samples", samples=3, seed=1)
    frame = drawn.to_pandas()
    assert frame["row"].tolist() == ["x"] * 3 + ["y"] * 3 and frame["sample"].tolist() == [1, 2, 3] * 2
    assert frame["hands"].tolist() == [sample["hands"] for row in drawn.all_assignments for sample in row]
    top = model.predict(beliefs, "mpe", top=2)
    frame = top.to_pandas()
    assert list(frame.columns) == ["row", "rank", "activity", "feet", "hands", "log_weight", "status"]
    assert frame["activity"].tolist() == [best["activity"] for row in top.all_assignments for best in row]
    assert frame["log_weight"].tolist() == top.log_weight.ravel().tolist()


def test_frames_lost_the_index(warehouse: str, equal_labels: Arrays) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    beliefs = pandas.DataFrame({"feet=gait": [0.2, 0.7]}, index=pandas.Index(["x", "y"], name="worker"))
    posterior = Model.parse(warehouse).predict(beliefs)
    assert posterior.to_pandas().index.equals(beliefs.index)
    for frame, kind in ((posterior.to_arrow(), pyarrow.Table), (posterior.to_polars(), polars.DataFrame)):
        assert isinstance(frame, kind)
        assert list(frame["worker"].to_pylist() if kind is pyarrow.Table else frame["worker"]) == ["x", "y"]
    unnamed = Model.parse(warehouse).predict({"feet": [[0.2, 0.8]]})
    assert unnamed.to_polars().columns == unnamed.to_arrow().column_names == list(unnamed.to_pandas().columns)
    yes, y = equal_labels
    named = pandas.DataFrame({"a=yes": yes[:, 0], "b=yes": yes[:, 1], "c=yes": yes[:, 2]}).set_index(np.arange(600) + 7)
    assert plain().fit(yes, y).posterior(named).to_pandas().index.tolist()[:2] == [7, 8]


# Arguments


def test_an_unfitted_stacker_passed_for_fitted() -> None:
    with pytest.raises(NotFittedError):
        check_is_fitted(RuleStacker())
    with pytest.raises(NotFittedError):
        RuleStacker().predict([[0.5]])
    with pytest.raises(errors.ArgumentError, match="`lambda_` was renamed; use `lam`"):
        RuleStacker(lambda_=0.5)
    check_is_fitted(RuleStacker.from_model(Model.parse("label a")))


def test_a_frame_of_one_column_as_y(equal_labels: Arrays) -> None:
    pandas = pytest.importorskip("pandas")
    yes, y = equal_labels
    stacker = RuleStacker(n_rules=0, random_state=0).fit(yes[:, :1], pandas.DataFrame({"rain": y[:, 0]}))
    assert [label.name for label in stacker.model_.labels] == ["rain"]
    assert stacker.predict(yes[:, :1]).shape == (600,) and stacker.predict_proba(yes[:, :1]).shape == (600, 2)


def test_missing_values_of_pandas(equal_labels: Arrays) -> None:
    pandas = pytest.importorskip("pandas")
    yes, y = equal_labels
    truth = pandas.DataFrame(y, columns=["a", "b", "c"]).astype("Int64")
    truth.iloc[::4, 0] = pandas.NA
    beliefs = pandas.DataFrame({"a": yes[:, 0], "b": yes[:, 1], "c": yes[:, 2]}).astype("Float64")
    beliefs.iloc[::7, 1] = pandas.NA
    holes, gaps = y.astype(float), yes.copy()
    holes[::4, 0], gaps[::7, 1] = np.nan, np.nan
    expected = plain().fit(gaps, holes)
    for form in ({name: beliefs[name] for name in "abc"}, beliefs.to_numpy(dtype=object), beliefs):
        stacker = plain().fit(form, truth)
        assert stacker.model_ == expected.model_ and stacker.score(form, truth) == expected.score(gaps, holes)
        np.testing.assert_array_equal(np.stack(stacker.predict_proba(form)), np.stack(expected.predict_proba(gaps)))
    model = Model.parse("label a")
    posterior = model.predict({"a": np.array([0.3, pandas.NA], dtype=object)})
    assert posterior["a"][:, 1].tolist() == [0.3, 0.5]


def test_names_of_labels_from_an_index(equal_labels: Arrays) -> None:
    pandas = pytest.importorskip("pandas")
    names = pandas.DataFrame(columns=["a", "b", "c"]).columns
    stacker = RuleStacker(labels=names, n_rules=0, random_state=0).fit(*equal_labels)
    assert [label.name for label in stacker.model_.labels] == ["a", "b", "c"]
    with pytest.raises(errors.ArgumentError, match="labels is the text `abc`"):
        RuleStacker(labels="abc").fit(*equal_labels)


def test_truths_of_pyarrow(equal_labels: Arrays) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    yes, y = equal_labels
    table = pyarrow.table({"a": y[:, 0], "b": np.where(y[:, 1] == 1, "on", "off")})
    stacker = RuleStacker(n_rules=0, random_state=0).fit(yes[:, :2], table)
    assert [label.name for label in stacker.model_.labels] == ["a", "b"]
    assert [classes.tolist() for classes in stacker.classes_] == [[0, 1], ["off", "on"]]
    single = RuleStacker(n_rules=0, random_state=0).fit(yes[:, :1], pyarrow.array([None, *y[1:, 0].tolist()]))
    assert single.predict(yes[:, :1]).shape == (600,)


def test_fitted_classifiers_that_know_other_classes(rows: Arrays) -> None:
    X, y = rows
    three = np.array(["low", "mid", "high"])[y.sum(axis=1).clip(max=2)]
    known = LogisticRegression(max_iter=1000).fit(X, three)
    part = three != "mid"
    classifier = fast(estimator=known, cv="prefit").fit(X[part], three[part])
    assert classifier.classes_.tolist() == ["high", "low", "mid"]
    assert classifier.predict_proba(X).shape == (150, 3)
    two = LogisticRegression(max_iter=1000).fit(X[part], three[part])
    assert fast(estimator=[two], cv="prefit").fit(X, three).predict_proba(X).shape == (150, 3)
    with pytest.raises(errors.ArgumentError, match="its fitted classifier knows"):
        fast(estimator=known, cv="prefit").fit(X, y[:, 0])


def test_no_calibration_was_the_default_calibration(equal_labels: Arrays, rows: Arrays) -> None:
    for estimator, data in ((RuleStacker(calibration=None), equal_labels), (fast(calibration=None), rows)):
        with pytest.raises(errors.ArgumentError, match="calibration is None; use 'none' for no calibration"):
            estimator.fit(*data)


# The order of yes and no


def test_yes_came_before_no_in_arrays(rows: Arrays) -> None:
    X, y = rows
    classifier = LogisticRegression(max_iter=1000).fit(X, y[:, 0])
    model = Model.parse("label rain\nlabel weather: sun, rainy\nrule 0.9: rain -> rainy")
    probabilities = classifier.predict_proba(X)
    posterior = model.predict({"rain": probabilities})
    np.testing.assert_array_equal(model.predict({"rain": probabilities[:, 1]}).values, posterior.values)
    assert model.labels[0].categories == ["no", "yes"] and model.labels[1].categories == ["sun", "rainy"]
    likely = probabilities[:, 1] > 0.9
    assert likely.any() and (posterior["rain"][likely, 1] > 0.5).all()
    np.testing.assert_array_equal(posterior.values[:, :2], posterior["rain"])
    best = model.predict({"rain": ["yes", "no"]}, "mpe")
    assert best.positions[:, 0, 0].tolist() == [1, 0] and [row["rain"] for row in best.assignments] == ["yes", "no"]
    whole = model.predict(np.array([[0.1, 0.9, 0.5, 0.5]]))
    expected = model.predict({"rain": [0.9], "weather": [[0.5, 0.5]]}).values
    np.testing.assert_allclose(whole.values, expected, atol=1e-12)
    assert Model.parse(model.text) == model and "label rain\n" in model.text
    named = model.predict({"rain": {"yes": [0.9], "no": [0.1]}})
    np.testing.assert_allclose(named["rain", "yes"], whole["rain"][:, 1])
    np.testing.assert_array_equal(named["weather", "rainy"], named["weather"][:, 1])
    with pytest.raises(errors.UnknownCategoryError, match="unknown category `maybe` of label `rain`"):
        named["rain", "maybe"]
    with pytest.raises(errors.UnknownCategoryError, match="unknown category `maybe` of label `rain`"):
        model.predict({"rain": {"maybe": [0.1]}})


def test_one_number_for_a_label_without_yes_was_the_first_category() -> None:
    model = Model.parse("label weather: sun, rain")
    with pytest.raises(errors.LengthError, match="sun, rain"):
        model.predict({"weather": [0.8]})


def test_priors_of_yes_no_labels_name_their_categories() -> None:
    for prior in (0.1, {"yes": 0.1, "no": 0.9}):
        model = Model.builder().label("rain", prior=prior).build()
        assert model.labels[0].prior == [0.9, 0.1] and "prior 0.1" in model.text
        assert model.edit().prior("rain", prior).build() == model
    label = model.labels[0]
    assert Model.builder().label(label.name, label.categories, prior=0.1).build() == model
    other = Model.builder().label("sky", ["clear", "dark"], prior={"dark": 0.2, "clear": 0.8}).build()
    assert other == Model.builder().label("sky", ["clear", "dark"], prior=[0.8, 0.2]).build()
    for wrong, message in (
        ([0.1, 0.9], "is a list, whose order is not clear"),
        ({"yes": 0.1}, "no number for category `no`"),
        ({"yes": 0.1, "no": 0.8, "maybe": 0.1}, "unknown category `maybe`"),
    ):
        with pytest.raises(errors.ArgumentError, match=message):
            Model.builder().label("rain", prior=wrong)
    with pytest.raises(errors.ArgumentError, match="one number"):
        Model.builder().label("sky", ["clear", "dark"], prior=0.5)


# Decisions


def test_predictions_violated_hard_rules() -> None:
    rng = np.random.default_rng(5)
    group = rng.integers(0, 3, 400)
    y = np.eye(3, dtype=int)[group]
    yes = np.clip(0.3 + 0.3 * y + 0.15 * rng.normal(size=y.shape), 0.02, 0.98)
    rules = "rule 1: exactly 1 of {a, b, c}"
    marginal = plain(rules, decision="marginal").fit(yes, y).predict(yes)
    auto = plain(rules).fit(yes, y)
    assert (auto.predict(yes).sum(axis=1) == 1).all() and not (marginal.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(auto.predict(yes), auto.predict_mpe(yes))
    soft = plain("rule 0.9: exactly 1 of {a, b, c}").fit(yes, y)
    proba = np.stack(soft.predict_proba(yes))
    np.testing.assert_array_equal(soft.predict(yes), proba.argmax(axis=2).T)
    with pytest.raises(errors.ArgumentError, match="unknown decision `vote`"):
        plain(decision="vote").fit(yes, y)


def test_balanced_classes_were_undone_by_calibration() -> None:
    rng = np.random.default_rng(6)
    y = (rng.random((600, 2)) < 0.1).astype(int)
    X = y @ np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]]) + rng.normal(size=(600, 3))
    base = LogisticRegression(class_weight="balanced")
    found = [fast(estimator=base, threshold=threshold).fit(X, y).predict(X).mean() for threshold in (None, 0.5, 0.1)]
    assert found[0] == found[1] < 0.08 < found[2]
    by_label = fast(estimator=base, threshold={"y1": 0.1}).fit(X, y)
    proba = by_label.predict_proba(X)
    expected = np.column_stack([proba[0][:, 1] > 0.5, proba[1][:, 1] >= 0.1])
    np.testing.assert_array_equal(by_label.predict(X), expected)
    hard = fast(estimator=base, threshold=0.1, rules="rule 1: y0 -> y1").fit(X, np.maximum(y, y[:, :1] * [0, 1]))
    np.testing.assert_array_equal(hard.predict(X)[:, 1], hard.predict_proba(X)[1][:, 1] >= 0.1)
    for settings, message in (
        ({"threshold": 0.2, "decision": "joint"}, "decides each label by itself"),
        ({"threshold": 1.5}, "threshold is 1.5"),
        ({"threshold": {"y9": 0.2}}, "threshold of `y9`, expected labels of two classes: y0, y1"),
    ):
        with pytest.raises(errors.ArgumentError, match=message):
            fast(**settings).fit(X, y).predict(X)


def test_settings_of_the_stacker_were_overridden(rows: Arrays) -> None:
    X, y = rows
    stacker = RuleStacker(n_rules=0, calibration="none", decision="joint", parsimony=1.0)
    fitted = RuleStackingClassifier(LogisticRegression(), stacker=stacker, cv=3, random_state=0).fit(X, y).stacker_
    assert (fitted.n_rules, fitted.calibration, fitted.decision, fitted.parsimony) == (0, "none", "joint", 1.0)
    own = fast(n_rules=2, calibration="platt", stacker=stacker).fit(X, y).stacker_
    assert (own.n_rules, own.calibration) == (2, "platt")
    assert "stacker__parsimony" in fast(stacker=stacker).get_params()


def test_groups_were_ignored_if_cv_is_a_number(rows: Arrays) -> None:
    X, y = rows
    groups = np.arange(len(X)) // 10
    by_number = fast(cv=3).fit(X, y, groups=groups)
    by_group = fast(cv=GroupKFold(3)).fit(X, y, groups=groups)
    np.testing.assert_allclose(np.stack(by_number.predict_proba(X)), np.stack(by_group.predict_proba(X)), atol=1e-8)


# Features


def test_features_that_only_the_classifiers_understand_were_refused(rows: Arrays) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = rows
    holes = X.copy()
    holes[::3, 0] = np.nan
    assert fast(estimator=HistGradientBoostingClassifier(max_iter=5)).fit(holes, y).predict(holes).shape == y.shape
    with pytest.raises(ValueError, match="NaN"):
        fast().fit(holes, y)
    frame = pandas.DataFrame({"number": X[:, 0], "word": np.where(X[:, 1] > X[:, 1].mean(), "up", "down")})
    encode = make_column_transformer((OneHotEncoder(), ["word"]), remainder="passthrough")
    classifier = fast(estimator=make_pipeline(encode, LogisticRegression(max_iter=1000))).fit(frame, y)
    assert classifier.predict(frame).shape == y.shape and classifier.feature_names_in_.tolist() == ["number", "word"]
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(frame[["word", "number"]])
    frame["word"] = frame["word"].astype("category")
    boosting = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    assert fast(estimator=boosting).fit(frame, y).predict(frame).shape == y.shape


def test_documents_were_refused() -> None:
    y = np.random.default_rng(0).integers(0, 2, (80, 2))
    documents = [f"{'rain' if rain else 'sun'} {'wet' if wet else 'dry'}" for rain, wet in y]
    for X in (documents, np.array(documents)):
        classifier = fast(estimator=make_pipeline(TfidfVectorizer(), LogisticRegression())).fit(X, y)
        assert classifier.score(X, y) == 1.0


def test_a_fitted_multi_label_classifier_was_refused(rows: Arrays) -> None:
    X, y = rows
    known = MLPClassifier(max_iter=20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known.fit(X, y)
    assert known.predict_proba(X).shape == y.shape
    assert fast(estimator=known, cv="prefit").fit(X, y).predict(X).shape == y.shape


def test_weights_were_ignored_in_silence(rows: Arrays) -> None:
    X, y = rows
    weights = np.linspace(0.5, 2, len(X))
    with pytest.warns(PrslWarning, match="KNeighborsClassifier takes no sample_weight"):
        fast(estimator=KNeighborsClassifier()).fit(X, y, sample_weight=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrslWarning)
        alone = fast(estimator=LogisticRegression(max_iter=1000)).fit(X, y, sample_weight=weights)
        in_pipeline = fast(estimator=make_pipeline(StandardScaler(), LogisticRegression())).fit(X, y, sample_weight=weights)
    unweighted = fast(estimator=make_pipeline(StandardScaler(), LogisticRegression())).fit(X, y)
    assert not np.allclose(np.stack(in_pipeline.beliefs(X)), np.stack(unweighted.beliefs(X)))
    assert alone.score(X, y) > 0.3


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_beliefs_in_single_and_half_precision_did_not_sum_to_one(dtype: type) -> None:
    rng = np.random.default_rng(3)
    beliefs = rng.dirichlet(np.ones(7), 200)
    truth = beliefs.argmax(axis=1)
    model = Model.parse("label digit: zero, one, two, three, four, five, six")
    narrow = beliefs.astype(dtype)
    names = model.labels[0].categories
    forms = [{"digit": narrow}, narrow, {"digit": dict(zip(names, narrow.T, strict=True))}]
    pandas = pytest.importorskip("pandas")
    forms.append(pandas.DataFrame(narrow, columns=[f"digit={name}" for name in names]))
    for form in forms:
        found = model.predict(form)["digit"]
        np.testing.assert_allclose(found, beliefs, atol=2e-3)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
    stacker = RuleStacker(n_rules=0, calibration="none", random_state=0).fit([narrow], truth)
    assert stacker.predict([narrow]).shape == (200,)
    with pytest.raises(errors.SumError):
        model.predict({"digit": (1.1 * beliefs).astype(dtype)})
    with pytest.raises(errors.SumError):
        model.predict({"digit": narrow.astype(np.float64) * 1.0005})


def test_calibration_of_many_classes_took_minutes() -> None:
    rng = np.random.default_rng(0)
    truth = np.concatenate([np.arange(100), rng.integers(0, 100, 400)])
    beliefs = rng.dirichlet(np.full(100, 0.2), 500) * 0.5
    beliefs[np.arange(500), truth] += 0.5
    began = time.perf_counter()
    stacker = RuleStacker(n_rules=0, random_state=0).fit([beliefs], truth)
    assert time.perf_counter() - began < 60
    assert stacker.model_.labels[0].calibrator == "temperature" and stacker.score([beliefs], truth) > 0.8
    model = Model.builder().label("large", [f"c{at}" for at in range(100)]).label("small").build()
    began = time.perf_counter()
    timid = np.where(truth % 2 == 1, 0.6, 0.4)
    calibrated = model.calibrate({"large": beliefs, "small": timid}, {"large": truth, "small": truth % 2})
    assert time.perf_counter() - began < 20
    assert calibrated.labels[0].calibrator == "temperature" and calibrated.labels[1].calibrator is not None


# Conventions of scikit-learn


def test_weights_of_rows_equal_repeated_rows(equal_labels: Arrays) -> None:
    yes, y = equal_labels[0][:200], equal_labels[1][:200]
    counts = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = RuleStacker(random_state=0).fit(yes, y, sample_weight=counts)
    repeated = RuleStacker(random_state=0).fit(yes.repeat(counts, axis=0), y.repeat(counts, axis=0))
    assert [rule.text for rule in weighted.model_.rules] == [rule.text for rule in repeated.model_.rules]
    expected = np.stack(repeated.predict_proba(yes))
    np.testing.assert_allclose(np.stack(weighted.predict_proba(yes)), expected, atol=1e-9)
    unweighted = RuleStacker(random_state=0).fit(yes, y)
    assert not np.allclose(np.stack(unweighted.predict_proba(yes)), expected, atol=1e-4)
    with pytest.raises(ValueError, match="at least one non-zero"):
        RuleStacker().fit(yes, y, sample_weight=np.zeros(len(y)))


def test_the_stacker_had_no_number_of_features(equal_labels: Arrays) -> None:
    yes, y = equal_labels
    both = [np.column_stack([1 - p, p]) for p in yes.T]
    forms = [(yes, 3), (yes.tolist(), 3), (both, 6), (np.column_stack(both), 6), ({"a": yes[:, 0], "b": both[1]}, 3)]
    forms.append(({"a": {"yes": yes[:, 0]}}, 1))
    for form, n_features in forms:
        assert plain().fit(form, y).n_features_in_ == n_features


def test_searches_reached_no_settings_of_listed_classifiers(rows: Arrays) -> None:
    X, y = rows
    pair = [("lr", LogisticRegression(max_iter=1000)), ("nb", GaussianNB())]
    search = GridSearchCV(fast(estimator=pair), {"lr__C": [1e-6, 1.0], "nb": [GaussianNB(), None]}, cv=2)
    assert {"lr__C", "nb__var_smoothing", "lr", "nb"} <= set(fast(estimator=pair).get_params())
    search.set_params(param_grid={"lr__C": [1e-6, 1.0]})
    search.fit(X, y)
    assert search.best_params_["lr__C"] in (1e-6, 1.0)
    classifier = fast(estimator=pair).set_params(lr__C=0.5).fit(X, y)
    assert classifier.estimators_[0][0].estimator.C == 0.5
    assert classifier.predict(X).shape == y.shape


def test_metadata_is_routed_to_the_classifiers(rows: Arrays) -> None:
    X, y = rows
    weights = np.linspace(0.1, 3, len(X))
    expected = fast().fit(X, y, sample_weight=weights)
    with pytest.raises(TypeError, match="enable metadata routing"):
        fast().fit(X, y, magic=1)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        routed = fast(estimator=inner).set_fit_request(sample_weight=True).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(np.stack(routed.predict_proba(X)), np.stack(expected.predict_proba(X)), atol=1e-8)
        inner = LogisticRegression().set_fit_request(sample_weight=False)
        partly = fast(estimator=inner).set_fit_request(sample_weight=True).fit(X, y, sample_weight=weights)
        assert not np.allclose(np.stack(partly.beliefs(X)), np.stack(expected.beliefs(X)))
        pipeline = make_pipeline(StandardScaler(), fast(estimator=GaussianNB().set_fit_request(sample_weight=True)))
        pipeline[-1].set_fit_request(sample_weight=True)
        pipeline[0].set_fit_request(sample_weight=False)
        assert pipeline.fit(X, y, sample_weight=weights).predict(X).shape == y.shape
        grouped = fast(cv=GroupKFold(3)).set_fit_request(groups=True).fit(X, y, groups=np.arange(len(X)) // 5)
        assert grouped.predict(X).shape == y.shape


def test_a_model_needed_rows_to_become_an_estimator(equal_labels: Arrays) -> None:
    yes, y = equal_labels
    fitted = RuleStacker(labels=["a", "b", "c"], random_state=0).fit(yes, y)
    again = RuleStacker.from_model(fitted.model_)
    np.testing.assert_array_equal(np.stack(again.predict_proba(yes)), np.stack(fitted.predict_proba(yes)))
    np.testing.assert_array_equal(again.predict(yes), fitted.predict(yes))
    assert again.score(yes, y) == fitted.score(yes, y)
    assert again.partial_fit(yes, y).learned_.recipe == "clauses"
    mixed = Model.parse('label size: small, big\nlabel digit: "10", "9"\nlabel secret latent\nrule 0.9: small -> secret')
    stacker = RuleStacker.from_model(mixed)
    assert [classes.tolist() for classes in stacker.classes_] == [["big", "small"], [9, 10]]
    assert stacker.predict([np.array([[0.9, 0.1]]), np.array([[0.2, 0.8]])]).tolist() == [["big", 10]]
