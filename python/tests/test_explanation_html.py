"""Pages of explanations say what the text of `prsl explain` says, and fit on one screen."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from prsl import Explanation, Model


def shown(page: str) -> str:
    """The page without its tags."""
    return html.unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<style>.*?</style>", "", page, flags=re.S)))


def contrasts(text: str) -> list[tuple[str, ...]]:
    """The changes by rules, in order: atom, probability with and without."""
    joined = re.sub(r"\s+", " ", text)
    return re.findall(r"([\w]+=[\w]+): ([\d.>e-]+) instead of ([\d.>e-]+)", joined)


@pytest.fixture(scope="module")
def large() -> Explanation:
    """A model as learning makes them: 20 labels, 30 rules and 50 combinations."""
    rng = np.random.default_rng(0)
    lines = [f"label l{j}" for j in range(17)]
    lines += ["label activity: walk, stand, sit, lie, run, jump, climb, fall from camera", "label room: kitchen, bath, hall"]
    lines += ["label hidden latent"] + [f"calibrate l{j} platt {0.6 + 0.05 * j:.2f} 0.2" for j in range(17)]
    for rule in range(27):
        a, b = rng.choice(17, 2, replace=False)
        note = f"# learned: gain 12.3, broken {rule} of 214, expected 41.2"
        lines.append(f"rule {rng.uniform(0.7, 0.98):.3f}: l{a} -> {'!' * (rule % 2)}l{b}  {note}")
    lines += ["noisy_or 0.95: activity in {walk, run} 0.1, l3 0.2, l4=no 0.15", "rule 0.9 upright: bath -> stand"]
    lines += ["rule 0.9: hidden <-> l1 & l2"]
    combinations = {tuple(sorted(rng.choice(17, 3, replace=False))) for _ in range(60)}
    for labels in sorted(combinations)[:50]:
        lines.append("typical 2000: " + ", ".join(f"l{j}" for j in labels) + ", stand, hall")
    model = Model.parse("\n".join(lines))
    assert len(model.rules) == 30 and len(model.typical) == 50
    beliefs = {f"l{j}": rng.random(1) for j in range(17)}
    return model.explain(beliefs | {"activity": rng.dirichlet(np.ones(8), 1), "room": [[0.3, 0.6, 0.1]]})


def test_a_learned_model_fits_on_one_screen(large: Explanation) -> None:
    page = large._repr_html_()
    left, right = page.split("</div><div>")
    assert left.count("<tr>") <= 22 and right.count("<tr>") <= 12 and len(page) < 20_000


def test_the_page_says_what_the_text_says(large: Explanation) -> None:
    text, page = str(large), shown(large._repr_html_())
    assert contrasts(page) == contrasts(text) != []
    assert "50 typical combinations, all together" in page
    for left_out in re.findall(r"\d+ more rules moved something by [\d.]+ or less|\d+ labels moved by [\d.]+ or less", text):
        assert left_out in page
    assert "as given" in page and "calibrated" in page and "posterior" in page
    assert page.count("conflict") == text.count("CONFLICT")
    best = re.search(r"most probable\s+([\d.e-]+ %)", text)
    assert best is not None and best[1] in page


def test_beliefs_as_given_calibrated_and_posterior_are_apart() -> None:
    model = Model.parse("label rain\nlabel wet\nrule 0.9: rain -> wet\ncalibrate rain platt 2 0")
    explanation = model.explain({"rain": [0.8], "wet": [0.3]})
    yes = explanation.labels[0]["categories"][0]
    assert yes["given"] == 0.8 and yes["before"] == pytest.approx(0.941, abs=5e-4)
    assert explanation.labels[1]["categories"][0].get("given") is None
    line = next(line for line in explanation._repr_html_().split("<tr>") if line.startswith("<td>rain</td>"))
    assert re.findall(r"\d\.\d{3}(?!%)", shown(line))[:2] == ["0.800", "0.941"]
    plain = model.without_calibrators().explain({"rain": [0.8], "wet": [0.3]})._repr_html_()
    assert "as given" not in plain and "belief" in plain


def test_a_noisy_or_is_a_sentence_and_few_categories_are_shown() -> None:
    model = Model.parse("label a: c0, c1, c2, c3, c4, c5, c6\nlabel b\nnoisy_or 0.9: c0 0.1, b 0.05")
    page = model.explain({"a": [[0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05]], "b": [0.4]})._repr_html_()
    assert model.rules[0].sentence in shown(page) and "3 others" in page and "c6" not in shown(page)


def test_pages_of_impossible_and_approximate_rows() -> None:
    model = Model.parse("label a\nlabel b\nrule 1: a -> b\nrule 1 never: !(a & b)")
    page = shown(model.explain({"a": ["yes"]})._repr_html_())
    assert "Nothing is possible: these rules together exclude" in re.sub(r"\s+", " ", page).replace(" :", ":")
    assert page.count("without it something would be possible") == 2
    loopy = model.explain({"a": [0.3]}, engine="loopy")
    assert loopy.approximate and "Approximate" in loopy._repr_html_()


def test_the_full_text_shows_everything(large: Explanation) -> None:
    assert large.to_text() == str(large)
    everything = large.to_text(all=True)
    assert len(everything) > 2 * len(str(large)) and "more rules moved something" not in everything


def test_names_are_escaped() -> None:
    page = Model.parse('label "<b>"\nlabel c\nrule 0.9: "<b>" -> c').explain({"<b>": [0.9], "c": [0.2]})._repr_html_()
    assert "&lt;b&gt;" in page and "<b>=" not in page
