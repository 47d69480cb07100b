"""The examples of docs/scale.md: batches of Polars and DuckDB."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import prsl

_ROOT = Path(__file__).parents[2]


def _examples() -> list[str]:
    text = (_ROOT / "docs/scale.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def _folder(folder: Path, n_rows: int) -> prsl.Model:
    """A folder with the files of the examples. Returns the model."""
    polars = pytest.importorskip("polars")
    text = (_ROOT / "examples/warehouse.prsl").read_text(encoding="utf-8")
    (folder / "warehouse.prsl").write_text(text, encoding="utf-8")
    rng = np.random.default_rng(1)
    columns = {"id": np.arange(n_rows)}
    for label, categories in (("activity", ("walking", "normal", "overhead")), ("hands", ("high", "centered", "low"))):
        beliefs = rng.dirichlet(np.ones(3), n_rows)
        columns |= {f"{label}={category}": beliefs[:, at] for at, category in enumerate(categories)}
    polars.DataFrame(columns).write_parquet(folder / "beliefs.parquet", row_group_size=100)
    return prsl.Model.load(folder / "warehouse.prsl")


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_batches_have_the_answers_of_the_whole(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip(library)
    pytest.importorskip("pyarrow")
    model = _folder(tmp_path, 1000)
    monkeypatch.chdir(tmp_path)
    names = {"polars": 1, "duckdb": 2}
    code = _examples()[names[library]].replace("100_000", "64")
    exec(compile(code, "docs/scale.md", "exec"), {"model": model})  # noqa: S102
    answers = polars.read_parquet("answers.parquet").sort("id")
    beliefs = polars.read_parquet("beliefs.parquet")
    expected = model.predict(beliefs, ignore_extra=True).to_polars()
    assert answers["id"].to_list() == list(range(1000))
    assert answers.drop("id").equals(expected)
