"""Predictions, scores and explanations of a fitted stacker."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ._beliefs import index_of
from ._columns import Codes
from ._explanation import Explanation
from ._jobs import of_jobs
from ._model import Model
from ._posterior import Posterior
from ._stacker_input import StackerInput
from .errors import ArgumentError, PrslWarning

Numbers = npt.NDArray[np.float64]

#: Maximum number of rows that a warning names.
_NAMED_ROWS = 10


class StackerAnswers(StackerInput):
    """The methods of a stacker that need its model."""

    decision: str
    threshold: float | dict[str, float] | None
    n_jobs: int | None
    model_: Model
    _single: bool

    def predict_proba(self, X: Any) -> Any:
        """The probabilities of the classes: (n, M) for one label, a list of such arrays for several. Impossible rows are NaN."""
        return self._shaped([self._of_classes(values, j) for j, values in enumerate(self._marginals(X))])

    def predict(self, X: Any) -> Any:
        """The most probable class of each label, or the most probable assignment of all labels; see `decision`.

        An impossible row gets the most probable classes of its calibrated beliefs, with a warning.
        """
        check_is_fitted(self, "model_")
        if self._is_joint():
            return self.predict_mpe(X)
        marginals = self._marginals(X, warn=False)
        probabilities = [self._of_classes(values, j) for j, values in enumerate(marginals)]
        codes = [_argmax(values, threshold) for values, threshold in zip(probabilities, self._thresholds(), strict=True)]
        return self._decided(X, np.column_stack(codes))

    def predict_status(self, X: Any) -> npt.NDArray[np.str_]:
        """The status of each row, such as `ok` or `impossible`; see :attr:`Posterior.status`. If it is `impossible` or
        `not_found`, `predict` returns the classes of the calibrated beliefs."""
        check_is_fitted(self, "model_")
        return self.posterior(X, "mpe" if self._is_joint() else "marginals").status

    def predict_mpe(self, X: Any) -> Any:
        """The most probable assignment of each row: a class for each label."""
        posterior = self.posterior(X, query="mpe")
        assert posterior.positions is not None
        return self._decided(X, self._binding.codes(posterior.positions[:, 0, :]))

    def predict_top(self, X: Any, n: int = 3) -> tuple[Any, Numbers]:
        """The n most probable assignments of each row, (rows, n, labels), and their probabilities, (rows, n).

        A row with fewer possible assignments has its calibrated beliefs' classes in their place, with probability NaN.
        """
        posterior = self.posterior(X, query="both", top=n)
        assert posterior.positions is not None and posterior.log_probability is not None
        ranks = [self._binding.codes(posterior.positions[:, rank, :]) for rank in range(n)]
        believed = self._believed(X) if any((codes < 0).any() for codes in ranks) else None
        if believed is not None:
            ranks = [np.where(codes < 0, believed, codes) for codes in ranks]
        classes = [np.asarray(self._classes_of(codes)) for codes in ranks]
        return np.stack(classes, axis=1), np.exp(posterior.log_probability)

    def posterior(self, X: Any, query: str = "marginals", **settings: Any) -> Posterior:
        """The posterior of all labels of the model, latent ones included."""
        check_is_fitted(self, "model_")
        settings.setdefault("threads", of_jobs(self.n_jobs))
        posterior = self.model_.predict(self._rows(X, self.model_), query, **settings)
        posterior.index = index_of(X)
        return posterior

    def explain(self, X: Any, row: int = 0) -> Explanation:
        """Explains one row."""
        check_is_fitted(self, "model_")
        return self.model_.explain(self._rows(X, self.model_, raw=True), row, threads=of_jobs(self.n_jobs))

    def joint_log_likelihood(self, X: Any, y: Any) -> Numbers:
        """ln P(known truths | beliefs) of every row; NaN for rows without a known truth."""
        check_is_fitted(self, "model_")
        found, truths = self._rows(X, self.model_), self._truths(y)
        return np.asarray(self.model_._joint_log_likelihood(found, truths, of_jobs(self.n_jobs)), dtype=np.float64)

    def evaluate(self, X: Any, y: Any) -> dict[str, Any]:
        """All scores of `prsl evaluate`."""
        check_is_fitted(self, "model_")
        return self.model_._evaluate(self._rows(X, self.model_), self._truths(y), threads=of_jobs(self.n_jobs))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose known truths are all predicted."""
        from .metrics import joint_accuracy

        return joint_accuracy(y, self.predict(X), sample_weight=sample_weight)

    def _check_decision(self) -> None:
        if self.decision not in ("auto", "marginal", "joint"):
            raise ArgumentError(f"unknown decision `{self.decision}`, expected `auto`, `marginal` or `joint`")
        if self.threshold is not None and self.decision == "joint":
            raise ArgumentError("a threshold decides each label by itself; use decision `marginal` or `auto`")
        given = self.threshold if isinstance(self.threshold, dict) else {"threshold": self.threshold}
        for name, value in given.items():
            if value is not None and not 0.0 <= value <= 1.0:
                raise ArgumentError(f"threshold is {value} for `{name}`, expected a probability from 0 to 1")

    def _thresholds(self) -> list[float | None]:
        """For each target the threshold of its second class; `None` where the most probable class is taken."""
        if not isinstance(self.threshold, dict):
            return [self.threshold if len(target.classes) == 2 else None for target in self._targets]
        two = [target.name for target in self._targets if len(target.classes) == 2]
        unknown = [name for name in self.threshold if name not in two]
        if unknown:
            raise ArgumentError(f"threshold of `{unknown[0]}`, expected labels of two classes: {', '.join(two)}")
        return [self.threshold.get(target.name) for target in self._targets]

    def _is_joint(self) -> bool:
        """Whether `predict` returns the most probable assignment."""
        self._check_decision()
        if self.decision == "auto":
            return self.threshold is None and any(rule.probability in (0.0, 1.0) for rule in self.model_.rules)
        return self.decision == "joint"

    def _marginals(self, X: Any, warn: bool = True) -> list[Numbers]:
        """For each target, rows x categories."""
        posterior = self.posterior(X)
        impossible = np.flatnonzero(posterior.status == "impossible")
        if warn and len(impossible):
            warnings.warn(
                f"{len(impossible)} of {len(posterior)} rows are impossible under the hard rules: "
                f"{_listed(impossible)}; their probabilities are NaN, and `explain` says why",
                PrslWarning,
                stacklevel=3,
            )
        marginals = posterior.marginals
        return [marginals[label] for label in self._binding.labels]

    def _of_classes(self, values: Numbers, target: int) -> Numbers:
        """Probabilities of categories as probabilities of classes."""
        of_classes = values[:, self._binding.categories[target]]
        if of_classes.shape[1] < values.shape[1]:
            totals = of_classes.sum(axis=1, keepdims=True)
            # If only categories without a class are possible, all classes are equally improbable.
            equal = np.full_like(of_classes, 1.0 / of_classes.shape[1])
            equal[np.isnan(totals[:, 0])] = np.nan
            of_classes = np.divide(of_classes, totals, out=equal, where=totals > 0)
        return np.ascontiguousarray(of_classes)

    def _decided(self, X: Any, codes: Codes) -> Any:
        """Positions of classes as classes. Calibrated beliefs replace missing answers, with a warning."""
        rows = np.flatnonzero((codes < 0).any(axis=1))
        if len(rows):
            codes = np.where(codes < 0, self._believed(X), codes)
            warnings.warn(
                f"{len(rows)} of {len(codes)} rows have no possible answer: {_listed(rows)}; their classes are those of the "
                "calibrated beliefs, and `predict_status` and `explain` say why",
                PrslWarning,
                stacklevel=3,
            )
        return self._classes_of(codes)

    def _believed(self, X: Any) -> Codes:
        """The most probable classes of the calibrated beliefs, without rules."""
        model = self.model_._without_rules()
        marginals = model.predict(self._rows(X, model), threads=of_jobs(self.n_jobs)).marginals
        of_targets = [self._of_classes(marginals[label], j) for j, label in enumerate(self._binding.labels)]
        return np.column_stack([np.maximum(_argmax(values), 0) for values in of_targets])

    def _classes_of(self, codes: Codes) -> Any:
        """Positions of classes as classes."""
        columns = [target.classes[codes[:, j]] for j, target in enumerate(self._targets)]
        if self._single:
            return columns[0]
        kinds = {column.dtype.kind for column in columns}
        if kinds <= set("biuf") or kinds <= set("US"):
            return np.column_stack(columns)
        return np.column_stack([column.astype(object) for column in columns])

    def _shaped(self, of_targets: list[Numbers]) -> Any:
        return of_targets[0] if self._single else of_targets


def _listed(rows: Codes) -> str:
    """The first rows of a list, counted from 0."""
    shown = ", ".join(str(row) for row in rows[:_NAMED_ROWS])
    return f"row {shown}" if len(rows) == 1 else f"rows {shown}{', ...' * (len(rows) > _NAMED_ROWS)}"


def _argmax(values: Numbers, threshold: float | None = None) -> Codes:
    """The most probable class, or the second one from a threshold on; -1 for an impossible row."""
    found = np.full(len(values), -1, dtype=np.int64)
    possible = ~np.isnan(values).any(axis=1)
    found[possible] = values[possible].argmax(axis=1) if threshold is None else values[possible, 1] >= threshold
    return found
