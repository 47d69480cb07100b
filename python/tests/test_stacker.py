"""Rules learned from beliefs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from prsl import Addition, Model, PrslWarning, RuleStacker, errors
from prsl.metrics import joint_accuracy

FAST = {"random_state": 0}


def yes_no(yes: np.ndarray) -> dict[str, np.ndarray]:
    """Probabilities of yes of the labels a, b and c."""
    return dict(zip("abc", yes.T, strict=True))


def test_rules_are_found_and_help(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    train, test = slice(0, 400), slice(400, None)
    stacker = RuleStacker(labels=["left", "right", "other"], **FAST).fit(yes[train], y[train])
    alone = joint_accuracy(y[test], (yes[test] > 0.5).astype(int))
    assert stacker.score(yes[test], y[test]) > alone + 0.1
    learned = stacker.learned_
    assert learned.log_likelihood > learned.base_alone + 0.2 and learned.base_alone > learned.beliefs_alone
    assert stacker.n_iter_ > 0 and learned.recipe == "clauses" and not learned.interrupted
    found = stacker.predict_mpe(yes[test])
    assert (found[:, 0] == found[:, 1]).mean() > 0.95
    assert stacker.joint_log_likelihood(yes[test], y[test]).mean() > -1.2


def test_the_path_and_the_notes_of_rules(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    stacker = RuleStacker(labels=["a", "b", "c"], rules=[(0.9, "a -> b")], **FAST)
    learned = stacker.fit(yes[:400], y[:400], validation=(yes[400:], y[400:])).learned_
    assert learned.path and all(isinstance(addition, Addition) for addition in learned.path)
    for addition in learned.path:
        assert addition.rules and addition.gain > addition.price > 0
        assert all(isinstance(rule, str) and gain > 0 for rule, gain in addition.runners_up)
    values = [learned.base_alone, *(addition.log_likelihood for addition in learned.path)]
    assert (np.diff(values) > 0).all()
    expert, *others = stacker.model_.rules
    assert expert.learned is None and all(rule.learned is not None for rule in others)
    assert learned.gains == [None, *(rule.learned.gain for rule in others)]
    assert stacker.model_.rules[1].text in [rule for addition in learned.path for rule in addition.rules]
    mean = stacker.joint_log_likelihood(yes[400:], y[400:]).mean()
    assert learned.validation == pytest.approx(mean) and learned.n_impossible == 0 and learned.curve == []
    assert RuleStacker(**FAST).fit(yes, y).learned_.validation is None


def test_parsimony_and_the_number_of_rules(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels

    def rules(**settings: object) -> int:
        return len(RuleStacker(**settings, **FAST).fit(yes, y).model_.rules)

    assert rules(n_rules=1) == 1 and rules(parsimony=1e6) == rules(n_rules=0) == 0
    assert rules(parsimony="explain") == rules(parsimony=1.0) <= rules(parsimony="predict")


def test_rows_that_given_rules_exclude(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    wrong = y.copy()
    wrong[:5, 1] = 1 - wrong[:5, 0]
    stacker = RuleStacker(labels=["a", "b", "c"], rules="rule 1: a <-> b", **FAST)
    with pytest.warns(PrslWarning, match="exclude the truths of 5 rows"):
        stacker.fit(yes, wrong)
    assert stacker.learned_.n_impossible == 5


def test_beliefs_in_every_form(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    pandas = pytest.importorskip("pandas")
    yes, y = equal_labels
    both = [np.column_stack([1 - p, p]) for p in yes.T]
    stacker = RuleStacker(labels=["a", "b", "c"], **FAST).fit(both, y)
    expected = stacker.predict_proba(both)
    frame = pandas.DataFrame({"a=yes": yes[:, 0], "b=yes": yes[:, 1], "c=yes": yes[:, 2]})
    by_category = {name: {"yes": p, "no": 1 - p} for name, p in zip("abc", yes.T, strict=True)}
    for form in (yes, dict(zip("abc", both, strict=True)), by_category, np.column_stack(both), frame):
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
    alarm = stacker.posterior(yes)["alarm"][:, 1]
    assert alarm[y[:, 0] == 1].mean() > alarm[y[:, 0] == 0].mean() + 0.3
    assert len(stacker.predict_proba(yes)) == 3


def test_a_model_as_rules(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    model = Model.parse("label a\nlabel b\nlabel c\nrule 0.9: a <-> b")
    stacker = RuleStacker(labels=["a", "b", "c"], rules=model, n_rules=0, calibration="none", **FAST).fit(yes, y)
    # Learning only adds priors, which apply to missing beliefs.
    assert [(rule.text, rule.probability) for rule in stacker.model_.rules] == [("a <-> b", 0.9)]
    np.testing.assert_allclose(np.stack(stacker.predict_proba(yes))[:, :, 1].T, np.column_stack([
        model.predict(yes_no(yes))[label][:, 1] for label in "abc"
    ]))
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
    before, n_iter, rules = stacker.score(yes[400:], y[400:]), stacker.n_iter_, stacker.model_.rules
    stacker.partial_fit(yes[200:400], y[200:400])
    assert stacker.n_iter_ > n_iter and stacker.score(yes[400:], y[400:]) >= before - 0.05
    kept = stacker.model_.rules[: len(rules)]
    assert [(rule.text, rule.probability) for rule in kept] == [(rule.text, rule.probability) for rule in rules]
    capped = RuleStacker(n_rules=1, **FAST).partial_fit(yes[:200], y[:200]).partial_fit(yes[200:], y[200:])
    assert len(capped.model_.rules) == 1
    with pytest.raises(ValueError, match="cannot continue"):
        RuleStacker(recipe="paper", n_rules=1, max_iter=20).partial_fit(yes, y).partial_fit(yes, y)


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
    constants = {"betas": (0.8, 0.99), "clip": 1e-4, "probability": 0.99, "epsilon": 1e-3, "alpha": 10.0, "lam": 0.9}
    settings = {"recipe": "paper", "n_rules": 4, "calibration": "platt", "learning_rate": 0.02, "max_iter": 300}
    stacker = RuleStacker(labels_per_rule=2, **settings, **constants, **FAST)
    stacker.fit(yes[:400], y[:400], validation=(yes[400:], y[400:]))
    learned = stacker.learned_
    assert all(len(rule.labels) <= 2 and rule.probability == 0.99 for rule in stacker.model_.rules)
    assert learned.recipe == "paper" and learned.path == [] and stacker.n_iter_ == learned.curve[-1][0] <= 300
    assert learned.log_likelihood == learned.validation >= learned.base_alone - 1e-9
    assert learned.gains == [None] * len(stacker.model_.rules)
    literal = RuleStacker(recipe="paper", n_rules=2, max_iter=40, literal=True, validation_fraction=0.2, **FAST).fit(yes, y)
    assert literal.learned_.curve[-1][0] == 40 and literal.model_.labels[0].calibrator is None
    none = RuleStacker(recipe="paper", n_rules=0, max_iter=20, **FAST).fit(yes, y)
    assert none.model_.rules == [] and none.predict(yes).shape == y.shape


PAPER = (
    *("max_iter", "n_iter_no_change", "batch_size", "learning_rate", "betas", "clip", "probability", "epsilon", "alpha"),
    *("labels_per_rule", "gamma_0", "gamma_1", "lam", "gradients", "literal"),
)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"recipe": "magic"}, "unknown recipe `magic`"),
        ({"calibration": "magic"}, "unknown calibration `magic`"),
        ({"recipe": "paper", "gradients": "magic"}, "unknown gradients"),
        ({"n_rules": -1}, "n_rules is -1"),
        ({"parsimony": "magic"}, "unknown parsimony `magic`"),
        ({"parsimony": -1.0}, "parsimony is -1"),
        ({"recipe": "paper", "validation_fraction": 2.0}, "validation_fraction is 2.0"),
        ({"recipe": "paper", "calibration": "joint"}, "does not calibrate jointly"),
        ({"recipe": "paper", "probability": 2.0}, "probability"),
        ({"recipe": "paper", "parsimony": "explain"}, "`parsimony` belongs to the recipe `clauses`"),
        ({"recipe": "paper", "learn_probabilities": True}, "`learn_probabilities` belongs to the recipe `clauses`"),
        ({"validation_fraction": 0.1}, "`validation_fraction` belongs to the recipe `paper`"),
        *(({name: 1}, f"`{name}` belongs to the recipe `paper`") for name in PAPER),
        ({"recipe": "thin"}, "recipe `thin` was removed; use `clauses`"),
        ({"width": 2}, "`width` was removed.*`parsimony` or `n_rules`"),
        ({"wide": 0}, "`wide` was removed.*`parsimony` or `n_rules`"),
        ({"patience": 5}, "`patience` was renamed; use `n_iter_no_change`"),
        ({"relearn": True}, "`relearn` was removed.*`learn_probabilities=True`"),
        ({"labels": ["a"]}, "1 names for 3 labels"),
        ({"rules": "rule 0.9: nobody"}, "nobody"),
    ],
)
def test_errors(equal_labels: tuple[np.ndarray, np.ndarray], settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RuleStacker(**settings).fit(*equal_labels)


def test_an_unknown_setting() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'widht'"):
        RuleStacker(widht=2)


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


def test_a_label_that_never_occurs_is_kept(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    never = np.column_stack([y[:, :2], np.zeros(len(y), dtype=int)])
    beliefs = np.column_stack([yes[:, :2], np.zeros(len(y))])
    stacker = RuleStacker(**FAST).fit(beliefs, never)
    assert [classes.tolist() for classes in stacker.classes_] == [[0, 1]] * 3
    proba = stacker.predict_proba(beliefs)[2]
    assert proba.shape == (len(y), 2) and (proba[:, 1] > 0).all() and (proba[:, 1] < 0.01).all()
    assert np.isfinite(stacker.joint_log_likelihood(beliefs, y)).all()
