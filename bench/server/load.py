"""Measures the service under load, and writes the table of docs/server.md."""

import array
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = 200
BATCH = 1000
LIBRARY_ROWS = 20_000
BATCH_CLIENTS = 4
# The largest p99 at half of the saturation rate, in milliseconds.
MAX_P99 = 50
# The smallest number of rows per second of batches on the warehouse model.
MIN_ROWS = 50_000


class Server:
    """A server for the models of a folder, on a free port."""

    def __init__(self, prsl, folder):
        command = [prsl, "serve", "--dir", str(folder), "--addr", "127.0.0.1:0", "--log", "json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().removeprefix("listening on ").split(",")[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def memory(self):
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def load(oha, url, body, seconds, clients, rate=None):
    """Runs oha; returns its report."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(json.dumps(body).encode())
        file.flush()
        command = [oha, "--no-tui", "--output-format", "json", "-z", f"{seconds}s", "-c", str(clients)]
        command += ["-m", "POST", "-T", "application/json", "-D", file.name]
        command += ["-q", str(rate), "--latency-correction"] if rate else []
        printed = subprocess.run([*command, url], check=True, capture_output=True, text=True).stdout
    return json.loads(printed)


def outcome(report):
    """The number of answers by status, and of errors. Requests that the end of the run cuts off do not count."""
    statuses = report["statusCodeDistribution"]
    ended = "aborted due to deadline"
    errors = {name: n for name, n in report["errorDistribution"].items() if name != ended}
    return statuses, sum(errors.values())


def rows_per_second(oha, server, model, rows, seconds):
    """Rows per second of batch requests."""
    body = {"model": model, "rows": rows}
    report = load(oha, f"{server.url}/api/v1/predict", body, seconds, BATCH_CLIENTS)
    statuses, errors = outcome(report)
    assert set(statuses) == {"200"} and errors == 0, (statuses, errors)
    return report["summary"]["requestsPerSec"] * BATCH


def library(throughput, folder, labels, rules):
    """Rows per second of the library, and the rows of beliefs by label and category."""
    command = [throughput, "--rows", str(LIBRARY_ROWS), "--labels", str(labels), "--rules", str(rules), "--out", folder]
    seconds = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    beliefs = array.array("d", (Path(folder) / "beliefs.f64").read_bytes())
    return LIBRARY_ROWS / seconds, beliefs


def named(model, beliefs):
    """Rows as the service takes them."""
    width = sum(len(label["categories"]) for label in model["labels"])
    rows = []
    for start in range(0, BATCH * width, width):
        values = iter(beliefs[start : start + width])
        rows.append({label["name"]: [next(values) for _ in label["categories"]] for label in model["labels"]})
    return rows


def measure(prsl, throughput, oha, seconds):
    """All lines of the table."""
    lines = []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as drawn:
        library_rate, beliefs = library(throughput, drawn, 30, 30)
        (Path(folder) / "simulated.prsl").write_text((Path(drawn) / "model.prsl").read_text())
        (Path(folder) / "warehouse.prsl").write_text((ROOT / "examples/warehouse.prsl").read_text())
        with Server(prsl, folder) as server:
            row = {"activity": [0.1, 0.4, 0.5], "feet": [0.05, 0.95], "hands": [0.5, 0.3, 0.2]}
            url, one = f"{server.url}/api/v1/predict", {"model": "warehouse", "beliefs": row}
            load(oha, url, one, 2, CLIENTS)
            before = server.memory()
            full = load(oha, url, one, seconds, CLIENTS)
            after = server.memory()
            statuses, errors = outcome(full)
            rate = full["summary"]["requestsPerSec"]
            busy = statuses.get("503", 0)
            others = sum(n for status, n in statuses.items() if status not in ("200", "503"))
            lines.append((f"{CLIENTS} clients, {seconds} s: requests per second", f"{rate:,.0f}", ""))
            lines.append(("answers 503; other errors", f"{busy}; {others + errors}", "any; 0"))
            lines.append(("memory before and after", f"{before:.0f} MB, {after:.0f} MB", "flat"))
            half = load(oha, url, one, seconds, CLIENTS, rate=int(rate / 2))
            p99 = half["latencyPercentiles"]["p99"] * 1000
            lines.append((f"p99 at {rate / 2:,.0f} requests per second", f"{p99:.1f} ms", f"below {MAX_P99} ms"))
            rows = rows_per_second(oha, server, "warehouse", [row] * BATCH, max(1, seconds // 4))
            lines.append((f"warehouse, requests of {BATCH:,} rows: rows per second", f"{rows:,.0f}", f"{MIN_ROWS:,}"))
            model = json.loads(fetch(f"{server.url}/api/v1/models/simulated"))
            batch = rows_per_second(oha, server, "simulated", named(model, beliefs), max(1, seconds // 4))
            share = batch / library_rate
            wanted = f"half of the library's {library_rate:,.0f}"
            lines.append((f"30 simulated labels, requests of {BATCH:,} rows: rows per second", f"{batch:,.0f} ({share:.0%})", wanted))
    failed = others + errors > 0 or p99 > MAX_P99 or rows < MIN_ROWS or share < 0.5 or after > before + 50
    return lines, failed


def fetch(url):
    """The body of an answer."""
    from urllib.request import urlopen

    with urlopen(url) as answer:
        return answer.read()


def write(lines):
    """Replaces the table of the document."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    table = ["| | measured | target |", "|---|---|---|", *(f"| {' | '.join(line)} |" for line in lines)]
    n_cores, load_average = os.cpu_count(), os.getloadavg()[1]
    note = f"At commit {commit.stdout.strip()}, on {n_cores} cores that the load generator shares (load average {load_average:.0f})."
    path = ROOT / "docs/server.md"
    text = path.read_text()
    start, end = "<!-- table -->\n", "<!-- end of table -->"
    before, rest = text.split(start)
    _, after = rest.split(end)
    path.write_text(before + start + note + "\n\n" + "\n".join(table) + "\n" + end + after)
    print(note, *table, sep="\n")


def main():
    prsl, throughput, oha = (str(Path(name).resolve()) for name in sys.argv[1:4])
    lines, failed = measure(prsl, throughput, oha, int(sys.argv[4]))
    write(lines)
    if failed:
        sys.exit("a target was missed")


if __name__ == "__main__":
    main()
