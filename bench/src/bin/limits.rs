//! Measures time and peak memory of whole commands on models near the limits, and writes `docs/limits.md`.
//!
//! ```text
//! cargo build --release -p prsl-cli && cargo run --release -p prsl-bench --bin limits -- target/release/prsl
//! ```

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use prsl_testkit::limits;

/// Measure time and memory of commands on models near the limits.
#[derive(Debug, Parser)]
struct Arguments {
    /// The `prsl` command to measure.
    command: PathBuf,
    /// The folder for the models.
    #[arg(long, default_value = "target/limits")]
    folder: PathBuf,
    /// The table to write.
    #[arg(short, long, default_value = "docs/limits.md")]
    output: PathBuf,
    /// Only the lines whose description contains this.
    #[arg(long, default_value = "")]
    only: String,
}

/// A line of the table.
struct Line {
    /// The description of the model.
    what: &'static str,
    /// The model, if there is one.
    model: Option<String>,
    /// The arguments, with the placeholders `MODEL`, `BELIEFS` and `FOLDER` for files.
    arguments: &'static str,
    wanted: &'static str,
}

fn lines() -> Vec<Line> {
    let line = |what, model: String, arguments, wanted| Line { what, model: Some(model), arguments, wanted };
    let (exact, auto) =
        ("predict MODEL BELIEFS --query marginals --engine exact", "predict MODEL BELIEFS --query marginals");
    vec![
        line(
            "two labels of 300 categories, paired by one formula",
            limits::paired_categories(300),
            auto,
            "answer, 1 s",
        ),
        line("noisy-or over 4,000 labels", limits::wide_noisy_or(4000), auto, "answer, 2 s"),
        line("`at_most 2 of` 4,000 labels", limits::count("at_most 2", 4000), auto, "answer, 2 s"),
        line(
            "chain of 200,000 labels",
            limits::chain(200_000),
            "predict MODEL BELIEFS --query marginals --memory 4GiB",
            "answer, 20 s",
        ),
        line("460 labels, all pairs", limits::dense(460), exact, "refusal, 1 s"),
        line("460 labels, all pairs", limits::dense(460), auto, "loopy"),
        line("1,000 labels, 2,000 clauses of 3", limits::clauses(1000, 2000, "0.9"), exact, "refusal, 2 s"),
        line("1,000 labels, 2,000 clauses of 3", limits::clauses(1000, 2000, "0.9"), auto, "loopy"),
        line(
            "5,000 labels, 10,000 clauses of 3",
            limits::clauses(5000, 10_000, "0.9"),
            exact,
            "refusal, 10 s",
        ),
        line("5,000 labels, 10,000 clauses of 3", limits::clauses(5000, 10_000, "0.9"), auto, "loopy"),
        line("`at_least 500 of` 1,000 labels", limits::count("at_least 500", 1000), auto, "answer, 5 s"),
        line("50,000 terms `x & y` over 1,000 labels", limits::terms(50_000, 1000), auto, "refusal, 5 s"),
        line("formula of 1,000,000 nodes", limits::terms(333_333, 1000), auto, "answer or refusal, 5 s"),
        line("label of 5,000 categories", limits::many_categories(5000), auto, "answer or refusal, 5 s"),
        line(
            "`--top 5000`, 40 independent labels",
            limits::independent(40),
            "predict MODEL BELIEFS --query mpe --top 5000",
            "answer, 2 s, 500 MB",
        ),
        line("pigeonhole, 12 in 11", limits::pigeonhole(12), "check MODEL", "decided or not, 10 s"),
        line(
            "3-SAT, 300 labels, ratio 4.26",
            limits::clauses(300, 1278, "1"),
            "check MODEL",
            "decided or not, 10 s",
        ),
        Line {
            what: "5,000 labels and rules drawn",
            model: None,
            arguments: "simulate --labels 5000 --rules 5000 --force -o FOLDER/drawn",
            wanted: "5 s",
        },
    ]
}

const HEAD: &str = "\
# Very large models: time, memory and refusals

A command that cannot answer refuses early, with the reason. The table lists models near the limits, the target for each
command, and the outcome. Seconds are wall time on one thread, and MB are peak resident memory. Both are those of the whole
command on two rows of beliefs, reading and writing included. The tests of these targets count work instead of time.

Made by `make bench-limits` at commit COMMIT.

| model | command | target | outcome | seconds | peak MB |
|---|---|---|---|---|---|
";

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    std::fs::create_dir_all(&arguments.folder)?;
    let mut page = HEAD.replace("COMMIT", &commit()?);
    for (index, line) in lines().iter().enumerate().filter(|(_, line)| line.what.contains(&arguments.only)) {
        let measured = measure(&arguments, index, line).with_context(|| line.what.to_owned())?;
        let shown = line
            .arguments
            .replace("MODEL BELIEFS ", "")
            .replace(" MODEL", "")
            .replace(" -o FOLDER/drawn", "");
        let row = format!(
            "| {} | `{shown}` | {} | {} | {:.2} | {:.0} |",
            line.what,
            line.wanted,
            measured.outcome,
            measured.time.as_secs_f64(),
            measured.peak as f64 / 1e6
        );
        println!("{row}");
        writeln!(page, "{row}")?;
    }
    if arguments.only.is_empty() {
        std::fs::write(&arguments.output, page)?;
    }
    Ok(())
}

/// The abbreviated hash of the checked-out commit.
fn commit() -> Result<String> {
    let output =
        Command::new("git").args(["rev-parse", "--short", "HEAD"]).output().context("git is needed")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

struct Measured {
    outcome: String,
    time: Duration,
    /// Peak resident memory in bytes.
    peak: u64,
}

fn measure(arguments: &Arguments, index: usize, line: &Line) -> Result<Measured> {
    let file = |ending: &str| arguments.folder.join(format!("{index}.{ending}"));
    let (model, beliefs) = (file("prsl"), file("csv"));
    if let Some(text) = &line.model {
        std::fs::write(&model, text)?;
        std::fs::write(&beliefs, limits::beliefs(text, 2))?;
    }
    let place = |word: &str| match word {
        "MODEL" => model.clone().into_os_string(),
        "BELIEFS" => beliefs.clone().into_os_string(),
        _ => word.replace("FOLDER", &arguments.folder.to_string_lossy()).into(),
    };
    let mut command = Command::new(&arguments.command);
    command.args(line.arguments.split(' ').map(place)).env("RAYON_NUM_THREADS", "1");
    let (out, err) = (file("out"), file("err"));
    command.stdout(std::fs::File::create(&out)?).stderr(std::fs::File::create(&err)?).stdin(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().context("the command cannot be started; build it first")?;
    let mut peak = 0;
    let status = loop {
        peak = peak.max(prsl_testkit::peak_memory(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let time = start.elapsed();
    let code = status.code().context("the command was killed by a signal")?;
    Ok(Measured { outcome: outcome(code, &out, &err)?.to_owned(), time, peak })
}

/// The outcome as text.
fn outcome(code: i32, out: &Path, err: &Path) -> Result<&'static str> {
    let (out, err) = (std::fs::read_to_string(out)?, std::fs::read_to_string(err)?);
    Ok(match code {
        0 if out.contains(",loopy,") => "answered, loopy",
        0 => "answered",
        1 if out.contains("[not-decided]") => "not decided",
        1 => "decided: a contradiction",
        _ if err.contains("more than the limit") => "refused",
        _ => "an error",
    })
}
