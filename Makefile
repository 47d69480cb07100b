# Two commands do everything on a fresh machine: `make demo` and `make test`.

.PHONY: all demo test test-rust test-oracles test-python test-long test-extremes test-all lint bench bench-learning bench-limits bench-python benchmark notebooks peers study doc fuzz clean

all: test

## Writes a model and a table of sensor beliefs, checks, predicts and explains.
demo:
	cargo run -p prsl-cli -- demo target/demo

## Everything that has to pass: formatting, lints and documentation included.
test: lint test-rust doc test-python test-oracles

test-rust:
	cargo test --workspace

## The Python package: its wheel, in a virtual environment of its own.
test-python:
	bash python/run-tests

## pyAgrum and ProbLog on what prsl exports, in a virtual environment of their own.
test-oracles:
	bash tests/oracles/run

## The same with tests that take minutes, and ten minutes of fuzzing a target.
test-all: test test-long test-extremes fuzz

test-long:
	cargo test --release -p prsl --test learn -- --ignored

## 100,000 models with extreme numbers against an oracle in higher precision; `make test` tries 2,000 of them.
test-extremes:
	PRSL_EXTREMES=100000 cargo test --release -p prsl --test extremes

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

## Time per row and compile time, on the shared golden models where they are, and on simulated ones.
bench:
	cargo bench -p prsl

## Learning on the paper's datasets, where their beliefs are: accuracy and log-likelihood on rows that were not learned from.
bench-learning:
	cargo run --release -p prsl-bench --bin learning -- $(LEARNING)

## Time and peak memory of commands on models at the limits: docs/limits.md.
bench-limits:
	cargo build --release -p prsl-cli
	cargo run --release -p prsl-bench --bin limits -- target/release/prsl

## What a million rows take through NumPy, beside the library's own time.
bench-python:
	cargo build --release -p prsl-bench --bin throughput
	bash python/venv release
	target/python-venv/bin/python bench/python/throughput.py $$(target/release/throughput)

## The paper's benchmark, about an hour: target/benchmark/report.html. `make benchmark BENCHMARK=--quick` for a first impression.
benchmark:
	bash bench/paper/run $(BENCHMARK)

## The tutorials as notebooks with their output: target/notebooks.
notebooks:
	bash docs/tutorials/notebooks

## The same questions asked of pyAgrum, pgmpy, toulbar2 and ProbLog; `bench/peers/run --quick` for a first impression.
peers:
	bash bench/peers/run

## The paper's simulation study, repeated: target/study/report.html. `make study STUDY=--quick` for a first impression.
study:
	cargo run --release -p prsl-bench --bin study -- --out target/study $(STUDY)

## Fuzzing on the compiler that builds everything else. The seeds of `parquet` are binary files, and written anew.
FUZZ_SECONDS ?= 600
fuzz:
	cargo fuzz --version || cargo install cargo-fuzz
	cargo run -p prsl-data --example parquet_seeds -- fuzz/seeds/parquet
	for target in parse formula json export csv parquet arff exact loopy sampler branch_and_bound; do \
	    mkdir -p fuzz/corpus/$$target; \
	    RUSTC_BOOTSTRAP=1 cargo fuzz run $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
	        -dict=fuzz/prsl.dict -timeout=5 -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=2048 || exit 1; \
	done

clean:
	cargo clean
