"""Notes about learned rules, and rules of the authors' R code."""

from __future__ import annotations

import pytest

from prsl import LearnedNote, Model, errors
from prsl.rules import from_r


def test_notes_about_learning() -> None:
    note = "# learned: gain 12.3, broken 3 of 214, expected 41.2, sure"
    text = f"label sunset\nlabel urban\n\nrule 0.94: sunset -> !urban  {note}\nrule 0.9: urban  # by hand\n"
    model = Model.parse(text)
    learned, stated = model.rules
    assert learned.learned == LearnedNote(gain=12.3, broken=3, known=214, expected=41.2, sure=True)
    assert stated.learned is None
    assert learned.sentence == "if sunset then not urban (0.94; 3 of 214 rows break it, 41 expected without the rule)"
    assert note in model.text and "by hand" not in model.text
    for same in (Model.parse(model.text), Model.parse(model.to_json()), model.edit().build()):
        assert same == model and same.rules[0].learned == learned.learned
    assert model != Model.parse(text.replace("gain 12.3", "gain 12.4"))
    with pytest.raises(errors.LearnedNoteError, match="broken = 215, expected at most 214"):
        Model.parse(model.to_json().replace('"broken": 3.0', '"broken": 215'))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("A, B <- !C, D", "A | B <- !C & D"),
        ("A <- B", "A <- B"),
        ("!A", "!A"),
        ("A, B", "A | B"),
    ],
)
def test_translation(theirs: str, ours: str) -> None:
    assert from_r(theirs) == ours


def test_categories_of_one_label_unite() -> None:
    labels = "label activity: walking, normal, overhead\nlabel feet: gait, standing\n"
    model = Model.parse(f"{labels}rule 0.9: {from_r('overhead, normal <- standing')}")
    posterior = model.predict({"feet": [[0.0, 1.0]]})
    assert posterior["activity"][0].tolist() == pytest.approx([0.1 / 1.9, 0.9 / 1.9, 0.9 / 1.9])


@pytest.mark.parametrize("wrong", ["", "A <- B <- C", "A, <- B", "<- B", "A <- !"])
def test_malformed_rules(wrong: str) -> None:
    with pytest.raises(errors.FormulaError):
        from_r(wrong)
