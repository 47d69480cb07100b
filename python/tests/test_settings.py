"""The settings of the learner are those of the command line: docs/python.md, `prsl learn --help` and the signatures agree."""

from __future__ import annotations

import doctest
import inspect
import pathlib
import re
import subprocess

import numpy as np
import pytest

from prsl import RuleStacker, _prsl

#: Settings whose default is described in words.
IN_WORDS = {"rules": None, "calibration": "default", "n_jobs": None, "max_seconds": None}


def cells(text: str) -> list[list[str]]:
    """The lines of all tables, without their headers."""
    lines = [line.strip("|\n ").split(" | ") for line in text.splitlines() if re.match(r"\| `", line)]
    return [[cell.strip() for cell in line] for line in lines]


@pytest.fixture(scope="module")
def page(root: pathlib.Path) -> str:
    return (root / "docs" / "python.md").read_text()


@pytest.fixture(scope="module")
def options(command: str) -> dict[str, str | None]:
    """The options of `prsl learn` and their defaults."""
    text = subprocess.run([command, "learn", "--help"], capture_output=True, text=True, check=True).stdout
    found: dict[str, str | None] = {}
    for part in re.split(r"\n(?=  (?:-\w, |    )--)", text)[1:]:
        name = re.search(r"--([\w-]+)", part)
        default = re.search(r"\[default:\s+([^\]]*)\]", part)
        assert name is not None
        found["--" + name[1]] = re.sub(r"\s+", " ", default[1]) if default else None
    del found["--help"]
    return found


def named(cell: str) -> list[str]:
    return re.findall(r"`([\w-]+)`", cell)


def test_every_option_has_a_setting_or_a_replacement(page: str, options: dict[str, str | None]) -> None:
    listed = [name for line in cells(page) for name in named(line[0]) if name.startswith("--")]
    assert sorted(listed) == sorted(options), "add the option to a table of docs/python.md"


def test_every_setting_is_in_the_table(page: str) -> None:
    settings = list(inspect.signature(RuleStacker).parameters)
    of_options = [name for line in cells(page) if len(line) >= 3 for name in named(line[1])]
    only_here = [name for line in cells(page) if len(line) == 2 for name in named(line[0]) if not name.startswith("-")]
    assert sorted([*of_options, *only_here]) == sorted(settings)


def test_defaults_are_those_of_the_command_line(page: str, options: dict[str, str | None]) -> None:
    defaults = {name: own.default for name, own in inspect.signature(RuleStacker).parameters.items()}
    of_library = _prsl.learning_defaults() | {"validation_fraction": 0.1}
    for line in cells(page):
        if len(line) < 3:
            continue
        [option], [setting], default = named(line[0]), named(line[1]), line[2]
        told = options[option]
        if told is not None:
            assert told.replace("`", "") == default.replace("`", ""), f"{option}: the table says {default}"
        if setting in IN_WORDS:
            assert defaults[setting] == IN_WORDS[setting]
            continue
        own = defaults[setting]
        value = of_library[setting] if own is None else own
        if setting == "memory":
            assert value == 2**30 and default == "1GiB"
        elif isinstance(value, tuple):
            assert ",".join(str(one) for one in value) == default
        elif isinstance(value, (bool, str)):
            assert str(value) == default
        else:
            assert float(default) == value
        if own is not None and setting in of_library and setting != "parsimony":
            assert own == of_library[setting]


def test_the_parsimony_of_predictions(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    by_name = RuleStacker(parsimony="predict").fit(*equal_labels).model_
    assert by_name == RuleStacker(parsimony=_prsl.learning_defaults()["parsimony"]).fit(*equal_labels).model_


def test_memory_limits_learning(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ValueError, match="limit"):
        RuleStacker(rules="rule 0.9: y0 -> y1 & y2", memory=1).fit(*equal_labels)


def test_random_states(equal_labels: tuple[np.ndarray, np.ndarray]) -> None:
    yes, y = equal_labels
    assert RuleStacker(random_state=7)._seed() == 7
    drawn = RuleStacker(random_state=np.random.RandomState(3))._seed()
    assert drawn == np.random.RandomState(3).randint(2**31 - 1)
    np.random.seed(5)
    first = RuleStacker(random_state=None)._seed()
    np.random.seed(5)
    assert first == RuleStacker(random_state=None)._seed()
    with pytest.raises(ValueError, match="Seed must be"):
        RuleStacker(random_state=-1).fit(yes, y)


def test_the_examples_of_the_page(page: str) -> None:
    [example] = re.findall(r"```python\n(.*?)```", page, re.S)
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTestParser().get_doctest(example, {}, "python.md", "python.md", 0))
    assert runner.failures == 0
