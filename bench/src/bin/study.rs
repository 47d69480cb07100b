//! Repeats the paper's section on approximation quality on the authors' models and on simulated ones.
//!
//! Writes a report as Markdown and as a page with figures after every size, so an interrupted study has a partial
//! report. Fails if the authors' models do not reproduce the paper's numbers. The same seed gives the same numbers,
//! except times.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use prsl_bench::document::{to_html, to_markdown};
use prsl_bench::publish::{origin, publish};
use prsl_bench::study::headline::headlines;
use prsl_bench::study::report::{published, report};
use prsl_bench::study::{Draw, GOLDEN_SIZES, Measured, Source, golden_cases, own_cases, run};

/// Minimum duration of a measurement. Faster computations are repeated for that long.
const FLOOR: Duration = Duration::from_millis(40);

/// Repeat the paper's simulation study.
#[derive(Parser)]
struct Arguments {
    /// Small sizes and a small number of models, in less than a minute.
    #[arg(long)]
    quick: bool,
    /// The number of rows of each simulated model.
    #[arg(long)]
    rows: Option<usize>,
    /// The number of simulated models of each size.
    #[arg(long)]
    replications: Option<usize>,
    /// Numbers of labels, and of rules: `5,10,30`. The authors' models have 5, 10 and 30.
    #[arg(long, value_delimiter = ',')]
    sizes: Option<Vec<usize>>,
    /// The number of models measured in parallel, each on one thread; more than one makes times slightly less accurate.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Seed of the simulated models.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the tables into `docs`. Quick studies, and those without the authors' models, are not published.
    #[arg(long)]
    publish: bool,
    /// The folder for the report.
    #[arg(long, default_value = "target/study")]
    out: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let draw = Draw {
        replications: arguments.replications.unwrap_or(if arguments.quick { 3 } else { 10 }),
        rows: arguments.rows.unwrap_or(if arguments.quick { 20 } else { 100 }),
        seed: arguments.seed,
    };
    let default: &[usize] = if arguments.quick { &[5, 10, 20] } else { &[5, 10, 20, 30, 40, 60, 100] };
    let sizes = arguments.sizes.clone().unwrap_or_else(|| default.to_vec());
    let measured = measure(&arguments, &sizes, draw)?;
    println!("{}", arguments.out.join("report.md").display());
    println!("{}", arguments.out.join("report.html").display());
    check(&measured)?;
    // Without the authors' models there is no comparison with the paper.
    if arguments.publish && !arguments.quick && measured.iter().any(|model| model.source == Source::Golden) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for page in publish(&root, &published(&measured, draw, &origin("make study")))? {
            println!("{}", page.display());
        }
    }
    Ok(())
}

fn measure(arguments: &Arguments, sizes: &[usize], draw: Draw) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for (n_labels, _) in GOLDEN_SIZES.iter().filter(|(n_labels, _)| sizes.contains(n_labels)) {
        eprintln!("the authors' models with {n_labels} labels");
        measured.extend(run(&golden_cases(*n_labels), arguments.threads, FLOOR));
        write(&arguments.out, &measured, draw)?;
    }
    if measured.is_empty() {
        eprintln!(
            "nothing is compared with the paper: the authors' models (5, 10 and 30 labels) are not here or not asked for"
        );
    }
    for &n_labels in sizes {
        eprintln!("own models with {n_labels} labels and {n_labels} rules");
        measured.extend(run(&own_cases(n_labels, draw), arguments.threads, FLOOR));
        write(&arguments.out, &measured, draw)?;
    }
    Ok(measured)
}

fn write(folder: &Path, measured: &[Measured], draw: Draw) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let blocks = report(measured, draw);
    for (name, text) in [("report.md", to_markdown(&blocks)), ("report.html", to_html(&blocks))] {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn check(measured: &[Measured]) -> Result<()> {
    let wrong: Vec<String> = headlines(measured)
        .iter()
        .filter(|headline| !headline.holds())
        .map(|headline| {
            let expected = headline.expected.unwrap_or_default();
            format!(
                "{} labels, {}: {} instead of {expected}",
                headline.n_labels,
                headline.figure.name(),
                headline.measured
            )
        })
        .collect();
    if !wrong.is_empty() {
        bail!("the authors' models do not give the paper's numbers:\n  {}", wrong.join("\n  "));
    }
    Ok(())
}
