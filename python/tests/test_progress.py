"""Progress of a fit: callbacks, logging, displays, Ctrl-C and time limits."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import types
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression

from prsl import Progress, PrslWarning, RuleStacker, RuleStackingClassifier, errors

Arrays = tuple[np.ndarray, np.ndarray]

RECIPES = [{"recipe": "clauses"}, {"recipe": "paper", "n_rules": 4, "max_iter": 10**9, "n_iter_no_change": 10**9}]


@pytest.fixture(scope="module")
def many() -> Arrays:
    """Rows whose rules take several seconds to learn."""
    rng = np.random.default_rng(9)
    truth = rng.integers(0, 2, (4000, 4))
    y = np.column_stack([truth, truth, truth ^ truth[:, [1, 2, 3, 0]], rng.integers(0, 2, (4000, 2))])
    yes = np.clip(0.5 + 0.2 * (y - 0.5) + 0.1 * rng.normal(size=y.shape), 0.02, 0.98)
    return yes, y


def test_callbacks_see_the_phases(equal_labels: Arrays) -> None:
    seen: list[Progress] = []
    last: list[str] = []
    stacker = RuleStacker(callbacks=[seen.append, lambda progress: last.append(progress.message)])
    learned = stacker.fit(*equal_labels).learned_
    assert not learned.interrupted and len(last) == len(seen) > 0
    assert {progress.phase for progress in seen} <= {"calibrating", "adding rules", "judging rules", "learning"}
    assert all(progress.seconds >= 0 and progress.phase in progress.message for progress in seen)
    assert max(progress.n_rules for progress in seen) <= len(stacker.model_.rules) + 5
    assert learned.model == RuleStacker().fit(*equal_labels).model_
    seen.clear()
    RuleStacker(recipe="paper", n_rules=2, max_iter=40, callbacks=seen.append).fit(*equal_labels)
    assert {progress.phase for progress in seen} == {"optimizing"} and seen[-1].n_rules == 2


def test_callbacks_of_the_classifier() -> None:
    X, y = make_multilabel_classification(n_samples=120, n_features=6, n_classes=3, random_state=2)
    seen: list[Progress] = []
    classifier = RuleStackingClassifier(LogisticRegression(), callbacks=seen.append, cv=3, random_state=0)
    clone(classifier).fit(X, y)
    of_classifiers = [progress for progress in seen if progress.phase == "classifiers"]
    assert [(progress.n_done, progress.n_labels) for progress in of_classifiers] == [(1, 3), (2, 3), (3, 3)]
    assert "label 2 of 3: y1" in of_classifiers[1].message and len(seen) > 3
    # `False` does not end the fitting of classifiers.
    stopped = classifier.set_params(callbacks=lambda _: False).fit(X, y)
    assert len(stopped.estimators_) == 3 and stopped.predict(X).shape == y.shape


@pytest.mark.parametrize("recipe", RECIPES, ids=["clauses", "paper"])
def test_a_callback_ends_learning(many: Arrays, recipe: dict[str, object]) -> None:
    stacker = RuleStacker(callbacks=lambda _: False, **recipe).fit(*many)
    assert stacker.learned_.interrupted and stacker.predict(many[0][:5]).shape == (5, 14)


def test_errors_in_callbacks_reach_the_user(equal_labels: Arrays) -> None:
    def fail(_: Progress) -> None:
        raise RuntimeError("broken")

    for recipe in RECIPES:
        with pytest.raises(RuntimeError, match="broken"):
            RuleStacker(callbacks=fail, **recipe).fit(*equal_labels)
    with pytest.raises(errors.ArgumentError, match="the callback 'x' is not callable"):
        RuleStacker(callbacks=["x"]).fit(*equal_labels)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("recipe", RECIPES, ids=["clauses", "paper"])
def test_an_interrupt_ends_with_the_best_model_so_far(many: Arrays, recipe: dict[str, object], n_jobs: int | None) -> None:
    sender = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT))

    def send_once(_: Progress) -> None:
        if sender.ident is None:
            sender.start()

    # A shell that runs the tests in the background ignores the signal, and its children with it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.warns(PrslWarning, match="learning was interrupted; the model is the best so far"):
            stacker = RuleStacker(n_jobs=n_jobs, max_seconds=60, callbacks=send_once, **recipe).fit(*many)
    finally:
        signal.signal(signal.SIGINT, before)
    assert stacker.learned_.interrupted and stacker.score(*many) >= 0


def test_a_callback_may_interrupt(many: Arrays) -> None:
    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.warns(PrslWarning, match="learning was interrupted"):
        assert RuleStacker(callbacks=interrupt).fit(*many).learned_.interrupted


def test_further_interrupts_are_raised(many: Arrays) -> None:
    is_over = threading.Event()

    def handler(number: int, frame: object) -> None:
        if not is_over.is_set():
            raise KeyboardInterrupt

    def interrupt() -> None:
        while not is_over.wait(0.02):
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, handler)
    sender = threading.Thread(target=interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            # The first signal ends learning. The second one is raised, even if learning ended before it.
            RuleStacker(callbacks=lambda _: None if sender.is_alive() else sender.start()).fit(*many)
            is_over.wait(10)
    finally:
        is_over.set()
        sender.join()
        signal.signal(signal.SIGINT, before)


def test_a_time_limit(equal_labels: Arrays) -> None:
    yes, y = equal_labels
    stacker = RuleStacker(max_seconds=0).fit(yes, y)
    assert stacker.learned_.interrupted and stacker.predict(yes).shape == y.shape
    with pytest.raises(ValueError, match="max_seconds is -1"):
        RuleStacker(max_seconds=-1).fit(yes, y)


def test_progress_is_logged(
    equal_labels: Arrays, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG, logger="prsl"):
        RuleStacker().fit(*equal_labels)
    assert any("passes" in message for message in caplog.messages)
    assert "learned" in caplog.messages[-1] and "600 rows" in caplog.messages[-1]
    assert capsys.readouterr().err == ""


def test_progress_is_shown(equal_labels: Arrays, capsys: pytest.CaptureFixture[str]) -> None:
    RuleStacker(verbose=1).fit(*equal_labels)
    told = capsys.readouterr().err
    assert "passes" in told and "\r" not in told
    RuleStacker(recipe="paper", verbose=1, n_rules=3, max_iter=40).fit(*equal_labels)
    assert "run 1 with" in capsys.readouterr().err


def test_a_terminal_shows_one_line(
    equal_labels: Arrays, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    RuleStacker(verbose=1).fit(*equal_labels)
    told = capsys.readouterr().err
    assert told.startswith("\r") and told.endswith("\n") and told.count("\n") == 1


class Notebook:
    """What IPython offers in a notebook."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def modules(self) -> dict[str, types.ModuleType]:
        shell = types.SimpleNamespace(kernel=object())
        ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
        display.HTML = str  # type: ignore[attr-defined]
        display.display = self.display  # type: ignore[attr-defined]
        return {"IPython": ipython, "IPython.display": display}

    def display(self, page: str, display_id: bool) -> Notebook:
        assert display_id and not self.shown
        self.shown.append(page)
        return self

    def update(self, page: str) -> None:
        self.shown.append(page)


def test_a_notebook_shows_progress_in_the_cell(
    equal_labels: Arrays, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = Notebook()
    for name, module in notebook.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    RuleStacker(verbose=1).fit(*equal_labels)
    assert "passes" in notebook.shown[-1] and capsys.readouterr().err == ""
    notebook.shown.clear()
    X, y = make_multilabel_classification(n_samples=60, n_features=4, n_classes=2, random_state=2)
    labels = ["<a>", "b"]
    tell: Callable[[str], bool] = lambda page: "classifiers of label 1 of 2: &lt;a&gt;" in page  # noqa: E731
    notebook.display = lambda page, display_id: notebook.shown.append(page) or notebook  # type: ignore[method-assign]
    for name, module in notebook.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    RuleStackingClassifier(LogisticRegression(), labels=labels, cv=2, verbose=1, random_state=0).fit(X, y)
    assert any(tell(page) and '<progress value="1" max="2">' in page for page in notebook.shown)
