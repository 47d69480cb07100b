"""Progress of a fit: for callbacks, for the logger "prsl", and on the terminal or in a notebook."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

from .errors import ArgumentError

LOG = logging.getLogger("prsl")


@dataclass(frozen=True)
class Progress:
    """How far a fit is. Callbacks receive it several times a second."""

    #: "classifiers", "calibrating", "adding rules", "judging rules" or "learning"; with `recipe="paper"`, "optimizing".
    phase: str
    #: Everything below in words.
    message: str
    #: Seconds since the fit began.
    seconds: float
    #: Number of labels whose classifiers are fitted, and of all labels; 0 in other phases.
    n_done: int = 0
    n_labels: int = 0
    #: Number of learned rules so far; with `recipe="paper"`, the number of rules that are optimized.
    n_rules: int = 0
    #: Number of passes over the candidates; with `recipe="paper"`, number of optimizer steps.
    n_iter: int = 0
    #: Gain of the last added rule, in nats.
    gain: float | None = None
    #: With `recipe="paper"`: the last log-likelihoods per row of training batches and of the validation set.
    training: float | None = None
    validation: float | None = None


#: A function that receives progress. If it returns `False`, learning ends with the best model so far.
Callback = Callable[[Progress], bool | None]


class _Display(Protocol):
    def show(self, progress: Progress) -> None: ...
    def close(self) -> None: ...


class Reporter:
    """Passes progress on to callbacks, the logger and a display."""

    def __init__(self, callbacks: Callback | Sequence[Callback] | None, verbose: int) -> None:
        self._callbacks = _listed(callbacks)
        self._display = _display() if verbose else None
        self._began = time.perf_counter()
        self._goes_on = True

    @property
    def is_silent(self) -> bool:
        """Whether nobody listens."""
        return not self._callbacks and self._display is None and not LOG.isEnabledFor(logging.DEBUG)

    def report(self, phase: str, message: str, **numbers: Any) -> bool:
        """Tells everyone. Returns whether to go on."""
        progress = Progress(phase, message, time.perf_counter() - self._began, **numbers)
        LOG.debug("%s", message)
        if self._display is not None:
            self._display.show(progress)
        for callback in self._callbacks:
            if callback(progress) is False:
                self._goes_on = False
        return self._goes_on

    def label(self, n_done: int, n_labels: int, name: str) -> bool:
        """The classifiers of a label are fitted."""
        message = f"classifiers of label {n_done} of {n_labels}: {name}"
        return self.report("classifiers", message, n_done=n_done, n_labels=n_labels)

    def clauses(self, phase: str, n_rules: int, n_passes: int, gain: float | None) -> bool:
        """The recipe "clauses" goes on."""
        last = "" if gain is None else f", last gain {gain:.1f} nats"
        message = f"{phase}: {n_rules} rules after {n_passes} passes{last}"
        return self.report(phase, message, n_rules=n_rules, n_iter=n_passes, gain=gain)

    def paper(
        self, n_done: int, n_rules: int | None, step: int, training: float | None, validation: float | None
    ) -> bool:
        """The recipe "paper" goes on."""
        scores = "" if validation is None else f": validation {validation:.4f}"
        scores += "" if training is None else f", training {training:.4f}"
        message = f"run {n_done + 1} with {n_rules or 0} rules, step {step}{scores}"
        numbers = {"n_rules": n_rules or 0, "n_iter": step, "training": training, "validation": validation}
        return self.report("optimizing", message, **numbers)

    def close(self) -> None:
        """Ends the display."""
        if self._display is not None:
            self._display.close()


def _listed(callbacks: Callback | Sequence[Callback] | None) -> list[Callback]:
    if callbacks is None:
        return []
    found = [callbacks] if callable(callbacks) else list(callbacks)
    for callback in found:
        if not callable(callback):
            raise ArgumentError(f"the callback {callback!r} is not callable, expected a function of one argument")
    return found


def _display() -> _Display:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if hasattr(shell, "kernel"):
        return _Notebook()
    return _Line() if sys.stderr.isatty() else _Lines()


class _Line:
    """One line of a terminal, which is rewritten."""

    def show(self, progress: Progress) -> None:
        print(f"\r{progress.message}\x1b[K", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print(file=sys.stderr, flush=True)


class _Lines:
    """A line in a file for each phase, label and number of rules."""

    def __init__(self) -> None:
        self._last: tuple[object, ...] = ()

    def show(self, progress: Progress) -> None:
        state = (progress.phase, progress.n_done, progress.n_rules)
        if state != self._last:
            self._last = state
            print(progress.message, file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class _Notebook:
    """A text in the output of a cell, with a bar while classifiers are fitted."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, progress: Progress) -> None:
        from IPython.display import HTML, display

        bar = f'<progress value="{progress.n_done}" max="{progress.n_labels}"></progress> ' if progress.n_labels else ""
        page = HTML(f"<div>{bar}{escape(progress.message)} ({progress.seconds:.0f} s)</div>")
        if self._handle is None:
            self._handle = display(page, display_id=True)
        else:
            self._handle.update(page)

    def close(self) -> None:
        pass
