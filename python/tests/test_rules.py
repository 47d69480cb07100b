"""Rules of the authors' R code."""

from __future__ import annotations

import pytest

from prsl import Model, errors
from prsl.rules import from_r


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
