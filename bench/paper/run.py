"""Runs methods on folds unless their results are on disk, and shows the progress."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .datasets import DATASETS, Dataset, Fold, Folder
from .forests import forest_fold
from .methods import METHODS, Method, Skipped
from .metrics import reliability, score
from .results import Result, Store, curve

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

    @property
    def store(self) -> Store:
        """The store of the results."""
        return Store(self.folder / "results")

    @property
    def folder(self) -> Path:
        """The folder. Results with other beliefs, or of quick runs, are separate from those of the main benchmark."""
        variant = self.beliefs + ("-quick" if self.quick else "")
        return self.out if variant == "fixed" else self.out / variant


def kept(plan: Plan) -> list[Result]:
    """All results on disk that were measured with the current settings."""
    store = plan.store
    settings = {key: method(quick=plan.quick).settings() for key, method in METHODS.items()}
    found = (store.load(*place) for place in store.places() if place[2] in METHODS)
    return [result for result in found if result and store.current(result, settings[result.method])]


def cpu_seconds() -> float:
    """Processor time of this process, its threads and the processes it has started and awaited."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def measure(method: Method, fold: Fold) -> Result:
    """Fit, predict and score one method on one fold."""
    start = cpu_seconds()
    chosen = method.fit(fold)
    fitted = cpu_seconds()
    prediction = method.predict(fold.test)
    predicted = cpu_seconds()
    return Result(
        dataset=fold.dataset,
        fold=fold.number,
        method=method.key,
        settings=method.settings(),
        chosen=chosen,
        metrics=score(prediction, fold.test.truths),
        reliability=curve(reliability(prediction.marginals, fold.test.truths)),
        rows=len(fold.test.rows),
        fit_seconds=fitted - start,
        predict_seconds=predicted - fitted,
    )


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
    tasks = [(source, key, number) for source in sources.values() for key in plan.methods for number in source.numbers]
    store, results, skipped = plan.store, [], {}
    if plan.fresh:
        # All are removed at once, so that a stopped run with `--fresh` can continue without it.
        for source, key, number in tasks:
            store.path(source.dataset.name, number, key).unlink(missing_ok=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("benchmark", total=len(tasks))
        for source, key, number in tasks:
            method = METHODS[key](quick=plan.quick)
            name = source.dataset.name
            progress.update(bar, description=f"{name} fold {number} {method.title}")
            result = store.load(name, number, key, method.settings())
            if result is None and key not in skipped:
                try:
                    result = measure(method, source.fold(number, method.needs_features))
                    store.save(result)
                except (Skipped, ModuleNotFoundError) as reason:
                    skipped[key] = reason
                    progress.console.print(f"{method.title} is skipped: {reason}")
            if result is not None:
                results.append(result)
            progress.advance(bar)
        progress.update(bar, description="benchmark")
    return results
