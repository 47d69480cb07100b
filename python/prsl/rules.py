"""Conversion of rules from other programs."""

from __future__ import annotations

from .errors import FormulaError

__all__ = ["from_r"]


def from_r(rule: str) -> str:
    """A rule of the authors' R code in the rule language.

    In R, `A, B <- !C, D` means: if not C and D, then A or B. The authors' code intersects several categories of one label
    instead of uniting them. The converted rule unites them, as its text says.

    >>> from_r("A, B <- !C, D")
    'A | B <- !C & D'
    >>> from_r("overhead, normal <- standing")
    'overhead | normal <- standing'
    """
    parts = rule.split("<-")
    if len(parts) > 2:
        raise FormulaError(f"`{rule}` has more than one `<-`; expected `A, B <- !C, D`")
    sides = [[literal.strip() for literal in part.split(",")] for part in parts]
    if any(not literal.removeprefix("!").strip() for side in sides for literal in side):
        raise FormulaError(f"`{rule}` lacks a category; expected `A, B <- !C, D`")
    head, *body = sides
    return " <- ".join([" | ".join(head), *(" & ".join(side) for side in body)])
