"""The rows of a data frame in chunks on the executors, and questions to all of them."""

from __future__ import annotations

from typing import Any

from pyspark import StorageLevel
from pyspark.sql import functions
from pyspark.sql.types import DecimalType

from .. import _prsl
from .._model import Model
from ..errors import DataError, ExamplesError
from ._columns import Columns
from ._files import session

#: Number of partitions per core. A few of them even out chunks that take longer than others.
PARTITIONS_PER_CORE = 3


class ChunkedRows:
    """Rows in chunks by their keys. Each chunk is one row of a data frame that stays on the executors."""

    def __init__(
        self, model: Model, df: Any, columns: Columns, key: str, weight: str | None = None, normalize: bool = False
    ) -> None:
        self.n_jobs = 0
        selected = df.select(
            functions.col(_quoted(key)).cast("string").alias("key"),
            *[_column(df, name).alias(f"b{at}") for at, (name, _) in enumerate(columns.beliefs)],
            *[functions.col(_quoted(name)).alias(f"t{at}") for at, (name, _) in enumerate(columns.truths)],
            *([] if weight is None else [functions.col(_quoted(weight)).cast("double").alias("weight")]),
        )
        self.n_rows = selected.count()
        self.n_jobs += 1
        if self.n_rows == 0:
            raise ExamplesError("there are no rows; there is nothing to learn from")
        n_chunks = _prsl.n_chunks(self.n_rows)
        self._blobs = _encoded(model, selected, columns, n_chunks, key, normalize)
        self._check()

    def ask(self, question: bytes) -> list[bytes]:
        """The answers of all chunks: one job."""

        def answer(batches: Any) -> Any:
            from prsl.spark import _worker

            yield from _worker.answer(batches, question)

        self.n_jobs += 1
        answers = self._blobs.select("bytes").mapInArrow(answer, "answer binary").collect()
        return [bytes(row["answer"]) for row in answers]

    def close(self) -> None:
        """Frees the memory of the executors."""
        self._blobs.unpersist()

    def _check(self) -> None:
        """Encodes all rows, which stay on the executors, and raises the first problem."""
        self.n_jobs += 1
        found = self._blobs.select("chunk", "n_rows", "problem").collect()
        problems = sorted((row["chunk"], row["problem"]) for row in found if row["problem"] is not None)
        n_rows = sum(row["n_rows"] for row in found)
        if problems or n_rows != self.n_rows:
            self.close()
        if problems:
            raise DataError(f"the data frame cannot be learned from: {problems[0][1]}")
        if n_rows != self.n_rows:
            raise DataError(
                f"the data frame had {self.n_rows} rows when they were counted and {n_rows} when they were read; "
                "write it to a table first if it is not the same each time"
            )


def _encoded(model: Model, selected: Any, columns: Columns, n_chunks: int, key: str, normalize: bool) -> Any:
    text = model.text

    def number(batches: Any) -> Any:
        from prsl.spark import _worker

        yield from _worker.number_rows(batches, n_chunks)

    def encode(table: Any) -> Any:
        from prsl.spark import _worker

        return _worker.encode(table, text, columns, key, normalize)

    from pyspark.sql.types import IntegerType, StructField, StructType

    numbered_schema = StructType([StructField("chunk", IntegerType()), *selected.schema.fields])
    n_partitions = min(n_chunks, PARTITIONS_PER_CORE * session().sparkContext.defaultParallelism)
    numbered = selected.mapInArrow(number, numbered_schema).repartition(n_partitions, "chunk")
    schema = "chunk int, n_rows long, bytes binary, problem string"
    return numbered.groupBy("chunk").applyInArrow(encode, schema).persist(StorageLevel.MEMORY_AND_DISK)


def _column(df: Any, name: str) -> Any:
    """A column, with decimal numbers in double precision."""
    column = functions.col(_quoted(name))
    return column.cast("double") if isinstance(df.schema[name].dataType, DecimalType) else column


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
