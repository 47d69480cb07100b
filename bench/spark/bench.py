"""Jobs and seconds of scoring and learning on Spark, compared with one machine."""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "spark"))

from conftest import (  # noqa: E402
    BELIEFS,
    CATEGORIES,
    PLANTED_BELIEFS,
    PLANTED_TRUTH,
    WAREHOUSE,
    learn_on_one_machine,
    make_session,
    planted_rows,
    run,
    warehouse_rows,
)
from prsl import Model  # noqa: E402
from prsl.spark import RuleStackerModel, RuleStackerTrainer  # noqa: E402


def timed(work):
    """The result of some work, and its seconds."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def score(spark, n_rows, folder):
    frame = warehouse_rows(n_rows).drop(columns="site")
    frame.to_parquet(folder / "rows.parquet", index=False)
    df = spark.read.parquet(str(folder / "rows.parquet")).repartition(8)
    model = RuleStackerModel(Model.parse(WAREHOUSE))
    out = str(folder / "spark-scores")
    _, on_spark = timed(lambda: model.score(df, beliefs=BELIEFS).write.mode("overwrite").parquet(out))
    names = {c: f"{label}={k}" for label, cs in BELIEFS.items() for c, k in zip(cs, CATEGORIES[label], strict=True)}
    frame.rename(columns=names).to_parquet(folder / "named.parquet", index=False)
    (folder / "model.prsl").write_text(WAREHOUSE)
    arguments = ["predict", folder / "model.prsl", folder / "named.parquet", "--query", "both", "--id", "id"]
    _, here = timed(lambda: run(*arguments, "-o", folder / "out.parquet"))
    print(f"| scoring, {n_rows:,} rows | {here:.1f} | {on_spark:.1f} | 1 |", flush=True)


def learn(spark, n_rows, folder):
    frame = planted_rows(n_rows)
    expected, here = timed(lambda: learn_on_one_machine(frame, folder))
    frame.to_parquet(folder / "planted.parquet", index=False)
    df = spark.read.parquet(str(folder / "planted.parquet"))
    trainer = RuleStackerTrainer(seed=1)
    model, on_spark = timed(lambda: trainer.fit(df, beliefs=PLANTED_BELIEFS, truth=PLANTED_TRUTH, key="id"))
    assert model.model.text == expected, "the models differ"
    print(f"| learning, {n_rows:,} rows | {here:.1f} | {on_spark:.1f} | {model.n_jobs} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--score", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--learn", type=int, nargs="*", default=[20_000, 200_000])
    arguments = parser.parse_args()
    spark, start = timed(lambda: make_session("local-cluster[2,1,1024]"))
    print(f"Spark starts in {start:.1f} s\n")
    print("| work | one machine, s | Spark, s | jobs |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in arguments.score:
            score(spark, n_rows, pathlib.Path(folder))
        for n_rows in arguments.learn:
            learn(spark, n_rows, pathlib.Path(folder))
    spark.stop()


if __name__ == "__main__":
    main()
