"""Runs other tools on the queries that prsl has answered, checks that they agree, and measures their time.

Every tool gets the model in its fastest natural form. Only the CPU time per row on one thread is measured: a model is
built, and runs once on its first row, before the measurement.
"""

import argparse
import itertools
import json
import logging
import math
import multiprocessing
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

for setting in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[setting] = "1"  # must be set before any library with threads is imported

import numpy as np
import pyagrum
import pytoulbar2
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.inference import BeliefPropagation
from pgmpy.models import DiscreteMarkovNetwork
from problog import get_evaluatable
from problog.program import PrologString

# Marginals of exact tools differ only by rounding. ProbLog reads 15 decimals and adds logarithms.
MARGINAL_TOLERANCE = 1e-6
# pyAgrum's loopy propagation stops within about 1e-5 of its fixed point. Other fixed points differ by more than this.
LOOPY_TOLERANCE = 1e-3
# toulbar2 has integer costs: -ln(weight) times 10 to this power, truncated.
DECIMALS = 7
MEMORY = 8 << 30
ALL_SIZES = range(1000)


class Disagreement(Exception):
    """A tool's answer differs from prsl's."""


@dataclass
class Case:
    """A model with its rows, and prsl's answers to the first of them."""

    name: str
    n_labels: int
    sizes: list[int]
    rules: list[dict[str, Any]]
    rows: list[list[float]]
    questions: list[str]
    runs: list[dict[str, Any]]

    def split(self, row: list[float]) -> list[list[float]]:
        """The row's beliefs label by label."""
        values = iter(row)
        return [list(itertools.islice(values, size)) for size in self.sizes]

    def factors(self) -> Iterator[tuple[list[int], np.ndarray]]:
        """Labels and table of weights of every rule."""
        for rule in self.rules:
            silence = np.ones(())
            for _, inhibition in rule["inhibitions"]:
                silence = np.multiply.outer(silence, np.array(inhibition))
            p = rule["probability"]
            yield [label for label, _ in rule["inhibitions"]], p + (1 - 2 * p) * silence

    def merged_factors(self) -> dict[tuple[int, ...], np.ndarray]:
        """The same, for tools that take one table per set of labels."""
        return merged((tuple(scope), table) for scope, table in self.factors())

    def log_weight(self, row: list[float], assignment: list[int]) -> float:
        """ln of the product of beliefs and rule weights."""
        weights = [belief[category] for belief, category in zip(self.split(row), assignment)]
        weights += [table[tuple(assignment[label] for label in scope)] for scope, table in self.factors()]
        return sum(math.log(weight) if weight > 0 else -math.inf for weight in weights)


def merged(factors: Iterable[tuple[tuple, np.ndarray]]) -> dict[tuple, np.ndarray]:
    """Multiplies tables over the same variables; scopes come out sorted."""
    tables: dict[tuple, np.ndarray] = {}
    for scope, table in factors:
        order = sorted(range(len(scope)), key=lambda position: scope[position])
        key = tuple(scope[position] for position in order)
        tables[key] = tables.get(key, 1.0) * table.transpose(order)
    return tables


def costs(weights: Iterable[float]) -> list[float]:
    """Negative logarithms."""
    return [-math.log(weight) if weight > 0 else math.inf for weight in weights]


class PyAgrum:
    """Common part of pyAgrum's engines. Beliefs are soft evidence that changes from row to row."""

    def __init__(self, case: Case):
        pyagrum.setNumberOfThreads(1)
        self.case = case
        self.names = [f"L{label}" for label in range(case.n_labels)]
        self.engine = self.build()
        for name, belief in zip(self.names, case.split(case.rows[0])):
            self.engine.addEvidence(name, belief)

    def build(self) -> Any:
        """The engine with all evidence except the beliefs."""
        raise NotImplementedError

    def prepare(self, row: list[float]) -> None:
        """Before the clock starts: lists for pyAgrum."""
        self.beliefs = self.case.split(row)

    def set_row(self) -> None:
        """Replaces the beliefs, which keeps the junction tree."""
        for name, belief in zip(self.names, self.beliefs):
            self.engine.chgEvidence(name, belief)

    def answer(self) -> list[float]:
        """All marginals of the row."""
        self.set_row()
        self.engine.makeInference()
        return [p for name in self.names for p in self.engine.posterior(name).tolist()]

    def is_final(self) -> bool:
        """Whether inference finished, instead of stopping at a limit."""
        return True

    @staticmethod
    def fill(tensor: Any, scope: list[str], table: np.ndarray) -> None:
        """Writes a table. pyAgrum's first variable changes fastest."""
        order = [scope.index(name) for name in reversed(tensor.names)]
        tensor.fillWith(table.transpose(order).reshape(-1).tolist())

    def markov(self, factors: dict[tuple[str, ...], np.ndarray]) -> Any:
        """Shafer-Shenoy propagation in a Markov random field: the fastest of pyAgrum's exact engines here."""
        self.field = pyagrum.MarkovRandomField()
        sizes = dict(zip(self.names, self.case.sizes))
        for name in self.names + sorted({name for scope in factors for name in scope} - set(self.names)):
            self.field.add(pyagrum.RangeVariable(name, "", 0, sizes.get(name, 2) - 1))
        for scope, table in factors.items():
            self.fill(self.field.addFactor(list(scope)), list(scope), table)
        engine = pyagrum.ShaferShenoyMRFInference(self.field)
        engine.setTargets(set(self.names))
        return engine

    def bayes_net(self) -> Any:
        """Labels as roots, rules as their children."""
        self.net = pyagrum.BayesNet()
        for name, size in zip(self.names, self.case.sizes):
            self.net.cpt(self.net.add(pyagrum.RangeVariable(name, "", 0, size - 1))).fillWith([1 / size] * size)
        for index, (scope, table) in enumerate(self.case.factors()):
            rule = self.net.add(pyagrum.RangeVariable(f"R{index}", "", 0, 1))
            names = [self.names[label] for label in scope]
            for name in names:
                self.net.addArc(self.net.idFromName(name), rule)
            self.fill(self.net.cpt(rule), names + [f"R{index}"], np.stack([1 - table, table], axis=-1))
        return self.net

    def observe_rules(self, engine: Any) -> Any:
        """Every rule holds."""
        for index in range(len(self.case.rules)):
            engine.addEvidence(f"R{index}", 1)
        return engine


class PyAgrumTables(PyAgrum):
    """Exact marginals, each rule a table over its labels."""

    def build(self) -> Any:
        named = self.case.merged_factors().items()
        return self.markov({tuple(self.names[label] for label in scope): table for scope, table in named})


class PyAgrumSplit(PyAgrum):
    """Exact marginals. Each rule p + (1 - 2p) prod q is decomposed with a binary variable that has negative weights."""

    def build(self) -> Any:
        return self.markov(merged(self.split_factors()))

    def split_factors(self) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
        """A table per label of a rule. Rules of one or two labels are not decomposed."""
        for index, (rule, (scope, table)) in enumerate(zip(self.case.rules, self.case.factors())):
            if len(scope) <= 2:
                yield tuple(self.names[label] for label in scope), table
                continue
            weights = np.array([[rule["probability"]], [1 - 2 * rule["probability"]]])
            for label, inhibition in rule["inhibitions"]:
                yield (f"R{index}", self.names[label]), weights * np.stack([np.ones(len(inhibition)), inhibition])
                weights = np.ones((2, 1))


class PyAgrumBest(PyAgrum):
    """Exact most probable assignment."""

    def build(self) -> Any:
        return self.observe_rules(pyagrum.LazyPropagation(self.bayes_net()))

    def answer(self) -> list[int]:
        """The most probable assignment."""
        self.set_row()
        best = self.engine.mpe()
        return [best[name] for name in self.names]


class PyAgrumLoopy(PyAgrum):
    """Loopy marginals with pyAgrum's own settings (epsilon 1e-8, at most 100 iterations)."""

    def build(self) -> Any:
        engine = self.observe_rules(pyagrum.LoopyBeliefPropagation(self.bayes_net()))
        engine.setTargets(set(self.names))
        return engine

    def is_final(self) -> bool:
        return "epsilon" in self.engine.messageApproximationScheme()


class Pgmpy:
    """Exact marginals by calibrating pgmpy's junction tree, which is built once."""

    def __init__(self, case: Case):
        self.case = case
        self.names = [f"L{label}" for label in range(case.n_labels)]
        network = DiscreteMarkovNetwork()
        factors = dict(case.merged_factors())
        for left, right in zip(range(case.n_labels), range(1, case.n_labels)):
            if not any(left in scope and right in scope for scope in factors):
                # pgmpy's triangulation needs a connected graph.
                if not self.connected(factors, left, right):
                    factors[left, right] = np.ones((case.sizes[left], case.sizes[right]))
        for scope, table in factors.items():
            names = [self.names[label] for label in scope]
            network.add_nodes_from(names)
            network.add_edges_from(itertools.combinations(names, 2))
            network.add_factors(DiscreteFactor(names, table.shape, table))
        self.tree = network.to_junction_tree()
        self.cliques = [next(clique for clique in self.tree.nodes() if name in clique) for name in self.names]
        self.rules = {frozenset(factor.scope()): factor.copy() for factor in self.tree.factors}

    @staticmethod
    def connected(factors: Iterable[tuple[int, ...]], left: int, right: int) -> bool:
        """Whether rules connect two labels."""
        reached, grown = set(), {left}
        while grown != reached:
            reached = grown
            grown = reached.union(*(scope for scope in factors if reached.intersection(scope)))
        return right in reached

    def prepare(self, row: list[float]) -> None:
        """Before the clock starts: a factor per belief."""
        beliefs = zip(self.names, self.case.sizes, self.case.split(row))
        self.beliefs = [DiscreteFactor([name], [size], belief) for name, size, belief in beliefs]

    def answer(self) -> list[float]:
        """All marginals of the row."""
        factors = dict(self.rules)
        for clique, belief in zip(self.cliques, self.beliefs):
            factors[frozenset(clique)] = factors[frozenset(clique)].product(belief, inplace=False)
        self.tree.factors = list(factors.values())
        propagation = BeliefPropagation(self.tree)
        propagation.calibrate()
        calibrated = propagation.get_clique_beliefs()
        marginals = []
        for name, clique in zip(self.names, self.cliques):
            others = [other for other in clique if other != name]
            values = calibrated[clique].marginalize(others, inplace=False).values
            marginals += (values / values.sum()).tolist()
        return marginals

    def is_final(self) -> bool:
        """Always: it is exact."""
        return True


class ProbLog:
    """Exact marginals by ProbLog's circuit, which is compiled once. A row changes the weights of its leaves."""

    def __init__(self, case: Case):
        self.case = case
        self.circuit = get_evaluatable().create_from(PrologString("\n".join(self.program())))
        self.weights = self.circuit.get_weights()
        leaves = (key for key, weight in self.weights.items() if weight is not True)
        self.leaves = {str(self.circuit.get_node(key).name): key for key in leaves}
        self.atoms = [f"l({label},{c})" for label, size in enumerate(case.sizes) for c in range(size)]

    def program(self) -> Iterator[str]:
        """Labels as annotated disjunctions, rules as noisy-ors of their categories."""
        for label, size in enumerate(self.case.sizes):
            yield "; ".join(f"{1 / size:.15f}::l({label},{category})" for category in range(size)) + "."
            yield from (f"query(l({label},{category}))." for category in range(size))
        for index, rule in enumerate(self.case.rules):
            assert rule["probability"] == 1, "only rules that hold"
            for label, inhibition in rule["inhibitions"]:
                for category, q in enumerate(inhibition):
                    if q < 1:
                        yield f"{1 - q:.15f}::r({index}) :- l({label},{category})."
            yield f"evidence(r({index}))."

    def prepare(self, row: list[float]) -> None:
        """Before the clock starts: nothing to do."""
        self.row = row

    def answer(self) -> list[float]:
        """All marginals of the row."""
        self.weights.update((self.leaves[atom], belief) for atom, belief in zip(self.atoms, self.row))
        results = {str(atom): p for atom, p in self.circuit.evaluate(weights=self.weights).items()}
        return [results[atom] for atom in self.atoms]

    def is_final(self) -> bool:
        """Always: it is exact."""
        return True


class Toulbar2:
    """Exact most probable assignment, with a new problem for every row. Only `Solve` is timed."""

    def __init__(self, case: Case):
        self.case = case
        self.tables = [(scope, costs(table.reshape(-1))) for scope, table in case.factors()]

    def problem(self) -> pytoulbar2.CFN:
        """Labels and rules as a network of cost functions."""
        problem = pytoulbar2.CFN(resolution=DECIMALS)
        for label, size in enumerate(self.case.sizes):
            problem.AddVariable(f"L{label}", range(size))
        return problem

    def add_rules(self, problem: pytoulbar2.CFN) -> None:
        """A cost function per rule."""
        for scope, table in self.tables:
            problem.AddFunction(scope, table)

    def prepare(self, row: list[float]) -> None:
        """Before the clock starts: the whole problem."""
        self.current = self.problem()
        for label, belief in enumerate(self.case.split(row)):
            self.current.AddFunction([label], costs(belief))
        self.add_rules(self.current)

    def answer(self) -> list[int]:
        """The most probable assignment, with proof."""
        return list(self.current.Solve()[0])

    def is_final(self) -> bool:
        """Always: `Solve` ends with a proof."""
        return True


class Toulbar2Incremental(Toulbar2):
    """The same, but rules are preprocessed once, and beliefs are added and removed for each row.

    Values and variables must not be eliminated beforehand, because later beliefs may need them. With `elimDegree` or
    `preprocessFunctional` left on, toulbar2 returned assignments that were not optimal.
    """

    def __init__(self, case: Case):
        super().__init__(case)
        self.current = self.problem()
        self.current.Option.DEE = 0
        self.current.Option.elimDegree = -1
        self.current.Option.elimDegree_preprocessing = -1
        self.current.Option.preprocessFunctional = 0
        self.add_rules(self.current)
        self.current.SolveFirst()
        # Upper bound: the maximum cost of the rules, plus that of beliefs of 1e-13.
        self.bound = self.current.GetUB() + 30 * case.n_labels

    def prepare(self, row: list[float]) -> None:
        self.beliefs = [costs(belief) for belief in self.case.split(row)]

    def answer(self) -> list[int]:
        depth = self.current.Depth()
        self.current.SetUB(self.bound)
        self.current.Store()
        for label, belief in enumerate(self.beliefs):
            self.current.AddFunction([label], belief, incremental=True)
        best = list(self.current.SolveNext()[0])
        self.current.Restore(depth)
        return best


@dataclass
class Peer:
    """A column of the report: a tool, its query, and the maximum size."""

    question: str
    name: str
    tool: type
    max_labels: int


PEERS = [
    Peer("marginals", "pyAgrum", PyAgrumTables, 40),
    Peer("marginals", "pyAgrum, rules split by hand", PyAgrumSplit, 60),
    # Its trees depend on Python's hash seed. At 20 labels some exceed the time limit, and one gave marginals that a direct
    # sum, pyAgrum and prsl contradict.
    Peer("marginals", "pgmpy", Pgmpy, 10),
    Peer("marginals", "ProbLog", ProbLog, 10),
    Peer("mpe", "toulbar2", Toulbar2, 100),
    Peer("mpe", "toulbar2, incremental", Toulbar2Incremental, 100),
    Peer("mpe", "pyAgrum", PyAgrumBest, 30),
    Peer("loopy", "pyAgrum", PyAgrumLoopy, 100),
]


def check_marginals(case: Case, row: int, actual: list[float], expected: list[float], tolerance: float) -> None:
    """Raises with the first label that differs."""
    start = 0
    for label, size in enumerate(case.sizes):
        ours, theirs = expected[start : start + size], actual[start : start + size]
        if not max(abs(a - b) for a, b in zip(ours, theirs)) <= tolerance:  # NaN is a difference too
            raise Disagreement(f"{case.name} row {row + 1} label {label + 1}: {theirs}, prsl says {ours}")
        start += size


def best_tolerance(case: Case) -> float:
    """The error of a log weight due to toulbar2's decimals."""
    return (case.n_labels + len(case.rules)) * 10.0**-DECIMALS


def check_best(case: Case, row: int, actual: list[int], run: dict[str, Any], answer: dict[str, Any]) -> None:
    """Raises if the weights of two assignments differ by more than toulbar2's precision."""
    tolerance = best_tolerance(case)
    theirs, ours = (case.log_weight(case.rows[row], best) for best in (actual, answer["assignment"]))
    proven = answer["final"]
    if theirs < ours - tolerance or (proven and ours < theirs - tolerance):
        labels = [label + 1 for label, (a, b) in enumerate(zip(actual, answer["assignment"])) if a != b]
        raise Disagreement(
            f"{case.name} row {row + 1} labels {labels}: log weight {theirs}, {run['engine']} finds {ours}"
        )


class Checker:
    """Compares answers with prsl's, row by row."""

    def __init__(self, peer: Peer, case: Case):
        self.peer, self.case = peer, case
        self.runs = [run for run in case.runs if run["question"] == peer.question]
        self.compared = 0
        self.apart: list[str] = []

    def check(self, row: int, actual: list, final: bool) -> None:
        """Raises on a disagreement."""
        for run in self.runs:
            if row >= len(run["answers"]):
                continue
            answer = run["answers"][row]
            self.compared += 1
            if self.peer.question == "mpe":
                check_best(self.case, row, actual, run, answer)
            elif self.peer.question == "marginals":
                check_marginals(self.case, row, actual, answer["marginals"], MARGINAL_TOLERANCE)
            elif final and answer["final"]:
                self.check_loopy(row, actual, answer["marginals"])

    def check_loopy(self, row: int, actual: list[float], expected: list[float]) -> None:
        """Messages may converge to another fixed point in some rows, so only half of the rows must agree."""
        try:
            check_marginals(self.case, row, actual, expected, LOOPY_TOLERANCE)
        except Disagreement as difference:
            self.apart.append(str(difference))
            if len(self.apart) > max(1, len(self.runs[0]["answers"]) // 2):
                raise

    def note(self) -> str:
        """A note about the comparison."""
        apart = f", {len(self.apart)} at another fixed point" if self.apart else ""
        return f"{self.compared} answers agree{apart}" if self.compared else "prsl has no answer"


@dataclass
class Outcome:
    """The result of a tool on a model. Without an answer there is no time, and the note gives the reason."""

    note: str
    seconds_per_row: float | None = None
    n_rows: int = 0
    answers: list[list] = field(default_factory=list)


def measure(peer: Peer, case: Case, budget: float, max_rows: int) -> Outcome:
    """Answers and times of as many rows as the budget allows."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    tool = peer.tool(case)
    tool.prepare(case.rows[0])
    tool.answer()
    checker, spent, answers = Checker(peer, case), 0.0, []
    for row, beliefs in enumerate(case.rows[:max_rows]):
        tool.prepare(beliefs)
        start = time.process_time()
        answers.append(tool.answer())
        spent += time.process_time() - start
        checker.check(row, answers[-1], tool.is_final())
        if spent > budget:
            break
    return Outcome(checker.note(), spent / len(answers), len(answers), answers)


def in_child(pipe: Any, limit: int, *arguments: Any) -> None:
    """`measure` in a separate process, which can be stopped."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    try:
        pipe.send(measure(*arguments))
    except Disagreement as disagreement:
        pipe.send(disagreement)
    except (Exception, SystemExit) as error:
        pipe.send(f"{type(error).__name__}: {error}")


def run(peer: Peer, case: Case, budget: float, max_rows: int, limit: int) -> Outcome:
    """The same within a limit of CPU time."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=in_child, args=(sender, limit, peer, case, budget, max_rows))
    child.start()
    sender.close()
    result: Any = None
    try:
        if receiver.poll(4 * limit):  # wall time may exceed CPU time on a busy machine
            result = receiver.recv()
    except EOFError:
        pass  # it was stopped
    child.kill()
    child.join()
    if result is None:
        in_time = child.exitcode not in (-signal.SIGXCPU, -signal.SIGKILL)
        result = f"ended by signal {-child.exitcode}" if in_time else f"not within {limit} s"
    if isinstance(result, Disagreement):
        sys.exit(f"DISAGREEMENT between prsl and {peer.name} ({peer.question}): {result}")
    return result if isinstance(result, Outcome) else Outcome(result)


def check_among_peers(peer: Peer, case: Case, outcome: Outcome, earlier: dict[str, tuple[str, list[list]]]) -> None:
    """Ends the program if two tools find assignments of different weight."""
    name, answers = earlier.setdefault(case.name, (peer.name, outcome.answers))
    for row, (ours, theirs) in enumerate(zip(outcome.answers, answers)):
        weights = [case.log_weight(case.rows[row], best) for best in (ours, theirs)]
        if abs(weights[0] - weights[1]) > best_tolerance(case):
            sys.exit(f"DISAGREEMENT between {peer.name} and {name}: {case.name} row {row + 1}: log weights {weights}")


def patience(peer: Peer, quick: bool) -> tuple[float, int, int, int]:
    """Seconds and rows to measure for a model, and the time limits of a tool for one model and for all models of a size."""
    if quick:
        return 0.5, 20, 4, 5
    if issubclass(peer.tool, Toulbar2):
        return math.inf, 100, 200, 1000  # every assignment is compared
    return 3.0, 100, 30, 60


def children_seconds() -> float:
    """CPU time of all tools so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Runs every tool on every model up to its maximum size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with the models in `models`; gets `peers.json`")
    parser.add_argument("--quick", action="store_true", help="few rows, little patience")
    parser.add_argument("--questions", nargs="+", default=["marginals", "mpe", "loopy"], help="only these")
    parser.add_argument("--labels", nargs="+", type=int, help="only models of these sizes")
    arguments = parser.parse_args()
    cases = [Case(**json.loads(path.read_text())) for path in sorted((arguments.folder / "models").glob("*.json"))]
    results, assignments = [], {}
    for peer in PEERS:
        asked = [case for case in cases if peer.question in case.questions and case.n_labels <= peer.max_labels]
        if peer.question not in arguments.questions:
            continue
        budget, max_rows, limit, size_limit = patience(peer, arguments.quick)
        for n_labels in sorted({case.n_labels for case in asked}.intersection(arguments.labels or ALL_SIZES)):
            end = children_seconds() + size_limit
            for case in (case for case in asked if case.n_labels == n_labels):
                if children_seconds() > end:
                    break
                outcome = run(peer, case, budget, max_rows, limit)
                seconds = outcome.seconds_per_row
                shown = f"{1000 * seconds:.3f} ms per row over {outcome.n_rows}" if seconds is not None else "no answer"
                line = f"{case.name}: {peer.question}: {peer.name}: {shown}; {outcome.note}"
                print(line, file=sys.stderr, flush=True)
                if peer.question == "mpe" and outcome.answers:
                    check_among_peers(peer, case, outcome, assignments)
                results.append(
                    {
                        "question": peer.question,
                        "n_labels": n_labels,
                        "model": case.name,
                        "peer": peer.name,
                        "seconds_per_row": seconds,
                        "n_rows": outcome.n_rows,
                        "note": outcome.note,
                    }
                )
    (arguments.folder / "peers.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
