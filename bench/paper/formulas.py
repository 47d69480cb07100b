"""The formulas of the paper's appendix, checked against differences of an enumerated log-likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from .document import Block, Cell, Row, Table
from .provenance import origin
from .tables import note_of

CATEGORIES = (3, 2, 2)
STEP = 1e-6
ALPHA = 20.0


@dataclass(frozen=True)
class Small:
    """A noisy-or model of two rules, small enough to enumerate. Rule 0 is differentiated."""

    beliefs: list[np.ndarray]
    q: list[list[np.ndarray]]
    """By rule, label and category."""
    p: float

    def weight(self, y: tuple[int, ...]) -> float:
        """The product of the beliefs and of all rules but rule 0."""
        return float(np.prod([b[c] for b, c in zip(self.beliefs, y)])) * self.factor(1, y)

    def factor(self, rule: int, y: tuple[int, ...]) -> float:
        """P(rule holds | y)."""
        silence = self.silence(rule, y)
        return self.p * (1.0 - silence) + (1.0 - self.p) * silence

    def silence(self, rule: int, y: tuple[int, ...]) -> float:
        """The product of a rule's inhibition probabilities."""
        return float(np.prod([q[c] for q, c in zip(self.q[rule], y)]))

    def sum(self, known: dict[int, int], holds: bool | None, label: tuple[int, int] | None = None) -> float:
        """P(known, rule 0 holds or not, label), up to a factor."""
        total = 0.0
        for y in product(*map(range, CATEGORIES)):
            if all(y[at] == c for at, c in known.items()) and (label is None or y[label[0]] == label[1]):
                part = {None: 1.0, True: self.factor(0, y), False: 1.0 - self.factor(0, y)}[holds]
                total += self.weight(y) * part
        return total

    def log_likelihood(self, known: dict[int, int]) -> float:
        """ln P(known | all rules hold)."""
        return float(np.log(self.sum(known, True) / self.sum({}, True)))

    def difference(self, known: dict[int, int], at: tuple[int, int]) -> float:
        """The central difference of the log-likelihood in an inhibition probability of rule 0."""
        values = []
        for step in (STEP, -STEP):
            q = [[values.copy() for values in rule] for rule in self.q]
            q[0][at[0]][at[1]] += step
            values.append(Small(self.beliefs, q, self.p).log_likelihood(known))
        return (values[0] - values[1]) / (2.0 * STEP)


def small(p: float, seed: int = 1) -> Small:
    """A random model."""
    random = np.random.default_rng(seed)
    beliefs = [random.dirichlet(np.ones(count)) for count in CATEGORIES]
    q = [[random.uniform(0.2, 0.9, count) for count in CATEGORIES] for _ in range(2)]
    return Small(beliefs, q, p)


def first_term(model: Small, at: tuple[int, int]) -> float:
    """P(L = m | R = 0) (1 - P(R = 1)) / (q P(R = 1)), which all formulas share."""
    label = model.sum({}, False, at)
    return label / (model.q[0][at[0]][at[1]] * model.sum({}, True))


def printed(model: Small, known: dict[int, int], at: tuple[int, int]) -> float:
    """The gradient as the appendix prints it."""
    first = first_term(model, at)
    if at[0] not in known:
        q = model.q[0][at[0]][at[1]]
        return first - model.sum(known, False, at) / (q * model.sum(known, True))
    if known[at[0]] != at[1]:
        return first
    if len(known) == len(CATEGORIES):
        y = tuple(known[label] for label in range(len(CATEGORIES)))
        q = model.q[0][at[0]][at[1]]
        others = model.silence(0, y) / q
        return first - others / (1.0 - q * others)
    return first - model.sum(known, False) / model.sum(known, True)


def corrected(model: Small, known: dict[int, int], at: tuple[int, int]) -> float:
    """The gradient with the missing 1/q, and for any p: the factor (1 - 2p) instead of -1."""
    q = model.q[0][at[0]][at[1]]

    def term(given: dict[int, int]) -> float:
        silent = sum(
            model.weight(y) * model.silence(0, y) / q
            for y in product(*map(range, CATEGORIES))
            if y[at[0]] == at[1] and all(y[label] == c for label, c in given.items())
        )
        return silent / model.sum(given, True)

    return (1.0 - 2.0 * model.p) * (term(known) - term({}))


CASES = (
    ("all known, category incorrect", {0: 0, 1: 1, 2: 0}, (0, 1)),
    ("all known, category correct", {0: 0, 1: 1, 2: 0}, (0, 0)),
    ("some known, category known and incorrect", {0: 0, 1: 1}, (0, 1)),
    ("some known, category known and correct", {0: 0, 1: 1}, (0, 0)),
    ("some known, label unknown", {0: 0, 1: 1}, (2, 0)),
)
"""The cases of the appendix: the known labels, and the label and category of the inhibition probability."""


def gradients() -> Table:
    """The printed and the corrected gradients beside differences, for p = 1 and p = 0.999."""
    rows = []
    for p in (1.0, 0.999):
        model = small(p)
        for title, known, at in CASES:
            values = [function(model, known, at) for function in (printed, corrected)]
            rows.append(Row([Cell(title), Cell(f"{p:g}"), *(Cell(f"{v:.6f}") for v in [*values, model.difference(known, at)])]))
    head = ["", "p", "as printed", "corrected", "central difference"]
    caption = "Gradients of the appendix on a random model of three labels and two rules"
    return Table(caption, head, rows, "paper-gradients", note_of(origin()))


def soft_minimum(q: np.ndarray, mean: bool) -> float:
    """The soft minimum of the paper, a sum, or that of prsl, a mean."""
    weights = np.exp(-ALPHA * q)
    # Adding 0 turns -0 into 0.
    return float(-np.log(weights.mean() if mean else weights.sum()) / ALPHA + 0.0)


def soft_minima() -> Table:
    """The soft minimum at equal values."""
    rows = []
    for count in (2, 3, 4):
        for value in (0.0, 1.0):
            q = np.full(count, value)
            cells = [f"{count} categories, all q = {value:g}", f"{soft_minimum(q, False):.4f}", f"{soft_minimum(q, True):.4f}"]
            rows.append(Row([Cell(cell) for cell in cells]))
    caption = "The soft minimum s for α = 20: as printed (a sum), and as the recipe `paper` computes it (a mean)"
    return Table(caption, ["", "as printed", "recipe `paper`"], rows, "paper-soft-minimum", note_of(origin()))


def tables() -> list[Block]:
    """All tables about formulas."""
    return [gradients(), soft_minima()]
