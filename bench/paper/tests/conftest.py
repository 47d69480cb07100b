"""A small simulated dataset, in the files that the benchmark reads."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

LABELS = ["a", "b", "c"]


def simulate(rows: int = 150, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, truths and beliefs. Label c almost always equals a and b, and its own belief is weak."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, 4)).round(3)
    truths = (features[:, :3] + 0.7 * random.normal(size=(rows, 3)) > 0.0).astype(np.int8)
    truths[:, 2] = (truths[:, 0] & truths[:, 1]) ^ (random.random(rows) < 0.03)
    noise = np.array([0.8, 0.8, 3.0])
    beliefs = 1.0 / (1.0 + np.exp(-(2.0 * truths - 1.0 + noise * random.normal(size=(rows, 3)))))
    beliefs[0] = [0.0, 1.0, 0.5]
    return features, truths, beliefs


def write_arff(folder: Path, name: str, features: np.ndarray, truths: np.ndarray) -> None:
    """An ARFF file and its label file."""
    attributes = [f"@attribute x{k} numeric" for k in range(features.shape[1])]
    attributes += [f"@attribute {label} {{0,1}}" for label in LABELS]
    lines = [",".join([*map(str, x), *map(str, y)]) for x, y in zip(features, truths)]
    text = "\n".join([f"@relation {name}", *attributes, "@data", *lines]) + "\n"
    (folder / f"{name}.arff").write_text(text, encoding="utf-8")
    labels = "".join(f'<label name="{label}"></label>' for label in LABELS)
    xml = f'<?xml version="1.0" ?>\n<labels xmlns="http://mulan.sourceforge.net/labels">{labels}</labels>\n'
    (folder / f"{name}.xml").write_text(xml, encoding="utf-8")


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    """A folder with the dataset `toy`: ARFF, XML and three folds of beliefs."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    from bench.paper.datasets import permuted_splits

    features, truths, beliefs = simulate()
    folder = tmp_path / "data"
    folder.mkdir()
    write_arff(folder, "toy", features, truths)
    fold, split, row = [], [], []
    for number, parts in enumerate(permuted_splits(len(truths), 3)):
        for part, rows in parts.items():
            fold += [number] * len(rows)
            split += [part] * len(rows)
            row += rows.tolist()
    columns = {"fold": np.array(fold, np.int16), "split": split, "row": np.array(row, np.int32)}
    columns |= {f"belief_{label}": beliefs[row, k].astype(np.float32) for k, label in enumerate(LABELS)}
    columns |= {f"true_{label}": truths[row, k] for k, label in enumerate(LABELS)}
    parquet.write_table(arrow.table(columns), folder / "toy.parquet")
    return folder
