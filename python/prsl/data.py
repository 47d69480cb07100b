"""Datasets in files."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from . import _prsl

__all__ = ["Dataset", "read_arff"]


@dataclass(frozen=True)
class Dataset:
    """A multi-label dataset."""

    #: Rows x features: NaN where missing, nominal values by their position in `nominal`.
    features: npt.NDArray[np.float64]
    feature_names: list[str]
    #: The values of nominal features.
    nominal: dict[str, list[str]]
    #: Rows x labels: 0, 1, or -1 where unknown.
    labels: npt.NDArray[np.int8]
    label_names: list[str]
    #: The label that a label is nested in, if any.
    parents: list[str | None]

    @property
    def cardinality(self) -> float:
        """Mean number of labels per row."""
        return float((self.labels == 1).sum() / len(self.labels))

    @property
    def density(self) -> float:
        """Mean share of labels per row."""
        return self.cardinality / len(self.label_names)

    def __repr__(self) -> str:
        n_rows, n_features = self.features.shape
        return f"<Dataset of {n_rows} rows, {n_features} features and {len(self.label_names)} labels>"


def read_arff(path: str | os.PathLike[str], xml: str | os.PathLike[str]) -> Dataset:
    """Reads an ARFF file (dense or sparse, `.gz` too) and the Mulan file that names its labels.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "weather.arff").write_text("@attribute wet {0,1}\\n@attribute x numeric\\n@data\\n1,0.5\\n0,?\\n")
    >>> _ = (folder / "weather.xml").write_text('<labels><label name="wet"/></labels>')
    >>> dataset = read_arff(folder / "weather.arff", folder / "weather.xml")
    >>> dataset.labels.ravel().tolist(), dataset.features.ravel().tolist(), dataset.cardinality
    ([1, 0], [0.5, nan], 0.5)
    """
    found = _prsl.read_mulan(path, xml)
    names = found["label_names"]
    found["parents"] = [None if parent is None else names[parent] for parent in found["parents"]]
    return Dataset(**found)
