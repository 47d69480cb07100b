"""The paper's datasets in folds: beliefs, truths and, for methods that need them, features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from .provenance import file_hash
from .rule_stacker import Arff, read_arff

ABSENT = """\
no `{wanted}` under {folder}
The datasets are those of the Mulan project: `data/multi-label` of the GitHub repository `tsoumakas/mulan` has
NAME.arff and NAME.xml (birds: birds-train.arff followed by the rows of birds-test.arff). Put them, packed as .arff.gz
or not, into a folder and name it with `--data FOLDER`; without belief files (NAME.parquet) add `--beliefs forest`."""


class DataAbsent(Exception):
    """A file of a dataset is missing. The message tells where to get it."""


@dataclass(frozen=True)
class Forest:
    """Settings of the paper's base learner, a probability forest per label."""

    trees: int
    min_leaf: int = 5
    min_split: int = 2


@dataclass(frozen=True)
class Setting:
    """A dataset's folds in the paper's proportions, and its forest."""

    folds: int
    forest: Forest


DATASETS = {
    "emotions": Setting(10, Forest(500)),
    "birds": Setting(10, Forest(500)),
    "yeast": Setting(10, Forest(500)),
    "medical": Setting(5, Forest(500, min_leaf=1, min_split=11)),
    "enron": Setting(5, Forest(500)),
    "mediamill2k": Setting(5, Forest(200)),
}
"""From small to large. Fold k: test is part k, validation part k + 1, training the rest."""


@dataclass(frozen=True)
class Part:
    """Some rows of a dataset: beliefs P(label = 1), truths, and features unless they are absent."""

    rows: np.ndarray
    beliefs: np.ndarray
    truths: np.ndarray
    features: np.ndarray | None = None


@dataclass(frozen=True)
class Fold:
    """One split of a dataset; beliefs of training rows are out-of-bag."""

    dataset: str
    number: int
    train: Part
    val: Part
    test: Part

    @property
    def both(self) -> Part:
        """Training and validation rows."""
        return joined(self.train, self.val)


def joined(first: Part, second: Part) -> Part:
    """The rows of two parts."""
    features = None
    if first.features is not None and second.features is not None:
        features = np.vstack([first.features, second.features])
    return Part(
        np.concatenate([first.rows, second.rows]),
        np.vstack([first.beliefs, second.beliefs]),
        np.vstack([first.truths, second.truths]),
        features,
    )


class Folder:
    """The folder of the datasets' files, which may be in its subfolders `mulan` and `beliefs`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, *names: str) -> Path | None:
        """The first of the names that exists."""
        candidates = (self.path / below / name for name in names for below in ("", "mulan", "beliefs"))
        return next((path for path in candidates if path.is_file()), None)

    def get(self, *names: str) -> Path:
        """Like `find`, but raises an error that tells where to get a missing file."""
        path = self.find(*names)
        if path is None:
            raise DataAbsent(ABSENT.format(wanted=names[0], folder=self.path))
        return path

    def arff(self, dataset: str) -> Arff:
        """The features and labels of a dataset."""
        return read_arff(self.get(f"{dataset}.arff", f"{dataset}.arff.gz"), self.get(f"{dataset}.xml"))


class Dataset:
    """A dataset's folds, read on demand."""

    def __init__(self, name: str, folder: Folder) -> None:
        self.name = name
        self.folder = folder

    @cached_property
    def version(self) -> str:
        """A hash of the dataset's files."""
        names = [(f"{self.name}.parquet",), (f"{self.name}.arff", f"{self.name}.arff.gz"), (f"{self.name}.xml",)]
        found = (self.folder.find(*alternatives) for alternatives in names)
        return file_hash(path for path in found if path is not None)

    @cached_property
    def arff(self) -> Arff:
        """The ARFF file."""
        return self.folder.arff(self.name)

    @cached_property
    def splits(self) -> list[dict[str, np.ndarray]]:
        """The rows of each fold's parts: those of the belief file, or of a seeded permutation if there is none."""
        if self.folder.find(f"{self.name}.parquet"):
            return [{part: rows for part, (rows, _, _) in fold.items()} for fold in self._belief_file[1]]
        count = DATASETS[self.name].folds if self.name in DATASETS else 5
        return list(permuted_splits(len(self.arff.labels), count))

    @cached_property
    def _belief_file(self) -> tuple[list[str], list[dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]]]:
        return read_beliefs(self.folder.get(f"{self.name}.parquet"))

    def fold(self, number: int, features: bool) -> Fold:
        """Fold `number`, counted from 1, with the fixed beliefs."""
        names, folds = self._belief_file
        table = self.features(names) if features else None
        parts = {
            part: Part(rows, beliefs, truths, None if table is None else table[rows])
            for part, (rows, beliefs, truths) in folds[number - 1].items()
        }
        return Fold(self.name, number, **parts)

    def features(self, label_names: list[str]) -> np.ndarray:
        """The features, after a check that the ARFF file has the labels of the belief file."""
        if self.arff.label_names != label_names:
            raise ValueError(f"the labels of `{self.name}` in the ARFF file are not those of its belief file")
        return self.arff.features


def read_beliefs(path: Path) -> tuple[list[str], list[dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]]]:
    """The label names of a belief file and, per fold and part, rows, beliefs and truths."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(path)
    names = [column.removeprefix("true_") for column in table.column_names if column.startswith("true_")]

    def matrix(prefix: str, dtype: type) -> np.ndarray:
        return np.column_stack([table[prefix + name].to_numpy() for name in names]).astype(dtype)

    beliefs, truths = matrix("belief_", float), matrix("true_", np.int8)
    fold, row = table["fold"].to_numpy(), table["row"].to_numpy()
    split = np.array(table["split"].to_pylist())
    folds = []
    for number in np.unique(fold):
        chosen = {part: np.flatnonzero((fold == number) & (split == part)) for part in ("train", "val", "test")}
        folds.append({part: (row[lines], beliefs[lines], truths[lines]) for part, lines in chosen.items()})
    return names, folds


def permuted_splits(rows: int, folds: int, seed: int = 0) -> Iterator[dict[str, np.ndarray]]:
    """Parts of a random permutation: test is part k, validation part k + 1 (cyclic), training the rest."""
    parts = np.array_split(np.random.default_rng(seed).permutation(rows), folds)
    for k in range(folds):
        after = (k + 1) % folds
        rest = [part for number, part in enumerate(parts) if number not in (k, after)]
        yield {"train": np.sort(np.concatenate(rest)), "val": np.sort(parts[after]), "test": np.sort(parts[k])}
