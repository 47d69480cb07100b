"""A lexer of Pygments, which colors model texts in Sphinx, in notebooks and on terminals.

Pygments finds it by the name ``prsl``, and for files that end with ``.prsl``:

>>> from pygments.lexers import get_lexer_by_name
>>> [(str(kind), text) for kind, text in get_lexer_by_name("prsl").get_tokens("label rain") if text.strip()]
[('Token.Keyword', 'label'), ('Token.Name.Class', 'rain')]

Its words are those of the compiled library, so they are never out of date. Pygments is an optional dependency:
``pip install prsl[highlight]``.
"""

from __future__ import annotations

import re
from typing import ClassVar

from pygments import unistring
from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

from ._prsl import keywords

_WORDS = keywords()
_SPACE = r"([^\S\n]+)"
_INDENT = r"^([^\S\n]*)"
_NAME = rf"[{unistring.xid_start}][{unistring.xid_continue}]*"
_QUOTED = r'"(?:[^"\\\n]|\\["\\nrt]|\\u\{[0-9A-Fa-f]{1,6}\})*"'
_NUMBER = r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_PUNCTUATION = ":,(){}[];"


def _one_of(texts: list[str]) -> str:
    """A group that matches any of these, longest first."""
    return "(" + "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True)) + ")"


def _word_of(texts: list[str]) -> str:
    """A group that matches any of these as a whole word."""
    return rf"{_one_of(texts)}(?![{unistring.xid_continue}])"


class PrslLexer(RegexLexer):  # type: ignore[misc, unused-ignore]
    """Colors the text format of prsl."""

    name = "prsl"
    aliases: ClassVar = ["prsl"]
    filenames: ClassVar = ["*.prsl"]
    mimetypes: ClassVar = ["text/x-prsl"]

    tokens: ClassVar = {
        "root": [
            (
                rf"{_INDENT}(calibrate){_SPACE}({_NAME}|{_QUOTED}){_SPACE}{_word_of(_WORDS['calibrators'])}",
                bygroups(Whitespace, Keyword, Whitespace, Name, Whitespace, Name.Builtin),
            ),
            (rf"{_INDENT}(label){_SPACE}({_NAME})", bygroups(Whitespace, Keyword, Whitespace, Name.Class)),
            (
                rf"{_INDENT}(fixed){_SPACE}(rule|noisy_or)(?![{unistring.xid_continue}])",
                bygroups(Whitespace, Keyword, Whitespace, Keyword),
            ),
            (
                rf"{_INDENT}(typical){_SPACE}({_NUMBER})(\s*)(:)(\s*)(none)(?=\s*(?:#|$))",
                bygroups(Whitespace, Keyword, Whitespace, Number, Whitespace, Punctuation, Whitespace, Keyword.Constant),
            ),
            (rf"{_INDENT}{_word_of(_WORDS['statements'])}", bygroups(Whitespace, Keyword)),
            (r"\s+", Whitespace),
            (r"#.*", Comment.Single),
            (_QUOTED, String.Double),
            (rf"{_NUMBER}(?![{unistring.xid_continue}%])", Number),
            (rf"(=>|⇒)(\s*)(mpe)(?![{unistring.xid_continue}])", bygroups(Operator, Whitespace, Keyword.Constant)),
            (_word_of(_WORDS["reserved"]), Operator.Word),
            (_one_of([sign for sign in _WORDS["signs"] if sign not in _PUNCTUATION]), Operator),
            (f"[{re.escape(_PUNCTUATION)}]", Punctuation),
            (_NAME, Name),
        ]
    }
