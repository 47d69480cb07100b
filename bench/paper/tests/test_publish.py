"""Tables in the documentation: their places, their notes, and the versions that stored results depend on."""

import re
from pathlib import Path

import pytest

from bench.paper import __main__ as command
from bench.paper import provenance
from bench.paper.comparison import TABLES as COMPARISON
from bench.paper.document import Cell, Figure, Row, Table
from bench.paper.overfitting import TABLES as OVERFITTING
from bench.paper.provenance import ROOT, Origin
from bench.paper.publish import BrokenPlace, pages, places, publish
from bench.paper.robustness import TABLES as ROBUSTNESS
from bench.paper.tables import METRIC_TABLES, note_of

OWN = {
    *METRIC_TABLES.values(),
    *OVERFITTING.values(),
    *ROBUSTNESS.values(),
    *COMPARISON,
    *("datasets", "learned-from", "summary", "standing", "ranks", "times", "sizes"),
    *("paper-example-joint", "paper-example-marginals", "paper-gradients", "paper-soft-minimum"),
}
"""The tables that `make benchmark` writes."""
STUDY = "study-"
"""The beginning of the names of tables that `make study` writes. A test in Rust checks their places."""


def learning_tables() -> set[str]:
    """The tables that `make bench-learning` writes: one for each part."""
    source = (ROOT / "bench" / "src" / "bin" / "learning" / "main.rs").read_text(encoding="utf-8")
    variants = source.split("enum Part {", 1)[1].split("}", 1)[0]
    return {f"learning-{name.lower()}" for name in re.findall(r"^    ([A-Z][a-z]+),$", variants, re.MULTILINE)}


FIGURES = ("ranks", "calibration", "calibration-forests", "robustness")


def page_of(root: Path, text: str) -> Path:
    (root / "docs").mkdir(parents=True, exist_ok=True)
    path = root / "docs" / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


def table(name: str) -> Table:
    return Table("Caption", ["", "a"], [Row([Cell("row"), Cell("1", best=True)])], name, "`make x`, commit abc.")


def test_every_table_has_a_place_in_the_documentation():
    found = [name for page in pages(ROOT) for name in places(page.read_text(encoding="utf-8"), page.name)]
    expected = OWN | learning_tables()
    assert expected <= set(found), f"no page has a place for {sorted(expected - set(found))}"
    unknown = [name for name in found if name not in expected and not name.startswith(STUDY)]
    assert not unknown, f"no command writes {unknown}"


def test_every_figure_of_the_documentation_is_there():
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages(ROOT))
    for name in FIGURES:
        assert f"figures/{name}.svg" in text
    for name in re.findall(r"\(figures/([a-z-]+\.svg)\)", text):
        assert (ROOT / "docs" / "figures" / name).is_file(), name


def test_a_table_replaces_what_is_between_its_markers(tmp_path: Path):
    page = page_of(tmp_path, "before\n<!-- table: one -->\nold\n<!-- end -->\nafter\n")
    assert publish([table("one")], tmp_path) == [page]
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- table: one -->\nCaption. Made by `make x`, commit abc.\n\n|  | a |\n")
    assert text.endswith("| row | **1** |\n<!-- end -->\nafter\n") and "old" not in text
    assert publish([table("one")], tmp_path) == [], "nothing changes the second time"


def test_tables_of_other_commands_stay(tmp_path: Path):
    page = page_of(tmp_path, "<!-- table: study-x -->\nold\n<!-- end -->\n<!-- table: one -->\n<!-- end -->\n")
    publish([table("one")], tmp_path)
    assert page.read_text(encoding="utf-8").startswith("<!-- table: study-x -->\nold\n<!-- end -->\n")


def test_a_table_without_a_place_is_an_error(tmp_path: Path):
    page_of(tmp_path, "no markers\n")
    with pytest.raises(BrokenPlace, match="table: one"):
        publish([table("one")], tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "<!-- table: one -->\nno end\n",
        "<!-- table: one -->\n<!-- table: two -->\n<!-- end -->\n",
        "<!-- table: one -->\n<!-- end -->\n<!-- end -->\n",
    ],
)
def test_a_broken_place_is_an_error(text: str):
    with pytest.raises(BrokenPlace, match=r"page\.md"):
        places(text, "page.md")


def test_figures_are_files_of_their_own(tmp_path: Path):
    from bench.paper.charts import reliability_chart

    curve = {"count": [2, 2], "belief": [0.2, 1.8], "positive": [0, 2]}
    charts = [reliability_chart(name, [("x", curve)]) for name in ("a", "b", "c", "d")]
    publish([Figure("Four charts & more", charts, "four")], tmp_path)
    text = (tmp_path / "docs" / "figures" / "four.svg").read_text(encoding="utf-8")
    assert text.count("<svg") == 5 and "Four charts &amp; more" in text and "prefers-color-scheme: dark" in text


def test_a_note_names_command_commit_machine_and_date():
    origins = [Origin("abc1234", "AMD, 2 cores", "2026-01-02"), Origin("abc1234", "AMD, 2 cores", "2026-01-04")]
    assert note_of(*origins) == "`make benchmark`, commit abc1234, AMD, 2 cores, 2026-01-02 to 2026-01-04."


def test_the_version_of_a_recipe_depends_on_its_own_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    files = {"model.rs": "a", "learn/induction.rs": "b", "learn/paper/adam.rs": "c", "learn/examples.rs": "d", "text/mod.rs": "e"}

    def versions(**changes: str) -> list[str]:
        for name, text in (files | changes).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        monkeypatch.setattr(provenance, "LIBRARY", tmp_path)
        provenance.recipe_version.cache_clear()
        return [provenance.recipe_version(recipe) for recipe in ("clauses", "paper")]

    try:
        first = versions()
        assert versions(**{"text/mod.rs": "x"}) == first, "a module that neither learns nor predicts"
        assert versions(**{"model.rs": "// comment\na"}) == first, "a comment"
        for name, changed in {
            "model.rs": [True, True],
            "learn/examples.rs": [True, True],
            "learn/induction.rs": [True, False],
            "learn/paper/adam.rs": [False, True],
        }.items():
            assert [new != old for new, old in zip(versions(**{name: "x"}), first)] == changed, name
    finally:
        monkeypatch.undo()
        provenance.recipe_version.cache_clear()


def test_quick_runs_write_a_copy_of_the_pages(data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    options = ["--data", str(data_folder), "--out", str(tmp_path / "out"), "--datasets", "toy", "--quick", "--publish"]
    assert command.main([*options, "--methods", "br,platt,ridge"]) == 0
    page = (tmp_path / "out" / "fixed-quick" / "pages" / "docs" / "benchmark.md").read_text(encoding="utf-8")
    assert "| Ridge |" in page and "|  | toy |" in page
