"""Scores with missing truths, and displays."""

from __future__ import annotations

import numpy as np
import pytest

from prsl import Model, RuleStacker, errors, metrics
from prsl.displays import InfluenceDisplay, LearningCurveDisplay, ReliabilityDisplay, RuleGraphDisplay

NAN = float("nan")


def test_by_hand() -> None:
    truth = [[1, 0], [1, NAN], [NAN, NAN], [0, 0]]
    said = [[1, 0], [1, 1], [0, 0], [1, 1]]
    assert metrics.joint_accuracy(truth, said) == pytest.approx(2 / 3)
    assert metrics.hamming(truth, said) == pytest.approx(2 / 5)
    assert metrics.joint_accuracy(truth, said, sample_weight=[1, 1, 1, 0]) == 1.0
    p = [np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1], [1.0, 0.0]]), np.array([[0.6, 0.4]] * 4)]
    wanted = np.mean([np.log(0.8) + np.log(0.6), np.log(0.5), 0.0 + np.log(0.6)])
    assert metrics.label_log_likelihood(truth, p) == pytest.approx(wanted)
    assert metrics.joint_log_likelihood([-1.0, NAN, -np.inf]) == pytest.approx((-1.0 + metrics.IMPOSSIBLE) / 2)
    assert np.isnan(metrics.joint_accuracy([[NAN]], [[1]]))
    with pytest.raises(errors.ArgumentError, match="shape"):
        metrics.joint_accuracy([[1, 0]], [[1]])
    with pytest.raises(errors.ArgumentError, match="unknown scorer"):
        metrics.scorer("magic")


def test_strings() -> None:
    truth = np.array([["cat", "x"], ["dog", None]], dtype=object)
    assert metrics.joint_accuracy(truth, np.array([["cat", "x"], ["dog", "y"]])) == 1.0
    p = [np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[0.5, 0.5], [0.5, 0.5]])]
    found = metrics.label_log_likelihood(truth, p, classes=[np.array(["cat", "dog"]), np.array(["x", "y"])])
    assert found == pytest.approx((np.log(0.9) + np.log(0.5) + np.log(0.7)) / 2)


def test_a_class_that_is_never_true_shifted_the_others() -> None:
    p = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    assert metrics.label_log_likelihood([2, 0], p) == pytest.approx((np.log(0.7) + np.log(0.6)) / 2)
    with pytest.raises(errors.ArgumentError, match="3 classes of label 0, and 2 classes in its truths; give `classes`"):
        metrics.label_log_likelihood(["cat", "eel"], p)
    found = metrics.label_log_likelihood(["cat", "eel"], p, classes=["cat", "dog", "eel"])
    assert found == pytest.approx((np.log(0.1) + np.log(0.1)) / 2)


def test_yes_and_no_are_classes() -> None:
    p = np.array([[0.2, 0.8], [0.3, 0.7]])
    for truth in (["yes", "yes"], [1, 1], [True, True], np.array([1.0, 1.0])):
        assert metrics.label_log_likelihood(truth, p) == pytest.approx((np.log(0.8) + np.log(0.7)) / 2)


def test_the_same_as_the_library() -> None:
    rng = np.random.default_rng(11)
    model = Model.parse("label a\nlabel b: x, y, z\nlabel c\nrule 0.8: a -> x\nrule 0.9: c <-> z")
    beliefs = [rng.dirichlet(np.ones(n), 200) for n in (2, 3, 2)]
    truths = np.column_stack([rng.integers(0, n, 200) for n in (2, 3, 2)])
    truths[rng.random(truths.shape) < 0.2] = -1
    scores = model.evaluate(beliefs, truths)
    posterior = model.predict(beliefs)
    proba = posterior.marginals
    y = truths.astype(float)
    y[truths < 0] = NAN
    classes = [np.array([0, 1]), np.array([0, 1, 2]), np.array([0, 1])]
    said = np.column_stack([values.argmax(axis=1) for values in proba])
    assert metrics.joint_accuracy(y, said) == pytest.approx(scores["joint_accuracy_marginals"])
    assert metrics.hamming(y, said) == pytest.approx(scores["hamming_loss"])
    assert metrics.label_log_likelihood(y, proba, classes=classes) == pytest.approx(scores["mean_label_log_likelihood"])
    found = metrics.expected_calibration_error(y, proba, classes=classes)
    assert found == pytest.approx(scores["expected_calibration_error"])
    joint = metrics.joint_log_likelihood(model.joint_log_likelihood(beliefs, truths))
    assert joint == pytest.approx(scores["mean_joint_log_likelihood"])


def test_displays(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    stacker = RuleStacker(labels=["a", "b", "c"], random_state=0, rules="rule 0.9: a <-> b").fit(yes, y)
    reliability = ReliabilityDisplay.from_estimator(stacker, yes, y)
    assert reliability.curves["with rules"][2].sum() == y.size
    curve = LearningCurveDisplay.from_estimator(stacker)
    assert len(curve.ax_.lines) == 2 and len(curve.ax_.lines[0].get_xdata()) == 1 + len(stacker.learned_.path)
    paper = RuleStacker(recipe="paper", n_rules=2, max_iter=100, random_state=0).fit(yes, y)
    assert len(LearningCurveDisplay.from_estimator(paper).ax_.lines) == 3
    influence = InfluenceDisplay.from_estimator(stacker, yes, n_rows=5)
    assert len(influence.influences) == min(15, len(stacker.model_.rules))
    assert InfluenceDisplay.from_predictions(stacker.explain(yes, 0)).influences[0][1] >= 0
    graph = RuleGraphDisplay.from_estimator(stacker)
    assert (0, 1) in graph.edges and graph.figure_ is not None
    with pytest.raises(errors.ArgumentError):
        LearningCurveDisplay.from_estimator(RuleStacker())


def test_label_scores_are_those_of_scikit_learn() -> None:
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    labels = "label rain\nlabel wet\nlabel sky: sun, cloud, fog\n"
    model = Model.parse(labels + "rule 0.9: rain -> wet\nrule 0.8: rain -> cloud | fog")
    rng = np.random.default_rng(3)
    beliefs = {
        "rain": rng.uniform(0.05, 0.95, 200),
        "wet": rng.uniform(0.05, 0.95, 200),
        "sky": rng.dirichlet([1, 1, 1], 200),
    }
    truths: dict[str, list[object]] = {
        "rain": [None if row % 7 == 0 else bool(rng.random() < p) for row, p in enumerate(beliefs["rain"])],
        "wet": [bool(rng.random() < p) for p in beliefs["wet"]],
        "sky": [str(rng.choice(["sun", "cloud", "fog"], p=p)) for p in beliefs["sky"]],
    }
    posterior = model.predict(beliefs)
    for scores in model.evaluate(beliefs, truths)["labels"]:
        name = scores["label"]
        known = np.array([truth is not None for truth in truths[name]])
        label = next(label for label in model.labels if label.name == name)
        probabilities = np.asarray(posterior[name])[known]
        if probabilities.ndim == 1:
            probabilities = np.column_stack([1 - probabilities, probabilities])
        wanted = [truth for truth in truths[name] if truth is not None]
        codes = np.array([int(truth) if isinstance(truth, bool) else label.categories.index(truth) for truth in wanted])
        assert scores["known"] == known.sum()
        loss = sklearn_metrics.log_loss(codes, probabilities, labels=range(len(label.categories)))
        assert scores["log_loss"] == pytest.approx(loss, rel=1e-9)
        predicted = probabilities.argmax(axis=1)
        assert scores["accuracy"] == pytest.approx((predicted == codes).mean())
        for scored in scores["classes"]:
            category = label.categories.index(scored["category"])
            is_true, is_predicted = codes == category, predicted == category
            auc = sklearn_metrics.roc_auc_score(is_true, probabilities[:, category])
            assert scored["auc"] == pytest.approx(auc, rel=1e-9)
            assert scored["f1"] == pytest.approx(sklearn_metrics.f1_score(is_true, is_predicted))
            assert scored["sensitivity"] == pytest.approx(sklearn_metrics.recall_score(is_true, is_predicted))
            assert scored["specificity"] == pytest.approx(sklearn_metrics.recall_score(~is_true, ~is_predicted))


def test_differences_between_models_are_paired() -> None:
    rules = "label rain\nlabel wet\nrule 0.9: rain -> wet"
    model, alone = Model.parse(rules), Model.parse("label rain\nlabel wet")
    rng = np.random.default_rng(5)
    beliefs = {"rain": rng.uniform(0.1, 0.9, 50), "wet": rng.uniform(0.1, 0.9, 50)}
    truths = {"rain": rng.integers(0, 2, 50), "wet": rng.integers(0, 2, 50)}
    found = alone.compare(model, beliefs, truths)
    score = "mean_joint_log_likelihood"
    first, second = (each.evaluate(beliefs, truths)[score] for each in (alone, model))
    assert (found[score]["first"], found[score]["second"]) == (first, second)
    low, high = found[score]["interval"]
    assert low <= second - first <= high
    logs = [each.joint_log_likelihood(beliefs, truths) for each in (alone, model)]
    row, before, after = found["rows"][0]
    assert (before, after) == pytest.approx((logs[0][row], logs[1][row]))
    assert abs(after - before) == pytest.approx(np.abs(logs[1] - logs[0]).max())


def test_calibrators_are_fitted_beside_rules_unless_alone() -> None:
    model = Model.parse("label rain\nlabel wet\nrule 1: rain -> wet")
    rng = np.random.default_rng(7)
    rain = rng.random(300) < 0.4
    wet = rain | (rng.random(300) < 0.3)
    odds = {"rain": np.where(rain, 1, -1) + rng.normal(size=300), "wet": np.where(wet, 1, -1) + rng.normal(size=300)}
    beliefs = {name: 1 / (1 + np.exp(-3 * each)) for name, each in odds.items()}
    truths = {"rain": rain, "wet": wet}
    together, alone = model.calibrate(beliefs, truths), model.calibrate(beliefs, truths, alone=True)
    score = "mean_joint_log_likelihood"
    raw, best, other = (each.evaluate(beliefs, truths)[score] for each in (model, together, alone))
    assert raw < best and other < best
