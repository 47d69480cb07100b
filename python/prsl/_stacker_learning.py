"""Learning of a stacker: its settings, its rows, and the recipes."""

from __future__ import annotations

import functools
import numbers
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from . import _prsl
from ._columns import Codes
from ._jobs import of_jobs
from ._learned import Addition, Learned
from ._model import MANY_CATEGORIES, Model
from ._progress import LOG, Reporter
from ._stacker_input import StackerInput, n_columns
from .errors import ArgumentError, ExamplesError, PrslWarning

Numbers = npt.NDArray[np.float64]
_Settings = ParamSpec("_Settings")

#: Settings of the recipe "paper".
_PAPER = (
    "max_iter",
    "n_iter_no_change",
    "batch_size",
    "learning_rate",
    "betas",
    "clip",
    "probability",
    "epsilon",
    "alpha",
    "labels_per_rule",
    "gamma_0",
    "gamma_1",
    "lam",
    "gradients",
    "literal",
)

#: Removed settings, and their replacements.
_REMOVED = {
    "width": "was removed with the recipe `thin`; use `parsimony` or `n_rules` to limit the rules",
    "wide": "was removed with the recipe `thin`; use `parsimony` or `n_rules` to limit the rules",
    "relearn": "was removed with the recipe `thin`; use `learn_probabilities=True` to learn the probabilities of given rules",
    "lambda_": "was renamed; use `lam`",
    "patience": "was renamed; use `n_iter_no_change`",
}


def refuses_removed(initialize: Callable[_Settings, None]) -> Callable[_Settings, None]:
    """Names the replacement of a removed setting. The signature is unchanged, because scikit-learn reads settings from it."""

    @functools.wraps(initialize)
    def wrapped(*args: _Settings.args, **settings: _Settings.kwargs) -> None:
        for name in settings:
            if name in _REMOVED:
                raise ArgumentError(f"the setting `{name}` {_REMOVED[name]}")
        initialize(*args, **settings)

    return wrapped


class StackerLearning(StackerInput):
    """The methods of a stacker that learn its model."""

    n_rules: int | str
    recipe: str
    parsimony: float | str
    typical: bool
    calibration: str
    learn_probabilities: bool
    max_seconds: float | None
    memory: int | None
    validation_fraction: float | None
    random_state: Any
    n_jobs: int | None
    callbacks: Any
    verbose: int
    model_: Model
    learned_: Learned
    n_features_in_: int

    def _learn(
        self,
        base: Model,
        X: Any,
        columns: npt.NDArray[Any],
        weights: Numbers | None,
        validation: tuple[Any, Any] | None,
        settings: dict[str, Any],
    ) -> None:
        found = self._rows(X, base, raw=True)
        if len(found) != len(columns):
            raise ArgumentError(
                f"Found input variables with inconsistent numbers of samples: X has {len(found)} rows and y has {len(columns)}"
            )
        self.n_features_in_ = n_columns(X)
        if weights is not None and (weights == 0).any():
            kept = np.flatnonzero(weights)
            found, columns, weights = found.select(kept.tolist()), columns[kept], weights[kept]
        truths = self._binding.truths(self._codes(columns))
        if len(truths) == 0:
            raise ExamplesError("Found array with 0 sample(s) while a minimum of 1 is required: no rows to learn from")
        train: tuple[Any, ...] = (found, truths, weights)
        learn = self._learn_paper if self.recipe == "paper" else self._learn_clauses
        reporter = Reporter(self.callbacks, self.verbose)
        try:
            learned = learn(base, train, validation, settings, reporter)
        finally:
            reporter.close()
        self.learned_ = learned
        self.model_ = learned.model
        LOG.info(
            "learned %d rules from %d rows: log-likelihood %.4f, %.4f without learned rules",
            sum(rule.learned is not None for rule in learned.model.rules),
            len(truths),
            learned.log_likelihood,
            learned.base_alone,
        )

    def _learn_clauses(
        self,
        base: Model,
        train: tuple[Any, ...],
        validation: tuple[Any, Any] | None,
        settings: dict[str, Any],
        reporter: Reporter,
    ) -> Learned:
        from .metrics import joint_log_likelihood

        clauses = {
            "parsimony": self.parsimony,
            "typical": self.typical and settings["n_rules"] != 0,
            "learn_probabilities": self.learn_probabilities,
        }
        observe = None if reporter.is_silent else reporter.clauses
        found = _prsl.learn(base._core, train, settings, clauses, observe)
        _warn_of_interrupt(found)
        found["path"] = [Addition(*addition) for addition in found["path"]]
        if validation is not None:
            model = found["model"]
            truths = self._truths(validation[1])
            values = model._joint_log_likelihood(self._rows(validation[0], model), truths)
            found["validation"] = joint_log_likelihood(values)
        learned = Learned(recipe="clauses", **found)
        if learned.n_impossible:
            warnings.warn(
                f"the given rules exclude the truths of {learned.n_impossible} rows, which are not learned from",
                PrslWarning,
                stacklevel=4,
            )
        return learned

    def _learn_paper(
        self,
        base: Model,
        train: tuple[Any, ...],
        validation: tuple[Any, Any] | None,
        settings: dict[str, Any],
        reporter: Reporter,
    ) -> Learned:
        if validation is None:
            found, truths, weights = train
            train, valid = self._apart(found, truths, weights, settings["seed"])
        else:
            valid = (self._rows(validation[0], base, raw=True), self._truths(validation[1]), None)
        paper = {name: getattr(self, name) for name in _PAPER}
        observe = None if reporter.is_silent else reporter.paper
        result = _prsl.learn_paper(base._core, train, valid, settings, paper, observe)
        _warn_of_interrupt(result)
        return Learned(recipe="paper", log_likelihood=result["validation"], **result)

    def _apart(
        self, found: _prsl.Rows, truths: Codes, weights: Numbers | None, seed: int
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Training set and validation set."""
        parts = self._parts(np.asarray((truths >= 0).any(axis=1), dtype=bool), seed)
        both = [
            (found.select(part.tolist()), truths[part], None if weights is None else weights[part]) for part in parts
        ]
        return both[0], both[1]

    def _training_rows(self, known: npt.NDArray[np.bool_]) -> Codes:
        """The rows that are not in the validation set. `known` tells which rows have a known truth."""
        return self._parts(known, self._seed())[0] if self.recipe == "paper" else np.arange(len(known))

    def _parts(self, known: npt.NDArray[np.bool_], seed: int) -> list[Codes]:
        """The rows of the training set and of the validation set."""
        n_rows = len(known)
        share = 0.1 if self.validation_fraction is None else self.validation_fraction
        if not 0.0 < share < 1.0:
            raise ArgumentError(f"validation_fraction is {share}, expected between 0 and 1")
        parts = [np.array(part, dtype=np.int64) for part in _prsl.split_rows(n_rows, share, seed)]
        for part, name in zip(parts, ("training", "validation"), strict=True):
            if not known[part].any():
                raise ExamplesError(
                    f"of {n_rows} rows, the {name} set has none with a known truth; give more rows, another "
                    "`validation_fraction`, or validation rows"
                )
        return parts

    def _settings(self) -> dict[str, Any]:
        """The settings of every recipe, after a check of the settings of each."""
        self._check_recipe()
        n_rules = self.n_rules
        if n_rules != "auto" and (isinstance(n_rules, str) or int(n_rules) != n_rules or n_rules < 0):
            raise ArgumentError(f"n_rules is {n_rules!r}, expected 'auto' or a whole number from 0")
        return {
            "n_rules": None if n_rules == "auto" else int(n_rules),
            "calibration": self._calibration(),
            "seed": self._seed(),
            "max_seconds": self.max_seconds,
            "threads": of_jobs(self.n_jobs),
            "memory": self.memory,
        }

    def _seed(self) -> int:
        """The seed: `random_state` itself if it is a number, so that it is the seed of the command line."""
        random = check_random_state(self.random_state)
        is_seed = isinstance(self.random_state, numbers.Integral)
        return int(self.random_state if is_seed else random.randint(2**31 - 1))

    def _calibration(self) -> str:
        if self.calibration is None:
            raise ArgumentError("calibration is None; use 'none' for no calibration, or 'default'")
        if self.calibration != "default":
            return self.calibration
        if self.recipe == "paper":
            return "none"
        is_large = any(len(target.classes) >= MANY_CATEGORIES for target in self._targets)
        return "temperature" if is_large else "joint"

    def _check_recipe(self) -> None:
        if self.recipe == "thin":
            raise ArgumentError("the recipe `thin` was removed; use `clauses`, the default")
        if self.recipe not in ("clauses", "paper"):
            raise ArgumentError(f"unknown recipe `{self.recipe}`, expected `clauses` or `paper`")
        if self.recipe == "clauses":
            given = [name for name in (*_PAPER, "validation_fraction") if getattr(self, name) is not None]
            other = "paper"
        else:
            is_given = {"parsimony": self.parsimony != "predict", "learn_probabilities": self.learn_probabilities}
            given = [name for name, is_set in is_given.items() if is_set]
            other = "clauses"
        if given:
            raise ArgumentError(f"the setting `{given[0]}` belongs to the recipe `{other}`, not to `{self.recipe}`")


def _warn_of_interrupt(found: dict[str, Any]) -> None:
    """Warns if Ctrl-C ended learning."""
    if found.pop("by_user"):
        warnings.warn(
            "learning was interrupted; the model is the best so far, and `learned_.interrupted` is true",
            PrslWarning,
            stacklevel=5,
        )


def row_weights(sample_weight: Any, n_rows: int) -> Numbers | None:
    """The weights of the rows, after a check."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, np.empty((n_rows, 1)), dtype=np.float64, ensure_non_negative=True)
    if n_rows and not (weights > 0).any():
        # Older versions of scikit-learn accept them.
        raise ExamplesError("Sample weights must contain at least one non-zero number.")
    return np.asarray(weights, dtype=np.float64)
