"""The command line: `python -m bench.paper`."""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from . import example, formulas, robustness
from .comparison import TABLES as COMPARISON
from .comparison import comparison
from .datasets import DATASETS, DataAbsent, Dataset, Folder
from .document import Block, Heading, show
from .methods import METHODS
from .provenance import ROOT, origin
from .publish import BrokenPlace, pages, publish
from .report import build, write
from .results import Result, write_archive
from .run import Plan, kept, kept_curves, run, run_robustness
from .tables import dataset_table, datasets_of

DEFAULT_OUT = ROOT / "target" / "benchmark"
ARCHIVE = ROOT / "bench" / "scores" / "benchmark.jsonl"
"""All results of the main benchmark that are current."""
PARTS = ("methods", "robustness")


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The checked arguments."""
    parser = argparse.ArgumentParser(
        prog="bench/paper/run",
        description="The evaluation of the pRSL paper, repeated. Results are kept: a run that was stopped goes on.",
        epilog=f"methods: {', '.join(METHODS)}; datasets: {', '.join(DATASETS)}",
    )
    parser.add_argument("--datasets", type=_names, default=list(DATASETS), help="comma-separated, all by default")
    parser.add_argument("--methods", type=_names, default=list(METHODS), help="comma-separated, all by default")
    parser.add_argument("--folds", type=_numbers, help="comma-separated and counted from 1, all by default")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the datasets")
    parser.add_argument("--beliefs", choices=["fixed", "forest"], default="fixed", help="from files, or from forests")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder of results and report")
    parser.add_argument("--parts", type=_names, default=list(PARTS), help="comma-separated: methods, robustness")
    parser.add_argument("--publish", action="store_true", help="write the tables into docs; a copy of them with --quick")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each on one core; 1 by default")
    parser.add_argument("--quick", action="store_true", help="two folds and little training, for a first impression")
    parser.add_argument("--fresh", action="store_true", help="measure again what is already there")
    parser.add_argument("--no-archive", action="store_true", help="measure again what is in bench/scores/benchmark.jsonl")
    parser.add_argument("--report-only", action="store_true", help="write the report from what is there")
    chosen = parser.parse_args(argv)
    unknown = [name for name in chosen.methods if name not in METHODS]
    if unknown:
        parser.error(f"unknown method `{unknown[0]}`; there are {', '.join(METHODS)}")
    unknown = [name for name in chosen.parts if name not in PARTS]
    if unknown:
        parser.error(f"unknown part `{unknown[0]}`; there are {', '.join(PARTS)}")
    return chosen


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in _names(text)]


def main(argv: list[str] | None = None) -> int:
    """Run, print the tables, write the report and the documentation."""
    chosen = arguments(argv)
    # Tables keep their width if the output is redirected to a file.
    console = Console() if sys.stdout.isatty() else Console(width=170)
    plan = Plan(
        data=chosen.data,
        out=chosen.out,
        datasets=chosen.datasets,
        methods=chosen.methods,
        folds=chosen.folds,
        beliefs=chosen.beliefs,
        quick=chosen.quick,
        fresh=chosen.fresh,
        jobs=chosen.jobs,
    )
    if is_main(plan) and not chosen.no_archive:
        plan = replace(plan, archive=ARCHIVE)
    try:
        if not chosen.report_only and "methods" in chosen.parts:
            run(plan, console)
        if not chosen.report_only and "robustness" in chosen.parts:
            run_robustness(plan, console)
        everything = kept(plan)
        if not everything:
            print("benchmark: there are no results to show", file=sys.stderr)
            return 1
        # With some datasets missing, their results would be lost.
        if is_main(plan) and all(Folder(plan.data).find(f"{name}.parquet") for name in DATASETS):
            write_archive(ARCHIVE, everything)
        blocks = build(everything, extra_blocks(plan, everything))
        show(blocks, console)
        markdown, page = write(blocks, plan.folder)
        console.print(f"{len(everything)} results in {markdown} and, with figures, {page}", soft_wrap=True)
        if chosen.publish:
            for path in publish(blocks, pages_root(plan)):
                console.print(f"written: {path}", soft_wrap=True)
    except (DataAbsent, BrokenPlace, ValueError) as error:
        print(f"benchmark: {error}", file=sys.stderr)
        return 1
    return 0


def extra_blocks(plan: Plan, results: list[Result]) -> list[Block]:
    """The blocks that are not about results of all methods."""
    datasets = [Dataset(name, Folder(plan.data)) for name in datasets_of(results)]
    measurable = [dataset for dataset in datasets if dataset.folder.find(f"{dataset.name}.parquet")]
    return [
        *robustness.blocks(kept_curves(plan, datasets)),
        Heading("The paper's tables"),
        *([dataset_table(measurable, origin())] if measurable else []),
        *(comparison(results, name) for name in COMPARISON),
        *example.tables(),
        *formulas.tables(),
    ]


def is_main(plan: Plan) -> bool:
    """Whether it is the main benchmark, whose tables are published."""
    return plan.folder == plan.out == DEFAULT_OUT


def pages_root(plan: Plan) -> Path:
    """The root of the pages to write: the project, or a copy of its pages for runs that are not the main benchmark."""
    if is_main(plan):
        return ROOT
    copy = plan.folder / "pages"
    for page in pages(ROOT):
        target = copy / page.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, target)
    return copy


if __name__ == "__main__":
    sys.exit(main())
