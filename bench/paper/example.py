"""The paper's worked example: its joint table, its marginals, and the variant of its first figure."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from .document import Block, Cell, Row, Table
from .provenance import ROOT, origin
from .tables import note_of

LABELS = {"activity": ("walking", "normal", "overhead"), "feet": ("gait", "standing"), "hands": ("high", "centered", "low")}
BELIEFS = {"activity": [0.1, 0.4, 0.5], "feet": [0.05, 0.95], "hands": [0.5, 0.3, 0.2]}
FIGURE = {**BELIEFS, "hands": [0.7, 0.18, 0.12]}
"""The beliefs of the paper's Figure 1, where P(high) = 0.7. The rest is shared in the proportion of the worked example."""

PRINTED_JOINT = {
    ("walking", "standing", "high"): 0.0,
    ("normal", "standing", "high"): 0.0078,
    ("overhead", "standing", "high"): 0.3517,
    ("walking", "gait", "low"): 0.0015,
    ("normal", "standing", "centered"): 0.1688,
    ("overhead", "standing", "centered"): 0.2110,
}
PRINTED_MARGINALS = {"activity": (0.01, 0.05, 0.94), "feet": (0.01, 0.99), "hands": (0.48, 0.31, 0.21)}


def tables() -> list[Block]:
    """The tables of the example; none without the Python package `prsl`."""
    try:
        from prsl import Model
    except ImportError:
        return []
    model = Model.load(ROOT / "examples" / "warehouse.prsl")
    return [_joint(model), _marginals(model)]


def joint(model: Any, beliefs: dict[str, list[float]]) -> dict[tuple[str, ...], float]:
    """The posterior probability of every assignment, from the log-likelihood of each as the truth."""
    assignments = list(product(*LABELS.values()))
    rows = {label: np.tile(belief, (len(assignments), 1)) for label, belief in beliefs.items()}
    truths = {label: [assignment[at] for assignment in assignments] for at, label in enumerate(LABELS)}
    found = model.joint_log_likelihood(rows, truths)
    return dict(zip(assignments, np.exp(np.asarray(found))))


def _joint(model: Any) -> Table:
    found = joint(model, BELIEFS)
    rows = [
        Row([Cell(", ".join(assignment)), Cell(f"{printed:.4f}"), Cell(f"{found[assignment]:.4f}")])
        for assignment, printed in PRINTED_JOINT.items()
    ]
    total = sum(found.values())
    rows.append(Row([Cell("all 18 assignments"), Cell(""), Cell(f"{total:.4f}")]))
    caption = "P(assignment | rules, beliefs) of the worked example"
    return Table(caption, ["", "paper", "prsl"], rows, "paper-example-joint", note_of(origin()))


def _marginals(model: Any) -> Table:
    both = [model.predict({label: np.array([belief]) for label, belief in given.items()}) for given in (BELIEFS, FIGURE)]
    rows = []
    for label, categories in LABELS.items():
        for at, category in enumerate(categories):
            cells = [f"{label}={category}", f"{BELIEFS[label][at]:g}", f"{PRINTED_MARGINALS[label][at]:.2f}"]
            cells += [f"{found[label, category][0]:.4f}" for found in both]
            rows.append(Row([Cell(cell) for cell in cells]))
    evidence = [f"{np.exp(found.log_evidence[0]):.4f}" for found in both]
    rows.append(Row([Cell("Z"), Cell(""), Cell(""), *map(Cell, evidence)]))
    caption = "Marginals of the worked example, and with the beliefs of Figure 1"
    head = ["", "belief", "paper", "prsl", "prsl, P(high) = 0.7"]
    return Table(caption, head, rows, "paper-example-marginals", note_of(origin()))
