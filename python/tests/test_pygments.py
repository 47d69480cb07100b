"""The lexer of Pygments colors all models of the project, and marks what is no token."""

from __future__ import annotations

import pathlib
import re

import pytest

pytest.importorskip("pygments")

from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Error, Keyword, Name, Operator, Token, Whitespace

from prsl._prsl import keywords
from prsl.pygments import PrslLexer

ROOT = pathlib.Path(__file__).resolve().parents[2]


def models() -> list[tuple[str, str]]:
    """The examples, the cases, and the description of the language."""
    found = [(path.name, path.read_text()) for path in sorted((ROOT / "examples").glob("*.prsl"))]
    for path in sorted((ROOT / "tests" / "cases").glob("*.case")):
        model = re.search(r"^\[model\]\n(.*?)(?=^\[\w+\]$)", path.read_text(), re.M | re.S)
        assert model, path
        found.append((path.name, model[1]))
    language = re.search(r"^```text\n(.*?)^```", (ROOT / "crates/prsl/docs/language.md").read_text(), re.M | re.S)
    assert language
    return [*found, ("language.md", language[1])]


def tokens(text: str) -> list[tuple[Token, str]]:
    return [(kind, part) for kind, part in PrslLexer().get_tokens(text) if kind is not Whitespace]


@pytest.mark.parametrize(("name", "text"), models(), ids=[name for name, _ in models()])
def test_all_of_a_model_is_colored(name: str, text: str) -> None:
    assert "label " in text
    assert [part for kind, part in tokens(text) if kind is Error] == []
    assert "".join(part for _, part in PrslLexer(stripnl=False, ensurenl=False).get_tokens(text)) == text


@pytest.mark.parametrize("text", ["rule 0.9: a @ b", "rule 2x: a", "rule 7%: a", 'label "a', 'label "\\q"', "rule 0.9: a / b"])
def test_what_is_no_token_is_an_error(text: str) -> None:
    assert any(kind is Error for kind, _ in tokens(text))


def test_every_keyword_has_a_color() -> None:
    words = keywords()
    for word in words["statements"]:
        assert tokens(f"label a\n{word} x")[2] == (Keyword, word)
    for word in words["reserved"]:
        assert (Operator.Word, word) in tokens(f"rule 1: a {word} b")
    for word in words["calibrators"]:
        assert (Name.Builtin, word) in tokens(f"calibrate a {word} 1")
    assert (Keyword.Constant, "mpe") in tokens("expect => mpe a")
    assert (Keyword.Constant, "none") in tokens("typical 2: none  # nothing")
    assert sorted(words["contextual"]) == ["mpe", "none"]
    for sign in words["signs"]:
        assert [part for _, part in tokens(f"rule 1: a {sign} b")][-2] == sign


def test_keywords_elsewhere_are_names() -> None:
    kinds = dict((part, kind) for kind, part in tokens("label größe: rule, platt, mpe, none\nrule 1: xor_ -> none"))
    assert kinds["größe"] is Name.Class
    assert all(kinds[part] is Name for part in ["platt", "mpe", "none", "xor_"])


def test_pygments_finds_it() -> None:
    assert isinstance(get_lexer_by_name("prsl"), PrslLexer)
    assert isinstance(get_lexer_for_filename("rules.prsl"), PrslLexer)
