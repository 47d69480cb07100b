"""Users' scripts pass strict type checks."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parent / "typed" / "user_script.py"


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=SCRIPT.parent)


def test_the_script_runs() -> None:
    done = run(str(SCRIPT))
    assert done.returncode == 0, done.stderr


def test_mypy_accepts_the_script() -> None:
    pytest.importorskip("mypy")
    done = run("-m", "mypy", "--strict", "--cache-dir", os.devnull, SCRIPT.name)
    assert done.returncode == 0, done.stdout


def test_pyright_accepts_the_script(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pyright")
    if run("-m", "pyright", "--version").returncode != 0:
        pytest.skip("pyright is a Node program, which could not be downloaded")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "include": ["user_script.py"]}')
    (tmp_path / "user_script.py").write_text(SCRIPT.read_text())
    done = run("-m", "pyright", "--pythonpath", sys.executable, "--project", str(tmp_path))
    assert done.returncode == 0, done.stdout


def test_pyright_finds_mistakes(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pyright")
    if run("-m", "pyright", "--version").returncode != 0:
        pytest.skip("pyright is a Node program, which could not be downloaded")
    (tmp_path / "wrong.py").write_text("from prsl import Model\n\nModel.parse(3).rules[0].probability.upper()\n")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "include": ["wrong.py"]}')
    done = run("-m", "pyright", "--pythonpath", sys.executable, "--project", str(tmp_path))
    assert done.returncode == 1 and "reportArgumentType" in done.stdout and "reportAttributeAccessIssue" in done.stdout
