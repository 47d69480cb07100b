"""What would change the answer for a row, and what should be asked next."""

from __future__ import annotations

import json
from html import escape
from typing import Any


class Answer:
    """An answer about one row: as data, and in words."""

    def __init__(self, data: str, text: str) -> None:
        #: All data, in the format of `prsl explain --format json`.
        self.data: dict[str, Any] = json.loads(data)
        self._text = text

    @property
    def possible(self) -> bool:
        """Whether the row is possible."""
        return bool(self.data["possible"])

    @property
    def approximate(self) -> bool:
        """Whether loopy propagation answered, or exact inference lost digits."""
        return bool(self.data.get("approximate", False))

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._text)}</pre>"


class Counterfactuals(Answer):
    """The changes of one label alone that make a category the most probable one of its label.

    >>> from prsl import Model
    >>> model = Model.parse("label rain\\nlabel wet\\nrule 0.9: rain <-> wet")
    >>> found = model.counterfactuals({"rain": 0.3, "wet": 0.4}, "rain", "yes")
    >>> found.already, found.changes[0]["label"], round(found.changes[0]["belief"]["needed"], 3)
    (False, 'wet', 0.75)
    """

    @property
    def already(self) -> bool:
        """Whether the category is the most probable one already. A tie does not count."""
        return bool(self.data["already"])

    @property
    def changes(self) -> list[dict[str, Any]]:
        """Every other label that can change the answer alone, by increasing distance.

        "belief" is the smallest change of its belief, "observations" are the categories that suffice if they are
        observed, and "unobserved" is the result if an observed label were not observed.
        """
        return self.data["changes"]  # type: ignore[no-any-return]

    @property
    def own(self) -> dict[str, Any] | None:
        """The smallest change of the label's own belief."""
        return self.data["own"]  # type: ignore[no-any-return]

    @property
    def unable(self) -> list[str]:
        """The other labels, which cannot change the answer alone."""
        return self.data["unable"]  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        target = f"{self.data['label']}={self.data['target']}"
        return f"<Counterfactuals for {target}: {len(self.changes)} labels can change it>"


class InformationGains(Answer):
    """The expected information gain from observing each label, in bits.

    >>> from prsl import Model
    >>> model = Model.parse("label rain\\nlabel wet\\nlabel alarm\\nrule 0.9: rain <-> wet")
    >>> gains = model.information_gains({"rain": 0.5}, "rain")
    >>> [(gain["label"], round(gain["gain"], 3)) for gain in gains.gains]
    [('wet', 0.531), ('alarm', 0.0)]
    """

    @property
    def entropy(self) -> float | None:
        """The entropy of the label, or the sum over all labels: the largest possible gain."""
        return self.data["entropy"]  # type: ignore[no-any-return]

    @property
    def gains(self) -> list[dict[str, Any]]:
        """Every label that is not observed, by decreasing gain. "entropy" is its own, and "answers" are its possible
        categories."""
        return self.data["gains"]  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<InformationGains about {self.data['label'] or 'all labels'} from {len(self.gains)} labels>"
