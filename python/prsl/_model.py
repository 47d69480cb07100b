"""Models: labels and rules, with inference and explanation."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _prsl
from ._answers import Counterfactuals, InformationGains
from ._beliefs import index_of, rows
from ._columns import Codes
from ._explanation import Explanation
from ._html import model_page
from ._jobs import of_threads
from ._posterior import Posterior
from ._prsl import Combination, Finding, Label, ModelBuilder, Rule
from ._truths import positions
from .errors import ArgumentError, FileError

__all__ = ["Model", "ModelBuilder"]

#: Number of categories from which the default calibration is temperature scaling. Other calibrators have parameters for
#: each category or each pair of categories. Selecting one for 100 categories from 1,000 rows took 51 s in an unoptimized
#: build, temperature scaling 0.04 s.
MANY_CATEGORIES = 50


class Model:
    """Labels and rules. A model never changes; :meth:`edit` creates a new one.

    >>> model = Model.parse('''
    ... label weather: sun, rain
    ... label ground: dry, wet
    ... rule 0.95: wet <- rain
    ... ''')
    >>> model.predict({"weather": [[0.1, 0.9]], "ground": [[0.7, 0.3]]})["weather"].round(3)
    array([[0.248, 0.752]])
    """

    __slots__ = ("_core",)
    _core: _prsl.Model

    def __init__(self, text: str = "") -> None:
        self._core = _prsl.Model._parse(text)

    @classmethod
    def _of(cls, core: _prsl.Model) -> Model:
        model = cls.__new__(cls)
        model._core = core
        return model

    @classmethod
    def parse(cls, text: str) -> Model:
        """Reads a model in the rule language, or in JSON."""
        return cls._of(_prsl.Model._parse(text))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Reads a model file, `.prsl` or `.json`."""
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError as error:
            raise FileError(f"`{os.fspath(path)}` is not UTF-8 text; save it as UTF-8") from error
        except OSError as error:
            raise FileError(f"cannot open `{os.fspath(path)}`: {error.strerror}") from error
        return cls.parse(text)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a model file: in JSON if its name ends in `.json`, in the rule language otherwise."""
        is_json = os.fspath(path).endswith(".json")
        self._core._write(path, self.to_json() + "\n" if is_json else self.text)

    @staticmethod
    def builder() -> ModelBuilder:
        """A builder for a new model.

        >>> print(Model.builder().label("rain").label("wet").rule("rain -> wet", 0.9).build())
        label rain
        label wet
        <BLANKLINE>
        rule 0.9: rain -> wet
        """
        return ModelBuilder()

    def edit(self) -> ModelBuilder:
        """A builder with a copy of the model. Add and remove labels and rules, then call :meth:`ModelBuilder.build`.

        >>> model = Model.parse("label rain\\nlabel wet")
        >>> print(model.edit().rule("rain -> wet", 0.9, name="wets").build())
        label rain
        label wet
        <BLANKLINE>
        rule 0.9 wets: rain -> wet
        """
        return self._core.edit()

    @property
    def labels(self) -> list[Label]:
        """The labels, in order.

        >>> Model.parse("label weather: sun, rain").labels
        [<Label weather: sun, rain>]
        """
        return self._core.labels

    @property
    def rules(self) -> list[Rule]:
        """The rules, in order.

        >>> Model.parse("label rain\\nlabel wet\\nrule 0.9: rain -> wet").rules[0].sentence
        'if rain then wet, 0.9'

        Learned rules may have a note about their evidence in the training rows, :attr:`Rule.learned`.
        """
        return self._core.rules

    @property
    def typical(self) -> list[Combination]:
        """The typical combinations, in order."""
        return self._core.typical

    @property
    def text(self) -> str:
        """The model in the rule language."""
        return self._core.text

    def to_json(self) -> str:
        """The model as JSON."""
        return self._core.to_json()

    def check(self) -> list[Finding]:
        """Findings about the model: contradictions, rules without effect, failed expectations.

        >>> [finding.code for finding in Model.parse("label a\\nlabel b\\nrule 0.5: a -> b").check()][0]
        'no-effect'
        """
        return self._core.check()

    def predict(
        self,
        beliefs: Any,
        query: str = "marginals",
        *,
        engine: str = "auto",
        top: int | None = None,
        samples: int = 1,
        seed: int = 1,
        normalize: bool = False,
        ignore_extra: bool = False,
        missing: Sequence[str] = (),
        memory: int | None = None,
        time_limit: float | None = None,
        max_sweeps: int | None = None,
        damping: float | None = None,
        tolerance: float | None = None,
        threads: int | None = None,
    ) -> Posterior:
        """Predicts rows: the posterior given beliefs and rules.

        `beliefs` has one of these forms:

        * a dictionary of arrays by label: (n, M) with beliefs, (n,) with the probability of yes, (n,) with observed
          categories as strings, or a dictionary of such columns by category;
        * a list of such arrays in the order of the labels;
        * one array with a column for every category;
        * a frame of pandas, polars or pyarrow with columns `label=category`.

        Columns of arrays have the order of :attr:`Label.categories`. A yes/no label has no before yes, so
        `{"rain": classifier.predict_proba(X)}` is correct for a classifier with the classes 0 and 1.

        NaN, null and labels that are not given are missing. So are texts listed in `missing`, such as ["NA", "?"].

        `query` is "marginals", "mpe", "both" or "samples". "mpe" returns the most probable assignment (MPE, the most
        probable explanation of the literature) of each row, or the `top` most probable ones. `engine` is "auto",
        "exact", "junction-tree", "circuit", "loopy" or "enumeration". The search for assignments stops at a limit on
        counted work, so the answer is the same on every machine. This takes about ten seconds for hard rows.
        `time_limit` sets a limit in seconds instead. `threads` is the number of threads, by default one per core;
        negative numbers count from the number of cores, as in scikit-learn.

        >>> model = Model.parse("label rain\\nlabel wet\\nrule 0.9: rain -> wet")
        >>> model.predict({"rain": [0.8]}, "mpe").assignments
        [{'rain': 'yes', 'wet': 'yes'}]
        """
        question = _question(
            query, engine, top, samples, seed, memory, time_limit, max_sweeps, damping, tolerance, threads
        )
        found = rows(self._core, beliefs, normalize=normalize, ignore_extra=ignore_extra, missing=missing)
        return Posterior(self.labels, query, _prsl.predict(self._core, found, question), index_of(beliefs))

    def plan(self, query: str = "marginals", *, engine: str = "auto", memory: int | None = None) -> dict[str, str]:
        """The chosen engines and the reasons.

        >>> Model.parse("label rain\\nlabel wet\\nrule 0.9: rain -> wet").plan()["marginals"].split(":")[0]
        'junction tree'
        """
        return dict(_prsl.plan(self._core, _question(query, engine, None, 1, 1, memory, *[None] * 5)))

    def explain(
        self,
        beliefs: Any,
        row: int = 0,
        *,
        engine: str = "auto",
        normalize: bool = False,
        threads: int | None = None,
    ) -> Explanation:
        """Explains one row: the effect of each rule on each label, and the rules in conflict.

        `engine` and `threads` are as in `predict`. If only loopy propagation fits, the explanation says that it is approximate.

        >>> model = Model.parse("label rain\\nlabel wet\\nrule 0.9 wets: rain -> wet")
        >>> explanation = model.explain({"rain": [0.8], "wet": [0.3]})
        >>> explanation.rules[0]["name"], round(explanation.rules[0]["agreement"], 3)
        ('wets', 0.452)
        """
        found = self._row(beliefs, row, normalize)
        [(json, text)] = _prsl.explain(self._core, found, engine, of_threads(threads))
        return Explanation(json, text)

    def counterfactuals(
        self,
        beliefs: Any,
        label: str,
        category: str,
        row: int = 0,
        *,
        engine: str = "auto",
        normalize: bool = False,
        threads: int | None = None,
    ) -> Counterfactuals:
        """What would change the answer: for each label, the smallest change that makes `category` the most probable one
        of `label`.

        Each change suffices alone. Beliefs move in one category, and the others keep their proportions. The distance of
        a change is the total variation of the calibrated belief. "needed" is a threshold of the calibrated belief, and
        "needed_given" the same of the raw belief. An observed label can be observed otherwise, or not be observed.

        >>> model = Model.parse("label rain\\nlabel wet\\nrule 0.9: rain <-> wet")
        >>> found = model.counterfactuals({"rain": [0.3], "wet": [0.4]}, "rain", "yes")
        >>> round(found.changes[0]["belief"]["needed"], 3)
        0.75
        >>> bool(model.predict({"rain": [0.3], "wet": [0.76]})["rain", "yes"][0] > 0.5)
        True
        """
        found = self._row(beliefs, row, normalize, raw=True)
        answer = _prsl.counterfactuals(self._core, found, (label, category), engine, of_threads(threads))
        return Counterfactuals(*answer)

    def information_gains(
        self,
        beliefs: Any,
        label: str | None = None,
        row: int = 0,
        *,
        engine: str = "auto",
        normalize: bool = False,
        threads: int | None = None,
    ) -> InformationGains:
        """What should be asked next: the expected information gain from observing each label, in bits.

        The gain is about `label`: the mutual information of the two labels, given the row. Without `label`, it is about
        all labels: the expected reduction of the sum of their entropies.

        >>> model = Model.parse("label rain\\nlabel wet\\nrule 0.9: rain <-> wet")
        >>> round(model.information_gains({"rain": [0.5]}, "rain").gains[0]["gain"], 3)
        0.531
        """
        found = self._row(beliefs, row, normalize)
        return InformationGains(*_prsl.information_gains(self._core, found, label, engine, of_threads(threads)))

    def _row(self, beliefs: Any, row: int, normalize: bool, *, raw: bool = False) -> _prsl.Rows:
        """One row of beliefs, which may be given without a list around each value."""
        if isinstance(beliefs, dict) and beliefs and all(np.ndim(values) == 0 for values in beliefs.values()):
            beliefs = {label: [value] for label, value in beliefs.items()}
        found = rows(self._core, beliefs, normalize=normalize, raw=raw)
        if not -len(found) <= row < len(found):
            raise ArgumentError(f"there is no row {row} among {len(found)}")
        return found.select([row % len(found)])

    def evaluate(self, beliefs: Any, truths: Any, *, normalize: bool = False, n_bins: int = 10) -> dict[str, Any]:
        """All scores of `prsl evaluate` for rows with known truths.

        Truths are a dictionary by label, a frame with the labels as columns, or an array with a column for each label.
        A truth is the name of a category. For yes/no labels it may also be 0 or 1, or a boolean. Whole numbers that
        are no categories of a label are positions in :attr:`Label.categories`. NaN, `None` and -1 mean unknown.

        >>> model = Model.parse("label rain")
        >>> model.evaluate({"rain": [0.9, 0.2]}, {"rain": [1, 0]})["hamming_loss"]
        0.0
        """
        return self._evaluate(rows(self._core, beliefs, normalize=normalize), positions(self.labels, truths), n_bins)

    def _evaluate(
        self, beliefs: _prsl.Rows, truths: Codes, n_bins: int = 10, threads: int | None = None
    ) -> dict[str, Any]:
        return _prsl.evaluate(self._core, beliefs, truths, n_bins, threads)

    def joint_log_likelihood(self, beliefs: Any, truths: Any, *, normalize: bool = False) -> Any:
        """ln P(known truths | beliefs, rules) of every row; NaN for rows without a known truth. Truths are as in
        :meth:`evaluate`."""
        found = rows(self._core, beliefs, normalize=normalize)
        return self._joint_log_likelihood(found, positions(self.labels, truths))

    def _joint_log_likelihood(self, beliefs: _prsl.Rows, truths: Codes, threads: int | None = None) -> Any:
        return _prsl.joint_log_likelihoods(self._core, beliefs, truths, threads)

    def compare(
        self, other: Model, beliefs: Any, truths: Any, *, normalize: bool = False, seed: int = 1
    ) -> dict[str, Any]:
        r"""Paired differences between the scores of another model and those of this one, on the same rows.

        For every score of :meth:`evaluate`, the result has "first" (this model), "second" (the other one), "difference" and
        its 95 % bootstrap "interval". Its entry "rows" has a tuple for each row with a known truth: its position, and its
        log-likelihood by both models, the largest difference first. Truths are as in :meth:`evaluate`.

        >>> model = Model.parse("label rain\nlabel wet\nrule 0.9: rain -> wet")
        >>> alone = Model.parse("label rain\nlabel wet")
        >>> found = alone.compare(model, {"rain": [0.9], "wet": [0.4]}, {"rain": [1], "wet": [1]})
        >>> found["joint_accuracy"]["difference"]
        1.0
        """
        cores = (self._core, other._core)
        found = (
            rows(self._core, beliefs, normalize=normalize),
            rows(other._core, beliefs, normalize=normalize),
        )
        return _prsl.compare(cores, found, positions(self.labels, truths), seed)

    def calibrate(
        self, beliefs: Any, truths: Any, method: str = "auto", *, alone: bool = False, normalize: bool = False
    ) -> Model:
        """The model with calibrators fitted to rows with known truths. `method` is "auto", "platt", "isotonic",
        "temperature", "dirichlet" or "confusion". Truths are as in :meth:`evaluate`.

        If the model has rules, the calibrators are fitted together beside them, so that the model as a whole explains the
        truths best; "auto" is then Platt scaling, or a slope with a bias per category for more than two. "isotonic" and
        "confusion" are always fitted label by label, and so are all with `alone=True`. Label by label, "auto" selects a
        method for each label, and temperature scaling for labels with 50 or more categories."""
        found = rows(self._core, beliefs, normalize=normalize, raw=True)
        known = positions(self.labels, truths)
        large = [at for at, label in enumerate(self.labels) if len(label.categories) >= MANY_CATEGORIES]
        if method != "auto" or not large or (self.rules and not alone):
            fitted, refused = _prsl.calibrate(self._core, (found, known, None), method, alone)
            if refused is not None:
                warnings.warn(f"each label is calibrated by itself, as if there were no rules: {refused}", stacklevel=2)
            return Model._of(fitted)
        of_large = np.full_like(known, -1)
        of_large[:, large] = known[:, large]
        scaled, _ = _prsl.calibrate(self._core, (found, of_large, None), "temperature", True)
        known[:, large] = -1
        selected, _ = _prsl.calibrate(self._core, (found, known, None), method, True)
        return Model._of(selected._with_calibrators_of(scaled, [self.labels[at].name for at in large]))

    def _without_rules(self) -> Model:
        """The labels with their calibrators."""
        builder = self.edit().remove_typical()
        for _ in self.rules:
            builder.remove_rule(0)
        return builder.build()

    def without_calibrators(self) -> Model:
        """The same model without calibrators, for raw beliefs."""
        return Model._of(self._core.without_calibrators())

    def graph(self) -> str:
        """The graph of rules and labels as SVG."""
        return self._core.graph()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        def counted(n: int, what: str) -> str:
            return f"{n} {what}" if n == 1 else f"{n} {what}s"

        return f"<Model of {counted(len(self.labels), 'label')} and {counted(len(self.rules), 'rule')}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self._core)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Model.parse, (self.text,))

    def _repr_html_(self) -> str:
        return model_page(self)


def _question(
    query: str,
    engine: str,
    top: int | None,
    samples: int,
    seed: int,
    memory: int | None,
    time_limit: float | None,
    max_sweeps: int | None,
    damping: float | None,
    tolerance: float | None,
    threads: int | None,
) -> dict[str, Any]:
    if top is not None and top < 1:
        raise ArgumentError(f"top is {top}, expected 1 or more")
    if samples < 1:
        raise ArgumentError(f"samples is {samples}, expected 1 or more")
    return {
        "query": query,
        "engine": engine,
        "top": top,
        "samples": samples,
        "seed": seed,
        "memory": memory,
        "time_limit": time_limit,
        "max_sweeps": max_sweeps,
        "damping": damping,
        "tolerance": tolerance,
        "threads": of_threads(threads),
    }
