//! Measures time and peak memory of commands on many rows, and writes the table of `docs/scale.md`.
//!
//! ```text
//! cargo build --release -p prsl-cli && cargo run --release -p prsl-bench --bin streaming -- target/release/prsl
//! ```
//!
//! A measurement that was completed at the same commit is not repeated, so that a run can be continued.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use prsl::LabelId;
use prsl_data::{Column, ColumnKind, ColumnSpec, Format, TableReader, TableWriter, Target};
use prsl_testkit::planted::Planted;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Measure time and memory of commands on many rows.
#[derive(Debug, Parser)]
struct Arguments {
    /// The `prsl` command to measure.
    command: PathBuf,
    /// The folder for tables and results. The tables are removed at the end.
    #[arg(long, default_value = "target/streaming")]
    folder: PathBuf,
    /// The page with the table.
    #[arg(short, long, default_value = "docs/scale.md")]
    output: PathBuf,
    /// Numbers of rows to predict; the first is the one that the others are compared with.
    #[arg(long, value_delimiter = ',', default_value = "1000000,20000000")]
    rows: Vec<usize>,
    /// Number of rows from which all rules are learned.
    #[arg(long, default_value_t = 100_000)]
    learn_rows: usize,
    /// Number of rows from which one rule is learned.
    #[arg(long, default_value_t = 1_000_000)]
    one_rule_rows: usize,
    /// Numbers of rows to evaluate.
    #[arg(long, value_delimiter = ',', default_value = "480000,960000")]
    evaluated_rows: Vec<usize>,
    /// Only the measurements whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// A hundredth of the rows, and no page.
    #[arg(long)]
    quick: bool,
}

/// A command to measure.
struct Line {
    name: String,
    what: String,
    /// The arguments, with the placeholder `FOLDER`.
    arguments: String,
    n_rows: usize,
    target: &'static str,
}

/// The outcome of a command.
struct Measured {
    wall: Duration,
    cpu: Duration,
    /// Peak resident memory in bytes.
    peak: u64,
}

/// Number of rows that are drawn and written at a time.
const PART: usize = 20_000;
/// Number of labels and planted rules of the rows to learn from.
const LABELS: usize = 100;
const RULES: usize = 10;

fn main() -> Result<()> {
    let mut arguments = Arguments::parse();
    if arguments.quick {
        arguments.rows.iter_mut().chain(&mut arguments.evaluated_rows).for_each(|rows| *rows /= 100);
        arguments.learn_rows /= 100;
        arguments.one_rule_rows /= 100;
    }
    let arguments = arguments;
    fs::create_dir_all(&arguments.folder)?;
    let commit = said_by("git", &["rev-parse", "--short", "HEAD"])?;
    let load = load();
    let mut table = String::new();
    let mut speed = None;
    for line in lines(&arguments) {
        let row = measured(&arguments, &line, &commit, &mut speed)?;
        println!("{row}");
        table += &(row + "\n");
    }
    if !arguments.quick && arguments.only.is_empty() {
        write_page(&arguments.output, &commit, load, &table)?;
    }
    Ok(())
}

fn lines(arguments: &Arguments) -> Vec<Line> {
    let predict = arguments.rows.iter().enumerate().map(|(place, &n_rows)| Line {
        name: format!("predict-{n_rows}"),
        what: "`prsl predict`, Parquet to Parquet, warehouse model".to_owned(),
        arguments: format!("predict FOLDER/warehouse.prsl FOLDER/b-{n_rows}.parquet -o FOLDER/out.parquet"),
        n_rows,
        target: if place == 0 { "" } else { "300 MB, 80 % of the speed" },
    });
    let learn = |what: &str, options: &str, n_rows: usize, target| Line {
        name: format!("learn-{n_rows}"),
        what: format!("`prsl learn --cv 0 --no-typical{options}`, {what}"),
        arguments: format!(
            "learn FOLDER/lb-{n_rows}.parquet FOLDER/lt-{n_rows}.parquet --cv 0 --no-typical{options} -o FOLDER/out.prsl"
        ),
        n_rows,
        target,
    };
    let labels = format!("{LABELS} labels, {RULES} planted rules");
    let one = format!("{LABELS} labels: one scoring pass and one refit");
    let evaluate = arguments.evaluated_rows.iter().enumerate().map(|(place, &n_rows)| Line {
        name: format!("evaluate-{n_rows}"),
        what: format!("`prsl evaluate --no-intervals`, {labels}"),
        arguments: format!(
            "evaluate FOLDER/planted.prsl FOLDER/lb-{n_rows}.parquet FOLDER/lt-{n_rows}.parquet --no-intervals"
        ),
        n_rows,
        target: if place == 0 { "" } else { "10 bytes a label for each row more" },
    });
    let lines = predict
        .chain([
            learn(&labels, "", arguments.learn_rows, ""),
            learn(&one, " --rules 1", arguments.one_rule_rows, "2.5 GB"),
        ])
        .chain(evaluate);
    lines.filter(|line| line.name.contains(&arguments.only)).collect()
}

/// A row of the table. `speed` is the number of rows per CPU second of the first prediction.
fn measured(arguments: &Arguments, line: &Line, commit: &str, speed: &mut Option<f64>) -> Result<String> {
    let kept = arguments.folder.join(format!("{}-{commit}.txt", line.name));
    let measured = match fs::read_to_string(&kept) {
        Ok(text) => Measured::read(&text).with_context(|| format!("`{}` is no result", kept.display()))?,
        Err(_) => {
            let inputs = prepare(arguments, line)?;
            let measured = measure(arguments, line).with_context(|| line.name.clone())?;
            for file in inputs.iter().map(PathBuf::as_path).chain([&*arguments.folder.join("out.parquet")]) {
                let _ = fs::remove_file(file);
            }
            fs::write(&kept, measured.text())?;
            measured
        }
    };
    let per_second = line.n_rows as f64 / measured.wall.as_secs_f64();
    let per_cpu_second = line.n_rows as f64 / measured.cpu.as_secs_f64();
    let share = match speed {
        Some(first) if line.name.starts_with("predict") => {
            format!(" ({:.0} %)", 100.0 * per_cpu_second / *first)
        }
        _ => String::new(),
    };
    if line.name.starts_with("predict") {
        speed.get_or_insert(per_cpu_second);
    }
    Ok(format!(
        "| {} | {} | {:.1} | {:.1} | {} | {}{share} | {:.0} | {} |",
        line.what,
        grouped(line.n_rows as f64),
        measured.wall.as_secs_f64(),
        measured.cpu.as_secs_f64(),
        grouped(per_second),
        grouped(per_cpu_second),
        measured.peak as f64 / 1e6,
        line.target
    ))
}

impl Measured {
    fn text(&self) -> String {
        format!("{} {} {}\n", self.wall.as_secs_f64(), self.cpu.as_secs_f64(), self.peak)
    }

    fn read(text: &str) -> Option<Measured> {
        let mut words = text.split_whitespace();
        let mut seconds = || Some(Duration::from_secs_f64(words.next()?.parse().ok()?));
        let (wall, cpu) = (seconds()?, seconds()?);
        Some(Measured { wall, cpu, peak: words.next()?.parse().ok()? })
    }
}

/// Runs the command to its end.
fn measure(arguments: &Arguments, line: &Line) -> Result<Measured> {
    let folder = arguments.folder.to_string_lossy();
    let mut command = Command::new(&arguments.command);
    command.args(line.arguments.split(' ').map(|word| word.replace("FOLDER", &folder)));
    let errors = arguments.folder.join("errors.txt");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&errors)?);
    let start = Instant::now();
    let mut child = command.spawn().context("the command cannot be started; build it first")?;
    let (mut peak, mut cpu) = (0, Duration::ZERO);
    let status = loop {
        peak = peak.max(prsl_testkit::peak_memory(child.id()).unwrap_or(0));
        cpu = cpu.max(cpu_time(child.id()).unwrap_or_default());
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let wall = start.elapsed();
    ensure!(status.success(), "it failed: {}", fs::read_to_string(&errors)?);
    Ok(Measured { wall, cpu, peak })
}

/// The CPU time of a running process, in user and in system mode.
fn cpu_time(process: u32) -> Option<Duration> {
    const TICKS: f64 = 100.0; // per second, on Linux
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program in parentheses may have spaces.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
    Some(Duration::from_secs_f64((ticks(11)? + ticks(12)?) / TICKS))
}

/// Writes the inputs of a command, unless they are complete. Returns their paths.
fn prepare(arguments: &Arguments, line: &Line) -> Result<Vec<PathBuf>> {
    let file = |name: &str| arguments.folder.join(format!("{name}-{}.parquet", line.n_rows));
    let is_complete = |path: &Path| {
        TableReader::open(path).is_ok_and(|table| table.rows_hint() == Some(line.n_rows as u64))
    };
    if line.name.starts_with("predict") {
        let (model, beliefs) = (arguments.folder.join("warehouse.prsl"), file("b"));
        fs::write(&model, include_str!("../../../examples/warehouse.prsl"))?;
        if !is_complete(&beliefs) {
            write_warehouse(&beliefs, line.n_rows)?;
        }
        return Ok(vec![beliefs]);
    }
    let tables = [file("lb"), file("lt")];
    if !tables.iter().all(|path| is_complete(path)) || !arguments.folder.join("planted.prsl").exists() {
        write_planted(arguments, &tables, line.n_rows)?;
    }
    Ok(tables.to_vec())
}

/// Random beliefs about the labels of the warehouse model.
fn write_warehouse(path: &Path, n_rows: usize) -> Result<()> {
    let names = ["activity=walking", "activity=normal", "activity=overhead", "feet=gait"];
    let names = names.into_iter().chain(["hands=high", "hands=centered", "hands=low"]);
    let specs: Vec<ColumnSpec> = names.map(|name| ColumnSpec::new(name, ColumnKind::Number)).collect();
    let mut table = TableWriter::create(Target::File(path.to_owned()), Format::Parquet, &specs)?;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for start in (0..n_rows).step_by(PART) {
        let mut columns = vec![Vec::with_capacity(PART); specs.len()];
        for _ in start..n_rows.min(start + PART) {
            let mut belief = |columns: &mut [Vec<Option<f64>>]| {
                let scores: Vec<f64> = columns.iter().map(|_| rng.random_range(0.01..1.0)).collect();
                let total: f64 = scores.iter().sum();
                columns.iter_mut().zip(scores).for_each(|(column, score)| column.push(Some(score / total)));
            };
            belief(&mut columns[0..3]);
            belief(&mut columns[4..7]);
            columns[3].push(Some(rng.random_range(0.01..0.99)));
        }
        table.write(&columns.into_iter().map(Column::Number).collect::<Vec<_>>())?;
    }
    Ok(table.finish()?)
}

/// Beliefs and truths with planted rules, in two files, and the model in a third.
fn write_planted(arguments: &Arguments, paths: &[PathBuf; 2], n_rows: usize) -> Result<()> {
    let planted = Planted { n_labels: LABELS, n_rules: RULES, n_rows, ..Planted::default() };
    let (model, parts) = planted.parts(PART);
    fs::write(arguments.folder.join("planted.prsl"), model.to_string())?;
    let specs = |kind: ColumnKind| -> Vec<ColumnSpec> {
        model.labels().iter().map(|label| ColumnSpec::new(label.name(), kind)).collect()
    };
    let create =
        |path: &PathBuf, kind| TableWriter::create(Target::File(path.clone()), Format::Parquet, &specs(kind));
    let mut beliefs = create(&paths[0], ColumnKind::Number)?;
    let mut truths = create(&paths[1], ColumnKind::Boolean)?;
    for part in parts {
        let (matrix, known) = (part.to_beliefs(), part.to_truths());
        let belief = |label: LabelId| {
            Column::Number((0..part.n_rows()).map(|row| Some(matrix.belief(row, label)[0])).collect())
        };
        let truth = |label: LabelId| {
            let is_yes = |truth: &prsl::Truth| truth.category(label).map(|category| category.index() == 0);
            Column::Boolean(known.iter().map(is_yes).collect())
        };
        beliefs.write(&model.label_ids().map(belief).collect::<Vec<_>>())?;
        truths.write(&model.label_ids().map(truth).collect::<Vec<_>>())?;
    }
    beliefs.finish()?;
    Ok(truths.finish()?)
}

/// Replaces the table in the page.
fn write_page(page: &Path, commit: &str, load: f64, table: &str) -> Result<()> {
    const MARKS: [&str; 2] = ["<!-- streaming -->\n", "<!-- /streaming -->"];
    let text = fs::read_to_string(page).with_context(|| format!("`{}`", page.display()))?;
    let place = |mark: &str| text.find(mark).with_context(|| format!("`{}` has no `{mark}`", page.display()));
    let (start, end) = (place(MARKS[0])? + MARKS[0].len(), place(MARKS[1])?);
    let date = said_by("date", &["-u", "+%Y-%m-%d"])?;
    let head = format!(
        "Made by `make bench-streaming` at commit {commit} on {date}, on {}.{}\n\n\
         | command | rows | seconds | CPU seconds | rows per second | rows per CPU second | peak MB | target |\n\
         |---|---|---|---|---|---|---|---|\n",
        machine(),
        beside(load)
    );
    Ok(fs::write(page, format!("{}{head}{table}{}", &text[..start], &text[end..]))?)
}

/// The mean number of threads that ran or waited in the last minute; 0 if the system does not tell.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// A remark about other programs, given the load before the first measurement.
fn beside(load: f64) -> String {
    const QUIET: f64 = 0.5; // less than a half of one thread
    if load < QUIET {
        return String::new();
    }
    format!(
        "\nOther programs used the machine at the same time (load average {load:.1}), so wall times are not those of a quiet \
         machine. Compare CPU seconds."
    )
}

/// The processor and the number of its threads.
fn machine() -> String {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let name = name.map_or("an unknown processor", |(_, name)| name);
    format!("{threads} threads of {name}")
}

/// What a command prints, without the line end.
fn said_by(command: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(command).args(arguments).output();
    let output = output.with_context(|| format!("`{command}` is needed"))?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// A whole number with commas between thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
