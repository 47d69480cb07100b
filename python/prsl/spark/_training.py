"""A trainer that learns rules from data frames."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.ml import Estimator
from pyspark.ml.util import MLReadable, MLWritable

from .. import _prsl
from .._learned import Addition, Learned
from .._model import Model
from ..errors import ArgumentError, PrslWarning
from ._chunks import ChunkedRows
from ._columns import Beliefs, Columns, belief_columns, check_column, new_model, truth_columns
from ._files import exists, read_text, session, write_text
from ._scoring import RuleStackerModel
from ._stages import StageReader, StageWriter

#: The name of a checkpoint in its folder.
CHECKPOINT = "progress.json"


class RuleStackerTrainer(Estimator["RuleStackerModel"], MLReadable["RuleStackerTrainer"], MLWritable):
    """Learns rules, calibrators and typical combinations from a data frame, as `prsl learn --key` does on one machine.

    `rules` is a model whose rules are kept: a path, or a `prsl.Model`. Without it the labels are those of `beliefs`. The
    other settings are those of `prsl learn`. With the same rows, keys and settings the model has the same bits.

    As a stage of a pipeline, `beliefs`, `truth` and `key` are given here; otherwise they are given to :meth:`fit`.
    """

    def __init__(
        self,
        rules: str | Model | None = None,
        *,
        seed: int = 1,
        parsimony: float | str = "predict",
        max_rules: int | None = None,
        typical: bool = True,
        calibration: str = "joint",
        learn_probabilities: bool = False,
        normalize: bool = False,
        memory: int | None = None,
        max_seconds: float | None = None,
        checkpoint: str | None = None,
        resume: bool = False,
        beliefs: Beliefs | None = None,
        truth: Mapping[str, str] | None = None,
        key: str | None = None,
        weight: str | None = None,
    ) -> None:
        super().__init__()
        self._rules = rules
        self._settings: dict[str, Any] = {
            "seed": seed,
            "parsimony": parsimony,
            "max_rules": max_rules,
            "typical": typical,
            "calibration": calibration,
            "learn_probabilities": learn_probabilities,
            "normalize": normalize,
            "memory": memory,
            "max_seconds": max_seconds,
            "checkpoint": checkpoint,
            "resume": resume,
            "beliefs": beliefs,
            "truth": truth,
            "key": key,
            "weight": weight,
        }

    def fit(  # type: ignore[override, unused-ignore]  # the columns are arguments of their own
        self,
        dataset: Any,
        params: Any = None,
        *,
        beliefs: Beliefs | None = None,
        truth: Mapping[str, str] | None = None,
        key: str | None = None,
        weight: str | None = None,
        validation: Any = None,
        observe: Callable[..., bool] | None = None,
    ) -> RuleStackerModel:
        """Learns from a data frame.

        `beliefs` are as in :meth:`RuleStackerModel.score`. `truth` names the column with the true category of each label;
        null is unknown. `key` is a column with a key of its own for each row, a number or a text. `weight` is a column with
        row weights. `validation` is a data frame with the same columns, which is only scored. `observe` is called several
        times a second with the phase, the number of rules, the number of passes and the last gain; if it returns `False`,
        learning ends with the best model so far.
        """
        if params:
            raise ArgumentError("this trainer has no parameters to fit with; make another trainer")
        given: dict[str, Any] = {"beliefs": beliefs, "truth": truth, "key": key, "weight": weight}
        chosen = {name: value if value is not None else self._settings[name] for name, value in given.items()}
        return self._learn(dataset, validation, observe, **chosen)

    def _fit(self, dataset: Any) -> RuleStackerModel:
        return self.fit(dataset)

    def _learn(
        self, df: Any, validation: Any, observe: Any, beliefs: Any, truth: Any, key: str | None, weight: str | None
    ) -> RuleStackerModel:
        if key is None:
            raise ArgumentError('there is no key; name a column with a key of its own for each row, such as key="id"')
        base = self._base(beliefs)
        normalize = self._settings["normalize"]
        rows = _chunked(base, df, beliefs, truth, key, weight, normalize)
        valid = None
        try:
            if validation is not None:
                valid = _chunked(base, validation, beliefs, truth, key, weight, normalize)
            found = self._ask(base, rows, observe)
            scores = None if valid is None else _prsl.score_remote(found["model"]._core, valid.ask, self._settings["memory"])
        finally:
            rows.close()
            if valid is not None:
                valid.close()
        model = RuleStackerModel(found["model"], beliefs=beliefs, normalize=normalize)
        model.learned = _learned(found, scores)
        model.validation = scores
        model.n_jobs = rows.n_jobs + (0 if valid is None else valid.n_jobs)
        return model

    def _ask(self, base: Model, rows: ChunkedRows, observe: Any) -> dict[str, Any]:
        settings = {
            "n_rules": self._settings["max_rules"],
            "calibration": self._settings["calibration"],
            "seed": self._settings["seed"],
            "max_seconds": self._settings["max_seconds"],
            "threads": None,
            "memory": self._settings["memory"],
        }
        clauses = {name: self._settings[name] for name in ("parsimony", "typical", "learn_probabilities")}
        return _prsl.learn_remote(base._core, settings, clauses, rows.ask, self._progress(), self._save(), observe)

    def _base(self, beliefs: Beliefs | None) -> Model:
        if self._rules is None:
            return new_model(beliefs)
        return self._rules if isinstance(self._rules, Model) else Model.parse(read_text(self._rules))

    def _path(self) -> str | None:
        folder = self._settings["checkpoint"]
        return None if folder is None else f"{folder.rstrip('/')}/{CHECKPOINT}"

    def _progress(self) -> str | None:
        """The state to continue from."""
        path = self._path()
        if path is None or not exists(path, session()):
            return None
        if not self._settings["resume"]:
            raise ArgumentError(
                f"`{path}` is the checkpoint of another run; continue it with `resume=True`, or name another folder"
            )
        return read_text(path, session())

    def _save(self) -> Callable[[str], None] | None:
        path = self._path()
        return None if path is None else lambda text: write_text(path, text, session())

    def write(self) -> StageWriter:
        """Writes the stage."""
        rules = self._rules.text if isinstance(self._rules, Model) else self._rules
        is_text = isinstance(self._rules, Model)
        return StageWriter(self, {"rules": rules, "is_text": is_text, "settings": self._settings})

    @classmethod
    def read(cls) -> StageReader[RuleStackerTrainer]:
        """Reads the stage."""

        def create(state: dict[str, Any]) -> RuleStackerTrainer:
            rules = Model.parse(state["rules"]) if state["is_text"] else state["rules"]
            return cls(rules, **state["settings"])

        return StageReader(cls, create)


def _chunked(
    base: Model, df: Any, beliefs: Any, truth: Any, key: str, weight: str | None, normalize: bool
) -> ChunkedRows:
    check_column(df, key, "keys")
    check_column(df, weight, "weights")
    columns = Columns(belief_columns(base, df, beliefs), truth_columns(base, df, truth))
    return ChunkedRows(base, df, columns, key, weight, normalize)


def _learned(found: dict[str, Any], scores: dict[str, Any] | None) -> Learned:
    found = {name: value for name, value in found.items() if name != "by_user"}
    found["path"] = [Addition(*addition) for addition in found["path"]]
    if scores is not None:
        found["validation"] = scores["mean_joint_log_likelihood"]
    learned = Learned(recipe="clauses", **found)
    if learned.n_impossible:
        warnings.warn(
            f"the given rules exclude the truths of {learned.n_impossible} rows, which are not learned from",
            PrslWarning,
            stacklevel=5,
        )
    return learned
