"""Compares the time for a million rows through NumPy with the library's own time for the same rows.

`make bench-python` runs it after the measurement of the library (`bench/src/bin/throughput.rs`).
"""

from __future__ import annotations

import argparse
import pathlib
import time

import numpy as np

import prsl


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("library_seconds", type=float, help="what the library took")
    arguments.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("target/throughput"))
    arguments.add_argument("--repeats", type=int, default=3)
    given = arguments.parse_args()
    model = prsl.Model.load(given.folder / "model.prsl")
    n_categories = sum(len(label.categories) for label in model.labels)
    # In Python's arrays no comes before yes, in the files yes before no.
    order = []
    for label in model.labels:
        places = range(len(order), len(order) + len(label.categories))
        order += reversed(places) if label.categories == ["no", "yes"] else places
    beliefs = np.ascontiguousarray(np.fromfile(given.folder / "beliefs.f64").reshape(-1, n_categories)[:, order])
    expected = np.fromfile(given.folder / "marginals.f64").reshape(-1, n_categories)[:, order]
    by_label = {}
    start = 0
    for label in model.labels:
        by_label[label.name] = np.ascontiguousarray(beliefs[:, start : start + len(label.categories)])
        start += len(label.categories)
    print(f"| {len(beliefs):,} rows, {len(model.labels)} labels, {len(model.rules)} rules | seconds | times the library's |")
    print("|---|---|---|")
    print(f"| the library | {given.library_seconds:.2f} | 1.00 |")
    for name, form in (("one array", beliefs), ("a dictionary of arrays", by_label)):
        fastest = float("inf")
        for _ in range(given.repeats):
            began = time.perf_counter()
            posterior = model.predict(form)
            fastest = min(fastest, time.perf_counter() - began)
        assert posterior.values is not None
        np.testing.assert_array_equal(posterior.values[: len(expected)], expected)  # the same bits
        print(f"| Python, {name} | {fastest:.2f} | {fastest / given.library_seconds:.2f} |")


if __name__ == "__main__":
    main()
