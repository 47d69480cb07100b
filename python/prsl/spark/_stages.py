"""Saved stages of pipelines: the metadata of PySpark, with what the stage is made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWriter

from ._files import session

_Stage = TypeVar("_Stage", bound="MLReadable[Any]")


class StageWriter(MLWriter):
    """Writes a stage as metadata."""

    def __init__(self, stage: Any, state: dict[str, Any]) -> None:
        super().__init__()
        self._stage = stage
        self._state = state

    def saveImpl(self, path: str) -> None:
        DefaultParamsWriter.saveMetadata(self._stage, path, session(), extraMetadata={"prsl": json.dumps(self._state)})


class StageReader(MLReader[_Stage], Generic[_Stage]):
    """Reads a stage from its metadata."""

    def __init__(self, of: type, create: Callable[[dict[str, Any]], _Stage]) -> None:
        super().__init__()
        self._of = of
        self._create = create

    def load(self, path: str) -> _Stage:
        metadata = DefaultParamsReader.loadMetadata(path, session(), f"{self._of.__module__}.{self._of.__name__}")
        stage = self._create(json.loads(metadata["prsl"]))
        stage._resetUid(metadata["uid"])  # type: ignore[attr-defined, unused-ignore]
        return stage
