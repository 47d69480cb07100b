"""Results on disk: one small JSON file for each dataset, fold and method, so that a killed run can continue."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .metrics import Reliability


@dataclass(frozen=True)
class Result:
    """The scores of one method on one fold."""

    dataset: str
    fold: int
    method: str
    settings: dict[str, Any]
    chosen: dict[str, Any]
    metrics: dict[str, float]
    reliability: dict[str, list[float]]
    rows: int
    fit_seconds: float
    predict_seconds: float


def curve(strata: Reliability) -> dict[str, list[float]]:
    """The bins of a reliability curve, read from JSON."""
    return {
        "count": strata.count.tolist(),
        "belief": strata.belief.tolist(),
        "positive": strata.positive.tolist(),
    }


class Store:
    """A folder of results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, dataset: str, fold: int, method: str) -> Path:
        """The file of a result."""
        return self.folder / f"{dataset}-{fold}-{method}.json"

    def load(self, dataset: str, fold: int, method: str, settings: dict[str, Any] | None = None) -> Result | None:
        """A stored result; `None` if it was measured with other settings."""
        try:
            kept = json.loads(self.path(dataset, fold, method).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        try:
            result = Result(**kept)
        except TypeError:
            return None
        return result if settings is None or self.current(result, settings) else None

    @staticmethod
    def current(result: Result, settings: dict[str, Any]) -> bool:
        """Whether a result was measured with these settings."""
        # Converted through JSON, which turns tuples into lists.
        return result.settings == json.loads(json.dumps(settings))

    def places(self) -> list[tuple[str, int, str]]:
        """Dataset, fold and method of every stored result."""
        found = (re.fullmatch(r"(.+?)-(\d+)-(.+)\.json", path.name) for path in sorted(self.folder.glob("*.json")))
        return [(match[1], int(match[2]), match[3]) for match in found if match]

    def save(self, result: Result) -> None:
        """Store a result. A killed run leaves no incomplete file."""
        path = self.path(result.dataset, result.fold, result.method)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
