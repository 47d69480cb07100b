"""An estimator whose input is features. It stacks classifiers with rules."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from ._explanation import Explanation
from ._labels import Codes, Target, as_columns
from ._model import Model
from ._posterior import Posterior
from ._stacker import RuleStacker
from .errors import ArgumentError, ExamplesError, PrslError

Numbers = npt.NDArray[np.float64]

#: Lower bound on beliefs before their logarithms are pooled.
_SMALLEST = 1e-4


class RuleStackingClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Classifiers for every label, stacked with given and learned rules.

    Fitting has three steps. Classifiers of each label give out-of-fold beliefs. A :class:`RuleStacker` learns
    calibration and rules from these beliefs. Finally the classifiers are fitted to all rows.

    Parameters
    ----------
    estimator : classifier, list of classifiers, or None
        Fitted to each label; a random forest if `None`. See `combine` for several classifiers.
    rules : str, list or Model, optional
        Expert rules; see :class:`RuleStacker`.
    n_rules : "auto" or int
        Maximum number of learned rules; 0 learns none. See :class:`RuleStacker`.
    calibration : str, optional
        "joint" (the default), "none", "auto", "platt", "isotonic", "temperature", "dirichlet" or "confusion".
    cv : int, splitter or "prefit"
        How rows are split for out-of-fold beliefs. "prefit" means that `estimator` is already fitted: one classifier for
        all labels, whose `predict_proba` returns a list, or a list of one classifier per label.
    labels : list of str, optional
        Names for the columns of `y`.
    combine : "pool" or "labels"
        How several classifiers of one label are combined. "pool" pools their log-odds with learned weights, because
        classifiers of the same label make similar errors. With "labels", each classifier has its own label, and rules of
        learned probability connect it with the first. Their beliefs then count as independent, and `explain` shows the
        effect of each.
    decision : "marginal" or "joint"
        Whether `predict` takes the most probable class of each label, or the most probable assignment of all labels.
    stacker : RuleStacker or None
        All other settings of learning, such as `parsimony`; those above take precedence.
    random_state, n_jobs, verbose
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> classifier = RuleStackingClassifier(LogisticRegression(), random_state=0).fit(X, y)
    >>> classifier.predict(X[:2]).shape, len(classifier.predict_proba(X[:2]))
    ((2, 5), 5)
    """

    def __init__(
        self,
        estimator: Any = None,
        rules: Any = None,
        n_rules: int | str = "auto",
        calibration: str | None = None,
        cv: Any = 5,
        *,
        labels: list[str] | None = None,
        combine: str = "pool",
        decision: str = "marginal",
        stacker: RuleStacker | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.rules = rules
        self.n_rules = n_rules
        self.calibration = calibration
        self.cv = cv
        self.labels = labels
        self.combine = combine
        self.decision = decision
        self.stacker = stacker
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fits classifiers, calibration and rules."""
        if y is None:
            raise ArgumentError("This RuleStackingClassifier estimator requires y to be passed, but the target y is None")
        if self.combine not in ("pool", "labels"):
            raise ArgumentError(f"unknown combine `{self.combine}`, expected `pool` or `labels`")
        X = validate_data(self, X, accept_sparse="csr")
        columns, names, single = as_columns(y)
        _refuse_infinities(columns)
        check_consistent_length(X, columns)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        if weights is not None and (weights == 0).any():
            # Rows of weight 0 are removed.
            kept = np.flatnonzero(weights)
            if len(kept) == 0:
                raise ExamplesError("all sample weights are 0")
            X, columns, weights = _safe_indexing(X, kept), columns[kept], weights[kept]
        names = self.labels or names or ["y" if single else f"y{j}" for j in range(columns.shape[1])]
        if len(names) != columns.shape[1]:
            raise ArgumentError(f"there are {len(names)} names for {columns.shape[1]} labels")
        self._single = single
        self._targets = [Target.of(name, columns[:, j], of_several=not single) for j, name in enumerate(names)]
        self.classes_ = self._targets[0].classes if single else [target.classes for target in self._targets]
        codes = np.column_stack([target.codes(columns[:, j]) for j, target in enumerate(self._targets)])
        random = check_random_state(self.random_state)
        if self.cv == "prefit":
            self.estimators_ = self._prefit()
            beliefs = self._beliefs(X)
        else:
            self.estimators_, beliefs = self._fit_estimators(X, codes, weights, random)
        beliefs = self._fit_pools(beliefs, codes, weights)
        self.stacker_ = self._stacker(random.randint(2**31 - 1), names)
        self.stacker_.fit(self._of_stacker(beliefs), self._targets_of_stacker(columns), sample_weight=weights)
        self.model_: Model = self.stacker_.model_
        self.n_iter_ = self.stacker_.n_iter_
        return self

    def beliefs(self, X: Any) -> Any:
        """The pooled beliefs of the classifiers, before calibration and rules: (n, M), or a list of such arrays."""
        beliefs = self._pooled(self._beliefs(self._checked(X)))
        return beliefs[0][0] if self._single else [of_label[0] for of_label in beliefs]

    def predict_proba(self, X: Any) -> Any:
        """The probabilities of the classes: (n, M) for one label, a list of them for several."""
        beliefs = self._stacked(X)
        found = self.stacker_.predict_proba(beliefs)
        listed = [found] if isinstance(found, np.ndarray) else found[: len(self._targets)]
        return listed[0] if self._single else listed

    def predict(self, X: Any) -> Any:
        """The most probable class of each label; with `decision="joint"` the most probable assignment of all labels."""
        beliefs = self._stacked(X)
        return self._own(self.stacker_.predict(beliefs))

    def predict_mpe(self, X: Any) -> Any:
        """The most probable assignment of each row: a class for each label."""
        beliefs = self._stacked(X)
        return self._own(self.stacker_.predict_mpe(beliefs))

    def predict_top(self, X: Any, n: int = 3) -> tuple[Any, Numbers]:
        """The n most probable assignments of each row, (rows, n, labels), and their probabilities, (rows, n)."""
        beliefs = self._stacked(X)
        found, probabilities = self.stacker_.predict_top(beliefs, n)
        return found if found.ndim == 2 else found[..., : len(self._targets)], probabilities

    def posterior(self, X: Any, query: str = "marginals", **settings: Any) -> Posterior:
        """The posterior of all labels of the model, latent ones included."""
        beliefs = self._stacked(X)
        return self.stacker_.posterior(beliefs, query, **settings)

    def explain(self, X: Any, row: int = 0) -> Explanation:
        """Explains one row."""
        beliefs = self._stacked(X)
        return self.stacker_.explain(beliefs, row)

    def joint_log_likelihood(self, X: Any, y: Any) -> Numbers:
        """ln P(known truths | features) of every row; NaN for rows without a known truth."""
        beliefs = self._stacked(X)
        columns, _, _ = as_columns(y)
        missing = np.full((len(columns), len(self.stacker_._targets) - columns.shape[1]), np.nan, dtype=object)
        if missing.shape[1]:
            columns = np.column_stack([columns.astype(object), missing])
        return self.stacker_.joint_log_likelihood(beliefs, columns)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose known truths are all predicted."""
        from .metrics import joint_accuracy

        return joint_accuracy(y, self.predict(X), sample_weight=sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Adds rules that pay on more rows; the classifiers do not change. The first call fits, and its rows must
        contain all classes. `classes` is accepted for compatibility with scikit-learn and ignored."""
        if not hasattr(self, "stacker_"):
            return self.fit(X, y, sample_weight)
        columns, _, _ = as_columns(y)
        self.stacker_.partial_fit(self._stacked(X), self._targets_of_stacker(columns), sample_weight=sample_weight)
        self.model_ = self.stacker_.model_
        self.n_iter_ = self.stacker_.n_iter_
        return self

    def _estimators(self, random: np.random.RandomState) -> list[Any]:
        if self.estimator is None:
            return [
                RandomForestClassifier(
                    n_estimators=200, min_samples_leaf=2, random_state=random.randint(2**31 - 1), n_jobs=self.n_jobs
                )
            ]
        given = list(self.estimator) if isinstance(self.estimator, (list, tuple)) else [self.estimator]
        for estimator in given:
            if not is_classifier(estimator):
                raise ArgumentError(f"{type(estimator).__name__} is no classifier")
            if not hasattr(estimator, "predict_proba"):
                raise ArgumentError(f"{type(estimator).__name__} has no predict_proba; wrap it in CalibratedClassifierCV")
        return given

    def _fit_estimators(
        self, X: Any, codes: Codes, weights: Numbers | None, random: np.random.RandomState
    ) -> tuple[list[list[Any]], list[list[Numbers]]]:
        """For each label, its classifiers fitted to all rows and their out-of-fold beliefs."""
        fitted, beliefs = [], []
        prototypes = self._estimators(random)
        for j, target in enumerate(self._targets):
            known = np.flatnonzero(codes[:, j] >= 0)
            of_label = [_Labeled.fit(prototype, X, known, codes[:, j], target, weights) for prototype in prototypes]
            fitted.append(of_label)
            parts = self._splits(codes[known, j], X, known, random)
            probabilities = []
            for prototype, estimator in zip(prototypes, of_label, strict=True):
                own = np.empty((codes.shape[0], len(target.classes)))
                unknown = np.flatnonzero(codes[:, j] < 0)
                if len(unknown):
                    own[unknown] = estimator.predict_proba(_safe_indexing(X, unknown))
                if not parts:
                    own[known] = estimator.predict_proba(_safe_indexing(X, known))
                for train, test in parts:
                    part = _Labeled.fit(prototype, X, known[train], codes[:, j], target, weights)
                    own[known[test]] = part.predict_proba(_safe_indexing(X, known[test]))
                probabilities.append(own)
            beliefs.append(probabilities)
            self._tell(f"label {j + 1} of {len(self._targets)}: {target.name}")
        return fitted, beliefs

    def _splits(self, codes: Codes, X: Any, known: Codes, random: np.random.RandomState) -> list[tuple[Codes, Codes]]:
        """Pairs of training and prediction rows; none if there are too few rows to split."""
        counts = np.bincount(codes)
        counts = counts[counts > 0]
        if isinstance(self.cv, (int, np.integer)):
            n_splits = min(int(self.cv), len(codes))
            if n_splits < 2:
                return []
            seed = random.randint(2**31 - 1)
            is_stratified = counts.min() >= n_splits
            splitter: Any = StratifiedKFold if is_stratified else KFold
            splitter = splitter(n_splits, shuffle=True, random_state=seed)
        else:
            splitter = check_cv(self.cv, codes, classifier=True)
        return list(splitter.split(_safe_indexing(X, known), codes))

    def _prefit(self) -> Any:
        if self.estimator is None:
            raise ArgumentError("cv='prefit' needs fitted classifiers as `estimator`")
        given = self.estimator
        if isinstance(given, (list, tuple)):
            if len(given) != len(self._targets):
                raise ArgumentError(f"there are {len(given)} fitted classifiers, and {len(self._targets)} labels")
            return [[_Labeled.of(estimator, target)] for estimator, target in zip(given, self._targets, strict=True)]
        check_is_fitted(given)
        return given

    def _beliefs(self, X: Any) -> list[list[Numbers]]:
        """For each label the beliefs of its classifiers."""
        if isinstance(self.estimators_, list):
            return [[estimator.predict_proba(X) for estimator in of_label] for of_label in self.estimators_]
        probabilities = self.estimators_.predict_proba(X)
        probabilities = probabilities if isinstance(probabilities, list) else [probabilities]
        if len(probabilities) == 1 and len(self._targets) > 1:
            # Several labels in one array: probabilities of 1, as multi-label classifiers return them.
            of_one = probabilities[0]
            probabilities = [np.column_stack([1.0 - of_one[:, j], of_one[:, j]]) for j in range(of_one.shape[1])]
        classes = self.estimators_.classes_
        listed = classes if isinstance(classes, list) and len(probabilities) > 1 else [classes] * len(probabilities)
        if len(probabilities) != len(self._targets):
            raise ArgumentError(f"the fitted classifier knows {len(probabilities)} labels, and y has {len(self._targets)}")
        return [
            [_aligned(np.asarray(values), np.asarray(known), target)]
            for values, known, target in zip(probabilities, listed, self._targets, strict=True)
        ]

    def _fit_pools(self, beliefs: list[list[Numbers]], codes: Codes, weights: Numbers | None) -> list[list[Numbers]]:
        """Learns the weights of the classifiers of each label."""
        self.weights_: list[Numbers] | None = None
        if self.combine == "pool" and len(beliefs[0]) > 1:
            self.weights_ = [_pool_weights(probabilities, codes[:, j], weights) for j, probabilities in enumerate(beliefs)]
        return self._pooled(beliefs)

    def _pooled(self, beliefs: list[list[Numbers]]) -> list[list[Numbers]]:
        if self.weights_ is None:
            return beliefs
        return [[_pool(probabilities, weights)] for probabilities, weights in zip(beliefs, self.weights_, strict=True)]

    def _stacker(self, seed: int, names: list[str]) -> RuleStacker:
        """The stacker with the settings of this estimator, and labels for further classifiers."""
        stacker: RuleStacker = RuleStacker() if self.stacker is None else clone(self.stacker)
        rules = self.rules if self.rules is not None else stacker.rules
        settings: dict[str, Any] = {}
        n_classifiers = len(self.estimators_[0]) if isinstance(self.estimators_, list) else 1
        if self.combine == "labels" and n_classifiers > 1:
            if isinstance(rules, Model):
                raise ArgumentError("combine='labels' adds labels of its own; give rules as text")
            lines = rules.splitlines() if isinstance(rules, str) else list(rules or [])
            own = [*names]
            for j, target in enumerate(self._targets):
                for k in range(1, n_classifiers):
                    name = f"{names[j]} by {k + 1}"
                    own.append(name)
                    lines += [
                        f'rule 0.9: "{names[j]}"="{category}" <-> "{name}"="{category}"'
                        for category in target.categories[1 if len(target.categories) == 2 else 0 :]
                    ]
            rules, names = lines, own
            settings["learn_probabilities"] = True
        stacker.set_params(
            labels=names,
            rules=rules,
            n_rules=self.n_rules,
            calibration=self.calibration,
            decision=self.decision,
            random_state=seed,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            **settings,
        )
        return stacker

    def _of_stacker(self, beliefs: list[list[Numbers]]) -> list[Numbers]:
        """The beliefs of the first classifiers, then those of the further ones."""
        first = [probabilities[0] for probabilities in beliefs]
        return first + [own for probabilities in beliefs for own in probabilities[1:]]

    def _targets_of_stacker(self, columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The truth for each label of the stacker. Labels of further classifiers have the same truth as the first."""
        n_further = len(self.estimators_[0]) - 1 if isinstance(self.estimators_, list) and self.weights_ is None else 0
        if n_further == 0:
            return columns[:, 0] if self._single else columns
        further = [columns[:, j] for j in range(columns.shape[1]) for _ in range(n_further)]
        return np.column_stack([columns, *further])

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "estimators_")
        return validate_data(self, X, accept_sparse="csr", reset=False)

    def _stacked(self, X: Any) -> list[Numbers]:
        return self._of_stacker(self._pooled(self._beliefs(self._checked(X))))

    def _own(self, predicted: Any) -> Any:
        """Predictions for the labels of `y` only."""
        if self._single:
            return predicted if predicted.ndim == 1 else self._targets[0].classes.take(
                self._targets[0].codes(predicted[:, 0])
            )
        return predicted[:, : len(self._targets)]

    def _tell(self, message: str) -> None:
        if self.verbose:
            print(message, flush=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = True
        tags.input_tags.sparse = True
        return tags


class _Labeled:
    """A fitted classifier of one label, which may not have seen all classes."""

    def __init__(self, estimator: Any, classes: npt.NDArray[Any], target: Target, n_rows: int = 0) -> None:
        self.estimator = estimator
        self.classes = classes
        self.target = target
        self.n_rows = n_rows

    @classmethod
    def of(cls, estimator: Any, target: Target) -> _Labeled:
        """Wraps a fitted classifier."""
        check_is_fitted(estimator)
        return cls(estimator, np.asarray(estimator.classes_), target)

    @classmethod
    def fit(
        cls, prototype: Any, X: Any, rows: Codes, codes: Codes, target: Target, weights: Numbers | None
    ) -> _Labeled:
        """Fits a classifier to some rows. Fits none if the rows have only one class."""
        seen = np.unique(codes[rows])
        if len(seen) < 2:
            return cls(None, target.classes[seen], target, len(rows))
        estimator = clone(prototype)
        given = {}
        if weights is not None and has_fit_parameter(estimator, "sample_weight"):
            given["sample_weight"] = weights[rows]
        estimator.fit(_safe_indexing(X, rows), target.classes[codes[rows]], **given)
        return cls(estimator, np.asarray(estimator.classes_), target)

    def predict_proba(self, X: Any) -> Numbers:
        """Probabilities of all classes of the label."""
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if self.estimator is None:
            n_classes = len(self.target.classes)
            if n_classes == 1:
                return np.ones((n_rows, 1))
            # At most one class is in the rows. A pseudo-count of half a row is added for each class.
            probabilities = np.full((n_rows, n_classes), 0.5 / (self.n_rows + 0.5 * n_classes))
            seen = np.searchsorted(self.target.classes, self.classes)
            probabilities[:, seen] += self.n_rows / (self.n_rows + 0.5 * n_classes)
            return probabilities
        return _aligned(np.asarray(self.estimator.predict_proba(X)), self.classes, self.target)


def _aligned(values: Numbers, classes: npt.NDArray[Any], target: Target) -> Numbers:
    """Probabilities of some classes as probabilities of all classes of a label."""
    if len(classes) == len(target.classes) and (classes == target.classes).all():
        return np.asarray(values, dtype=np.float64)
    probabilities = np.zeros((len(values), len(target.classes)))
    for column, known in enumerate(classes):
        place = np.flatnonzero(target.classes == known)
        if len(place) == 0:
            raise ArgumentError(f"a classifier of label `{target.name}` knows the class `{known}`, which y has not")
        probabilities[:, place[0]] = values[:, column]
    return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))


def _logs(probabilities: list[Numbers]) -> Numbers:
    """The clipped log probabilities: classifiers x rows x classes."""
    return np.stack([np.log(np.clip(values, _SMALLEST, 1.0)) for values in probabilities])


def _pool(probabilities: list[Numbers], weights: Numbers) -> Numbers:
    """The pooled probabilities: ∏ p_e^w_e, normalized."""
    logs = np.tensordot(weights, _logs(probabilities), axes=1)
    logs -= logs.max(axis=1, keepdims=True)
    pooled = np.exp(logs)
    return np.asarray(pooled / pooled.sum(axis=1, keepdims=True))


def _pool_weights(probabilities: list[Numbers], codes: Codes, sample_weight: Numbers | None) -> Numbers:
    """The non-negative weights with the largest likelihood on out-of-fold rows."""
    known = np.flatnonzero(codes >= 0)
    n, start = len(probabilities), np.full(len(probabilities), 1.0 / len(probabilities))
    if len(known) == 0 or probabilities[0].shape[1] < 2:
        return start
    logs, truth = _logs(probabilities)[:, known], codes[known]
    counts = np.ones(len(known)) if sample_weight is None else sample_weight[known]
    chosen = logs[:, np.arange(len(known)), truth]

    def loss(weights: Numbers) -> tuple[float, Numbers]:
        pooled = np.tensordot(weights, logs, axes=1)
        pooled -= pooled.max(axis=1, keepdims=True)
        p = np.exp(pooled)
        totals = p.sum(axis=1)
        p /= totals[:, None]
        own = weights @ chosen
        largest = np.tensordot(weights, logs, axes=1).max(axis=1)
        value = -(counts * (own - largest - np.log(totals))).sum() / counts.sum()
        slope = -((chosen - (logs * p).sum(axis=2)) @ counts) / counts.sum()
        # A weak ridge penalty toward equal weights, worth about one row.
        return value + ((weights - start) ** 2).sum() / counts.sum(), slope + 2 * (weights - start) / counts.sum()

    found = minimize(loss, start, jac=True, bounds=[(0.0, None)] * n, method="L-BFGS-B")
    return np.asarray(found.x, dtype=np.float64)


def _refuse_infinities(columns: npt.NDArray[Any]) -> None:
    if columns.dtype.kind == "f" and np.isinf(columns).any():
        raise ArgumentError("Input y contains infinity or a value too large")
    if len(columns) == 0:
        raise PrslError("Found array with 0 sample(s) while a minimum of 1 is required")
