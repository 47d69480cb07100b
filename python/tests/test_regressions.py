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
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, ShuffleSplit, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB

from estimators import fast, plain

import prsl
from prsl import Model, PrslWarning, RuleStacker, errors

Arrays = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def rows() -> Arrays:
    return make_multilabel_classification(n_samples=150, n_features=6, n_classes=3, random_state=2)


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
    levels = pandas.MultiIndex.from_tuples([("x", 1), ("y", 2)], names=["worker", None])
    of_levels = Model.parse(warehouse).predict(beliefs.set_index(levels))
    assert of_levels.to_arrow().column_names[:3] == of_levels.to_polars().columns[:3] == ["worker", "level_1", "activity=walking"]
    unnamed = Model.parse(warehouse).predict({"feet": [[0.2, 0.8]]})
    assert unnamed.to_polars().columns == unnamed.to_arrow().column_names == list(unnamed.to_pandas().columns)
    yes, y = equal_labels
    named = pandas.DataFrame({"a=yes": yes[:, 0], "b=yes": yes[:, 1], "c=yes": yes[:, 2]}).set_index(np.arange(600) + 7)
    assert plain().fit(yes, y).posterior(named).to_pandas().index.tolist()[:2] == [7, 8]
