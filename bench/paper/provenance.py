"""Where results come from: the version of the code that they depend on, the commit, the machine and the date."""

from __future__ import annotations

import ast
import datetime
import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "crates" / "prsl" / "src"
HERE = Path(__file__).resolve().parent

ANSWERS_ONLY = ("diagnostic.rs", "editor", "error", "explain", "export", "json", "lint")
ANSWERS_ONLY += ("metrics", "sentence", "simulate.rs", "syntax", "text")
"""Modules of the library that neither learn nor predict. The benchmark computes its scores itself (`metrics.py`)."""
CLAUSES_ONLY = ("infer/expectations.rs", "infer/samples.rs", "infer/weighted.rs")
"""Engines that only the recipe `clauses` learns with."""
PAPER_SHARES = ("learn/examples.rs", "learn/watch.rs")
"""Modules beside `learn/paper` that the recipe `paper` learns with."""

REQUIREMENTS = ("requirements.txt", "requirements-boomer.txt")


@dataclass(frozen=True)
class Origin:
    """The commit, the machine and the day of a result."""

    commit: str
    machine: str
    date: str


@cache
def origin() -> Origin:
    """The origin of results that are measured now."""
    return Origin(commit(), machine(), datetime.date.today().isoformat())


def commit() -> str:
    """The abbreviated commit, with a mark if files other than documentation were changed."""
    head = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--", ".", ":(exclude)docs", ":(exclude)*.md")
    return (head or "unknown") + ("-dirty" if changed else "")


def _git(*arguments: str) -> str:
    found = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else ""


def machine() -> str:
    """The processor and the number of its cores."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or "unknown processor"
    return f"{processor}, {os.cpu_count()} cores"


@cache
def recipe_version(recipe: str) -> str:
    """A hash of the library's sources that the results of a recipe depend on. Comments and tests do not count."""
    files = [path for path in LIBRARY.rglob("*.rs") if _counts(path.relative_to(LIBRARY).as_posix(), recipe)]
    return _hash((path.relative_to(LIBRARY).as_posix(), _rust_code(path)) for path in files)


def _counts(name: str, recipe: str) -> bool:
    if name.endswith("tests.rs") or name.startswith(ANSWERS_ONLY):
        return False
    if name.startswith("learn/"):
        is_paper = name.startswith("learn/paper")
        return is_paper or name in PAPER_SHARES if recipe == "paper" else not is_paper
    return recipe != "paper" or not name.startswith(CLAUSES_ONLY)


def _rust_code(path: Path) -> str:
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


@cache
def method_version(module: str) -> str:
    """A hash of a method's Python module, of the modules that all methods share, and of the required packages.

    Comments, documentation strings and formatting do not count.
    """
    names = [f"methods/{module}.py", "methods/base.py", "calibrate.py", "metrics.py"]
    names += ["forests.py"] * (module in ("chain", "powerset")) + ["boomer_worker.py"] * (module == "boomer")
    return code_version(*names)


@cache
def code_version(*names: str) -> str:
    """A hash of Python modules of the benchmark and of the required packages."""
    codes = [(name, _python_code(HERE / name)) for name in names]
    return _hash([*codes, *((name, (HERE / name).read_text(encoding="utf-8")) for name in REQUIREMENTS)])


def _python_code(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            is_text = [isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) for part in body]
            node.body = [part for part, text in zip(body, is_text) if not text]
    return ast.dump(tree)


def file_hash(paths: Iterable[Path]) -> str:
    """A hash of the contents of files."""
    return _hash((path.name, path.read_bytes().hex()) for path in paths)


def _hash(parts: Iterable[tuple[str, str]]) -> str:
    digest = hashlib.sha256()
    for name, text in sorted(parts):
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()[:16]
