"""An estimator whose input is beliefs. It learns rules and calibrators, and predicts with them."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from . import _prsl
from ._beliefs import as_beliefs, as_numbers, index_of, is_named, rows
from ._columns import Codes, as_columns
from ._explanation import Explanation
from ._jobs import of_jobs
from ._labels import Binding, Target, base_model, label_names
from ._learned import Addition, Learned
from ._model import MANY_CATEGORIES, Model
from ._posterior import Posterior
from .errors import ArgumentError, ExamplesError, LengthError, PrslWarning

Numbers = npt.NDArray[np.float64]

_LOG = logging.getLogger("prsl")

#: Maximum number of rows that a warning names.
_NAMED_ROWS = 10

#: Settings of the recipe "paper".
_PAPER = (
    "max_iter",
    "patience",
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
}


class RuleStacker(ClassifierMixin, BaseEstimator):
    """Learns rules between labels and calibrators for classifiers, from beliefs and truths.

    `X` has the beliefs, in one of these forms:

    * a list of arrays (n, M) as `predict_proba` of scikit-learn returns them, with a column for each class in the order
      of `classes_`;
    * a dictionary of such arrays by label;
    * one array with the columns of all labels side by side. For a label of two classes, one column with the
      probability of the second class suffices;
    * a frame with columns `label=category`.

    NaN is a missing belief. `y` has a column for each label, with NaN or `None` if the truth is unknown.

    Parameters
    ----------
    labels : list of str, optional
        Names for the columns of `y`, used in rules. Defaults to the columns of a frame, or to `y0`, `y1`, ...
    rules : str, list, dict or Model, optional
        Expert rules: a text in the rule language, a list of its lines or of pairs (probability, formula), a dictionary
        of formulas and their probabilities, or a model. A formula alone in a list is a hard rule. A label with the
        classes 0 and 1 has the categories yes and no.
    n_rules : "auto" or int
        Maximum number of learned rules; 0 learns no rules. With `recipe="paper"`, the number of learned rules, where
        "auto" selects one on the validation set.
    recipe : "clauses" or "paper"
        "clauses" adds the rule with the largest gain until no rule pays for its description. "paper" learns noisy-or
        rules by gradient ascent, as in the paper.
    parsimony : "predict", "explain" or float
        Price of a rule, as a multiple of its description length. "predict" (0.25) predicts best. "explain" (1) adds only
        rules that are surely there.
    typical : bool
        Whether typical combinations are learned. They are kept only if they pay. "paper" learns none.
    calibration : "default", "joint", "none", "auto", "platt", "isotonic", "temperature", "dirichlet" or "confusion"
        How beliefs are calibrated. "joint" fits calibrators together with the rules, "none" does not calibrate. The
        other methods calibrate before learning rules. "default" is "none" with `recipe="paper"`, "temperature" if a
        label has 50 or more classes, and "joint" otherwise. `None` is refused, because it could mean either.
    learn_probabilities : bool
        Whether probabilities of the given rules are learned; not with `recipe="paper"`.
    decision : "auto", "marginal" or "joint"
        Whether `predict` takes the most probable class of each label, or the most probable assignment of all labels.
        The former may violate hard rules. So "auto" is "joint" if the model has hard rules, otherwise "marginal".
    max_seconds : float, optional
        Learning stops after this time, with the best model so far.
    validation_fraction : float, optional
        With `recipe="paper"`: share of rows in the validation set, 0.1 by default, unless validation rows are passed to
        `fit`. "clauses" learns from all rows.
    max_iter, patience, batch_size, learning_rate, betas, clip : optional
        With `recipe="paper"`: settings of the optimizer. `clip` is the lower bound of inhibition probabilities.
    probability, epsilon, alpha, labels_per_rule, gamma_0, gamma_1, lam : optional
        With `recipe="paper"`: the constants of the paper.
    gradients : "exact" or "loopy", optional
        With `recipe="paper"`: the kind of gradients, "exact" by default.
    literal : bool, optional
        With `recipe="paper"`: whether the method is that of the paper without any change.
    normalize : bool
        Whether beliefs that do not sum to 1 are divided by their sum.
    random_state : int, RandomState or None
        Seed of learning. The same seed gives the same model.
    n_jobs : int or None
        Number of threads, as in scikit-learn: `None` means 1 unless `joblib.parallel_config` says otherwise, -1 means
        all cores. Results do not depend on it.
    verbose : int
        Whether progress is shown. The logger "prsl" also reports it, at the level DEBUG.

    Attributes
    ----------
    model_ : Model
        The labels with all rules and calibrators.
    classes_ : array, or list of arrays
        The classes of each label.
    learned_ : Learned
        The additions of rules, their gains, and log-likelihoods for comparison.
    n_iter_ : int
        Number of passes over the candidates; with `recipe="paper"`, number of optimizer steps.

    Examples
    --------
    >>> import numpy as np
    >>> from prsl import RuleStacker
    >>> rng = np.random.default_rng(1)
    >>> y = np.repeat(rng.integers(0, 2, 400), 2).reshape(-1, 2)        # two labels that are always equal
    >>> yes = np.clip(0.5 + 0.2 * (y - 0.5) + 0.1 * rng.normal(size=y.shape), 0.01, 0.99)
    >>> stacker = RuleStacker(labels=["left", "right"], random_state=0).fit(yes, y)
    >>> stacker.predict_mpe(yes[:1])[0].tolist() in ([0, 0], [1, 1])
    True
    """

    def __init__(
        self,
        labels: list[str] | None = None,
        rules: Any = None,
        n_rules: int | str = "auto",
        *,
        recipe: str = "clauses",
        parsimony: float | str = "predict",
        typical: bool = True,
        calibration: str = "default",
        learn_probabilities: bool = False,
        decision: str = "auto",
        max_seconds: float | None = None,
        validation_fraction: float | None = None,
        max_iter: int | None = None,
        patience: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        betas: tuple[float, float] | None = None,
        clip: float | None = None,
        probability: float | None = None,
        epsilon: float | None = None,
        alpha: float | None = None,
        labels_per_rule: int | None = None,
        gamma_0: float | None = None,
        gamma_1: float | None = None,
        lam: float | None = None,
        gradients: str | None = None,
        literal: bool | None = None,
        normalize: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        **removed: Any,
    ) -> None:
        for name in removed:
            if name in _REMOVED:
                raise ArgumentError(f"the setting `{name}` {_REMOVED[name]}")
            raise TypeError(f"RuleStacker() got an unexpected keyword argument {name!r}")
        self.labels = labels
        self.rules = rules
        self.n_rules = n_rules
        self.recipe = recipe
        self.parsimony = parsimony
        self.typical = typical
        self.calibration = calibration
        self.learn_probabilities = learn_probabilities
        self.decision = decision
        self.max_seconds = max_seconds
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.betas = betas
        self.clip = clip
        self.probability = probability
        self.epsilon = epsilon
        self.alpha = alpha
        self.labels_per_rule = labels_per_rule
        self.gamma_0 = gamma_0
        self.gamma_1 = gamma_1
        self.lam = lam
        self.gradients = gradients
        self.literal = literal
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, validation: tuple[Any, Any] | None = None) -> Self:
        """Learns from beliefs and truths.

        `validation` has further rows (beliefs, truths), whose log-likelihood is `learned_.validation`. With
        `recipe="paper"` they replace the random validation set.
        """
        columns, names, self._single = as_columns(y)
        self._check_decision()
        weights = _weights(sample_weight, len(columns))
        counted = columns if weights is None else columns[weights > 0]
        self._take_targets(counted, label_names(self.labels, names, self._single, columns.shape[1]))
        settings = self._settings()
        self._base = base_model(self._targets, self.rules)
        self._binding = Binding.of(self._base, self._targets)
        self._learn(self._base, X, columns, weights, validation, settings)
        self.n_iter_ = self.learned_.n_iter
        return self

    @classmethod
    def from_model(cls, model: Model, **settings: Any) -> Self:
        """A fitted stacker that predicts with this model. Nothing is learned, so it needs no rows.

        The labels with a classifier are the columns of `y`. The classes of a yes/no label are 0 and 1. Those of other
        labels are their categories, as numbers if all of them are numbers.

        >>> model = Model.parse("label rain\\nlabel wet\\nrule 1: rain -> wet")
        >>> RuleStacker.from_model(model).predict([[0.8, 0.3], [0.1, 0.4]]).tolist()
        [[1, 1], [0, 0]]
        """
        targets = [Target.of_label(label) for label in model.labels if label.classifier is not None]
        if not targets:
            raise ArgumentError("the model has no label with a classifier")
        stacker = cls(labels=[target.name for target in targets], rules=model, **settings)
        stacker._check_decision()
        stacker._targets = targets
        stacker._single = len(targets) == 1
        stacker.classes_ = targets[0].classes if stacker._single else [target.classes for target in targets]
        stacker._base = stacker.model_ = model
        stacker._binding = Binding.of(model, targets)
        stacker.n_iter_ = 0
        return stacker

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Adds rules that pay on more rows. Existing rules and calibrators do not change; typical combinations are
        learned anew. The first call fits; `classes` then lists classes that may not be among its rows.
        """
        if not hasattr(self, "model_"):
            if classes is not None:
                columns, names, _ = as_columns(y)
                listed = [classes] if np.ndim(classes[0]) == 0 else list(classes)
                self._classes = [np.unique(np.asarray(of_label)) for of_label in listed]
                if len(self._classes) != columns.shape[1]:
                    raise ArgumentError(f"classes are of {len(listed)} labels, and y has {columns.shape[1]}")
            try:
                return self.fit(X, y, sample_weight)
            finally:
                self.__dict__.pop("_classes", None)
        settings = self._settings()
        if self.recipe == "paper":
            raise ArgumentError("the recipe `paper` cannot continue from a model; use recipe `clauses`, or fit all rows")
        n_learned = sum(rule.learned is not None for rule in self.model_.rules)
        if settings["n_rules"] is not None:
            settings["n_rules"] = max(settings["n_rules"] - n_learned, 0)
        settings["calibration"] = "none"
        base = self.model_.edit().remove_typical().build()
        columns = as_columns(y)[0]
        self._learn(base, X, columns, _weights(sample_weight, len(columns)), None, settings)
        self.n_iter_ += self.learned_.n_iter
        return self

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
        return self._decided(X, np.column_stack([_argmax(values) for values in probabilities]))

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
        return self.model_.explain(self._rows(X, self.model_), row, threads=of_jobs(self.n_jobs))

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

    def _take_targets(self, columns: npt.NDArray[Any], names: list[str]) -> None:
        """Determines the targets from the columns of `y`."""
        listed = getattr(self, "_classes", None)
        if listed is not None:
            self._targets = [Target.of(name, classes) for name, classes in zip(names, listed, strict=True)]
        else:
            several = not self._single
            self._targets = [Target.of(name, columns[:, j], of_several=several) for j, name in enumerate(names)]
        classes = [target.classes for target in self._targets]
        self.classes_ = classes[0] if self._single else classes

    def _codes(self, columns: npt.NDArray[Any]) -> Codes:
        if columns.shape[1] != len(self._targets):
            raise ArgumentError(f"y has {columns.shape[1]} columns, expected {len(self._targets)}")
        return np.column_stack([target.codes(columns[:, j]) for j, target in enumerate(self._targets)])

    def _truths(self, y: Any) -> Codes:
        return self._binding.truths(self._codes(as_columns(y)[0]))

    def _rows(self, X: Any, model: Model, raw: bool = False) -> _prsl.Rows:
        """Beliefs in the order of classes as beliefs in the order of categories."""
        if isinstance(X, _prsl.Rows):
            return X
        if not is_named(X):
            X = self._by_label(X, model)
        return rows(model._core, X, normalize=self.normalize, raw=raw)

    def _by_label(self, X: Any, model: Model) -> dict[str, Any]:
        names = [target.name for target in self._targets]
        if isinstance(X, dict):
            arrays = {name: X[name] for name in names if name in X and not isinstance(X[name], Mapping)}
            # Of labels that only the rules contain, and columns by category.
            extra = {name: values for name, values in X.items() if name not in arrays}
            return extra | {name: self._of_label(names.index(name), values, model) for name, values in arrays.items()}
        if isinstance(X, np.ndarray) and X.ndim == 2 or not isinstance(X, (list, tuple)) or np.ndim(X[0]) == 1:
            array = np.asarray(X)
            X = self._split(array if array.dtype.kind == "f" else as_numbers(array))
        if len(X) != len(names):
            raise LengthError(f"X has beliefs about {len(X)} labels, expected {len(names)}")
        return {name: self._of_label(j, X[j], model) for j, name in enumerate(names) if X[j] is not None}

    def _split(self, X: Numbers) -> list[Numbers]:
        """One array with the columns of all labels side by side."""
        if X.ndim != 2:
            raise LengthError(f"X has {X.ndim} dimensions, expected 2. Reshape your data: a row for each instance")
        widths = [len(target.classes) for target in self._targets]
        if X.shape[1] == len(widths) and all(width <= 2 for width in widths):
            return [X[:, j] for j in range(len(widths))]
        if X.shape[1] != sum(widths):
            raise LengthError(
                f"X has {X.shape[1]} columns, expected {sum(widths)}, one for each class of each label"
                + (f", or {len(widths)} with the probability of the second" if max(widths) == 2 else "")
            )
        return np.split(X, np.cumsum(widths)[:-1], axis=1)

    def _of_label(self, target: int, values: Any, model: Model) -> Numbers:
        """Beliefs in the classes of a label as beliefs in its categories."""
        label = model.labels[self._binding.labels[target]]
        places = self._binding.categories[target]
        array = as_beliefs(values)
        if array.ndim == 1 and len(places) <= 2:
            array = np.column_stack([1.0 - array, array]) if len(places) == 2 else array.reshape(-1, 1)
        if array.ndim != 2 or array.shape[1] != len(places):
            raise LengthError(
                f"beliefs about label `{label.name}` have the shape {array.shape}, expected (n, {len(places)})"
            )
        if len(label.categories) == array.shape[1] and (places == np.arange(len(places))).all():
            return array
        ordered = np.zeros((len(array), len(label.categories)))
        ordered[np.isnan(array).all(axis=1)] = np.nan
        ordered[:, places] = array
        return ordered

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
        self.n_features_in_ = _n_columns(X)
        if weights is not None and (weights == 0).any():
            kept = np.flatnonzero(weights)
            found, columns, weights = found.select(kept.tolist()), columns[kept], weights[kept]
        truths = self._binding.truths(self._codes(columns))
        if len(truths) == 0:
            raise ExamplesError("Found array with 0 sample(s) while a minimum of 1 is required: no rows to learn from")
        train: tuple[Any, ...] = (found, truths, weights)
        if self.recipe == "paper":
            learned = self._learn_paper(base, train, validation, settings)
        else:
            learned = self._learn_clauses(base, train, validation, settings)
        self.learned_ = learned
        self.model_ = learned.model
        _LOG.info(
            "learned %d rules from %d rows: log-likelihood %.4f, %.4f without learned rules",
            sum(rule.learned is not None for rule in learned.model.rules),
            len(truths),
            learned.log_likelihood,
            learned.base_alone,
        )

    def _learn_clauses(
        self, base: Model, train: tuple[Any, ...], validation: tuple[Any, Any] | None, settings: dict[str, Any]
    ) -> Learned:
        from .metrics import joint_log_likelihood

        clauses = {
            "parsimony": self.parsimony,
            "typical": self.typical and settings["n_rules"] != 0,
            "learn_probabilities": self.learn_probabilities,
        }
        found = _prsl.learn(base._core, train, settings, clauses, self._observer())
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
        self, base: Model, train: tuple[Any, ...], validation: tuple[Any, Any] | None, settings: dict[str, Any]
    ) -> Learned:
        if validation is None:
            found, truths, weights = train
            train, valid = self._apart(found, truths, weights, settings["seed"])
        else:
            valid = (self._rows(validation[0], base, raw=True), self._truths(validation[1]), None)
        paper = {name: getattr(self, name) for name in _PAPER}
        result = _prsl.learn_paper(base._core, train, valid, settings, paper, self._observer())
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
        n_valid = round(share * n_rows)
        order = np.random.default_rng(seed).permutation(n_rows)
        parts = [np.sort(order[n_valid:]), np.sort(order[:n_valid])]
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
        }

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _calibration(self) -> str:
        if self.calibration is None:
            raise ArgumentError("calibration is None; use 'none' for no calibration, or 'default'")
        if self.calibration != "default":
            return self.calibration
        if self.recipe == "paper":
            return "none"
        is_large = any(len(target.classes) >= MANY_CATEGORIES for target in self._targets)
        return "temperature" if is_large else "joint"

    def _check_decision(self) -> None:
        if self.decision not in ("auto", "marginal", "joint"):
            raise ArgumentError(f"unknown decision `{self.decision}`, expected `auto`, `marginal` or `joint`")

    def _is_joint(self) -> bool:
        """Whether `predict` returns the most probable assignment."""
        self._check_decision()
        if self.decision == "auto":
            return any(rule.probability in (0.0, 1.0) for rule in self.model_.rules)
        return self.decision == "joint"

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

    def _observer(self) -> Any:
        if not self.verbose and not _LOG.isEnabledFor(logging.DEBUG):
            return None

        def show(text: str) -> bool:
            _LOG.debug("%s", text)
            if self.verbose:
                print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
            return True

        def clauses(phase: str, n_rules: int, n_passes: int, gain: float | None) -> bool:
            last = "" if gain is None else f", last gain {gain:.1f} nats"
            return show(f"{phase}: {n_rules} rules after {n_passes} passes{last}")

        def paper(
            n_done: int, n_rules: int | None, step: int, training: float | None, validation: float | None
        ) -> bool:
            numbers = "" if validation is None else f": validation {validation:.4f}"
            numbers += "" if training is None else f", training {training:.4f}"
            return show(f"run {n_done + 1} with {n_rules or 0} rules, step {step}{numbers}")

        return paper if self.recipe == "paper" else clauses

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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _shaped(self, of_targets: list[Numbers]) -> Any:
        return of_targets[0] if self._single else of_targets

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = True
        tags.input_tags.allow_nan = True
        return tags


def _listed(rows: Codes) -> str:
    """The first rows of a list, counted from 0."""
    shown = ", ".join(str(row) for row in rows[:_NAMED_ROWS])
    return f"row {shown}" if len(rows) == 1 else f"rows {shown}{', ...' * (len(rows) > _NAMED_ROWS)}"


def _weights(sample_weight: Any, n_rows: int) -> Numbers | None:
    """The weights of the rows, after a check."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, np.empty((n_rows, 1)), dtype=np.float64, ensure_non_negative=True)
    if n_rows and not (weights > 0).any():
        # Older versions of scikit-learn accept them.
        raise ExamplesError("Sample weights must contain at least one non-zero number.")
    return np.asarray(weights, dtype=np.float64)


def _n_columns(X: Any) -> int:
    """The number of columns with beliefs, in any form of `X`."""
    if hasattr(X, "columns") and not isinstance(X, dict):
        return len(X.columns)
    if hasattr(X, "shape") and len(X.shape) == 2:
        return int(X.shape[1])
    if isinstance(X, dict):
        X = list(X.values())
    if not isinstance(X, (list, tuple)):
        return 0
    if np.ndim(X[0]) == 1 and not isinstance(X[0], np.ndarray):
        return len(X[0])
    by_category = sum(len(values) for values in X if isinstance(values, Mapping))
    shapes = [np.shape(values) for values in X if values is not None and not isinstance(values, Mapping)]
    return by_category + sum(shape[1] if len(shape) == 2 else 1 for shape in shapes)


def _argmax(values: Numbers) -> Codes:
    """The most probable class, -1 for an impossible row."""
    found = np.full(len(values), -1, dtype=np.int64)
    possible = ~np.isnan(values).any(axis=1)
    found[possible] = values[possible].argmax(axis=1)
    return found
