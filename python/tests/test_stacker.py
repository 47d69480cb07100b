"""Rules learned from beliefs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from prsl import Model, PrslWarning, RuleStacker, errors
from prsl.metrics import joint_accuracy

FAST = {"max_iter": 300, "random_state": 0}


def test_rules_are_found_and_help(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    train, test = slice(0, 400), slice(400, None)
    stacker = RuleStacker(labels=["left", "right", "other"], **FAST).fit(yes[train], y[train])
    alone = joint_accuracy(y[test], (yes[test] > 0.5).astype(int))
    assert stacker.score(yes[test], y[test]) > alone + 0.1
    assert stacker.learned_.validation > stacker.learned_.base_alone + 0.2
    assert stacker.n_iter_ > 0 and len(stacker.learned_.gains) == len(stacker.model_.rules)
    found = stacker.predict_mpe(yes[test])
    assert (found[:, 0] == found[:, 1]).mean() > 0.95
    assert stacker.joint_log_likelihood(yes[test], y[test]).mean() > -1.2


def test_beliefs_in_every_form(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    pandas = pytest.importorskip("pandas")
    yes, y = equal_labels
    both = [np.column_stack([1 - p, p]) for p in yes.T]
    stacker = RuleStacker(labels=["a", "b", "c"], **FAST).fit(both, y)
    expected = stacker.predict_proba(both)
    frame = pandas.DataFrame({"a=yes": yes[:, 0], "b=yes": yes[:, 1], "c=yes": yes[:, 2]})
    for form in (yes, dict(zip("abc", both, strict=True)), np.column_stack(both), frame):
        again = RuleStacker(labels=["a", "b", "c"], **FAST).fit(form, y)
        for found, wanted in zip(again.predict_proba(form), expected, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_conventions_for_one_label_and_for_several() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 300)
    beliefs = rng.dirichlet(np.ones(3), 300) * 0.5
    beliefs[np.arange(300), truth] += 0.5
    names = np.array(["cat", "dog", "eel"])
    single = RuleStacker(**FAST).fit([beliefs], names[truth])
    assert single.predict_proba([beliefs]).shape == (300, 3) and single.classes_.tolist() == ["cat", "dog", "eel"]
    assert single.predict([beliefs]).dtype.kind == "U"
    two = RuleStacker(**FAST).fit([beliefs, beliefs[:, :2] / beliefs[:, :2].sum(axis=1, keepdims=True)], np.column_stack([names[truth], np.where(truth == 0, "x", "y")]))
    proba = two.predict_proba([beliefs, beliefs[:, :2] / beliefs[:, :2].sum(axis=1, keepdims=True)])
    assert [values.shape for values in proba] == [(300, 3), (300, 2)] and isinstance(two.classes_, list)
    for values in proba:
        np.testing.assert_allclose(values.sum(axis=1), 1.0)
    predicted = two.predict([beliefs, None])
    for j in range(2):
        found = two.classes_[j][two.predict_proba([beliefs, None])[j].argmax(axis=1)]
        np.testing.assert_array_equal(predicted[:, j], found)
    assert not hasattr(two, "decision_function")


def test_missing_truths_and_expert_rules(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    holes = y.astype(float)
    holes[np.random.default_rng(2).random(y.shape) < 0.3] = np.nan
    stacker = RuleStacker(labels=["a", "b", "c"], rules=[(0.9, "a <-> b"), "rule 0.9 opposite: a <-> !c"], **FAST)
    stacker.fit(yes, holes)
    assert [rule.text for rule in stacker.model_.rules[:2]] == ["a <-> b", "a <-> !c"]
    assert stacker.predict(yes).dtype.kind == "i" and set(np.unique(stacker.predict(yes))) == {0, 1}
    assert stacker.score(yes, holes) > 0.8
    empty = holes.copy()
    empty[:, 1] = np.nan
    with pytest.raises(errors.ExamplesError, match="label `b` has no known value"):
        RuleStacker(labels=["a", "b", "c"], **FAST).fit(yes, empty)
    with pytest.raises(ValueError):
        RuleStacker(**FAST).fit(yes, np.where(np.isnan(holes), np.inf, holes))


def test_zero_shot_labels_come_with_the_rules(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    rules = "label alarm latent\nrule 0.95: alarm <-> a & b"
    stacker = RuleStacker(labels=["a", "b", "c"], rules=rules, typical=False, **FAST).fit(yes, y)
    alarm = stacker.posterior(yes)["alarm"][:, 0]
    assert alarm[y[:, 0] == 1].mean() > alarm[y[:, 0] == 0].mean() + 0.3
    assert len(stacker.predict_proba(yes)) == 3


def test_a_model_as_rules(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    model = Model.parse("label a\nlabel b\nlabel c\nrule 0.9: a <-> b")
    stacker = RuleStacker(labels=["a", "b", "c"], rules=model, n_rules=0, calibration="none", **FAST).fit(yes, y)
    assert stacker.model_ == model
    with pytest.raises(errors.ArgumentError, match="no label `d`"):
        RuleStacker(labels=["a", "b", "d"], rules=model).fit(yes, y)


def test_the_same_seed_is_the_same_model(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    first = RuleStacker(n_jobs=1, **FAST).fit(yes, y)
    assert RuleStacker(n_jobs=2, **FAST).fit(yes, y).model_ == first.model_
    assert clone(first).fit(yes, y).model_ == first.model_
    again = pickle.loads(pickle.dumps(first))
    assert again.model_ == first.model_ and again.learned_ == first.learned_
    np.testing.assert_array_equal(np.stack(again.predict_proba(yes)), np.stack(first.predict_proba(yes)))


def test_partial_fit(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    stacker = RuleStacker(**FAST).partial_fit(yes[:200], y[:200], classes=[[0, 1]] * 3)
    before, steps = stacker.score(yes[400:], y[400:]), stacker.n_iter_
    stacker.partial_fit(yes[200:400], y[200:400])
    assert stacker.n_iter_ > steps and stacker.score(yes[400:], y[400:]) >= before - 0.05


def test_top_assignments_and_joint_decisions(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    stacker = RuleStacker(decision="joint", **FAST).fit(yes, y)
    np.testing.assert_array_equal(stacker.predict(yes), stacker.predict_mpe(yes))
    found, probabilities = stacker.predict_top(yes[:5], 3)
    assert found.shape == (5, 3, 3) and (np.diff(probabilities, axis=1) <= 1e-12).all()
    np.testing.assert_array_equal(found[:, 0], stacker.predict_mpe(yes[:5]))
    assert "label" in str(stacker.explain(yes, 3)) or stacker.explain(yes, 3).labels


def test_impossible_rows_cause_a_warning(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    stacker = RuleStacker(labels=["a", "b", "c"], rules="rule 1: a <-> b", n_rules=0, calibration="none", **FAST).fit(yes, y)
    contradiction = np.array([[1.0, 0.0, 0.5], [0.7, 0.7, 0.5]])
    with pytest.warns(PrslWarning, match="1 of 2 rows are impossible"):
        proba = stacker.predict_proba(contradiction)
    assert np.isnan(proba[0][0]).all() and not np.isnan(proba[0][1]).any()


def test_the_paper_s_recipe(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    stacker = RuleStacker(recipe="paper", n_rules=4, calibration="platt", labels_per_rule=2, learning_rate=0.02, **FAST)
    stacker.fit(yes[:400], y[:400], validation=(yes[400:], y[400:]))
    assert all(len(rule.labels) <= 2 for rule in stacker.model_.rules)
    assert stacker.learned_.validation >= stacker.learned_.base_alone - 1e-9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"recipe": "magic"}, "unknown recipe `magic`"),
        ({"calibration": "magic"}, "unknown calibration `magic`"),
        ({"gradients": "magic"}, "unknown gradients"),
        ({"n_rules": -1}, "n_rules is -1"),
        ({"validation_fraction": 2.0}, "validation_fraction"),
        ({"labels": ["a"]}, "1 names for 3 labels"),
        ({"rules": "rule 0.9: nobody"}, "nobody"),
    ],
)
def test_errors(equal_labels: tuple[np.ndarray, np.ndarray], settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RuleStacker(**settings).fit(*equal_labels)


def test_mismatched_beliefs_and_truths(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    for X, truth, message in [
        (yes[:, :2], y, "X has 2 columns, expected 6"),
        (yes[:10], y, "inconsistent numbers of samples"),
        (yes + 1, y, "expected a number from 0 to 1"),
        (yes[:0], y[:0], "no known value"),
    ]:
        with pytest.raises(ValueError, match=message):
            RuleStacker(**FAST).fit(X, truth)
    with pytest.raises(errors.UnknownCategoryError):
        RuleStacker(**FAST).fit(yes, y).joint_log_likelihood(yes, y + 5)


def test_interrupts_reach_the_user(equal_labels: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(RuleStacker, "_observer", lambda self: interrupt)
    with pytest.raises(KeyboardInterrupt):
        RuleStacker(**FAST).fit(*equal_labels)


def test_progress_is_shown(equal_labels: tuple[np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]) -> None:
    RuleStacker(verbose=1, max_iter=40, random_state=0).fit(*equal_labels)
    assert "validation" in capsys.readouterr().err


def test_a_label_that_never_occurs_is_kept(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    never = np.column_stack([y[:, :2], np.zeros(len(y), dtype=int)])
    beliefs = np.column_stack([yes[:, :2], np.zeros(len(y))])
    stacker = RuleStacker(**FAST).fit(beliefs, never)
    assert [classes.tolist() for classes in stacker.classes_] == [[0, 1]] * 3
    proba = stacker.predict_proba(beliefs)[2]
    assert proba.shape == (len(y), 2) and (proba[:, 1] > 0).all() and (proba[:, 1] < 0.01).all()
    assert np.isfinite(stacker.joint_log_likelihood(beliefs, y)).all()
