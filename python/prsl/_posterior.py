"""Posteriors of rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._html import posterior_page
from .errors import ArgumentError, UnknownLabelError

if TYPE_CHECKING:
    from ._prsl import Label

Numbers = npt.NDArray[np.float64]


def _deprecated(old: str, new: str) -> None:
    message = f"`Posterior.{old}` is deprecated, use `Posterior.{new}`"
    warnings.warn(message, DeprecationWarning, stacklevel=3)


class Posterior:
    """The posterior of some rows.

    >>> from prsl import Model
    >>> posterior = Model.parse("label rain\\nlabel wet\\nrule 0.9: rain -> wet").predict({"rain": [0.8, 0.1]})
    >>> posterior["wet"].round(2)
    array([[0.78, 0.22],
           [0.52, 0.48]])
    >>> posterior.status.tolist(), posterior.engine
    (['ok', 'ok'], 'junction_tree')
    """

    def __init__(self, labels: list[Label], query: str, found: dict[str, Any]) -> None:
        self._labels = labels
        #: The query.
        self.query = query
        #: For each row `ok`, `impossible`, `not_converged`, `imprecise`, `not_proven`, `time_limit` (not proven because
        #: the time limit ended the search; another run may answer differently) or `not_found` (neither a possible
        #: assignment nor a proof of impossibility was found).
        self.status: npt.NDArray[np.str_] = np.array(found["statuses"])[found["status"]]
        #: A column for each category of each label, in the model's order; NaN for an impossible row.
        self.values: Numbers | None = found.get("marginals")
        #: ln Z: the log probability that all rules hold, given the beliefs; -inf for an impossible row.
        self.log_evidence: Numbers | None = found.get("log_evidence")
        #: The engine of the marginals.
        self.engine: str | None = found.get("engine")
        #: Of loopy propagation: the number of sweeps, and the largest change of a marginal in the last sweep.
        self.sweeps: npt.NDArray[np.int64] | None = found.get("sweeps")
        self.residual: Numbers | None = found.get("residual")
        #: Rows x assignments (or samples) x labels: the position of the category, -1 where there is none.
        self.positions: npt.NDArray[np.int64] | None = found.get("assignments")
        #: Rows x assignments: log weight, log probability, and the gap to the largest possible log weight.
        self.log_weight: Numbers | None = found.get("log_weight")
        self.log_probability: Numbers | None = found.get("log_probability")
        self.gap: Numbers | None = found.get("gap")
        #: The engine of the assignments or samples.
        self.assignment_engine: str | None = found.get("best_engine")

    @property
    def labels(self) -> list[str]:
        """The names of the labels, in order."""
        return [label.name for label in self._labels]

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, label: str) -> Numbers:
        """The probabilities of the categories of a label: rows x categories."""
        values = self._marginals()
        for other, block in zip(self._labels, self._blocks(), strict=True):
            if other.name == label:
                return values[:, block]
        raise UnknownLabelError(f"unknown label `{label}`; there are {', '.join(self.labels)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def keys(self) -> list[str]:
        """The names of the labels, so that `dict(posterior)` works."""
        return self.labels

    @property
    def marginals(self) -> list[Numbers]:
        """For each label, rows x categories."""
        values = self._marginals()
        return [values[:, block] for block in self._blocks()]

    @property
    def assignments(self) -> list[dict[str, str] | None]:
        """The most probable assignment of each row: a category for each label, `None` if there is no assignment."""
        return [row[0] if row else None for row in self.all_assignments]

    @property
    def all_assignments(self) -> list[list[dict[str, str]]]:
        """All assignments (or samples) of each row, the most probable first."""
        if self.positions is None:
            raise ArgumentError('there are no assignments; ask with query="mpe" or "both"')
        return [
            [
                {label.name: label.categories[at] for label, at in zip(self._labels, best, strict=True)}
                for best in row
                if (best >= 0).all()
            ]
            for row in self.positions
        ]

    @property
    def explanations(self) -> list[dict[str, str] | None]:
        """The deprecated name of `assignments`."""
        _deprecated("explanations", "assignments")
        return self.assignments

    @property
    def all_explanations(self) -> list[list[dict[str, str]]]:
        """The deprecated name of `all_assignments`."""
        _deprecated("all_explanations", "all_assignments")
        return self.all_assignments

    @property
    def explanation_engine(self) -> str | None:
        """The deprecated name of `assignment_engine`."""
        _deprecated("explanation_engine", "assignment_engine")
        return self.assignment_engine

    def to_pandas(self) -> Any:
        """The answers as a frame of pandas, with the columns of `prsl predict`."""
        import pandas

        columns: dict[str, Any] = {}
        if self.values is not None:
            names = [f"{label.name}={category}" for label in self._labels for category in label.categories]
            columns |= dict(zip(names, self.values.T, strict=True))
            columns["log_evidence"] = self.log_evidence
        if self.log_weight is not None:
            prefix = "mpe:" if self.values is not None else ""
            for label in self._labels:
                found = [best and best[label.name] for best in self.assignments]
                columns[f"{prefix}{label.name}"] = found
            columns["log_weight"] = self.log_weight[:, 0]
        columns["status"] = self.status
        return pandas.DataFrame(columns)

    def _marginals(self) -> Numbers:
        if self.values is None:
            raise ArgumentError('there are no marginals; ask with query="marginals" or "both"')
        return self.values

    def _blocks(self) -> Iterator[slice]:
        start = 0
        for label in self._labels:
            yield slice(start, start + len(label.categories))
            start += len(label.categories)

    def __repr__(self) -> str:
        rows = "1 row" if len(self) == 1 else f"{len(self)} rows"
        return f"<Posterior of {len(self._labels)} labels for {rows}>"

    def _repr_html_(self) -> str:
        return posterior_page(self)
