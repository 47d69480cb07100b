"""Runs methods on folds unless their results are on disk, and shows the progress."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from . import robustness
from .datasets import DATASETS, Dataset, Fold, Folder, Part
from .forests import forest_fold
from .methods import METHODS, Method, Skipped
from .metrics import Prediction, reliability, score
from .provenance import origin
from .results import BOTH, TRAIN, Result, Score, Store, curve

QUICK_FOLDS = 2
QUICK_TREES = 25


@dataclass(frozen=True)
class Plan:
    """The methods, datasets and folds to run."""

    data: Path
    out: Path
    datasets: list[str] = field(default_factory=lambda: list(DATASETS))
    methods: list[str] = field(default_factory=lambda: list(METHODS))
    folds: list[int] | None = None
    beliefs: str = "fixed"
    quick: bool = False
    fresh: bool = False
    jobs: int = 1
    archive: Path | None = None
    """Results that need not be measured again."""

    @property
    def store(self) -> Store:
        """The store of the results."""
        return Store(self.folder / "results", None if self.fresh else self.archive)

    @property
    def folder(self) -> Path:
        """The folder. Results with other beliefs, or of quick runs, are separate from those of the main benchmark."""
        variant = self.beliefs + ("-quick" if self.quick else "")
        return self.out if variant == "fixed" else self.out / variant


def key_of(method: Method, dataset: Dataset) -> dict[str, Any]:
    """What a stored result depends on."""
    return {"settings": method.settings(), "version": method.version(), "data": dataset.version}


def kept(plan: Plan) -> list[Result]:
    """All results on disk that were measured with the current settings, versions and data."""
    store, datasets = plan.store, {}
    results = []
    for name, fold, method in store.places():
        dataset = datasets.setdefault(name, Dataset(name, Folder(plan.data)))
        if method in METHODS:
            results.append(store.load(name, fold, method, key_of(METHODS[method](quick=plan.quick), dataset)))
    return [result for result in results if result is not None]


def cpu_seconds() -> float:
    """Processor time of this process, its threads and the processes it has started and awaited."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def measure(method: Method, fold: Fold, key: dict[str, Any]) -> Result:
    """Fit, refit, predict and score one method on one fold."""
    seconds, chosen, scores = {}, {}, {}
    start = cpu_seconds()
    chosen[TRAIN] = method.fit(fold)
    seconds[TRAIN] = cpu_seconds() - start
    parts = {part: getattr(fold, part) for part in method.scored}
    scores[TRAIN] = {name: scored(method.predict(part), part) for name, part in parts.items()}
    if method.refits:
        start = cpu_seconds()
        chosen[BOTH] = method.refit(fold)
        seconds[BOTH] = cpu_seconds() - start + (seconds[TRAIN] if method.chooses else 0.0)
    start = cpu_seconds()
    prediction = method.predict(fold.test)
    row_seconds = (cpu_seconds() - start) / len(fold.test.rows)
    if method.refits:
        scores[BOTH] = {"test": scored(prediction, fold.test)}
    return Result(fold.dataset, fold.number, method.key, key, origin(), chosen, scores, seconds, row_seconds)


def scored(prediction: Prediction, part: Part) -> Score:
    """The scores of a prediction."""
    return Score(score(prediction, part.truths), curve(reliability(prediction.marginals, part.truths)))


class Source:
    """The folds of one dataset, each read once."""

    def __init__(self, plan: Plan, name: str) -> None:
        self.plan = plan
        self.dataset = Dataset(name, Folder(plan.data))
        self.kept: dict[tuple[int, bool], Fold] = {}

    @property
    def numbers(self) -> list[int]:
        """The folds to run."""
        folds = list(range(1, len(self.dataset.splits) + 1))
        if self.plan.folds is not None:
            unknown = [number for number in self.plan.folds if number not in folds]
            if unknown:
                raise ValueError(f"`{self.dataset.name}` has folds 1 to {len(folds)}, not {unknown[0]}")
            return self.plan.folds
        return folds[:QUICK_FOLDS] if self.plan.quick else folds

    def fold(self, number: int, features: bool) -> Fold:
        """One fold, with features if requested."""
        if self.plan.beliefs == "forest":
            features = True
        if (number, features) not in self.kept:
            self.kept = {}
            if self.plan.beliefs == "forest":
                trees = QUICK_TREES if self.plan.quick else None
                fold = forest_fold(self.dataset, number, self.plan.out / "forests", trees)
            else:
                fold = self.dataset.fold(number, features)
            self.kept[number, features] = fold
        return self.kept[number, features]


def run(plan: Plan, console: Console) -> list[Result]:
    """Run everything that has no result on disk, and return the results of the whole plan."""
    sources = {name: Source(plan, name) for name in plan.datasets}
    tasks = [(name, key, number) for name, source in sources.items() for key in plan.methods for number in source.numbers]
    if plan.fresh:
        # All are removed at once, so that a stopped run with `--fresh` can continue without it.
        for name, key, number in tasks:
            plan.store.path(name, number, key).unlink(missing_ok=True)
    return _in_order(plan, console, "benchmark", one, sources, tasks)


def one(source: Source, key: str, number: int) -> Result | str:
    """One result, from disk or measured now; the reason if the method is skipped."""
    plan, method = source.plan, METHODS[key](quick=source.plan.quick)
    wanted = key_of(method, source.dataset)
    result = plan.store.load(source.dataset.name, number, key, wanted)
    if result is None:
        try:
            result = measure(method, source.fold(number, method.needs_features), wanted)
        except (Skipped, ModuleNotFoundError) as reason:
            return f"{method.title} is skipped: {reason}"
        plan.store.save(result)
    return result


def run_robustness(plan: Plan, console: Console) -> list[robustness.Curve]:
    """Run the curves of robustness that are not on disk, and return all of them."""
    if "prsl" not in plan.methods:
        return []
    sources = {name: Source(plan, name) for name in plan.datasets}
    tasks = [
        (name, kind, number)
        for name, source in sources.items()
        for kind in robustness.KINDS
        for number in robustness.folds_of(source.dataset, plan.quick)
        if plan.folds is None or number in plan.folds
    ]
    return _in_order(plan, console, "robustness", one_curve, sources, tasks)


def one_curve(source: Source, kind: str, number: int) -> robustness.Curve | str:
    """One curve, from disk or measured now."""
    plan, dataset = source.plan, source.dataset
    stored = None if plan.fresh else robustness.load(plan.folder, dataset, number, kind, plan.quick)
    if stored is not None:
        return stored
    try:
        return robustness.measure(plan.folder, dataset, source.fold(number, False), kind, plan.quick)
    except ModuleNotFoundError as reason:
        return f"robustness is skipped: {reason}"


Task = tuple[str, str, int]
"""A dataset, a method or a kind of robustness, and a fold."""


def _in_order(
    plan: Plan,
    console: Console,
    title: str,
    work: Callable[[Source, str, int], Any],
    sources: dict[str, Source],
    tasks: list[Task],
) -> list[Any]:
    """The results of all tasks, in their order, from `plan.jobs` processes."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    results, told = [], set()
    with Progress(*columns, console=console) as progress, ProcessPoolExecutor(plan.jobs) as pool:
        bar = progress.add_task(title, total=len(tasks))
        if plan.jobs == 1:
            found = (work(sources[name], what, number) for name, what, number in tasks)
        else:
            found = pool.map(work, *zip(*((sources[name], what, number) for name, what, number in tasks)))
        for (name, what, number), result in zip(tasks, found):
            progress.update(bar, advance=1, description=f"{name} fold {number} {what}")
            if not isinstance(result, str):
                results.append(result)
            elif result not in told:
                told.add(result)
                progress.console.print(result)
    return results


def kept_curves(plan: Plan, datasets: list[Dataset]) -> list[robustness.Curve]:
    """All curves of robustness on disk that are current."""
    found = [
        robustness.load(plan.folder, dataset, number, kind, plan.quick)
        for dataset in datasets
        for number in robustness.folds_of(dataset, plan.quick)
        for kind in robustness.KINDS
    ]
    return [curve for curve in found if curve is not None]
