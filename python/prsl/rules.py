"""Notes about how rules were learned, and conversion of rules from other programs."""

from __future__ import annotations

from typing import NamedTuple

from .errors import FormulaError

__all__ = ["LearnedNote", "from_r"]


class LearnedNote(NamedTuple):
    """How a rule was learned: its evidence in the training rows. Inference does not use it.

    Known rows are those in which the condition of the rule holds and all its labels are known.

    >>> from prsl import Model
    >>> model = Model.parse('''
    ... label sunset
    ... label urban
    ... rule 0.94: sunset -> !urban  # learned: gain 12.3, broken 3 of 214, expected 41.2, sure
    ... ''')
    >>> model.rules[0].learned
    LearnedNote(gain=12.3, broken=3.0, known=214.0, expected=41.2, sure=True)
    """

    #: Log-likelihood of the training rows, in nats, that is lost if the rule is removed and the others are refitted.
    gain: float
    #: Weight of the known rows that break the rule.
    broken: float
    #: Weight of the known rows.
    known: float
    #: Weight of the known rows that break the rule, as the model without the rule expects it.
    expected: float
    #: Whether the gain exceeds the price of the rule at parsimony 1.
    sure: bool


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
