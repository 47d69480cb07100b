"""Computes the marginals of exported models with pyAgrum and ProbLog, and compares them with the expected ones."""

import json
import re
import sys
from pathlib import Path

import pyagrum
from problog import get_evaluatable
from problog.logic import Term
from problog.program import PrologFile

# Tolerance of rounding: the same products are summed in another order.
PYAGRUM_TOLERANCE = 1e-9
# pyAgrum's readers keep numbers in single precision: half a unit in the 24th bit, times a few factors.
SINGLE_PRECISION_TOLERANCE = 1e-6
# ProbLog rounds its input to 15 decimals, and its circuits multiply many numbers.
PROBLOG_TOLERANCE = 1e-8


def from_uai(path, expected):
    network = pyagrum.loadMRF(str(path))
    inference = pyagrum.ShaferShenoyMRFInference(network)
    inference.makeInference()
    return [inference.posterior(str(label)).tolist() for label in range(len(expected["marginals"]))]


def from_bif(path, expected):
    network = pyagrum.loadBN(str(path))
    inference = pyagrum.LazyPropagation(network)
    declared = re.findall(r"^variable (\w+) ", path.read_text(encoding="utf-8"), re.MULTILINE)
    observed = [f"R_{rule + 1}" for rule in range(expected["n_rules"])]
    if "T" in declared[len(expected["marginals"]) :]:
        observed += [f"T_{label + 1}" for label in range(len(expected["marginals"]))]
    inference.setEvidence({name: "true" for name in observed})
    inference.makeInference()
    return [inference.posterior(name).tolist() for name in declared[: len(expected["marginals"])]]


def from_problog(path, expected):
    # Only "\n" ends a line, because names may contain other line separators.
    lines = path.read_text(encoding="utf-8").split("\n")
    goals = [line[len("query(") : -len(").")] for line in lines if line.startswith("query(")]
    results = {str(goal): p for goal, p in get_evaluatable().create_from(PrologFile(str(path))).evaluate().items()}
    values = iter([results[str(Term.from_string(goal))] for goal in goals])
    return [[next(values) for _ in marginal] for marginal in expected["marginals"]]


def largest_difference(actual, expected):
    if [len(row) for row in actual] != [len(row) for row in expected]:
        return float("inf")
    return max(abs(a - b) for left, right in zip(actual, expected) for a, b in zip(left, right))


def check(path):
    """Prints one line about a model. Returns whether all programs agree."""
    expected = json.loads(path.read_text(encoding="utf-8"))
    pyagrum_tolerance = PYAGRUM_TOLERANCE if expected["exact_in_single_precision"] else SINGLE_PRECISION_TOLERANCE
    programs = [
        ("pyAgrum UAI", ".uai", from_uai, pyagrum_tolerance),
        ("pyAgrum BIF", ".bif", from_bif, pyagrum_tolerance),
        ("ProbLog", ".pl", from_problog, PROBLOG_TOLERANCE),
    ]
    agree, notes = True, []
    for name, extension, infer, tolerance in programs:
        try:
            difference = largest_difference(infer(path.with_suffix(extension), expected), expected["marginals"])
            agree &= difference <= tolerance  # false for NaN too
            notes.append(f"{name} {difference:.1e}" + ("" if difference <= tolerance else f" > {tolerance:.0e}"))
        except Exception as error:  # any error of a reader is a failure of the export
            agree = False
            notes.append(f"{name}: {type(error).__name__}: {error}")
    print(f"{'ok  ' if agree else 'FAIL'} {expected['name']}: {', '.join(notes)}", flush=True)
    return agree


def main():
    results = [check(path) for path in sorted(Path(sys.argv[1]).glob("*.json"))]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(0 if results and all(results) else 1)


main()
