"""What would change an answer, and what should be asked next."""

import itertools
import math

import numpy as np
import pytest

from prsl import Model
from prsl.errors import ArgumentError, PrslError

BELIEFS = {"activity": [[0.1, 0.4, 0.5]], "feet": [[0.05, 0.95]], "hands": [[0.5, 0.3, 0.2]]}


def test_a_threshold_is_where_the_prediction_changes(warehouse: str) -> None:
    model = Model.parse(warehouse)
    found = model.counterfactuals(BELIEFS, "hands", "high")
    assert not found.already and not found.approximate and found.possible
    distances = [change["distance"] for change in found.changes]
    assert distances == sorted(distances)
    for change in found.changes:
        belief = change["belief"]
        categories = [label.categories for label in model.labels if label.name == change["label"]][0]
        place = categories.index(belief["category"])
        before = np.array(BELIEFS[change["label"]][0])
        most_probable = []
        for step in (-1e-6, 1e-6):
            value = belief["needed"] + step
            moved = before * (1 - value) / (1 - before[place])
            moved[place] = value
            high = model.predict({**BELIEFS, change["label"]: [moved]})["hands"][0]
            most_probable.append(high.argmax() == 0)
        assert sorted(most_probable) == [False, True]
    assert "makes hands=high the most probable" in str(found)
    assert "hands=high" in repr(found) and found._repr_html_().startswith("<pre>")


def test_raw_beliefs_are_reported_by_name() -> None:
    model = Model.parse("label alarm\ncalibrate alarm platt 1 -1\nlabel fire\nrule 0.9: alarm <-> fire")
    [change] = model.counterfactuals({"alarm": 0.5}, "fire", "yes").changes
    belief = change["belief"]
    assert belief["given"] == 0.5 and belief["calibrated"]
    threshold = belief["needed_given"]
    assert threshold == pytest.approx(1 / (1 + math.exp(-1)))
    assert belief["belief"][0] == {"category": "yes", "belief": threshold}
    fire = model.predict({"alarm": [threshold - 1e-6, threshold + 1e-6]})["fire", "yes"]
    assert fire[0] < 0.5 < fire[1]


def test_observed_labels_can_be_corrected(warehouse: str) -> None:
    found = Model.parse(warehouse).counterfactuals({"activity": ["walking"], "feet": ["standing"]}, "hands", "low")
    assert not found.possible
    found = Model.parse(warehouse).counterfactuals({**BELIEFS, "feet": ["standing"]}, "activity", "walking")
    assert found.unable == ["hands"]
    [feet] = found.changes
    assert feet["observed"] == "standing" and feet["observations"][0]["category"] == "gait"


def test_gains_are_those_of_the_joint_distribution() -> None:
    model = Model.parse("label a\nlabel b\nlabel c\nrule 0.9: a -> b\nrule 0.7: b xor c")
    beliefs = {"a": 0.6, "b": 0.3, "c": 0.8}
    weights = {}
    for a, b, c in itertools.product((0, 1), repeat=3):
        weight = (0.6 if a else 0.4) * (0.3 if b else 0.7) * (0.8 if c else 0.2)
        weights[a, b, c] = weight * (0.9 if not a or b else 0.1) * (0.7 if b != c else 0.3)
    total = sum(weights.values())

    def entropy(of: int, given: int) -> float:
        bits = 0.0
        for value in (0, 1):
            both = [sum(w for y, w in weights.items() if y[given] == value and y[of] == o) / total for o in (0, 1)]
            bits -= sum(p * math.log2(p / sum(both)) for p in both if p > 0)
        return bits

    marginals = model.predict({name: [value] for name, value in beliefs.items()})
    now = [-sum(p * math.log2(p) for p in marginals[name][0]) for name in "abc"]
    about = {gain["label"]: gain["gain"] for gain in model.information_gains(beliefs, "a").gains}
    assert about == pytest.approx({"b": now[0] - entropy(0, 1), "c": now[0] - entropy(0, 2)}, abs=1e-12)
    every = {gain["label"]: gain["gain"] for gain in model.information_gains(beliefs).gains}
    expected = {"abc"[x]: sum(now[y] - (entropy(y, x) if y != x else 0) for y in range(3)) for x in range(3)}
    assert every == pytest.approx(expected, abs=1e-12)
    assert model.information_gains(beliefs).entropy == pytest.approx(sum(now))


@pytest.mark.parametrize("engine", ["exact", "junction-tree", "circuit", "enumeration", "loopy"])
def test_every_engine_answers(warehouse: str, engine: str) -> None:
    model = Model.parse(warehouse)
    gains = model.information_gains(BELIEFS, "activity", engine=engine, threads=1)
    assert gains.approximate == (engine == "loopy")
    assert gains.gains[0]["label"] == "hands"
    assert model.counterfactuals(BELIEFS, "hands", "high", engine=engine).changes[0]["label"] == "activity"


def test_mistakes_are_errors(warehouse: str) -> None:
    model = Model.parse(warehouse)
    with pytest.raises(PrslError, match="hgih"):
        model.counterfactuals(BELIEFS, "hands", "hgih")
    with pytest.raises(PrslError, match="hand"):
        model.information_gains(BELIEFS, "hand")
    with pytest.raises(ArgumentError, match="no row 1"):
        model.counterfactuals(BELIEFS, "hands", "high", 1)
    with pytest.raises(ArgumentError, match="unknown engine"):
        model.information_gains(BELIEFS, engine="tree")
