"""The whole benchmark on a small simulated dataset: running, continuing and reporting."""

import importlib.util
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from bench.paper import __main__ as command
from bench.paper.datasets import DATASETS, DataAbsent, Dataset, Folder, permuted_splits
from bench.paper.methods import METHODS
from bench.paper.printed import PRINTED, PRINTED_PARTS
from bench.paper.report import build
from bench.paper.provenance import Origin
from bench.paper.results import BOTH, TRAIN, Result, Score, Store, write_archive
from bench.paper.run import Plan, kept, run
from bench.paper.summary import Scores, ranks

WITHOUT_FEATURES = ["br", "platt", "isotonic", "nn", "mlwse", "ridge", "prior"]
HAS_PRSL = importlib.util.find_spec("prsl") is not None
needs_prsl = pytest.mark.skipif(not HAS_PRSL, reason="the Python package prsl is not installed")


def plan_of(data: Path, out: Path, **changes: object) -> Plan:
    plan = Plan(data, out, datasets=["toy"], methods=WITHOUT_FEATURES, quick=True)
    return replace(plan, **changes)


def quiet() -> Console:
    return Console(quiet=True)


def result(dataset: str, fold: int, method: str, value: float) -> Result:
    metrics = dict.fromkeys(
        ["joint_accuracy", "mean_joint", "median_joint", "mean_labelwise", "median_labelwise"], value
    ) | {"hamming_loss": 1.0 - value, "calibration_error": 0.1}
    curve = {"count": [2, 0, 2], "belief": [0.2, 0.0, 1.8], "positive": [0, 0, 2]}
    scores = {rows: {"test": Score(metrics, curve)} for rows in (TRAIN, BOTH)}
    made = Origin("abc1234", "a machine, 2 cores", "2026-01-01")
    return Result(dataset, fold, method, {}, made, {TRAIN: {}, BOTH: {}}, scores, {TRAIN: 1.0, BOTH: 2.0}, 0.1)


def test_every_row_is_tested_once_and_never_learned_from_in_its_fold():
    folds = list(permuted_splits(23, 5))
    assert sorted(np.concatenate([fold["test"] for fold in folds])) == list(range(23))
    for fold in folds:
        assert sorted(np.concatenate(list(fold.values()))) == list(range(23))


def test_methods_on_fixed_beliefs(data_folder: Path, tmp_path: Path):
    results = run(plan_of(data_folder, tmp_path / "out"), quiet())
    assert len(results) == 2 * len(WITHOUT_FEATURES)
    for result in results:
        assert list(result.scores) == ([TRAIN] if result.method == "br" else [TRAIN, BOTH])
        for parts in result.scores.values():
            assert all(np.isfinite(list(score.metrics.values())).all() for score in parts.values())
    accuracy = {key: Scores(results).mean("toy", key, "joint_accuracy") for key in WITHOUT_FEATURES}
    assert accuracy["prior"] > accuracy["br"]


def test_a_stopped_run_continues(data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plan = plan_of(data_folder, tmp_path / "out", methods=["br", "ridge"], folds=[1, 2, 3])
    first = run(plan, quiet())
    lost = plan.store.path("toy", 2, "ridge")
    lost.write_text("{ half a fi", encoding="utf-8")
    measured = []
    fit = METHODS["ridge"].fit
    monkeypatch.setattr(METHODS["ridge"], "fit", lambda self, fold: measured.append(fold.number) or fit(self, fold))
    second = run(plan, quiet())
    assert measured == [2]
    assert [r.scores for r in second] == [r.scores for r in first]
    run(replace(plan, fresh=True, methods=["ridge"], folds=[1]), quiet())
    assert measured == [2, 1]


def test_archived_results_are_not_measured_again(data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plan, archive = plan_of(data_folder, tmp_path / "out", methods=["ridge"], folds=[1, 2]), tmp_path / "archive.jsonl"
    first = run(plan, quiet())
    write_archive(archive, first[:1])
    measured = []
    fit = METHODS["ridge"].fit
    monkeypatch.setattr(METHODS["ridge"], "fit", lambda self, fold: measured.append(fold.number) or fit(self, fold))
    other = replace(plan, out=tmp_path / "other", archive=archive)
    assert [(r.fold, r.scores) for r in kept(other)] == [(1, first[0].scores)]
    assert [r.scores for r in run(other, quiet())] == [r.scores for r in first]
    assert measured == [2]
    assert len(kept(other)) == 2
    run(replace(other, fresh=True), quiet())
    assert measured == [2, 1, 2]


@pytest.mark.parametrize("part", ["settings", "version", "data"])
def test_results_of_other_settings_versions_or_data_are_measured_again(data_folder: Path, tmp_path: Path, part: str):
    plan = plan_of(data_folder, tmp_path / "out", methods=["ridge"], folds=[1])
    run(plan, quiet())
    path = plan.store.path("toy", 1, "ridge")
    old = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(old | {"key": old["key"] | {part: "another"}}), encoding="utf-8")
    assert kept(plan) == []
    run(plan, quiet())
    assert len(kept(plan)) == 1


def test_two_processes_give_the_results_of_one(data_folder: Path, tmp_path: Path):
    plans = [plan_of(data_folder, tmp_path / str(jobs), methods=["br", "ridge"], jobs=jobs) for jobs in (1, 2)]
    first, second = (run(plan, quiet()) for plan in plans)
    assert [(r.method, r.fold, r.scores) for r in first] == [(r.method, r.fold, r.scores) for r in second]


def test_names_of_datasets_and_methods_may_have_dashes(tmp_path: Path):
    store = Store(tmp_path)
    store.save(result("my-data", 3, "boomer-stacked", 0.5))
    assert store.places() == [("my-data", 3, "boomer-stacked")]


def test_the_message_about_missing_data_tells_where_to_get_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(DataAbsent, match="tsoumakas/mulan"):
        Dataset("emotions", Folder(tmp_path)).fold(1, features=False)
    assert command.main(["--data", str(tmp_path), "--out", str(tmp_path), "--datasets", "emotions"]) == 1
    assert "tsoumakas/mulan" in capsys.readouterr().err


def test_boomer_is_skipped_with_a_message(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.delenv("PRSL_BOOMER_PYTHON", raising=False)
    plan = plan_of(data_folder, tmp_path / "out", methods=["br", "boomer-stacked"])
    assert {result.method for result in run(plan, Console())} == {"br"}
    assert capsys.readouterr().out.count("BOOMER on beliefs is skipped") == 1


def test_the_command_writes_both_reports(data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "out"
    options = ["--data", str(data_folder), "--out", str(out), "--datasets", "toy", "--quick"]
    assert command.main([*options, "--methods", "br,prior"]) == 0
    assert command.main([*options, "--methods", "ridge", "--folds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "Joint accuracy" in shown
    markdown = (out / "fixed-quick" / "report.md").read_text(encoding="utf-8")
    assert "Not complete: Ridge (toy 1 of 2 folds)." in markdown
    assert "| Ridge |" in markdown and "| Label-set prior |" in markdown, "the report has all rows on disk"
    page = (out / "fixed-quick" / "report.html").read_text(encoding="utf-8")
    assert "<polyline" in page and "prefers-color-scheme: dark" in page
    assert not re.search(r'(src|href)="|url\(|https?://', page), "the page needs nothing from elsewhere"


def test_unknown_methods_and_folds_are_refused(data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        command.main(["--methods", "ridgee"])
    options = ["--data", str(data_folder), "--out", str(tmp_path), "--datasets", "toy", "--methods", "br"]
    assert command.main([*options, "--folds", "4"]) == 1
    assert "folds 1 to 3, not 4" in capsys.readouterr().err


def test_ranks_of_methods_that_always_differ():
    values = {"br": 0.1, "ridge": 0.2, "prior": 0.3}
    datasets = ["one", "two", "three", "four"]
    results = [result(d, fold, m, v + 0.01 * fold) for d in datasets for m, v in values.items() for fold in (1, 2)]
    ranking = ranks(Scores(results), datasets, list(values), "joint_accuracy")
    assert ranking is not None
    assert list(ranking.average.items()) == [("prior", 1.0), ("ridge", 2.0), ("br", 3.0)]
    assert ranking.p_value == pytest.approx(np.exp(-4.0))  # chi-squared of 8 on 2 degrees of freedom
    assert ranking.critical_difference == pytest.approx(2.343 * np.sqrt(3 * 4 / (6 * 4)), abs=1e-3)
    assert any(getattr(block, "text", "") == "Ranks" for block in build(results))


def test_differences_are_paired():
    results = [
        result("one", fold, m, v) for fold in (1, 2, 3) for m, v in (("br", 0.1 * fold), ("ridge", 0.1 * fold + 0.05))
    ]
    gap = Scores(results).difference("one", "br", "ridge", "joint_accuracy")
    assert gap is not None and gap.verdict == "behind"
    assert gap.mean == pytest.approx(-0.05) and gap.error == pytest.approx(0.0, abs=1e-12)


def test_printed_numbers_are_the_papers():
    assert PRINTED["joint_accuracy", "pRSL", "enron"] == (0.153, 0.020)
    assert PRINTED["median_joint", "NN", "birds"] == (-1.547, 0.409)
    assert PRINTED["median_labelwise", "MLWSE", "medical"] == (-1.125, 0.110)
    assert len(PRINTED) == 25 + 12 + 8 + 25
    assert PRINTED_PARTS["median_joint", "val", "yeast"] == (-3.538, 0.177)
    assert len(PRINTED_PARTS) == 3 * (5 + 3 + 2 + 5)
    for (metric, row, dataset), pair in PRINTED.items():
        if row == "pRSL":
            assert PRINTED_PARTS[metric, "test", dataset] == pair, "the two tables of the paper agree"
    assert {dataset for _, _, dataset in PRINTED} == DATASETS.keys() - {"mediamill2k"}


@needs_prsl
def test_all_methods_on_fixed_beliefs_and_on_forests(data_folder: Path, tmp_path: Path):
    methods = [key for key in METHODS if not key.startswith("boomer")]
    for beliefs in ("fixed", "forest"):
        plan = plan_of(data_folder, tmp_path / "out", methods=methods, beliefs=beliefs, folds=[1])
        results = run(plan, quiet())
        assert [result.method for result in results] == methods
    assert (tmp_path / "out" / "forests" / "toy-1-25.npz").is_file()
