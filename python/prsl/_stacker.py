"""An estimator whose input is beliefs. It learns rules and calibrators, and predicts with them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from ._columns import as_columns
from ._labels import Binding, Target, base_model, label_names
from ._model import Model
from ._stacker_answers import StackerAnswers
from ._stacker_learning import StackerLearning, refuses_removed, row_weights
from .errors import ArgumentError


class RuleStacker(StackerAnswers, StackerLearning, ClassifierMixin, BaseEstimator):
    """Learns rules between labels and calibrators for classifiers, from beliefs and truths.

    `X` has the beliefs, in one of these forms:

    * a list of arrays (n, M) as `predict_proba` of scikit-learn returns them, with a column for each class in the order
      of `classes_`;
    * a dictionary of such arrays by label;
    * one array with the columns of all labels side by side. For a label of two classes, one column with the
      probability of the second class suffices;
    * a frame with columns `label=category`.

    NaN is a missing belief. `y` has a column for each label, with NaN or `None` if the truth is unknown.

    The settings correspond to options of `prsl learn`; docs/python.md has the table.

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
    threshold : float or dict, optional
        Probability of the second class from which `predict` takes it, for labels of two classes; 0.5 by default, or a
        dictionary by label. It makes up for `class_weight="balanced"` of a classifier, which calibration undoes. With a
        threshold, "auto" is the decision "marginal", and "joint" is refused.
    max_seconds : float, optional
        Learning stops after this time, with the best model so far. So does the first Ctrl-C, with a warning; a second
        one raises `KeyboardInterrupt`.
    memory : int, optional
        Maximum number of bytes for the tables of inference while learning; 1 GiB by default.
    validation_fraction : float, optional
        With `recipe="paper"`: share of rows in the validation set, 0.1 by default, unless validation rows are passed to
        `fit`. "clauses" learns from all rows.
    max_iter, n_iter_no_change, batch_size, learning_rate, betas, clip : optional
        With `recipe="paper"`: settings of the optimizer. `n_iter_no_change` is the number of steps without improvement
        after which it stops, and `clip` the lower bound of inhibition probabilities.
    probability, epsilon, alpha, labels_per_rule, gamma_0, gamma_1, lam : optional
        With `recipe="paper"`: the constants of the paper.
    gradients : "exact" or "loopy", optional
        With `recipe="paper"`: the kind of gradients, "exact" by default.
    literal : bool, optional
        With `recipe="paper"`: whether the method is that of the paper without any change.
    normalize : bool
        Whether beliefs that do not sum to 1 are divided by their sum.
    random_state : int, RandomState or None
        Seed of learning, 1 by default as on the command line. The same number gives the same model as `--seed`. `None`
        draws a seed from NumPy's global state.
    n_jobs : int or None
        Number of threads, as in scikit-learn: `None` means 1 unless `joblib.parallel_config` says otherwise, -1 means
        all cores. Results do not depend on it.
    callbacks : function or list of functions, optional
        Called with a :class:`Progress` several times a second while learning. If one returns `False`, learning ends with
        the best model so far.
    verbose : int
        Whether progress is shown, on standard error or in the output of a notebook's cell. The logger "prsl" also
        reports it, at the level DEBUG.

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

    @refuses_removed
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
        threshold: float | dict[str, float] | None = None,
        max_seconds: float | None = None,
        memory: int | None = None,
        validation_fraction: float | None = None,
        max_iter: int | None = None,
        n_iter_no_change: int | None = None,
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
        random_state: Any = 1,
        n_jobs: int | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.labels = labels
        self.rules = rules
        self.n_rules = n_rules
        self.recipe = recipe
        self.parsimony = parsimony
        self.typical = typical
        self.calibration = calibration
        self.learn_probabilities = learn_probabilities
        self.decision = decision
        self.threshold = threshold
        self.max_seconds = max_seconds
        self.memory = memory
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.n_iter_no_change = n_iter_no_change
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
        self.callbacks = callbacks
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, validation: tuple[Any, Any] | None = None) -> Self:
        """Learns from beliefs and truths.

        `validation` has further rows (beliefs, truths), whose log-likelihood is `learned_.validation`. With
        `recipe="paper"` they replace the random validation set.
        """
        if y is None:
            raise ArgumentError("This RuleStacker estimator requires y to be passed, but the target y is None")
        columns, names, self._single = as_columns(y)
        self._check_decision()
        weights = row_weights(sample_weight, len(columns))
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
        self._learn(base, X, columns, row_weights(sample_weight, len(columns)), None, settings)
        self.n_iter_ += self.learned_.n_iter
        return self

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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = True
        tags.input_tags.allow_nan = True
        return tags
