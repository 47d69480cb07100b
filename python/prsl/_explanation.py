"""Why a row came out as it did."""

from __future__ import annotations

import json
from typing import Any

from ._html import explanation_page


class Explanation:
    """Which rule moved which label of a row, and which rules everything else speaks against.

    >>> from prsl import Model
    >>> model = Model.parse("label rain\\nlabel wet\\nrule 0.9 wets: rain -> wet")
    >>> explanation = model.explain({"rain": 0.8, "wet": 0.3})
    >>> explanation.possible, explanation.best["choices"][0]
    (True, {'label': 'rain', 'category': 'no'})
    """

    def __init__(self, data: str, text: str) -> None:
        #: Everything, as `prsl explain --format json` has it.
        self.data: dict[str, Any] = json.loads(data)
        self._text = text

    @property
    def possible(self) -> bool:
        """Whether rules and evidence leave anything possible."""
        return bool(self.data["possible"])

    @property
    def log_evidence(self) -> float | None:
        """How well beliefs and rules go together."""
        return self.data["log_evidence"]  # type: ignore[no-any-return]

    @property
    def labels(self) -> list[dict[str, Any]]:
        """Every label before and after the rules."""
        return self.data["labels"]  # type: ignore[no-any-return]

    @property
    def rules(self) -> list[dict[str, Any]]:
        """Every rule, and what it did."""
        return self.data["rules"]  # type: ignore[no-any-return]

    @property
    def conflicts(self) -> list[dict[str, Any]]:
        """The rules that everything else speaks against; if nothing is possible, those that exclude everything."""
        return [rule for rule in self.rules if rule["conflict"]]

    @property
    def best(self) -> dict[str, Any] | None:
        """The most probable joint explanation."""
        return self.data["best"]  # type: ignore[no-any-return]

    @property
    def runner_up(self) -> dict[str, Any] | None:
        """The second most probable one."""
        return self.data["runner_up"]  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Explanation of {len(self.labels)} labels by {len(self.rules)} rules>"

    def _repr_html_(self) -> str:
        return explanation_page(self)
