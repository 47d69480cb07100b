"""What runs in the Python processes of executors. Compiled models and prepared rows are kept for the next task."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from .. import _prsl
from ..errors import DataError
from ._columns import Columns

#: Bytes of prepared rows that a process keeps between the steps of learning.
CACHE_BYTES = 512 << 20

_SCORERS: dict[tuple[str, str], tuple[_prsl.Model, _prsl.Scorer]] = {}
_CHUNKS: list[_prsl.ChunkWorker] = []


def use_cores_of_task() -> None:
    """Uses as many threads as the task has cores; executors run as many tasks as they have."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is not None:
        os.environ.setdefault("RAYON_NUM_THREADS", str(max(context.cpus(), 1)))


def score(
    batches: Iterator[pa.RecordBatch], text: str, query: str, columns: Columns, wanted: dict[str, Any], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Scores batches of rows. `schema` has the columns of the answers, in their order."""
    use_cores_of_task()
    model, scorer = _scorer(text, query)
    prefix = wanted["prefix"]
    for batch in batches:
        given = _renamed(batch, columns.beliefs)
        rows, bad, problems = _prsl.readable_rows(model, given, wanted["normalize"], columns.names)
        if bad and wanted["on_bad_row"] == "error":
            raise DataError(f"{_named(batch, bad[0], columns)}: {problems[0]}")
        answers = _answers(model.labels, scorer.answer(rows), prefix)
        answers[f"{prefix}problem"] = np.full(len(rows), None, dtype=object)
        good = np.setdiff1d(np.arange(batch.num_rows), bad)
        of_bad = {f"{prefix}status": "invalid", f"{prefix}problem": problems}
        arrays = [
            _spread(answers[field.name], field, good, bad, of_bad.get(field.name))
            if field.name in answers
            else batch.column(field.name)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def number_rows(batches: Iterator[pa.RecordBatch], n_chunks: int) -> Iterator[pa.RecordBatch]:
    """Adds the chunk of each row, by its key. Rows without a key are in chunk 0, which then has a problem."""
    for batch in batches:
        keys = batch.column("key").to_pylist()
        numbers = _prsl.chunk_numbers(["" if key is None else key for key in keys], n_chunks)
        chunks = [0 if key is None else number for key, number in zip(keys, numbers, strict=True)]
        yield pa.RecordBatch.from_arrays(
            [pa.array(chunks, pa.int32()), *batch.columns], names=["chunk", *batch.schema.names]
        )


def encode(table: pa.Table, text: str, columns: Columns, key: str, normalize: bool) -> pa.Table:
    """The rows of a chunk as one row: its number, its bytes, or else what is wrong with a row."""
    model = _prsl.Model._parse(text)
    chunk = table.column("chunk")[0].as_py()
    keys = table.column("key").to_pylist()
    if None in keys:
        return _encoded(chunk, len(keys), None, f"column `{key}`: a row has no key; each row needs a key of its own")
    beliefs = pa.table({ours: table.column(f"b{at}") for at, (_, ours) in enumerate(columns.beliefs)})
    truths = pa.table({label: table.column(f"t{at}") for at, (_, label) in enumerate(columns.truths)})
    weights = None
    if "weight" in table.column_names:
        weights = [float("nan") if weight is None else weight for weight in table.column("weight").to_pylist()]
    data, problem = _prsl.encode_chunk(
        model, _doubles(beliefs), truths, keys, weights, chunk, normalize, (columns.names, columns.truth_names)
    )
    return _encoded(chunk, len(keys), data, problem)


def answer(batches: Iterator[pa.RecordBatch], question: bytes) -> Iterator[pa.RecordBatch]:
    """The answers of chunks to a question of the learner."""
    use_cores_of_task()
    if not _CHUNKS:
        _CHUNKS.append(_prsl.ChunkWorker(CACHE_BYTES))
    for batch in batches:
        for rows in batch.column("bytes"):
            found = _CHUNKS[0].answer(question, rows.as_buffer().to_pybytes())
            yield pa.RecordBatch.from_arrays([pa.array([found], pa.binary())], names=["answer"])


def _scorer(text: str, query: str) -> tuple[_prsl.Model, _prsl.Scorer]:
    if (text, query) not in _SCORERS:
        model = _prsl.Model._parse(text)
        question = dict.fromkeys(
            ["top", "memory", "time_limit", "max_sweeps", "damping", "tolerance", "threads"]
        ) | {"query": query, "engine": "auto", "samples": 1, "seed": 1}
        _SCORERS.clear()
        _SCORERS[text, query] = (model, _prsl.Scorer(model, question))
    return _SCORERS[text, query]


def _renamed(batch: pa.RecordBatch, pairs: tuple[tuple[str, str], ...]) -> pa.RecordBatch:
    table = pa.table({ours: batch.column(theirs) for theirs, ours in pairs})
    table = _doubles(table).combine_chunks()
    found = table.to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], schema=table.schema)


def _doubles(table: pa.Table) -> pa.Table:
    """Decimal numbers as numbers in double precision."""
    for at, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(pa.float64()))
    return table


def _answers(labels: list[_prsl.Label], found: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The answers of readable rows by the names of their columns."""
    answers: dict[str, Any] = {f"{prefix}status": np.array(found["statuses"], dtype=object)[found["status"]]}
    if "marginals" in found:
        names = [f"{prefix}{label.name}={category}" for label in labels for category in label.categories]
        answers |= dict(zip(names, found["marginals"].T, strict=True))
        answers[f"{prefix}log_evidence"] = found["log_evidence"]
    if "assignments" in found:
        for at, label in enumerate(labels):
            # The position of a missing assignment is -1.
            categories = np.array([*label.categories, None], dtype=object)
            answers[f"{prefix}mpe:{label.name}"] = categories[found["assignments"][:, 0, at]]
    return answers


def _spread(answers: Any, field: pa.Field, good: Any, bad: list[int], of_bad: Any) -> pa.Array:
    """A column of answers of all rows. Rows that are not readable have `of_bad`, and infinite numbers are null."""
    n_rows = len(good) + len(bad)
    if pa.types.is_floating(field.type):
        values = np.full(n_rows, np.nan)
        values[good] = answers
        return pa.array(values, field.type, mask=~np.isfinite(values))
    column = np.full(n_rows, None, dtype=object)
    column[good] = answers
    column[bad] = of_bad
    return pa.array(column, field.type)


def _named(batch: pa.RecordBatch, row: int, columns: Columns) -> str:
    """A row by its first columns that are no beliefs."""
    own = {theirs for theirs, _ in columns.beliefs}
    others = [name for name in batch.schema.names if name not in own][:3]
    return "row with " + ", ".join(f"{name}={batch.column(name)[row].as_py()!r}" for name in others) if others else "a row"


def _encoded(chunk: int, n_rows: int, data: bytes | None, problem: str | None) -> pa.Table:
    return pa.table(
        {
            "chunk": pa.array([chunk], pa.int32()),
            "n_rows": pa.array([n_rows], pa.int64()),
            "bytes": pa.array([data], pa.binary()),
            "problem": pa.array([problem], pa.string()),
        }
    )
