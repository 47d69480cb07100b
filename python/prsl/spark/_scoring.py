"""A model that scores data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.ml import Model as SparkModel
from pyspark.ml.util import MLReadable, MLWritable
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from .._learned import Learned
from .._model import Model
from ..errors import ArgumentError
from ._columns import Beliefs, Columns, belief_columns
from ._files import read_text, session
from ._stages import StageReader, StageWriter

#: What can be asked for.
OUTPUTS = ("marginals", "mpe", "log_evidence", "status")


class RuleStackerModel(SparkModel, MLReadable["RuleStackerModel"], MLWritable):
    """A model that scores the rows of data frames. It is also a stage of a pipeline.

    As a stage, it scores with the columns and outputs that it was created with, or that its trainer had.
    """

    #: What was learned, if the model comes from a trainer.
    learned: Learned | None = None
    #: Scores on the validation data frame of the trainer, if there was one.
    validation: dict[str, Any] | None = None
    #: Number of Spark jobs that learning took.
    n_jobs: int = 0

    def __init__(
        self,
        model: Model,
        *,
        beliefs: Beliefs | None = None,
        outputs: Sequence[str] = OUTPUTS,
        prefix: str = "",
        on_bad_row: str = "mark",
        normalize: bool = False,
    ) -> None:
        super().__init__()
        #: Labels and rules.
        self.model = model
        self._settings: dict[str, Any] = {
            "beliefs": beliefs,
            "outputs": list(outputs),
            "prefix": prefix,
            "on_bad_row": on_bad_row,
            "normalize": normalize,
        }

    @classmethod
    def load(cls, path: str, spark: Any = None) -> RuleStackerModel:
        """Reads a model file, `.prsl` or `.json`, or a stage that was saved. The path is local, or one that Hadoop knows."""
        if path.endswith((".prsl", ".json")):
            return cls(Model.parse(read_text(path, spark)))
        return cls.read().load(path)

    def score(
        self,
        df: Any,
        beliefs: Beliefs | None = None,
        outputs: Sequence[str] = OUTPUTS,
        *,
        prefix: str = "",
        on_bad_row: str = "mark",
        normalize: bool = False,
    ) -> Any:
        """The data frame with further columns: the answers of `prsl predict` for each row.

        `beliefs` names the columns with beliefs, by label: one column with the probability of yes (or with observed
        categories), a list of columns in the order of `Label.categories`, or a dictionary of columns by category. Without
        it, columns are named `label=category`. Null is missing.

        The columns are `label=category` ("marginals"), `mpe:label` ("mpe"), "log_evidence" and "status", each after
        `prefix`. A row that cannot be read gets the status `invalid`, and column `problem` says why. With
        `on_bad_row="error"` it fails the job. All other columns are passed through.
        """
        return _score(self.model, df, beliefs, outputs, prefix, on_bad_row, normalize)

    def _transform(self, dataset: Any) -> Any:
        return self.score(dataset, **self._settings)

    def write(self) -> StageWriter:
        """Writes the stage."""
        return StageWriter(self, {"model": self.model.text, "settings": self._settings})

    @classmethod
    def read(cls) -> StageReader[RuleStackerModel]:
        """Reads the stage."""
        return StageReader(cls, lambda state: cls(Model.parse(state["model"]), **state["settings"]))


def _score(
    model: Model, df: Any, beliefs: Beliefs | None, outputs: Sequence[str], prefix: str, on_bad_row: str, normalize: bool
) -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema

    if isinstance(outputs, str) or not outputs or any(output not in OUTPUTS for output in outputs):
        raise ArgumentError(f"outputs are {outputs!r}, expected some of {', '.join(OUTPUTS)}")
    if on_bad_row not in ("mark", "error"):
        raise ArgumentError(f"on_bad_row is {on_bad_row!r}, expected 'mark' or 'error'")
    columns = Columns(belief_columns(model, df, beliefs))
    answers = _fields(model, outputs, prefix, on_bad_row)
    for field in answers:
        if field.name in df.columns:
            raise ArgumentError(
                f"the data frame has a column `{field.name}`, which scoring would add; rename it, or give a `prefix`"
            )
    schema = StructType([*df.schema.fields, *answers])
    query = {(True, True): "both", (False, True): "mpe"}.get(
        ("marginals" in outputs or "log_evidence" in outputs, "mpe" in outputs), "marginals"
    )
    wanted = {"prefix": prefix, "on_bad_row": on_bad_row, "normalize": normalize}
    text = session().sparkContext.broadcast(model.text)
    arrow_schema = to_arrow_schema(schema)

    def score(batches: Any) -> Any:
        from prsl.spark import _worker

        yield from _worker.score(batches, text.value, query, columns, wanted, arrow_schema)

    return df.mapInArrow(score, schema)


def _fields(model: Model, outputs: Sequence[str], prefix: str, on_bad_row: str) -> list[StructField]:
    """The columns of the answers, named as on the command line."""
    fields = []
    if "marginals" in outputs:
        names = [f"{label.name}={category}" for label in model.labels for category in label.categories]
        fields += [StructField(prefix + name, DoubleType()) for name in names]
    if "mpe" in outputs:
        fields += [StructField(f"{prefix}mpe:{label.name}", StringType()) for label in model.labels]
    if "log_evidence" in outputs:
        fields.append(StructField(f"{prefix}log_evidence", DoubleType()))
    if "status" in outputs or on_bad_row == "mark":
        fields.append(StructField(f"{prefix}status", StringType()))
    if on_bad_row == "mark":
        fields.append(StructField(f"{prefix}problem", StringType()))
    return fields


__all__ = ["OUTPUTS", "RuleStackerModel"]
