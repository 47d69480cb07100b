"""Posteriors of rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._html import posterior_page
from ._prsl import __version__
from .errors import ArgumentError, PrslError, UnknownCategoryError, UnknownLabelError

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
    >>> posterior["wet"].round(2)                    # no, yes
    array([[0.22, 0.78],
           [0.48, 0.52]])
    >>> posterior["wet", "yes"].round(2)
    array([0.78, 0.52])
    >>> posterior.status.tolist(), posterior.engine
    (['ok', 'ok'], 'junction_tree')
    """

    def __init__(self, labels: list[Label], query: str, found: dict[str, Any], index: Any = None) -> None:
        self._labels = labels
        #: The index of the pandas frame with the beliefs, otherwise `None`.
        self.index = index
        #: The query.
        self.query = query
        #: For each row `ok`, `impossible`, `not_converged`, `imprecise`, `not_proven`, `time_limit` (not proven because
        #: the time limit ended the search; another run may answer differently) or `not_found` (neither a possible
        #: assignment nor a proof of impossibility was found).
        self.status: npt.NDArray[np.str_] = np.array(found["statuses"])[found["status"]]
        #: A column for each category of each label, in the order of `Label.categories`; NaN for an impossible row.
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

    def __getitem__(self, label: str | tuple[str, str]) -> Numbers:
        """The probabilities of the categories of a label, rows x categories in the order of `Label.categories`: no
        before yes. With a category, as in `posterior["rain", "yes"]`, its probability in each row."""
        values = self._marginals()
        label, category = label if isinstance(label, tuple) else (label, None)
        for other, block in zip(self._labels, self._blocks(), strict=True):
            if other.name == label and category is None:
                return values[:, block]
            if other.name == label:
                if category not in other.categories:
                    known = ", ".join(other.categories)
                    raise UnknownCategoryError(f"unknown category `{category}` of label `{label}`, which has {known}")
                return values[:, block.start + other.categories.index(category)]
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
        return self._assignments(self.positions)

    def _assignments(self, positions: npt.NDArray[np.int64]) -> list[list[dict[str, str]]]:
        return [
            [
                {label.name: label.categories[at] for label, at in zip(self._labels, best, strict=True)}
                for best in row
                if (best >= 0).all()
            ]
            for row in positions
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
        """The answers as a frame of pandas, with the columns of `prsl predict`.

        It has one line per row, with the index of the beliefs. Several assignments or samples of a row take one line
        each. Their columns begin with `row`, the index of the row, and `rank` or `sample`, counted from 1.
        """
        import pandas

        columns = self._columns()
        return pandas.DataFrame(columns, index=None if "row" in columns else self.index)

    def to_arrow(self) -> Any:
        """The answers as a table of pyarrow, with the columns of `to_pandas`. An index that counts the rows is omitted."""
        import pyarrow

        return pyarrow.table(self._with_index())

    def to_polars(self) -> Any:
        """The answers as a frame of polars, with the columns of `to_pandas`. An index that counts the rows is omitted."""
        import polars

        return polars.DataFrame(self._with_index())

    def _with_index(self) -> dict[str, Any]:
        """The columns, and the levels of the index as the first of them unless it counts the rows."""
        columns = self._columns()
        if self.index is None or "row" in columns or list(self.index) == list(range(len(self))):
            return columns
        levels = {
            f"level_{at}" if name is None else str(name): np.asarray(self.index.get_level_values(at))
            for at, name in enumerate(self.index.names)
        }
        if list(levels) == ["level_0"]:
            levels = {"index": levels["level_0"]}
        return levels | columns

    def _columns(self) -> dict[str, Any]:
        n_ranks = 1 if self.positions is None else self.positions.shape[1]
        lines = np.repeat(np.arange(len(self)), n_ranks)
        columns: dict[str, Any] = {}
        if n_ranks > 1 or self.query == "samples":
            columns["row"] = lines if self.index is None else np.asarray(self.index)[lines]
            columns["sample" if self.query == "samples" else "rank"] = np.tile(np.arange(1, n_ranks + 1), len(self))
        if self.values is not None:
            names = [f"{label.name}={category}" for label in self._labels for category in label.categories]
            columns |= dict(zip(names, self.values[lines].T, strict=True))
            columns["log_evidence"] = None if self.log_evidence is None else self.log_evidence[lines]
        if self.positions is not None:
            prefix = "mpe:" if self.values is not None else ""
            positions = self.positions.reshape(len(lines), len(self._labels))
            for label, places in zip(self._labels, positions.T, strict=True):
                # The last category is `None`, which is that of a missing assignment, -1.
                columns[f"{prefix}{label.name}"] = np.array([*label.categories, None], dtype=object)[places]
        if self.log_weight is not None:
            columns["log_weight"] = self.log_weight.ravel()
        columns["status"] = self.status[lines]
        return columns

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        version = state.pop("version", "unknown")
        if "_labels" not in state or "status" not in state:
            raise PrslError(f"the Posterior was pickled by prsl {version} and cannot be read by prsl {__version__}")
        self.__dict__.update(state)

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
