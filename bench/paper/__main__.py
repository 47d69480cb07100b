"""The command line: `python -m bench.paper`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from .datasets import DATASETS, DataAbsent
from .document import show
from .methods import METHODS
from .report import build, write
from .run import Plan, kept, run

ROOT = Path(__file__).resolve().parents[2]


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
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "benchmark", help="folder of results and report")
    parser.add_argument("--quick", action="store_true", help="two folds and little training, for a first impression")
    parser.add_argument("--fresh", action="store_true", help="measure again what is already there")
    parser.add_argument("--report-only", action="store_true", help="write the report from what is there")
    chosen = parser.parse_args(argv)
    unknown = [name for name in chosen.methods if name not in METHODS]
    if unknown:
        parser.error(f"unknown method `{unknown[0]}`; there are {', '.join(METHODS)}")
    return chosen


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in _names(text)]


def main(argv: list[str] | None = None) -> int:
    """Run, print the tables, write the report."""
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
    )
    try:
        measured = kept(plan) if chosen.report_only else run(plan, console)
    except (DataAbsent, ValueError) as error:
        print(f"benchmark: {error}", file=sys.stderr)
        return 1
    if not measured:
        print("benchmark: there are no results to show", file=sys.stderr)
        return 1
    show(build(measured), console)
    everything = kept(plan)
    markdown, page = write(everything, plan.folder)
    console.print(f"{len(everything)} results in {markdown} and, with figures, {page}", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
