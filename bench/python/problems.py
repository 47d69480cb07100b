"""Compares multi-label methods on six problems, and writes docs/problems.md.

`make problems` runs it. All methods get the same base classifier: logistic regression on standardized features.
Emotions and yeast are read from ../shared/data/mulan; without it they are skipped with a message.
"""

from __future__ import annotations

import argparse
import pathlib
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from problem_methods import Chain, Independent, Method, Powerset, Stacked, base_classifier
from sklearn.datasets import load_digits, make_multilabel_classification
from sklearn.model_selection import KFold, cross_val_predict

import prsl
from prsl import RuleStacker
from prsl.data import read_arff

Numbers = npt.NDArray[np.float64]
Truths = npt.NDArray[np.int64]

ROOT = pathlib.Path(__file__).resolve().parents[2]
MULAN = ROOT.parent / "shared" / "data" / "mulan"
#: Lower bound on probabilities before their logarithm. A label set that a method excludes costs 13.8 nats.
SMALLEST = 1e-6

DIGIT_RULES = [
    'rule 1: odd <-> digit in {"1", "3", "5", "7", "9"}',
    'rule 1: large <-> digit in {"5", "6", "7", "8", "9"}',
]


@dataclass
class Problem:
    """Features and truths. Training rows may have unknown truths, -1."""

    name: str
    X: Numbers
    y: Truths
    labels: list[str]
    rules: list[str] | None = None
    #: Which truths are hidden from training.
    hidden: npt.NDArray[np.bool_] | None = None

    def train(self, rows: npt.NDArray[np.int64]) -> Truths:
        """The truths of training rows."""
        known = self.y[rows].copy()
        if self.hidden is not None:
            known[self.hidden[rows]] = -1
        return known


@dataclass
class Scores:
    """For each test row: whether all labels are right, the share of wrong labels, −ln P(truth); and seconds per fit."""

    right: list[float] = field(default_factory=list)
    wrong: list[float] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, y: Truths, predicted: Truths, log_probability: Numbers, seconds: float) -> None:
        """Adds the rows of a fold."""
        self.right += (predicted == y).all(axis=1).astype(float).tolist()
        self.wrong += (predicted != y).mean(axis=1).tolist()
        self.loss += (-np.maximum(log_probability, np.log(SMALLEST))).tolist()
        self.seconds.append(seconds)


def digits() -> Problem:
    """Images of digits, whether they are odd and whether they are 5 or more, with hard rules."""
    X, digit = load_digits(return_X_y=True)
    y = np.column_stack([digit, digit % 2, digit >= 5]).astype(np.int64)
    return Problem("digits, parity and size", X, y, ["digit", "odd", "large"], DIGIT_RULES)


def documents() -> Problem:
    """scikit-learn's generator of documents with several topics."""
    X, y = make_multilabel_classification(n_samples=1000, random_state=0)
    return Problem("make_multilabel_classification", X, y.astype(np.int64), [f"topic{j}" for j in range(5)])


def mulan(name: str) -> Problem | None:
    """A dataset of Mulan, if it is there."""
    arff = next((path for end in ("arff", "arff.gz") if (path := MULAN / f"{name}.{end}").exists()), None)
    if arff is None:
        print(f"{name} is skipped: there is no {MULAN.relative_to(ROOT.parent)}/{name}.arff", file=sys.stderr)
        return None
    data = read_arff(arff, MULAN / f"{name}.xml")
    return Problem(name, data.features, data.labels.astype(np.int64), data.label_names)


def scenes() -> Problem:
    """Simulated scenes like those of the dataset scene: six kinds, of which some pictures show two that occur together."""
    rng = np.random.default_rng(3)
    n_rows, n_features = 1200, 40
    means = 0.55 * rng.normal(size=(6, n_features))
    first = rng.integers(0, 6, n_rows)
    y = np.eye(6, dtype=np.int64)[first]
    has_two = rng.random(n_rows) < 0.15
    y[has_two, (first[has_two] + 1) % 6] = 1
    shares = y / y.sum(axis=1, keepdims=True)
    X = shares @ means + rng.normal(size=(n_rows, n_features))
    names = ["beach", "sunset", "foliage", "field", "mountain", "urban"]
    return Problem("scenes (simulated)", X, y, names)


def holes() -> Problem:
    """Labels that imply each other. 30 % of the training truths are unknown."""
    rng = np.random.default_rng(4)
    n_rows = 1000
    animal = rng.random(n_rows) < 0.6
    bird = animal & (rng.random(n_rows) < 0.5)
    flies = bird & (rng.random(n_rows) < 0.85)
    outdoors = flies | (rng.random(n_rows) < 0.4)
    y = np.column_stack([animal, bird, flies, outdoors]).astype(np.int64)
    X = (y - 0.5) @ rng.normal(size=(4, 12)) * 0.5 + rng.normal(size=(n_rows, 12))
    hidden = rng.random(y.shape) < 0.3
    return Problem("missing labels (simulated)", X, y, ["animal", "bird", "flies", "outdoors"], hidden=hidden)


def methods(problem: Problem) -> dict[str, Callable[[], Method]]:
    """The methods to compare on a problem."""
    found: dict[str, Callable[[], Method]] = {
        "independent": Independent,
        "classifier chain": Chain,
        "label powerset": Powerset,
        "RuleStackingClassifier, n_rules=0": lambda: Stacked(problem.labels, None, n_rules=0),
        "RuleStackingClassifier": lambda: Stacked(problem.labels, None),
    }
    if problem.rules is not None:
        found["RuleStackingClassifier, expert rules"] = lambda: Stacked(problem.labels, problem.rules)
    return found


def cross_validate(problem: Problem, n_folds: int) -> dict[str, Scores]:
    """The scores of every method, on the rows of all folds."""
    scores: dict[str, Scores] = {}
    for train, test in KFold(n_folds, shuffle=True, random_state=0).split(problem.X):
        X, y, known = problem.X[test], problem.y[test], problem.train(train)
        for name, make in methods(problem).items():
            began = time.process_time()
            method = make().fit(problem.X[train], known)
            seconds = time.process_time() - began
            predictions = {name: method.predict(X)}
            if isinstance(method, Stacked) and method.has_soft_rules:
                predictions[f'{name}, decision="joint"'] = method.predict_joint(X)
            for of_method, predicted in predictions.items():
                scores.setdefault(of_method, Scores()).add(y, predicted, method.log_probability(X, y), seconds)
    return scores


def standard_error(values: Numbers) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def is_worse(scores: dict[str, Scores], name: str) -> list[str]:
    """The scores in which a method is worse than the independent classifiers by more than one paired standard error."""
    found = []
    for kind, sign in (("right", -1.0), ("wrong", 1.0), ("loss", 1.0)):
        own, base = (np.array(getattr(scores[of], kind)) for of in (name, "independent"))
        excess = sign * (own - base)
        if excess.mean() > standard_error(excess) + 1e-12:
            found.append({"right": "joint accuracy", "wrong": "Hamming loss", "loss": "log loss"}[kind])
    return found


def table(scores: dict[str, Scores]) -> list[str]:
    """The scores as lines of Markdown."""
    lines = ["| method | joint accuracy | Hamming loss | log loss | seconds per fit |", "|---|---:|---:|---:|---:|"]
    for name, own in scores.items():
        cells = [f"{np.mean(values):.3f} ± {standard_error(np.array(values)):.3f}" for values in (own.right, own.wrong, own.loss)]
        lines.append(f"| {name} | {' | '.join(cells)} | {np.mean(own.seconds):.2f} |")
    return lines


def few_rows(problem: Problem, n_splits: int, n_rows: int = 100) -> list[str]:
    """Expert rules beside few training rows: joint accuracy with and without them, on the same splits."""
    variants: dict[str, dict[str, Any]] = {
        "expert rules": {"rules": problem.rules},
        "learned rules only": {"rules": None},
        "no rules": {"rules": None, "n_rules": 0},
        "expert rules, beliefs calibrated label by label": {"rules": problem.rules, "calibration": "platt"},
        "expert rules, beliefs not calibrated": {"rules": problem.rules, "calibration": "none"},
    }
    accuracy: dict[str, list[float]] = {name: [] for name in [*variants, "digit alone"]}
    for split in range(n_splits):
        order = np.random.default_rng(split).permutation(len(problem.X))
        train, test = order[:n_rows], order[n_rows:]
        for name, settings in variants.items():
            method = Stacked(problem.labels, **settings).fit(problem.X[train], problem.y[train])
            predicted = method.predict_joint(problem.X[test])
            accuracy[name].append(float((predicted == problem.y[test]).all(axis=1).mean()))
        alone = base_classifier().fit(problem.X[train], problem.y[train, 0]).predict(problem.X[test])
        accuracy["digit alone"].append(float((alone == problem.y[test, 0]).mean()))
    expert = np.array(accuracy["expert rules"])
    lines = ["| rules | joint accuracy | expert rules gain, paired | in standard errors |", "|---|---:|---:|---:|"]
    for name, values in accuracy.items():
        gain = expert - np.array(values)
        paired = "| |" if name == "expert rules" else f"{gain.mean():+.4f} ± {standard_error(gain):.4f} | {gain.mean() / standard_error(gain):.1f} |"
        lines.append(f"| {name} | {np.mean(values):.4f} | {paired}")
    return lines


def misfit(problem: Problem) -> str:
    """How single labels and all labels together fit the rows learned from, without and with learned rules."""
    columns = range(problem.y.shape[1])
    beliefs = [cross_val_predict(base_classifier(), problem.X, problem.y[:, j], method="predict_proba") for j in columns]
    found = []
    for n_rules in (0, "auto"):
        stacker = RuleStacker(n_rules=n_rules).fit(beliefs, problem.y)
        rows = np.arange(len(problem.y))
        single = [-np.log(values[rows, problem.y[:, j]]).mean() for j, values in enumerate(stacker.predict_proba(beliefs))]
        found.append((float(np.mean(single)), -float(stacker.joint_log_likelihood(beliefs, problem.y).mean())))
    (single_before, joint_before), (single_after, joint_after) = found
    return (
        f"On {problem.name} this is so even on the rows learned from: learned rules change the log loss of a row from "
        f"{joint_before:.3f} to {joint_after:.3f}, and the log loss of a single label from {single_before:.3f} to {single_after:.3f}."
    )


def machine() -> str:
    """The processor, the number of cores, and the versions."""
    import sklearn

    info = pathlib.Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or "unknown processor"
    return f"{processor}, Python {platform.python_version()}, scikit-learn {sklearn.__version__}, prsl {prsl.__version__}"


def commit() -> str:
    """The commit, with a mark if files were changed."""
    found = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def page(problems: list[Problem], n_folds: int, n_splits: int) -> str:
    """The page, and the tables on standard error while they are made."""
    parts = [HEAD.format(n_folds=n_folds, commit=commit(), machine=machine(), smallest="1e-6")]
    worse = []
    for problem in problems:
        scores = cross_validate(problem, n_folds)
        n_rows, n_features = problem.X.shape
        known = "" if problem.hidden is None else f", {100 * problem.hidden.mean():.0f} % of the training truths unknown"
        parts.append(f"\n## {problem.name[0].upper()}{problem.name[1:]}\n")
        parts.append(f"{n_rows} rows, {n_features} features, {len(problem.labels)} labels{known}.\n")
        parts += table(scores)
        print("\n".join([problem.name, *table(scores)]), file=sys.stderr, flush=True)
        for name in scores:
            if name.startswith("RuleStackingClassifier"):
                worse += [f"{problem.name}: {kind} of {name}" for kind in is_worse(scores, name)]
    told = "".join(f"\n- {one}" for one in worse) if worse else " none."
    parts.append(f"\n## Worse than the base classifiers\n\nBy more than one paired standard error over rows:{told}")
    generated = [problem for problem in problems if problem.name == "make_multilabel_classification"]
    if worse and generated:
        parts.append(SINGLE.format(misfit=misfit(generated[0])).rstrip())
    of_digits = [problem for problem in problems if problem.rules is not None]
    if of_digits and n_splits:
        lines = few_rows(of_digits[0], n_splits)
        print("\n".join(lines), file=sys.stderr, flush=True)
        parts += [FEW.format(n_splits=n_splits), *lines, WHY]
    return "\n".join(parts).rstrip() + "\n"


HEAD = """\
# Multi-label methods on six problems

Independent classifiers, a classifier chain, the label powerset (one multi-class model whose classes are label sets) and
`RuleStackingClassifier`, {n_folds}-fold cross-validation. All use logistic regression on standardized features. Made by
`make problems` at commit {commit}, on one core of {machine}.

- Joint accuracy: the share of rows with all labels right. Hamming loss: the share of wrong labels.
- Log loss: the mean of −ln P(all labels of the row), with P at least {smallest}. The label powerset excludes label sets
  that it has not seen. The chain's P is the product of its classifiers' probabilities, given the true labels before.
- ± is the standard error over rows. Seconds are CPU time, with all fits of cross-validation inside.
- `n_rules=0` only calibrates. `decision="joint"` predicts the most probable assignment instead of the most probable class
  of each label, by the same model. It is the default if the model has hard rules.
- If training truths are missing, the chain and the powerset learn from complete rows only.\
"""

FEW = """
## Expert rules and 100 training rows

Digits, {n_splits} random splits with 100 training rows, tested on the others; joint predictions. "Learned rules only" is the default
without expert rules: it learns rules and typical combinations. "No rules" only calibrates. "Digit alone" is the share of right
digits of the base classifier, without the other labels.
"""

WHY = """
Calibration decides whether rules help. Parity and size are recognized from the same features as the digit, so their beliefs are
no independent evidence. Calibrated label by label, or not at all, they count as such. Calibrators that are fitted beside the
rules, the default, learn to trust them little.

Rules gain less over what is learned, because all ten label sets occur among 100 rows: learning finds them as typical
combinations, and excludes the others almost as hard rules do. None exceeds the digits of the base classifier alone: the digit
determines the other labels, whose classifiers know nothing more.
"""

SINGLE = """
Rules are fitted to the likelihood of all labels together, which gains in every problem; so does the joint accuracy. Single
labels can lose, because every classifier has seen all features, so that beliefs about other labels are hardly new evidence.
{misfit} `n_rules=0` only calibrates, for those who count single errors. `decision="joint"` is for those who count label sets.
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folds", type=int, default=5)
    arguments.add_argument("--splits", type=int, default=20)
    arguments.add_argument("--only", help="the name of one problem")
    arguments.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "docs" / "problems.md")
    given = arguments.parse_args()
    warnings.simplefilter("ignore")
    began = time.process_time()
    all_problems = [digits(), documents(), mulan("emotions"), mulan("yeast"), scenes(), holes()]
    chosen = [problem for problem in all_problems if problem is not None and given.only in (None, problem.name)]
    text = page(chosen, given.folds, given.splits)
    given.output.write_text(text)
    print(f"wrote {given.output}, {time.process_time() - began:.0f} s of CPU time", file=sys.stderr)


if __name__ == "__main__":
    main()
