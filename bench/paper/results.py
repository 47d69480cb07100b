"""Results on disk: one small JSON file for each dataset, fold and method, so that a killed run can continue.

The results behind the published tables are also lines of one file in the repository, which later runs start from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .metrics import Reliability
from .provenance import Origin

TRAIN, BOTH = "train", "train+val"
"""The rows that a method has learned from: training rows alone, or training and validation rows."""


@dataclass(frozen=True)
class Score:
    """The scores of one model on one part of a fold."""

    metrics: dict[str, float]
    reliability: dict[str, list[float]]


@dataclass(frozen=True)
class Result:
    """The scores of one method on one fold."""

    dataset: str
    fold: int
    method: str
    key: dict[str, Any]
    """What a stored result depends on: settings, versions and data."""
    origin: Origin
    chosen: dict[str, dict[str, Any]]
    """Chosen settings and sizes, by the rows learned from."""
    scores: dict[str, dict[str, Score]]
    """By the rows learned from, and by the part of the fold: `train`, `val` or `test`."""
    seconds: dict[str, float]
    """CPU seconds to learn, choices included, by the rows learned from."""
    row_seconds: float
    """CPU seconds to predict a row."""

    @property
    def learned_from(self) -> str:
        """The most rows that the method can learn from."""
        return BOTH if BOTH in self.scores else TRAIN


def curve(strata: Reliability) -> dict[str, list[float]]:
    """The bins of a reliability curve, for JSON."""
    return {
        "count": strata.count.tolist(),
        "belief": strata.belief.tolist(),
        "positive": strata.positive.tolist(),
    }


Place = tuple[str, int, str]
"""A dataset, a fold and a method."""


class Store:
    """A folder of results, and an archive of earlier ones."""

    def __init__(self, folder: Path, archive: Path | None = None) -> None:
        self.folder, self.archive = folder, archive

    def path(self, dataset: str, fold: int, method: str) -> Path:
        """The file of a result."""
        return self.folder / f"{dataset}-{fold}-{method}.json"

    def load(self, dataset: str, fold: int, method: str, key: dict[str, Any] | None = None) -> Result | None:
        """A stored result; `None` if it was measured with another key."""
        for content in (read_json(self.path(dataset, fold, method)), self._archived().get((dataset, fold, method), {})):
            result = _parsed(content)
            if result is not None and (key is None or self.current(result, key)):
                return result
        return None

    def _archived(self) -> dict[Place, dict[str, Any]]:
        return read_archive(self.archive) if self.archive else {}

    @staticmethod
    def current(result: Result, key: dict[str, Any]) -> bool:
        """Whether a result was measured with this key."""
        # Converted through JSON, which turns tuples into lists.
        return result.key == json.loads(json.dumps(key))

    def places(self) -> list[Place]:
        """Dataset, fold and method of every stored result."""
        found = (re.fullmatch(r"(.+?)-(\d+)-(.+)\.json", path.name) for path in self.folder.glob("*.json"))
        return sorted({(match[1], int(match[2]), match[3]) for match in found if match} | self._archived().keys())

    def save(self, result: Result) -> None:
        """Store a result."""
        write_json(self.path(result.dataset, result.fold, result.method), asdict(result))


def _parsed(content: dict[str, Any]) -> Result | None:
    try:
        scores = {
            rows: {part: Score(**score) for part, score in parts.items()} for rows, parts in content["scores"].items()
        }
        return Result(**content | {"origin": Origin(**content["origin"]), "scores": scores})
    except (TypeError, KeyError):
        return None


@cache
def read_archive(path: Path) -> dict[Place, dict[str, Any]]:
    """The results in an archive; none if there is no such file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    results = (json.loads(line) for line in lines)
    return {(result["dataset"], result["fold"], result["method"]): result for result in results}


def write_archive(path: Path, results: Iterable[Result]) -> None:
    """Write results as lines of JSON, in the order of their places."""
    ordered = sorted(results, key=lambda result: (result.dataset, result.fold, result.method))
    partial = path.with_suffix(".partial")
    partial.write_text("".join(json.dumps(asdict(result)) + "\n" for result in ordered), encoding="utf-8")
    partial.replace(path)


def read_json(path: Path) -> dict[str, Any]:
    """The content of a file; empty if there is none that can be read."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a file. A killed run leaves no incomplete file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
