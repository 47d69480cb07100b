"""Tests of a running `prsl serve` with clients that know nothing of prsl."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import InferenceServerException

ROOT = Path(__file__).resolve().parents[2]
SCHEMATHESIS_EXAMPLES = 100


class Server:
    """A server for the models of a folder, on a free port."""

    def __init__(self, prsl, folder, *options):
        command = [prsl, "serve", "--dir", str(folder), "--addr", "127.0.0.1:0", "--log", "json", *options]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        self.address = line.removeprefix("listening on http://").split(",")[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        if self.process.wait() != 0:
            self.log.seek(0)
            sys.exit(f"the server failed:\n{self.log.read().decode()[-3000:]}")


def draw_rows(metadata, n_rows, generator):
    """Random beliefs about every label, a tenth of them missing, by label."""
    rows = {}
    for tensor in metadata["inputs"]:
        n_categories = tensor["shape"][1]
        beliefs = generator.dirichlet(np.ones(n_categories), size=n_rows)
        beliefs[generator.random(n_rows) < 0.1] = np.nan
        rows[tensor["name"]] = beliefs
    return rows


def ask(client, model, rows, binary):
    """The answer of the protocol, with binary tensors or JSON."""
    inputs = []
    for label, beliefs in rows.items():
        tensor = InferInput(label, list(beliefs.shape), "FP64")
        tensor.set_data_from_numpy(beliefs, binary_data=binary)
        inputs.append(tensor)
    names = [tensor["name"] for tensor in client.get_model_metadata(model)["outputs"]]
    outputs = None if binary else [InferRequestedOutput(name, binary_data=False) for name in names]
    return client.infer(model, inputs, outputs=outputs, request_id="7")


def command_line(prsl, folder, model, labels, rows):
    """The answers of `prsl predict`, one object for each row."""
    columns = [f"{label}={category}" for label in rows for category in labels[label]]
    cells = np.concatenate(list(rows.values()), axis=1)
    lines = [",".join(f'"{column}"' for column in columns)]
    lines += [",".join("" if np.isnan(x) else repr(float(x)) for x in row) for row in cells]
    table = Path(folder) / "beliefs.csv"
    table.write_text("\n".join(lines) + "\n")
    command = [prsl, "predict", f"{folder}/{model}.prsl", str(table), "--format", "jsonl", "--query", "both"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in printed.splitlines()]


def compare(client, prsl, folder, model):
    """Compares every number of the protocol with the command line, bit for bit."""
    metadata = client.get_model_metadata(model)
    labels = {label["name"]: label["categories"] for label in metadata["labels"]}
    rows = draw_rows(metadata, 200, np.random.default_rng(1))
    expected = command_line(prsl, folder, model, labels, rows)
    for binary in [True, False]:
        if not binary:
            # JSON has no NaN: tritonclient cannot send missing beliefs this way.
            known = ~np.any([np.isnan(beliefs[:, 0]) for beliefs in rows.values()], axis=0)
            rows = {label: beliefs[known] for label, beliefs in rows.items()}
            expected = [row for row, is_known in zip(expected, known) if is_known]
        answer = ask(client, model, rows, binary)
        assert answer.get_response()["id"] == "7"
        for label, categories in labels.items():
            marginal = answer.as_numpy(f"marginal.{label}")
            wanted = [[row[f"{label}={category}"] for category in categories] for row in expected]
            np.testing.assert_array_equal(marginal, np.array(wanted, dtype=float))
        np.testing.assert_array_equal(answer.as_numpy("log_evidence"), [row["log_evidence"] for row in expected])
        best = [[text.decode() if binary else text for text in row] for row in answer.as_numpy("mpe")]
        assert best == [[row[f"mpe:{label}"] for label in labels] for row in expected]
        status = [text.decode() if binary else text for text in answer.as_numpy("status")]
        assert status == [row["status"] for row in expected]
    print(f"{model}: {len(labels)} labels, the same bits as the command line")


def check_client(prsl, folder, address):
    """tritonclient: health, metadata, inference and errors."""
    client = InferenceServerClient(address)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("warehouse")
    assert not client.is_model_ready("nothing")
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    for model in ["warehouse", "simulated"]:
        compare(client, prsl, folder, model)
    try:
        ask(client, "warehouse", {"feet": np.array([[0.5, 0.4]])}, binary=True)
        sys.exit("a belief that does not sum to 1 was accepted")
    except InferenceServerException as error:
        assert "row 1: belief for label `feet` sums to 0.9" in str(error), error


def check_schema(address):
    """schemathesis: no request makes the server fail, and answers are as described."""
    checks = "not_a_server_error,response_schema_conformance,content_type_conformance,status_code_conformance"
    command = [Path(sys.executable).parent / "schemathesis", "run", f"http://{address}/openapi.json"]
    command += ["--checks", checks, "--max-examples", str(SCHEMATHESIS_EXAMPLES), "--seed", "1"]
    if subprocess.run(command, cwd=ROOT / "target").returncode != 0:
        sys.exit("schemathesis has findings")


def main():
    prsl, extent = str(Path(sys.argv[1]).resolve()), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "warehouse.prsl").write_text((ROOT / "examples/warehouse.prsl").read_text())
        simulate = [prsl, "simulate", "--output", f"{folder}/drawn", "--labels", "12", "--rules", "12", "--rows", "1"]
        subprocess.run(simulate, check=True, capture_output=True)
        (Path(folder) / "drawn" / "model.prsl").rename(Path(folder) / "simulated.prsl")
        with Server(prsl, folder, "--writable") as server:
            check_client(prsl, folder, server.address)
            if extent == "all":
                check_schema(server.address)


if __name__ == "__main__":
    main()
