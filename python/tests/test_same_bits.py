"""Python gives the same bits as the command line. `crates/prsl-cli/tests/it/same_bits.rs` says the same of the library."""

from __future__ import annotations

import csv
import json
import pathlib
import subprocess
from typing import Any

import numpy as np
import pytest

from prsl import Model, RuleStacker

Files = tuple[Model, dict[str, Any], dict[str, Any]]


def columns(path: pathlib.Path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.fixture(scope="module")
def folder(root: pathlib.Path) -> pathlib.Path:
    return root / "tests" / "same_bits"


@pytest.fixture(scope="module")
def files(folder: pathlib.Path) -> Files:
    model = Model.load(folder / "base.prsl")
    given = {name: [float(cell or "nan") for cell in cells] for name, cells in columns(folder / "beliefs.csv").items()}
    place = model.labels[4]
    beliefs: dict[str, Any] = {label.name: np.array(given[f"{label.name}=yes"]) for label in model.labels[:4]}
    beliefs["place"] = np.column_stack([given[f"place={category}"] for category in place.categories])
    truths = {name: [cell or None for cell in cells] for name, cells in columns(folder / "truth.csv").items()}
    return model, beliefs, truths


def run(command: str, folder: pathlib.Path, arguments: str, *more: str) -> str:
    done = subprocess.run([command, *arguments.split(), *more], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_predict(command: str, folder: pathlib.Path, files: Files, tmp_path: pathlib.Path) -> None:
    model, beliefs, _ = files
    run(command, folder, "predict base.prsl beliefs.csv --query both -o", str(tmp_path / "answers.csv"))
    told = columns(tmp_path / "answers.csv")
    posterior = model.predict(beliefs, "both")
    assert posterior.log_evidence is not None and posterior.log_weight is not None
    for label in model.labels:
        for category in label.categories:
            given = [float(cell) for cell in told[f"{label.name}={category}"]]
            assert posterior[label.name, category].tolist() == given
        assert [row[label.name] for row in posterior.assignments if row] == told[f"mpe:{label.name}"]
    assert posterior.log_evidence.tolist() == [float(cell) for cell in told["log_evidence"]]
    assert posterior.log_weight[:, 0].tolist() == [float(cell) for cell in told["log_weight"]]
    assert posterior.status.tolist() == told["status"]


def test_samples(command: str, folder: pathlib.Path, files: Files, tmp_path: pathlib.Path) -> None:
    model, beliefs, _ = files
    run(command, folder, "predict base.prsl beliefs.csv --query samples --samples 3 --seed 9 -o", str(tmp_path / "drawn.csv"))
    told = columns(tmp_path / "drawn.csv")
    drawn = model.predict(beliefs, "samples", samples=3, seed=9).all_assignments
    for label in model.labels:
        assert [sample[label.name] for row in drawn for sample in row] == told[label.name]


def test_evaluate(command: str, folder: pathlib.Path, files: Files) -> None:
    model, beliefs, truths = files
    told = json.loads(run(command, folder, "evaluate base.prsl beliefs.csv truth.csv --no-intervals --format json"))
    found = model.evaluate(beliefs, truths)
    shared = [name for name in found if name in told and name != "reliability"]
    assert len(shared) >= 14 and "labels" in shared
    assert {name: found[name] for name in shared} == {name: told[name] for name in shared}


def numbers(truths: dict[str, Any]) -> np.ndarray:
    """Truths as `y`: 1, 0 or the category, `None` where unknown."""
    yes_no = {"yes": 1, "no": 0, None: None}
    names = [name for name in truths if name != "place"]
    known = [[yes_no[cell] for cell in truths[name]] for name in names] + [truths["place"]]
    return np.array(known, dtype=object).T


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("", {}),
        ("--seed 7 --parsimony explain", {"random_state": 7, "parsimony": "explain"}),
        ("--calibrate platt --no-typical --rules 2", {"calibration": "platt", "typical": False, "n_rules": 2}),
        ("--learn-probabilities --threads 1", {"learn_probabilities": True, "n_jobs": 2}),
        (
            "--recipe paper --rules 3 --steps 60 --seed 5 --valid-fraction 0.2 --batch 10 --learning-rate 0.01",
            {
                **{"recipe": "paper", "n_rules": 3, "max_iter": 60, "random_state": 5, "validation_fraction": 0.2},
                **{"batch_size": 10, "learning_rate": 0.01},
            },
        ),
    ],
    ids=["defaults", "explain", "platt", "probabilities", "paper"],
)
def test_learn(
    command: str, folder: pathlib.Path, files: Files, tmp_path: pathlib.Path, options: str, settings: dict[str, Any]
) -> None:
    model, beliefs, truths = files
    out = tmp_path / "learned.prsl"
    cv = "" if "paper" in options else "--cv 0"
    run(command, folder, f"learn beliefs.csv truth.csv --base base.prsl {cv} {options} -o", str(out))
    stacker = RuleStacker(labels=list(truths), rules=model, **settings)
    by_name = {name: {"yes": values} if name != "place" else values for name, values in beliefs.items()}
    by_name["place"] = dict(zip(model.labels[4].categories, beliefs["place"].T, strict=True))
    learned = stacker.fit(by_name, numbers(truths)).model_
    assert learned.text == out.read_text()
    assert learned == Model.load(out)


def test_calibrate(command: str, folder: pathlib.Path, files: Files, tmp_path: pathlib.Path) -> None:
    model, beliefs, truths = files
    out = tmp_path / "calibrated.prsl"
    run(command, folder, "calibrate base.prsl beliefs.csv truth.csv --method platt --alone -o", str(out))
    assert model.calibrate(beliefs, truths, "platt", alone=True) == Model.load(out)
