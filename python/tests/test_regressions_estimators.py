"""Mistakes of earlier versions in what the estimators accept and decide, each named after what went wrong."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from estimators import fast, plain

from prsl import Model, PrslWarning, RuleStacker, RuleStackingClassifier, errors

Arrays = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def rows() -> Arrays:
    return make_multilabel_classification(n_samples=150, n_features=6, n_classes=3, random_state=2)


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
