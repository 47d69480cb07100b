"""Two executor processes: scores and learned models have the same bits as on one machine, also if an executor is killed."""

from __future__ import annotations

import os
import pathlib
import signal
import threading
import time

import pandas as pd
import pytest
from conftest import (
    BELIEFS,
    PLANTED_BELIEFS,
    PLANTED_TRUTH,
    assert_same_scores,
    learn_on_one_machine,
    make_session,
    planted_rows,
    warehouse_rows,
)
from prsl.errors import ArgumentError, DataError, ExamplesError
from prsl.spark import RuleStackerModel, RuleStackerTrainer
from pyspark.ml import Pipeline, PipelineModel

#: More than 8,192 rows, so that there are several chunks.
N_ROWS = 18_000
#: The largest number of Spark jobs that learning the planted rules may take.
MAX_JOBS = 300


@pytest.fixture(scope="module")
def spark():
    session = make_session("local-cluster[2,1,1024]")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def planted():
    return planted_rows(N_ROWS)


@pytest.fixture(scope="module")
def expected(planted, tmp_path_factory):
    """The model that one machine learns."""
    return learn_on_one_machine(planted, tmp_path_factory.mktemp("one"))


def executors(spark) -> set[int]:
    """The process ids of the executors: the grandparents of their Python processes."""

    def grandparents(batches):
        import pyarrow as pa

        for batch in batches:
            fields = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()
            time.sleep(0.2)
            yield pa.RecordBatch.from_arrays([pa.array([int(fields[1])] * batch.num_rows, pa.int64())], names=["pid"])

    found = spark.range(64).repartition(16).mapInArrow(grandparents, "pid long").distinct().collect()
    return {row["pid"] for row in found}


def test_there_are_two_executors(spark):
    deadline = 50
    while len(executors(spark)) < 2 and deadline:
        deadline -= 1
    assert len(executors(spark)) == 2


def test_scores_are_those_of_the_command_line(spark, folder):
    frame = warehouse_rows(20_000)
    model = RuleStackerModel.load(str(folder / "warehouse.prsl"))
    out = model.score(spark.createDataFrame(frame).repartition(5), beliefs=BELIEFS)
    assert_same_scores(out.toPandas(), frame, folder)


def test_scores_survive_an_executor_that_is_killed(spark, folder):
    frame = warehouse_rows(20_000)
    started, killed = folder / "started", folder / "killed"

    def waiting(batches):
        # Blocks after the first rows until an executor has been killed, so that it is killed in the middle.
        for batch in batches:
            yield batch
            started.touch()
            while not killed.exists():
                time.sleep(0.05)

    victim = max(executors(spark))

    def kill():
        while not started.exists():
            time.sleep(0.05)
        os.kill(victim, signal.SIGKILL)
        killed.touch()

    killer = threading.Thread(target=kill)
    killer.start()
    df = spark.createDataFrame(frame).repartition(6)
    df = df.mapInArrow(waiting, df.schema)
    model = RuleStackerModel.load(str(folder / "warehouse.prsl"))
    scored = model.score(df, beliefs=BELIEFS).toPandas()
    killer.join()
    assert_same_scores(scored, frame, folder)


def learn(df, trainer=None, **options):
    trainer = trainer or RuleStackerTrainer(seed=1)
    return trainer.fit(df, beliefs=PLANTED_BELIEFS, truth=PLANTED_TRUTH, key="id", **options)


def test_a_learned_model_is_that_of_one_machine(spark, planted, expected):
    df = spark.createDataFrame(planted).repartition(7)
    model = learn(df, validation=spark.createDataFrame(planted_rows(2000, seed=9)))
    assert model.model.text == expected
    assert len(model.model.rules) >= 6
    assert model.n_jobs <= MAX_JOBS, model.n_jobs
    assert model.validation["rows"] > 1900 and -6 < model.validation["mean_joint_log_likelihood"] < -2
    print(f"{model.n_jobs} jobs")


def test_learning_survives_an_executor_that_is_killed(spark, planted, expected):
    df = spark.createDataFrame(planted).repartition(4)
    victims = [max(executors(spark))]

    def observe(phase, n_rules, n_passes, gain):
        if n_rules >= 1 and victims:
            os.kill(victims.pop(), signal.SIGKILL)
        return True

    model = learn(df, observe=observe)
    assert not victims
    assert model.model.text == expected


def test_a_checkpoint_continues(spark, planted, expected, tmp_path):
    df = spark.createDataFrame(planted)
    checkpoint = f"file://{tmp_path}/run"
    stopped = learn(df, RuleStackerTrainer(checkpoint=checkpoint), observe=lambda phase, n_rules, *_: n_rules < 2)
    assert stopped.learned.interrupted
    with pytest.raises(ArgumentError, match="is the checkpoint of another run; continue it with `resume=True`"):
        learn(df, RuleStackerTrainer(checkpoint=checkpoint))
    model = learn(df, RuleStackerTrainer(checkpoint=checkpoint, resume=True))
    assert model.model.text == expected
    with pytest.raises(ExamplesError, match="the checkpoint belongs to other rows"):
        learn(df.where("id % 2 = 0"), RuleStackerTrainer(checkpoint=checkpoint, resume=True))


def test_a_pipeline_is_saved_and_loaded(spark, tmp_path):
    frame = planted_rows(1500)
    df = spark.createDataFrame(frame)
    trainer = RuleStackerTrainer(max_rules=2, typical=False, beliefs=PLANTED_BELIEFS, truth=PLANTED_TRUTH, key="id")
    pipeline = Pipeline(stages=[trainer])
    pipeline.write().overwrite().save(f"file://{tmp_path}/pipeline")
    fitted = Pipeline.load(f"file://{tmp_path}/pipeline").fit(df)
    fitted.write().overwrite().save(f"file://{tmp_path}/fitted")
    again = PipelineModel.load(f"file://{tmp_path}/fitted")
    assert again.stages[0].model == fitted.stages[0].model
    columns = ["id", "l0=yes", "mpe:l1", "status"]
    ours, theirs = (it.transform(df).select(columns).toPandas().sort_values("id") for it in (again, fitted))
    pd.testing.assert_frame_equal(ours.reset_index(drop=True), theirs.reset_index(drop=True))


def test_bad_rows_are_named_by_their_key(spark):
    frame = planted_rows(300)

    def refused(changed, message, error=DataError, **options):
        with pytest.raises(error, match=message):
            learn(spark.createDataFrame(changed), **options)

    keys = frame["id"].tolist()
    twice = frame.copy()
    twice.loc[4, "id"] = keys[9]
    refused(twice, f"two rows have the key `{keys[9]}`; each row needs a key of its own")
    wrong = frame.copy()
    wrong.loc[3, "t2"] = "maybe"
    refused(wrong, f"row with key `{keys[3]}`: column `t2`: `maybe` is not a category")
    large = frame.copy()
    large.loc[8, "b4"] = 1.5
    refused(large, f"row with key `{keys[8]}`: .*1.5")
    missing = frame.copy()
    missing["id"] = missing["id"].astype("Int64").astype("string")
    missing.loc[2, "id"] = None
    refused(missing, "column `id`: a row has no key")
    refused(frame.drop(columns="b3"), "there is no column `b3` with beliefs", ArgumentError)
    refused(frame.drop(columns="id"), "there is no column `id` with keys", ArgumentError)
    with pytest.raises(ExamplesError, match="there are no rows"):
        learn(spark.createDataFrame(frame).where("id < 0"))
    unknown = frame.copy()
    unknown[list(PLANTED_TRUTH.values())] = None
    unknown = unknown.astype({name: "string" for name in PLANTED_TRUTH.values()})
    refused(unknown, "no truth is known in any row", ExamplesError)
