"""Compiles rule bases with PySDD or KLay, checks all marginals, and measures compile time and time per row.

Every rule is a clause. A soft rule of probability p gets an auxiliary variable that is equivalent to its clause and has
the weights p and 1 - p. Times are CPU time on one thread. A time per row is a median of five measurements. It does not
include the conversion of beliefs to the arrays of the tool.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

# JAX starts as many threads as it has processors. Both settings must precede its import.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np
from pysdd.sdd import SddManager, SddNode, Vtree

# Maximum error of a marginal. Exact tools differ by rounding, which is below 1e-14 here. JAX computes in 64 bits.
TOLERANCE = 1e-9
MEASUREMENTS = 5
# Numbers of rows per call of KLay. The fastest one is reported.
BATCHES = (20, 60, 240)
QUICK_BATCHES = (60,)


@dataclass
class Case:
    """A rule base with its rows and exact marginals: P(yes) of each label."""

    name: str
    n_labels: int
    clauses: list[dict[str, Any]]
    rows: list[list[float]]
    marginals: list[list[float]]
    n_rows: int
    runs: list[dict[str, Any]]

    def hard(self) -> list[list[int]]:
        """The clauses that always hold."""
        return [clause["literals"] for clause in self.clauses if clause["probability"] == 1]

    def soft(self) -> list[tuple[float, list[int]]]:
        """The other clauses, with their probabilities."""
        clauses = ((clause["probability"], clause["literals"]) for clause in self.clauses)
        return [(p, literals) for p, literals in clauses if p < 1]

    def weights(self) -> np.ndarray:
        """P(true) of each variable, row by row: beliefs, then the probabilities of soft rules."""
        probabilities = np.array([p for p, _ in self.soft()])
        return np.hstack([np.array(self.rows), np.tile(probabilities, (len(self.rows), 1))])

    def largest_error(self, tool: str, marginals: np.ndarray) -> float:
        """The largest difference to the stored marginals. Ends the program if it exceeds the tolerance."""
        error = float(np.abs(marginals - np.array(self.marginals)).max())
        if not error <= TOLERANCE:  # NaN is a difference too
            sys.exit(f"DISAGREEMENT: {self.name}: {tool} differs by {error} from the stored marginals")
        return error


@dataclass
class Run:
    """The result of one tool on one rule base."""

    rule_base: str
    tool: str
    size: str
    compile_seconds: float
    seconds_per_row: float
    largest_error: float


def cpu_seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """The CPU time of a call, and its result."""
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def median_seconds(call: Callable[[], Any]) -> float:
    """The median CPU time of a call, after one call to warm up."""
    call()
    return statistics.median(cpu_seconds(call)[0] for _ in range(MEASUREMENTS))


def compile_sdd(case: Case) -> SddNode:
    """The conjunction of all rules. PySDD minimizes it automatically while it grows, and once at the end."""
    soft = case.soft()
    # `balanced` is PySDD's default.
    manager = SddManager.from_vtree(Vtree(var_count=case.n_labels + len(soft), vtree_type="balanced"))
    manager.auto_gc_and_minimize_on()

    def disjunction(literals: list[int]) -> SddNode:
        node = manager.false()
        for literal in literals:
            node = node | manager.literal(literal)
        return node

    def equivalence(variable: SddNode, node: SddNode) -> SddNode:
        return (variable & node) | (~variable & ~node)

    def constraints() -> Iterator[SddNode]:
        yield from (disjunction(literals) for literals in sorted(case.hard(), key=len))
        for index, (_, literals) in enumerate(soft, start=case.n_labels + 1):
            yield equivalence(manager.literal(index), disjunction(literals))

    root = manager.true()
    root.ref()
    for constraint in constraints():
        previous, root = root, root & constraint
        root.ref()
        previous.deref()
    manager.minimize()
    manager.auto_gc_and_minimize_off()  # a change of the diagram would invalidate its weighted model count
    return root


def run_pysdd(case: Case, quick: bool) -> list[Run]:
    """One row per call: PySDD has no batches.

    Reading the marginals takes one Python call per label. `propagate`, which computes them, is also measured alone.
    """
    tool = f"PySDD {version('pysdd')}"
    times, roots = zip(*(cpu_seconds(lambda: compile_sdd(case)) for _ in range(1 if quick else MEASUREMENTS)))
    root = roots[-1]
    counter = root.wmc(log_mode=False)
    weights = case.weights()
    # PySDD orders literals from -n to -1, then from 1 to n.
    rows = list(np.ascontiguousarray(np.hstack([1 - weights[:, ::-1], weights])))
    labels = range(1, case.n_labels + 1)

    def marginals(row: np.ndarray) -> list[float]:
        counter.set_literal_weights_from_array(row)
        counter.propagate()
        return [counter.literal_pr(label) for label in labels]

    error = case.largest_error(tool, np.array([marginals(row) for row in rows]))
    repeats = -(-case.n_rows // len(rows))
    n_rows = repeats * len(rows)

    def all_rows() -> None:
        for _ in range(repeats):
            for row in rows:
                marginals(row)

    def propagate_only() -> None:
        for _ in range(n_rows):
            counter.propagate()

    size, compile_seconds = f"{root.size()} elements", statistics.median(times)
    return [
        Run(case.name, name, size, compile_seconds, median_seconds(measured) / n_rows, error)
        for name, measured in ((tool, all_rows), (f"{tool}, `propagate` alone", propagate_only))
    ]


def run_klay(case: Case, quick: bool) -> list[Run]:
    """Batches of rows by `vmap`.

    The derivative of ln Z in ln P(true) is not the marginal: P(false) changes with P(true), and a diagram omits
    variables that do not matter in a branch. The weights of a variable sum to 1, so with the logit x of P(true)

        marginal = sigmoid(x) + d ln Z / dx
    """
    import jax
    import klay

    jax.config.update("jax_enable_x64", True)
    tool = f"KLay {version('klaycircuits')} with JAX {version('jax')}"
    sdd_seconds, root = cpu_seconds(lambda: compile_sdd(case))
    weights = case.weights()
    logits = np.log(weights) - np.log1p(-weights)

    def convert() -> tuple[klay.Circuit, Callable]:
        circuit = klay.Circuit()
        circuit.add_sdd(root)
        # JAX has no gradient for the products of the semiring `real`.
        return circuit, circuit.to_jax_function(semiring="log")

    convert_seconds, (circuit, log_weights) = cpu_seconds(convert)

    def log_sum(x: jax.Array) -> jax.Array:
        return log_weights(jax.nn.log_sigmoid(x), jax.nn.log_sigmoid(-x))[0]

    def all_marginals(x: jax.Array) -> jax.Array:
        return jax.nn.sigmoid(x) + jax.grad(log_sum)(x)

    def measured(batch: int) -> Run:
        marginals = jax.jit(jax.vmap(all_marginals))
        rows = jax.numpy.asarray(np.resize(logits, (batch, logits.shape[1])))
        jit_seconds, _ = cpu_seconds(lambda: marginals(rows).block_until_ready())
        answers = [np.asarray(marginals(part)) for part in batches(logits, batch)]
        error = case.largest_error(tool, np.vstack(answers)[: len(logits), : case.n_labels])
        calls = -(-case.n_rows // batch)

        def all_rows() -> None:
            for _ in range(calls):
                marginals(rows).block_until_ready()

        seconds = median_seconds(all_rows) / (calls * batch)
        compile_seconds = sdd_seconds + convert_seconds + jit_seconds
        size = f"{circuit.nb_nodes()} nodes"
        return Run(case.name, f"{tool}, batches of {batch}", size, compile_seconds, seconds, error)

    runs = [measured(batch) for batch in (QUICK_BATCHES if quick else BATCHES)]
    for run in runs:
        print(f"{case.name}: {run.tool}: {1e6 * run.seconds_per_row:.2f} µs per row", file=sys.stderr)
    return [min(runs, key=lambda run: run.seconds_per_row)]


def batches(rows: np.ndarray, batch: int) -> Iterator[np.ndarray]:
    """All rows in parts of equal size. The last part is filled up with the first rows."""
    n_parts = -(-len(rows) // batch)
    yield from np.resize(rows, (n_parts, batch, rows.shape[1]))


def main() -> None:
    """Runs one tool on every rule base."""
    tools = {"pysdd": run_pysdd, "klay": run_klay}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=tools)
    parser.add_argument("folder", type=Path, help="with the rule bases; gets the results")
    parser.add_argument("--quick", action="store_true", help="one batch size, one compilation")
    arguments = parser.parse_args()
    runs = []
    for path in sorted(arguments.folder.glob("*.case.json")):
        for run in tools[arguments.tool](Case(**json.loads(path.read_text())), arguments.quick):
            seconds = f"{1e6 * run.seconds_per_row:.2f} µs per row"
            print(f"{run.rule_base}: {run.tool}: {run.size}, {seconds}, error {run.largest_error:.1e}", file=sys.stderr)
            runs.append(asdict(run))
    (arguments.folder / f"{arguments.tool}.json").write_text(json.dumps(runs, indent=1))


if __name__ == "__main__":
    main()
