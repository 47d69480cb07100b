"""Runs the code blocks of Markdown pages as a reader would: in order, in one folder per page.

| block | is |
|---|---|
| `prsl`, `csv`, `text` with a `.txt` file | saved under the last file name in backticks of the paragraph above it |
| `prsl` without a file name | checked by `prsl check` |
| `console` | run line by line; the output must be as printed, and `...` stands for anything |
| `sh` | run line by line; every command must succeed. Commands of development are not run (see `DEVELOPMENT`) |
| `python` | run as a doctest, or as a script; the blocks of a page share their names |
| `json`, `toml` | parsed |
| `rust` | compiled and run by `cargo test`, see `crates/prsl-testkit/src/documentation.rs` |
| `text` | not code: formulas and drawings |

`prsl serve` is started on a free port and answers the later commands of the page, until the next `prsl serve`.

`python documentation.py PRSL PAGE...` writes the output of `console` blocks that are no longer as printed. Review the changes.
"""

from __future__ import annotations

import doctest
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, field

LANGUAGES = {"prsl", "csv", "console", "sh", "python", "json", "toml", "rust", "text"}
#: Files that a reader is told to save.
SAVED = re.compile(r"`([\w./-]+\.(?:prsl|csv|txt|py|json))`")
#: Commands that build, install or publish: reading them is enough. `make` targets must exist.
DEVELOPMENT = {"cargo", "cd", "git", "make", "npm", "npx", "pip", "python3", "sudo"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
#: Maximum time of a command in seconds. Only a command that hangs takes as long.
PATIENCE = 300


@dataclass
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    #: The line of its first fence, from 1.
    line: int
    #: The paragraph above it.
    above: str

    @property
    def file(self) -> str | None:
        """The file name that the paragraph above gives it."""
        names = SAVED.findall(self.above)
        is_file = self.language in {"prsl", "csv"} or (self.language == "text" and names[-1:] and names[-1].endswith(".txt"))
        return names[-1] if names and is_file else None


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page."""
    found: list[Block] = []
    lines = text.splitlines()
    paragraph: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        indent = len(line) - len(line.lstrip())
        if line.lstrip().startswith("```"):
            begin = index
            index += 1
            while index < len(lines) and lines[index].strip() != "```":
                index += 1
            body = "\n".join(one[indent:] for one in lines[begin + 1 : index]) + "\n"
            found.append(Block(line.strip().removeprefix("```"), body, begin + 1, " ".join(paragraph)))
            paragraph = []
        elif line.strip():
            paragraph.append(line)
        elif index + 1 < len(lines) and not lines[index + 1].lstrip().startswith("```"):
            paragraph = []
        index += 1
    return found


def needs(text: str) -> list[str]:
    """The packages that a page says it needs: `<!-- needs: pyspark -->`."""
    return [name for names in re.findall(r"^<!-- needs: ([\w, ]+) -->$", text, re.M) for name in names.replace(",", " ").split()]


def commands(text: str) -> list[str]:
    """The commands of a shell block. A backslash continues a line, and `<<` reads up to its mark."""
    found: list[str] = []
    end = ""
    for line in text.splitlines():
        if found and (end or found[-1].endswith("\\")):
            found[-1] += "\n" + line
            end = "" if line == end else end
        elif line.strip() and not line.startswith("#"):
            found.append(line)
            mark = re.search(r"<<-?\s*'?(\w+)'?", line)
            end = mark[1] if mark else ""
    return found


def examples(text: str) -> list[tuple[str, str]]:
    """The commands of a `console` block, with the output below each."""
    parts = re.split(r"^\$ ", text, flags=re.M)[1:]
    return [(command, part.removeprefix(command).removeprefix("\n")) for part in parts for command in commands(part)[:1]]


def matches(output: str, pattern: str) -> bool:
    """Whether an output is as printed, up to white space at line ends. `...` stands for anything."""

    def tidy(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.rstrip().splitlines())

    parts = [re.escape(part) for part in tidy(pattern).split("...")]
    return re.fullmatch(".*?".join(parts), tidy(output), re.S) is not None


@dataclass
class Reader:
    """Somebody who follows a page in a folder."""

    folder: pathlib.Path
    #: The `prsl` command.
    command: str
    names: dict[str, object] = field(default_factory=dict)
    server: subprocess.Popen[bytes] | None = None
    port: int = 0

    def follow(self, page: pathlib.Path) -> None:
        """Runs all blocks of a page."""
        try:
            for block in blocks(page.read_text()):
                try:
                    self.run(block)
                except AssertionError as error:
                    raise AssertionError(f"{page.name}, line {block.line}: {error}") from None
        finally:
            self.stop_server()

    def run(self, block: Block) -> None:
        assert block.language in LANGUAGES, f"`{block.language}` is not a language that the tests run"
        if block.file:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        if block.language == "prsl":
            done = self.execute(["prsl", "check", "-"], block.text)
            assert done.returncode == 0, f"`prsl check` has findings\n{done.stdout}{done.stderr}"
        elif block.language == "sh":
            for command in commands(block.text):
                self.run_command(command)
        elif block.language == "console":
            self.run_console(block.text)
        elif block.language == "python":
            self.run_python(block)
        elif block.language in {"json", "toml"}:
            {"json": json.loads, "toml": tomllib.loads}[block.language](block.text)

    def run_console(self, text: str) -> None:
        for command, pattern in examples(text):
            output = self.run_command(command)
            assert matches(output, pattern), f"`{command}` prints\n{output}\nand not\n{pattern}"

    def updated(self, text: str) -> str:
        """The text of a `console` block with the outputs of now."""
        parts = []
        for command, pattern in examples(text):
            output = self.run_command(command)
            shown = pattern if matches(output, pattern) and pattern.strip() else output
            parts.append(f"$ {command}\n" + "".join(line.rstrip() + "\n" for line in shown.splitlines()))
        return "".join(parts)

    def run_command(self, command: str) -> str:
        """Runs a command that must succeed. Returns what it prints."""
        first = command.split()[0]
        if first in DEVELOPMENT or "/" in first:
            return ""
        if command.startswith("prsl serve "):
            self.start_server(command)
            return ""
        done = self.execute(["bash", "-euo", "pipefail", "-c", self.at_port(command)])
        assert done.returncode == 0, f"`{command}` exits with {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def run_python(self, block: Block) -> None:
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            text = self.at_port(block.text)
            test = doctest.DocTestParser().get_doctest(text, self.names, "page", "page", 0)
            if test.examples:
                report: list[str] = []
                runner = doctest.DocTestRunner(optionflags=FLAGS)
                runner.run(test, out=report.append, clear_globs=False)
                self.names |= test.globs
                assert runner.failures == 0, "".join(report)
            else:
                exec(compile(text, "page", "exec"), self.names)
        finally:
            os.chdir(before)

    def execute(self, words: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
        words = [self.command if word == "prsl" else word for word in words]
        return subprocess.run(
            words, cwd=self.folder, env=self.environment(), input=text, capture_output=True, text=True, timeout=PATIENCE
        )

    def environment(self) -> dict[str, str]:
        path = f"{pathlib.Path(self.command).resolve().parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100"}

    def at_port(self, text: str) -> str:
        return text.replace("localhost:8080", f"localhost:{self.port}") if self.server else text

    def start_server(self, command: str) -> None:
        self.stop_server()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = shlex.split(command, comments=True)[1:]
        if "--addr" in words:
            words[words.index("--addr") + 1] = words[words.index("--addr") + 1].replace("8080", str(self.port))
        else:
            words += ["--addr", f"127.0.0.1:{self.port}"]
        words = [word for word in words if word != "--open"]
        self.server = subprocess.Popen([self.command, *words], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(PATIENCE * 10):
            assert self.server.poll() is None, f"`{command}` ends"
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError(f"`{command}` does not answer")

    def stop_server(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.wait(PATIENCE)
            self.server = None


def update(page: pathlib.Path, command: str) -> None:
    """Writes the outputs of now into a page."""
    text = page.read_text()
    examples_folder = pathlib.Path(__file__).resolve().parents[2] / "examples"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(examples_folder, pathlib.Path(folder) / "examples")
        reader = Reader(pathlib.Path(folder), command)
        try:
            for block in blocks(text):
                if block.language == "console":
                    text = text.replace(block.text, reader.updated(block.text), 1)
                elif block.language != "python":
                    reader.run(block)
        finally:
            reader.stop_server()
    page.write_text(text)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        update(pathlib.Path(name), sys.argv[1])
