"""Sessions of Spark, rows and the command line."""

from __future__ import annotations

import os
import pathlib
import subprocess

import numpy as np
import pandas as pd
import pyspark
import pytest

os.environ.setdefault("SPARK_HOME", os.path.dirname(pyspark.__file__))

import prsl.spark  # noqa: E402, F401  (sets PYSPARK_PYTHON before there is a session)
from pyspark.sql import SparkSession  # noqa: E402

WAREHOUSE = """\
label activity: walking, normal, overhead
label feet: gait, standing
label hands: high, centered, low

rule 0.8: high & standing -> overhead
rule 0.9: normal -> centered | low
rule 1: walking <-> gait
"""

#: The columns of beliefs, by label.
BELIEFS = {
    "activity": ["p_walk", "p_norm", "p_over"],
    "feet": ["p_gait", "p_stand"],
    "hands": ["p_high", "p_cent", "p_low"],
}

#: Planted rules among ten yes/no labels: (condition, conclusion, whether it is negated).
PLANTED = [(0, 1, False), (2, 3, True), (4, 5, False), (6, 7, True), (8, 9, False), (1, 4, True)]


def make_session(master: str) -> SparkSession:
    """A session. Small tables need few partitions."""
    builder = SparkSession.builder.master(master).appName("prsl")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def run(*arguments: object) -> str:
    """Runs the command line."""
    command = [os.environ["PRSL_COMMAND"], *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def warehouse_rows(n_rows: int, seed: int = 1) -> pd.DataFrame:
    """Beliefs of the warehouse's classifiers, with empty cells, impossible rows, and a column that is passed through."""
    rng = np.random.default_rng(seed)
    columns: dict[str, object] = {"id": np.arange(n_rows), "site": rng.choice(["north", "south"], n_rows)}
    for names in BELIEFS.values():
        beliefs = rng.dirichlet(np.ones(len(names)), n_rows)
        beliefs[rng.random(n_rows) < 0.1] = np.nan
        columns |= dict(zip(names, beliefs.T, strict=True))
    frame = pd.DataFrame(columns)
    frame.loc[5, ["p_walk", "p_norm", "p_over", "p_gait", "p_stand"]] = [1.0, 0.0, 0.0, 0.0, 1.0]
    return frame


def planted_rows(n_rows: int, seed: int = 2) -> pd.DataFrame:
    """Ten yes/no labels with planted rules: beliefs `b0` to `b9`, truths `t0` to `t9`, of which some are unknown."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n_rows, 10)) < 0.45
    for condition, conclusion, is_negated in PLANTED:
        follows = truth[:, condition] & (rng.random(n_rows) < 0.95)
        truth[follows, conclusion] = not is_negated
    logits = 1.6 * (truth - 0.5) + rng.normal(0, 1.2, truth.shape)
    frame = pd.DataFrame({"id": rng.permutation(n_rows) + 10**6})
    for at in range(10):
        frame[f"b{at}"] = 1 / (1 + np.exp(-logits[:, at]))
        frame[f"t{at}"] = pd.array(np.where(truth[:, at], "yes", "no"), dtype="string")
        frame.loc[rng.random(n_rows) < 0.03, f"t{at}"] = None
    return frame


PLANTED_BELIEFS = {f"l{at}": f"b{at}" for at in range(10)}
PLANTED_TRUTH = {f"l{at}": f"t{at}" for at in range(10)}


def learn_on_one_machine(frame: pd.DataFrame, folder: pathlib.Path, *options: object) -> str:
    """The model of `prsl learn --key`."""
    frame[["id", *PLANTED_BELIEFS.values()]].rename(columns={b: label for label, b in PLANTED_BELIEFS.items()}).to_parquet(
        folder / "beliefs.parquet", index=False
    )
    frame[["id", *PLANTED_TRUTH.values()]].rename(columns={t: label for label, t in PLANTED_TRUTH.items()}).to_parquet(
        folder / "truth.parquet", index=False
    )
    output = folder / "learned.prsl"
    tables = [folder / "beliefs.parquet", folder / "truth.parquet"]
    run("learn", *tables, "--key", "id", "--id", "id", "--cv", 0, "-o", output, *options)
    return output.read_text()


def assert_same_scores(scored: pd.DataFrame, frame: pd.DataFrame, folder: pathlib.Path) -> None:
    """Compares with the command line, bit for bit."""
    names = {
        column: f"{label}={category}"
        for label, columns in BELIEFS.items()
        for column, category in zip(columns, CATEGORIES[label], strict=True)
    }
    frame.drop(columns="site").rename(columns=names).to_parquet(folder / "rows.parquet", index=False)
    (folder / "model.prsl").write_text(WAREHOUSE)
    run("predict", folder / "model.prsl", folder / "rows.parquet", "--query", "both", "--id", "id", "-o", folder / "out.parquet")
    expected = pd.read_parquet(folder / "out.parquet").sort_values("id").reset_index(drop=True)
    scored = scored.sort_values("id").reset_index(drop=True)
    assert len(scored) == len(expected)
    for column in [*names.values(), "log_evidence"]:
        ours, theirs = scored[column].to_numpy(float), expected[column].to_numpy(float)
        known = ~np.isnan(theirs)
        assert (ours[known].view("u8") == theirs[known].view("u8")).all(), column
        assert (np.isnan(ours) == np.isnan(theirs)).all(), column
    for column in ["status", *(f"mpe:{label}" for label in BELIEFS)]:
        assert scored[column].fillna("").tolist() == expected[column].fillna("").tolist(), column


CATEGORIES = {
    "activity": ["walking", "normal", "overhead"],
    "feet": ["gait", "standing"],
    "hands": ["high", "centered", "low"],
}


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with the model of the warehouse."""
    (tmp_path / "warehouse.prsl").write_text(WAREHOUSE)
    return tmp_path
