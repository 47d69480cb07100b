"""Runs the cases of `tests/cases`. Python agrees with the expected answers, and with the command line to the last bit."""

from __future__ import annotations

import csv
import math
import pathlib
import subprocess

import numpy as np
import pytest

from prsl import Model

CASES = sorted((pathlib.Path(__file__).resolve().parents[2] / "tests" / "cases").glob("*.case"))


def sections(path: pathlib.Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in path.read_text().splitlines():
        if line.startswith("[") and line.endswith("]"):
            name = line[1:-1]
            found[name] = []
        elif name == "model" or (name and line.strip() and not line.startswith("#")):
            found[name].append(line)
    return found


def cells(case: dict[str, list[str]], section: str) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in case.get(section, []))


def beliefs(model: Model, given: dict[str, str]) -> dict[str, np.ndarray]:
    found = {}
    for label in model.labels:
        values = [float(given.get(f"{label.name}={category}", "nan")) for category in label.categories]
        if not all(math.isnan(value) for value in values):
            found[label.name] = np.array([values])
    return found


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: pathlib.Path, command: str, tmp_path: pathlib.Path) -> None:
    case = sections(path)
    model = Model.parse("\n".join(case["model"]))
    given = cells(case, "evidence")
    row = beliefs(model, given)
    posterior = model.predict(row if row else {model.labels[0].name: np.full((1, len(model.labels[0].categories)), np.nan)}, "both")
    is_possible = case["status"] == ["possible"]
    assert (posterior.status[0] != "impossible") == is_possible
    for name, wanted in cells(case, "marginals").items():
        label = next(label for label in model.labels if name.startswith(f"{label.name}=") and name[len(label.name) + 1 :] in label.categories)
        found = posterior[label.name][0, label.categories.index(name[len(label.name) + 1 :])]
        digits = len(wanted.split(".")[1].split("e")[0]) if "." in wanted else 9
        assert found == pytest.approx(float(wanted), abs=0.5001 * 10.0**-digits if "e" not in wanted else 0, rel=1e-9)

    (tmp_path / "model.prsl").write_text("\n".join(case["model"]) + "\n")
    with (tmp_path / "beliefs.csv").open("w", newline="") as file:
        columns = [f"{label.name}={category}" for label in model.labels for category in label.categories if f"{label.name}={category}" in given]
        columns = columns or [f"{model.labels[0].name}={model.labels[0].categories[0]}"]
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerow([given.get(column, '""') for column in columns] if given else [" "])
    if not given:
        (tmp_path / "beliefs.csv").write_text(f'"{columns[0]}"\n""\n')
    out = tmp_path / "answers.csv"
    subprocess.run(
        [command, "predict", "model.prsl", "beliefs.csv", "--query", "both", "-o", out.name], cwd=tmp_path, check=True, capture_output=True
    )
    with out.open() as file:
        [answer] = list(csv.DictReader(file))
    assert posterior.values is not None and posterior.log_evidence is not None and posterior.log_weight is not None
    names = [f"{label.name}={category}" for label in model.labels for category in label.categories]
    for at, name in enumerate(names):
        told = answer[name]
        assert (told == "") == np.isnan(posterior.values[0, at])
        assert told == "" or float(told) == posterior.values[0, at], f"{name}: not the same bits"
    if is_possible:
        assert float(answer["log_evidence"]) == posterior.log_evidence[0]
        assert float(answer["log_weight"]) == posterior.log_weight[0, 0]
        best = posterior.assignments[0]
        assert best == {label.name: answer[f"mpe:{label.name}"] for label in model.labels}
