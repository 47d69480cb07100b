"""The installed package is typed and documented, and its examples run as printed."""

from __future__ import annotations

import doctest
import pathlib
import re
import runpy
import subprocess
import sys

import pytest

import prsl

PACKAGE = pathlib.Path(prsl.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))


@pytest.mark.parametrize("module", sorted(path.stem for path in PACKAGE.glob("*.py")))
def test_examples_in_the_documentation(module: str) -> None:
    name = "prsl" if module == "__init__" else f"prsl.{module}"
    found = __import__(name, fromlist=["_"])
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(found, optionflags=flags).failed == 0


def test_everything_public_is_documented() -> None:
    for name in prsl.__all__:
        if name != "__version__":
            assert getattr(prsl, name).__doc__, name


def test_types() -> None:
    pytest.importorskip("mypy")
    run = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "-p", "prsl"]
    done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT / "target")
    assert done.returncode == 0, done.stdout


def test_stubs_are_those_of_the_compiled_part() -> None:
    pytest.importorskip("mypy")
    run = [sys.executable, "-m", "mypy.stubtest", "prsl._prsl", "--ignore-missing-stub"]
    done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT / "target")
    assert done.returncode == 0, done.stdout


def test_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, re.S)
    assert examples, "the README has an example for Python"
    for example in examples:
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        test = doctest.DocTestParser().get_doctest(example, {}, "README.md", "README.md", 0)
        if test.examples:
            runner.run(test)
            assert runner.failures == 0
        else:
            exec(compile(example, "README.md", "exec"), {})


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")


def test_there_are_tutorials() -> None:
    assert len(TUTORIALS) >= 5
