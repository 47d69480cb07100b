"""Explanations of single rows."""

from __future__ import annotations

import json
from typing import Any

from ._explanation_html import explanation_page


class Explanation:
    """The effect of each rule on each label of a row, and the rules in conflict.

    >>> from prsl import Model
    >>> model = Model.parse("label rain\\nlabel wet\\nrule 0.9 wets: rain -> wet")
    >>> explanation = model.explain({"rain": 0.8, "wet": 0.3})
    >>> explanation.possible, explanation.best["choices"][0]
    (True, {'label': 'rain', 'category': 'yes'})
    """

    def __init__(self, data: str, text: str, full_text: str) -> None:
        #: All data, in the format of `prsl explain --format json`.
        self.data: dict[str, Any] = json.loads(data)
        self._text = text
        self._full_text = full_text

    @property
    def possible(self) -> bool:
        """Whether the row is possible."""
        return bool(self.data["possible"])

    @property
    def log_evidence(self) -> float | None:
        """ln Z: the log probability that all rules hold, given the beliefs."""
        return self.data["log_evidence"]  # type: ignore[no-any-return]

    @property
    def labels(self) -> list[dict[str, Any]]:
        """Every label. The categories have their belief "before" and their posterior "after" the rules. If the label has a
        calibrator, "given" is the belief as the classifier gave it."""
        return self.data["labels"]  # type: ignore[no-any-return]

    @property
    def rules(self) -> list[dict[str, Any]]:
        """Every rule and its effect."""
        return self.data["rules"]  # type: ignore[no-any-return]

    @property
    def typical(self) -> dict[str, Any] | None:
        """The effect of all typical combinations together; `None` if the model has none."""
        return self.data.get("typical")

    @property
    def approximate(self) -> bool:
        """Whether loopy propagation answered, so that the numbers are approximate."""
        return bool(self.data.get("approximate", False))

    @property
    def conflicts(self) -> list[dict[str, Any]]:
        """The rules in conflict with the evidence and the other rules. For an impossible row, those that exclude every
        assignment."""
        return [rule for rule in self.rules if rule["conflict"]]

    @property
    def best(self) -> dict[str, Any] | None:
        """The most probable assignment."""
        return self.data["best"]  # type: ignore[no-any-return]

    @property
    def runner_up(self) -> dict[str, Any] | None:
        """The second most probable assignment."""
        return self.data["runner_up"]  # type: ignore[no-any-return]

    def to_text(self, *, all: bool = False) -> str:
        """The text of `prsl explain`: what matters most, or everything as with `--all`."""
        return self._full_text if all else self._text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Explanation of {len(self.labels)} labels by {len(self.rules)} rules>"

    def _repr_html_(self) -> str:
        return explanation_page(self)
