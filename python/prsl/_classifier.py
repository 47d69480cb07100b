"""An estimator whose input is features. It stacks classifiers with rules."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from ._beliefs import index_of
from ._columns import Codes, as_columns, check_targets
from ._explanation import Explanation
from ._jobs import of_jobs
from ._labeled import Labeled, beliefs_of, classes_of, fit_params, indexable, weight_name
from ._labels import Target, base_model, label_names, rule_lines
from ._model import Model
from ._out_of_fold import Splitting, fit_out_of_fold
from ._pool import has_belief, pool_weights, pooled
from ._posterior import Posterior
from ._progress import Reporter
from ._stacker import RuleStacker
from ._stacker_learning import row_weights
from .errors import ArgumentError, ExamplesError, PrslWarning

Numbers = npt.NDArray[np.float64]


class RuleStackingClassifier(MetaEstimatorMixin, ClassifierMixin, _BaseComposition):
    """Classifiers for every label, stacked with given and learned rules.

    Fitting has three steps. Classifiers of each label give out-of-fold beliefs. A :class:`RuleStacker` learns
    calibration and rules from these beliefs. Finally the classifiers are fitted to all rows.

    Parameters
    ----------
    estimator : classifier, list of classifiers or of pairs (name, classifier), or None
        Fitted to each label; a random forest if `None`. See `combine` for several classifiers. Settings of a named
        classifier are set as `name__setting`, for example by a grid search. `X` is passed to the classifiers as it is,
        so it may have missing values, texts or categories if they accept them.
    rules : str, list, dict or Model, optional
        Expert rules; see :class:`RuleStacker`. They are checked before any classifier is fitted.
    n_rules : "auto" or int
        Maximum number of learned rules; 0 learns none. See :class:`RuleStacker`.
    calibration : str
        "default", "joint", "none", "auto", "platt", "isotonic", "temperature", "dirichlet" or "confusion"; see
        :class:`RuleStacker`.
    cv : int, splitter, list of splits or "prefit"
        How rows are split for out-of-fold beliefs. Calibration and rules are not learned from rows that no split
        predicts. If several splits predict a row, its belief is their mean. "prefit" means that `estimator` is already
        fitted: one classifier for all labels, whose `predict_proba` returns a list, or a list of one classifier per
        label. Classes that only the fitted classifiers know are classes of their labels, too.
    labels : list of str, optional
        Names for the columns of `y`.
    combine : "pool" or "labels"
        How several classifiers of one label are combined. "pool" pools their log-odds with learned weights, because
        classifiers of the same label make similar errors. With "labels", each classifier has its own label, and rules of
        learned probability connect it with the first. Their beliefs then count as independent, and `explain` shows the
        effect of each.
    decision : "auto", "marginal" or "joint"
        Whether `predict` takes the most probable class of each label, or the most probable assignment of all labels.
        "auto" is "joint" if the model has hard rules, otherwise "marginal"; see :class:`RuleStacker`.
    threshold : float or dict, optional
        Probability of the second class from which `predict` takes it, 0.5 by default; see :class:`RuleStacker`.
        Calibration undoes `class_weight="balanced"` of the classifiers, because probabilities are to be true
        frequencies. Use a threshold below 0.5 to find more of a rare class.
    stacker : RuleStacker or None
        All other settings of learning, such as `parsimony`. Its own `rules`, `n_rules`, `calibration` and `decision` apply
        if those above have their defaults. A grid search reaches them as `stacker__parsimony`.
    random_state, n_jobs
        As in scikit-learn.
    callbacks : function or list of functions, optional
        Called with a :class:`Progress` after the classifiers of each label are fitted, then as in :class:`RuleStacker`.
        They can end the learning of rules, but not the fitting of classifiers.
    verbose : int
        Whether progress is shown.

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
        calibration: str = "default",
        cv: Any = 5,
        *,
        labels: list[str] | None = None,
        combine: str = "pool",
        decision: str = "auto",
        threshold: float | dict[str, float] | None = None,
        stacker: RuleStacker | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        callbacks: Any = None,
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
        self.threshold = threshold
        self.stacker = stacker
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **params: Any) -> Self:
        """Fits classifiers, calibration and rules.

        Rows of the same of `groups` stay together in cross-validation, if `cv` is a number or a splitter such as
        `GroupKFold`. `params` are for the classifiers, and need scikit-learn's metadata routing.
        """
        if y is None:
            raise ArgumentError("This RuleStackingClassifier estimator requires y to be passed, but the target y is None")
        if self.combine not in ("pool", "labels"):
            raise ArgumentError(f"unknown combine `{self.combine}`, expected `pool` or `labels`")
        of_jobs(self.n_jobs)
        X = indexable(X)
        validate_data(self, X, skip_check_array=True)
        columns, names, single = as_columns(y)
        check_targets(columns)
        check_consistent_length(X, columns)
        routed = self._routed_params(sample_weight, groups, params)
        weights = row_weights(sample_weight, len(columns))
        kept = np.arange(len(columns)) if weights is None else np.flatnonzero(weights)
        self._single = single
        names = label_names(self.labels, names, single, columns.shape[1])
        self._targets = [Target.of(name, columns[kept, j], of_several=not single) for j, name in enumerate(names)]
        if self._is_prefit():
            self.estimators_ = self._prefit()
            known_classes = classes_of(self.estimators_, len(self._targets))
            self._targets = [own.extended(known) for own, known in zip(self._targets, known_classes, strict=True)]
        self.classes_ = self._targets[0].classes if single else [target.classes for target in self._targets]
        random = check_random_state(self.random_state)
        prototypes = [] if self._is_prefit() else self._estimators(random)
        self.stacker_ = self._stacker(random.randint(2**31 - 1), names, len(prototypes))
        base_model(self._targets_in(self.stacker_.labels or names), self.stacker_.rules)

        codes = np.full(columns.shape, -1, dtype=np.int64)
        for j, target in enumerate(self._targets):
            codes[kept, j] = target.codes(columns[kept, j])
        if self._is_prefit():
            beliefs = beliefs_of(self.estimators_, self._targets, X)
        else:
            self._warn_of_weights(prototypes, weights)
            reporter = Reporter(self.callbacks, self.verbose)
            try:
                self.estimators_, beliefs = fit_out_of_fold(
                    X,
                    codes,
                    self._targets,
                    self._with_params(prototypes, weights, routed),
                    weights,
                    Splitting(self.cv, groups, random),
                    reporter.label,
                )
            finally:
                reporter.close()
        self._fit_stacker(beliefs, columns, codes, weights, kept)
        self.model_: Model = self.stacker_.model_
        self.n_iter_ = self.stacker_.n_iter_
        return self

    def _fit_stacker(
        self,
        beliefs: list[list[Numbers]],
        columns: npt.NDArray[Any],
        codes: Codes,
        weights: Numbers | None,
        kept: Codes,
    ) -> None:
        """Fits pools, calibration and rules to the kept rows that have a belief."""
        of_classifiers = [has_belief(own) for of_label in beliefs for own in of_label]
        rows = kept[np.logical_or.reduce(of_classifiers)[kept]]
        if len(rows) == 0:
            raise ExamplesError("the splits of `cv` predict no row with a known truth")
        beliefs = [[own[rows] for own in of_label] for of_label in beliefs]
        codes = codes[rows]
        own_weights = None if weights is None else weights[rows]
        # The truths of a validation set must not influence the pools.
        training = self.stacker_._training_rows(np.asarray((codes >= 0).any(axis=1), dtype=bool))
        beliefs = self._fit_pools(beliefs, codes, own_weights, training)
        self.stacker_._classes = [target.classes for target in self._targets_in(self.stacker_.labels or [])]
        try:
            self.stacker_.fit(
                self._of_stacker(beliefs), self._targets_of_stacker(columns[rows]), sample_weight=own_weights
            )
        finally:
            del self.stacker_._classes

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, with those of named classifiers."""
        return self._get_params("estimator", deep=deep)  # type: ignore[no-any-return]

    def set_params(self, **params: Any) -> Self:
        """Changes settings, also those of named classifiers: `name__setting`."""
        self._set_params("estimator", **params)
        return self

    def get_metadata_routing(self) -> Any:
        """Which metadata `fit` takes, and which it passes to the classifiers and the splitter."""
        router = MetadataRouter(owner=self).add_self_request(self)
        for name, estimator in self._named():
            router.add(**{name: estimator}, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        if hasattr(self.cv, "split") and hasattr(self.cv, "get_metadata_routing"):
            router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        return router

    def beliefs(self, X: Any) -> Any:
        """The pooled beliefs of the classifiers, before calibration and rules: (n, M), or a list of such arrays."""
        beliefs = self._pooled(self._beliefs(X))
        return beliefs[0][0] if self._single else [of_label[0] for of_label in beliefs]

    def predict_proba(self, X: Any) -> Any:
        """The probabilities of the classes: (n, M) for one label, a list of them for several."""
        beliefs = self._stacked(X)
        found = self.stacker_.predict_proba(beliefs)
        listed = [found] if isinstance(found, np.ndarray) else found[: len(self._targets)]
        return listed[0] if self._single else listed

    def predict(self, X: Any) -> Any:
        """The most probable class of each label, or the most probable assignment of all labels; see `decision`.

        An impossible row gets the most probable classes of its calibrated beliefs, with a warning.
        """
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

    def predict_status(self, X: Any) -> npt.NDArray[np.str_]:
        """The status of each row, such as `ok` or `impossible`; see :class:`RuleStacker`."""
        beliefs = self._stacked(X)
        return self.stacker_.predict_status(beliefs)

    def posterior(self, X: Any, query: str = "marginals", **settings: Any) -> Posterior:
        """The posterior of all labels of the model, latent ones included."""
        beliefs = self._stacked(X)
        posterior = self.stacker_.posterior(beliefs, query, **settings)
        posterior.index = index_of(X)
        return posterior

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
        if not hasattr(self, "model_"):
            return self.fit(X, y, sample_weight)
        columns, _, _ = as_columns(y)
        self.stacker_.partial_fit(self._stacked(X), self._targets_of_stacker(columns), sample_weight=sample_weight)
        self.model_ = self.stacker_.model_
        self.n_iter_ = self.stacker_.n_iter_
        return self

    def _named(self) -> list[tuple[str, Any]]:
        """The given classifiers with their names."""
        if self.estimator is None:
            return []
        if not isinstance(self.estimator, (list, tuple)):
            return [("estimator", self.estimator)]
        pairs = enumerate(self.estimator)
        return [given if isinstance(given, tuple) else (f"estimator_{at}", given) for at, given in pairs]

    def _estimators(self, random: np.random.RandomState) -> list[Any]:
        if self.estimator is None:
            return [
                RandomForestClassifier(
                    n_estimators=200, min_samples_leaf=2, random_state=random.randint(2**31 - 1), n_jobs=self.n_jobs
                )
            ]
        given = [estimator for _, estimator in self._named()]
        for estimator in given:
            if not is_classifier(estimator):
                raise ArgumentError(f"{type(estimator).__name__} is no classifier")
            if not hasattr(estimator, "predict_proba"):
                raise ArgumentError(f"{type(estimator).__name__} has no predict_proba; wrap it in CalibratedClassifierCV")
        return given

    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "prefit"

    def _routed_params(self, sample_weight: Any, groups: Any, params: dict[str, Any]) -> list[dict[str, Any]] | None:
        """For each classifier its metadata, if scikit-learn's metadata routing is enabled."""
        if not get_config().get("enable_metadata_routing"):
            if params:
                raise TypeError(
                    f"fit() got an unexpected keyword argument {next(iter(params))!r}; to pass it to the classifiers, "
                    "enable metadata routing with sklearn.set_config(enable_metadata_routing=True)"
                )
            return None
        given = {"sample_weight": sample_weight, "groups": groups} | params
        given = {name: value for name, value in given.items() if value is not None}
        routed = process_routing(self, "fit", **given)
        return [dict(routed[name].fit) for name, _ in self._named()] if given else [{} for _ in self._named()]

    def _with_params(
        self, prototypes: list[Any], weights: Numbers | None, routed: list[dict[str, Any]] | None
    ) -> list[tuple[Any, dict[str, Any]]]:
        """The classifiers with the arguments of their `fit`."""
        if routed is not None and self.estimator is not None:
            return list(zip(prototypes, routed, strict=True))
        return [(prototype, fit_params(prototype, weights)) for prototype in prototypes]

    def _warn_of_weights(self, prototypes: list[Any], weights: Numbers | None) -> None:
        if weights is None or get_config().get("enable_metadata_routing"):
            return
        for prototype in prototypes:
            if weight_name(prototype) is None:
                warnings.warn(
                    f"{type(prototype).__name__} takes no sample_weight; it is fitted without weights, and only "
                    "calibration and rules use them",
                    PrslWarning,
                    stacklevel=3,
                )

    def _prefit(self) -> Any:
        if self.estimator is None:
            raise ArgumentError("cv='prefit' needs fitted classifiers as `estimator`")
        given = self.estimator
        if isinstance(given, (list, tuple)):
            given = [estimator for _, estimator in self._named()]
            if len(given) != len(self._targets):
                raise ArgumentError(f"there are {len(given)} fitted classifiers, and {len(self._targets)} labels")
            return [[Labeled.of(estimator, target)] for estimator, target in zip(given, self._targets, strict=True)]
        check_is_fitted(given)
        return given

    def _fit_pools(
        self, beliefs: list[list[Numbers]], codes: Codes, weights: Numbers | None, rows: Codes
    ) -> list[list[Numbers]]:
        """Learns the weights of the classifiers of each label from some rows."""
        self.weights_: list[Numbers] | None = None
        if self.combine == "pool" and len(beliefs[0]) > 1:
            of_rows = None if weights is None else weights[rows]
            self.weights_ = [
                pool_weights([own[rows] for own in probabilities], codes[rows, j], of_rows)
                for j, probabilities in enumerate(beliefs)
            ]
        return self._pooled(beliefs)

    def _pooled(self, beliefs: list[list[Numbers]]) -> list[list[Numbers]]:
        if self.weights_ is None:
            return beliefs
        return [[pooled(probabilities, weights)] for probabilities, weights in zip(beliefs, self.weights_, strict=True)]

    def _targets_in(self, names: list[str]) -> list[Target]:
        """The targets of the stacker: those of `y`, then those of further classifiers."""
        n_further = (len(names) - len(self._targets)) // len(self._targets)
        further = [target for target in self._targets for _ in range(n_further)]
        return [
            Target(name, target.classes, target.categories)
            for name, target in zip(names, [*self._targets, *further], strict=True)
        ]

    def _stacker(self, seed: int, names: list[str], n_classifiers: int) -> RuleStacker:
        """The stacker with the settings of this estimator, and labels for further classifiers."""
        stacker: RuleStacker = RuleStacker() if self.stacker is None else clone(self.stacker)
        rules = self.rules if self.rules is not None else stacker.rules
        settings: dict[str, Any] = {}
        if self.combine == "labels" and n_classifiers > 1:
            if isinstance(rules, Model):
                raise ArgumentError("combine='labels' adds labels of its own; give rules as text")
            lines = [] if rules is None else rule_lines(rules)
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
            n_rules=stacker.n_rules if self.n_rules == "auto" else self.n_rules,
            calibration=stacker.calibration if self.calibration == "default" else self.calibration,
            decision=stacker.decision if self.decision == "auto" else self.decision,
            threshold=stacker.threshold if self.threshold is None else self.threshold,
            random_state=seed,
            n_jobs=self.n_jobs,
            callbacks=stacker.callbacks if self.callbacks is None else self.callbacks,
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
        check_is_fitted(self)
        X = indexable(X)
        if hasattr(self, "n_features_in_") and len(getattr(X, "shape", (0, 0))) == 1:
            raise ArgumentError("Expected 2D array, got 1D array instead. Reshape your data: a row for each instance")
        validate_data(self, X, skip_check_array=True, reset=False)
        return X

    def _beliefs(self, X: Any) -> list[list[Numbers]]:
        """For each label the beliefs of its classifiers."""
        X = self._checked(X)
        return beliefs_of(self.estimators_, self._targets, X)

    def _stacked(self, X: Any) -> list[Numbers]:
        return self._of_stacker(self._pooled(self._beliefs(X)))

    def _own(self, predicted: Any) -> Any:
        """Predictions for the labels of `y` only."""
        if self._single:
            return predicted if predicted.ndim == 1 else self._targets[0].classes.take(
                self._targets[0].codes(predicted[:, 0])
            )
        return predicted[:, : len(self._targets)]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = True
        named = self._named()
        try:
            inner = [get_tags(estimator).input_tags for _, estimator in named]
        except (AttributeError, TypeError):
            # The error for what is no estimator comes from `fit`.
            inner = []
        tags.input_tags.sparse = all(own.sparse for own in inner)
        tags.input_tags.allow_nan = all(own.allow_nan for own in inner)
        tags.input_tags.categorical = bool(inner) and all(own.categorical for own in inner)
        tags.input_tags.string = bool(inner) and all(own.string for own in inner)
        return tags
