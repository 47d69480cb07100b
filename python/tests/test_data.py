"""Datasets in files."""

from __future__ import annotations

import gzip
import pathlib

import pytest

from prsl import errors
from prsl.data import read_arff

XML = '<?xml version="1.0"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n<label name="sad &amp; slow"/><label name="happy"/></labels>\n'


def dataset(folder: pathlib.Path, text: str, name: str = "music.arff", xml: str = XML):
    data = text.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (folder / "music.xml").write_text(xml)
    return read_arff(folder / name, folder / "music.xml")


HEADER = "@relation music\n% a comment\n@attribute 'beats per minute' numeric\n@attribute key {minor,major}\n@attribute 'sad & slow' {0,1}\n@attribute happy {0,1}\n@data\n"


def test_dense_rows_with_nominal_missing_and_quoted_values(tmp_path: pathlib.Path) -> None:
    found = dataset(tmp_path, HEADER + "120.5,major,0,1\n?,'minor',1,?\n")
    assert found.feature_names == ["beats per minute", "key"] and found.nominal == {"key": ["minor", "major"]}
    assert found.features[0].tolist() == [120.5, 1.0] and found.features[1, 1] == 0.0
    assert found.features[1, 0] != found.features[1, 0]
    assert found.labels.tolist() == [[0, 1], [1, -1]] and found.label_names == ["sad & slow", "happy"]
    assert found.cardinality == 1.0 and found.density == 0.5


@pytest.mark.parametrize("name", ["music.arff", "music.arff.gz"])
def test_sparse_rows_line_ends_and_compression(tmp_path: pathlib.Path, name: str) -> None:
    text = (HEADER + "{0 99, 3 1}\n{1 major, 2 1}\n").replace("\n", "\r\n")
    found = dataset(tmp_path, text, name)
    assert found.features.tolist() == [[99.0, 0.0], [0.0, 1.0]]
    assert found.labels.tolist() == [[0, 1], [1, 0]]


def test_nested_labels(tmp_path: pathlib.Path) -> None:
    xml = '<labels><label name="sad &amp; slow"><label name="happy"/></label></labels>'
    assert dataset(tmp_path, HEADER + "1,minor,1,1\n", xml=xml).parents == [None, "sad & slow"]


def test_errors_are_reported(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.DataError, match="line 8"):
        dataset(tmp_path, HEADER + "fast,minor,0,1\n")
    with pytest.raises(errors.DataError, match="angry"):
        dataset(tmp_path, HEADER + "1,minor,0,1\n", xml='<labels><label name="angry"/></labels>')
    with pytest.raises(errors.FileError, match="cannot open"):
        read_arff(tmp_path / "nowhere.arff", tmp_path / "music.xml")


@pytest.mark.parametrize(
    ("name", "n_rows", "n_labels", "cardinality"),
    [("emotions", 593, 6, 1.8685), ("yeast", 2417, 14, 4.237), ("birds", 645, 19, 1.014), ("medical", 978, 45, 1.245), ("enron", 1702, 53, 3.378)],
)
def test_the_datasets_of_the_paper(shared: pathlib.Path, name: str, n_rows: int, n_labels: int, cardinality: float) -> None:
    folder = shared / "data" / "mulan"
    [arff] = folder.glob(f"{name}.arff*")
    found = read_arff(arff, folder / f"{name}.xml")
    assert found.labels.shape == (n_rows, n_labels)
    assert found.cardinality == pytest.approx(cardinality, abs=5e-4)
    assert found.density == pytest.approx(cardinality / n_labels, abs=1e-4)
