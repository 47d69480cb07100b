"""Paths, and models for several tests."""

from __future__ import annotations

import os
import pathlib
import shutil

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
# Without it, scikit-learn skips a check of estimators. SciPy reads it when it is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> pathlib.Path:
    """The root of the project."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    """The folder with the paper's datasets, beside the project."""
    folder = ROOT.parent / "shared"
    if not (folder / "data").is_dir():
        pytest.skip(f"the paper's datasets are not there: no folder {os.path.relpath(folder, ROOT)}/data")
    return folder


@pytest.fixture(scope="session")
def command() -> str:
    """The `prsl` command, built from the same sources."""
    built = [ROOT / "target" / kind / "prsl" for kind in ("debug", "release")]
    there = sorted((path for path in built if path.exists()), key=lambda path: path.stat().st_mtime)
    found = os.environ.get("PRSL_COMMAND") or (str(there[-1]) if there else shutil.which("prsl"))
    if not found:
        pytest.skip("the command line is not built: run `cargo build -p prsl-cli`, or set PRSL_COMMAND")
    return found


@pytest.fixture
def warehouse() -> str:
    """The worked example of the paper."""
    return """\
label activity: walking, normal, overhead
label feet: gait, standing
label hands: high, centered, low

rule 0.8: high & standing -> overhead
rule 0.9: normal -> centered | low
rule 1: walking <-> gait
"""


@pytest.fixture(scope="session")
def equal_labels() -> tuple[np.ndarray, np.ndarray]:
    """Weak beliefs about three labels, of which two are equal and one is their opposite."""
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 2, 600)
    y = np.column_stack([truth, truth, 1 - truth])
    yes = np.clip(0.5 + 0.25 * (y - 0.5) + 0.12 * rng.normal(size=y.shape), 0.02, 0.98)
    return yes, y
