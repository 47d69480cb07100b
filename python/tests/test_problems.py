"""The comparison of multi-label methods, `bench/python/problems.py`."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import pytest
from sklearn.multioutput import MultiOutputClassifier


@pytest.fixture
def methods(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(root / "bench" / "python"))
    return pytest.importorskip("problem_methods")


def test_the_page_has_every_method(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    page = tmp_path / "problems.md"
    script = root / "bench" / "python" / "problems.py"
    only = ["--only", "missing labels (simulated)", "--folds", "2", "--splits", "0", "-o", str(page)]
    done = subprocess.run([sys.executable, str(script), *only], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    for name in ("independent", "classifier chain", "label powerset", "RuleStackingClassifier", "n_rules=0", 'decision="joint"'):
        assert f"{name} |" in text
    assert "make problems" in text and "commit" in text and "% of the training truths unknown" in text


def test_methods_agree_with_their_definitions(methods: object) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, (120, 2))
    y[:, 1] |= y[:, 0]
    X = y + rng.normal(size=y.shape)
    by_labels = MultiOutputClassifier(methods.base_classifier()).fit(X, y)  # type: ignore[attr-defined]
    independent = methods.Independent().fit(X, y)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(independent.predict(X), by_labels.predict(X))
    probabilities = by_labels.predict_proba(X)
    expected = sum(np.log(probabilities[j][np.arange(120), y[:, j]]) for j in range(2))
    np.testing.assert_allclose(independent.log_probability(X, y), expected)
    for name in ("Independent", "Chain", "Powerset"):
        method = getattr(methods, name)().fit(X, y)
        sets = [np.tile(one, (120, 1)) for one in ([0, 0], [0, 1], [1, 0], [1, 1])]
        total = np.exp([method.log_probability(X, one) for one in sets]).sum(axis=0)
        np.testing.assert_allclose(total, 1.0, err_msg=name)
        assert method.predict(X).shape == y.shape
