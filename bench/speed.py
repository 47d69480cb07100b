"""CPU time of two builds of `speed`, run in turn on the same models.

    python bench/speed.py BEFORE AFTER [ROUNDS]

BEFORE and AFTER are binaries of two revisions (`cargo build --release -p prsl-bench --bin speed`). Of each model the
fastest round counts; a line for each size gives the geometric mean of the ratios AFTER / BEFORE over the seeds.
"""

import json
import math
import subprocess
import sys

SIZES = [
    ("exact", 30, "1,2,3,4,5,6", 256),
    ("exact", 40, "1,2,3,4,5,6", 64),
    ("exact", 60, "1,5,7,8,9,11", 8),
    ("loopy", 100, "1,2,3,4,5,6", 256),
]


def run(binary, engine, labels, seeds, rows):
    """The lines of one run, by seed. A refused model ends the run."""
    command = [binary, "--engine", engine, "--labels", str(labels), "--seeds", seeds, "--rows", str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {line["seed"]: line for line in map(json.loads, done.stdout.splitlines())}


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    binaries, rounds = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 3
    for engine, labels, seeds, rows in SIZES:
        runs = [[run(binary, engine, labels, seeds, rows) for binary in binaries] for _ in range(rounds)]
        ratios = {"row": [], "compile": []}
        for seed in runs[0][0]:
            line = [f"{engine} {labels} seed {seed:3}"]
            for what, unit in [("row", "us"), ("compile", "ms")]:
                before, after = (min(pair[side][seed][what] for pair in runs) for side in (0, 1))
                scale = 1e6 if unit == "us" else 1e3
                line.append(f"{what} {before * scale:11.1f} {after * scale:11.1f} {unit}")
                if before > 0.005 or what == "row":
                    ratios[what].append(after / before)
                    line.append(f"{after / before:5.2f}")
            difference = abs(runs[0][0][seed]["log_evidence"] - runs[0][1][seed]["log_evidence"])
            print("  ".join(line), f" |difference of ln Z| {difference:.1e}", flush=True)
        means = [f"{what} {mean(numbers):.2f}" for what, numbers in ratios.items() if numbers]
        print(f"{engine} {labels}: {'  '.join(means)}\n", flush=True)


main()
