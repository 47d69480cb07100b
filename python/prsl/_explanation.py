"""Explanations of single rows."""

from __future__ import annotations

import json
from typing import Any

from ._html import explanation_page


class Explanation:
    """The effect of each rule on each label of a row, and the rules in conflict.

    >>> from prsl import Model
    >>> model = Model.parse("label rain\\nlabel wet\\nrule 0.9 wets: rain -> wet")
    >>> explanation = model.explain({"rain": 0.8, "wet": 0.3})
    >>> explanation.possible, explanation.best["choices"][0]
    (True, {'label': 'rain', 'category': 'yes'})
    """

    def __init__(self, data: str, text: str) -> None:
        #: All data, in the format of `prsl explain --format json`.
        self.data: dict[str, Any] = json.loads(data)
        self._text = text

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
        """Every label, without and with the rules."""
        return self.data["labels"]  # type: ignore[no-any-return]

    @property
    def rules(self) -> list[dict[str, Any]]:
        """Every rule and its effect."""
        return self.data["rules"]  # type: ignore[no-any-return]

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

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Explanation of {len(self.labels)} labels by {len(self.rules)} rules>"

    def _repr_html_(self) -> str:
        return explanation_page(self)
