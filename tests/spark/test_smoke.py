"""Scoring in one process: the same bits as the command line, and rows that cannot be read."""

from __future__ import annotations

import pytest
from conftest import BELIEFS, assert_same_scores, make_session, warehouse_rows
from prsl.errors import ArgumentError
from prsl.spark import RuleStackerModel


@pytest.fixture(scope="module")
def spark():
    session = make_session("local[2]")
    yield session
    session.stop()


def test_scores_are_those_of_the_command_line(spark, folder):
    frame = warehouse_rows(3000)
    model = RuleStackerModel.load(str(folder / "warehouse.prsl"))
    df = spark.createDataFrame(frame).repartition(3)
    out = model.score(df, beliefs=BELIEFS, outputs=["marginals", "mpe", "log_evidence", "status"])
    assert out.columns[: len(frame.columns)] == list(frame.columns)
    scored = out.toPandas()
    assert_same_scores(scored, frame, folder)
    assert set(scored["status"]) == {"ok", "impossible"} and scored["problem"].isna().all()
    assert sorted(scored["site"].unique()) == ["north", "south"]


def test_bad_rows_are_marked_or_fail(spark, folder):
    frame = warehouse_rows(40)
    frame.loc[7, ["p_gait", "p_stand"]] = [0.7, 0.7]
    frame.loc[11, "p_high"] = 3.0
    frame.loc[39, ["p_walk", "p_norm", "p_over"]] = [0.0, 0.0, 0.0]
    model = RuleStackerModel.load(str(folder / "warehouse.prsl"))
    # More partitions than rows: some are empty.
    df = spark.createDataFrame(frame).repartition(60)
    scored = model.score(df, beliefs=BELIEFS).toPandas().sort_values("id").reset_index(drop=True)
    bad = scored["status"] == "invalid"
    assert scored.loc[bad, "id"].tolist() == [7, 11, 39]
    assert "label `feet`" in scored["problem"][7] and "1.4" in scored["problem"][7]
    assert "`p_high`" in scored["problem"][11] or "label `hands`" in scored["problem"][11]
    assert scored.loc[bad, "activity=walking"].isna().all() and scored["problem"][~bad].isna().all()
    with pytest.raises(Exception, match=r"row with id=7, site='\w+'.*label `feet`"):
        model.score(df.where("id < 11"), beliefs=BELIEFS, on_bad_row="error").toPandas()


def test_wrong_columns_are_named(spark, folder):
    model = RuleStackerModel.load(str(folder / "warehouse.prsl"))
    df = spark.createDataFrame(warehouse_rows(10))
    with pytest.raises(ArgumentError, match="there is no column `p_run` with beliefs; the data frame has `id`"):
        model.score(df, beliefs=BELIEFS | {"activity": ["p_run", "p_norm", "p_over"]})
    with pytest.raises(ArgumentError, match="label `feet` has 1 columns, expected 2, one for each of gait, standing"):
        model.score(df, beliefs={"feet": ["p_gait"]})
    with pytest.raises(ArgumentError, match="has a column `status`, which scoring would add"):
        model.score(df.withColumnRenamed("site", "status"), beliefs=BELIEFS)
    with pytest.raises(ArgumentError, match="expected some of marginals, mpe, log_evidence, status"):
        model.score(df, beliefs=BELIEFS, outputs=["marginal"])
