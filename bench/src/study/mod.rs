//! Repeats the paper's section on approximation quality: loopy answers compared with exact ones.
//!
//! [`golden_cases`] and [`own_cases`] define the models, [`run`] measures them, and [`report`](report::report) writes
//! the report. [`headlines`](headline::headlines) compares the results with the paper's numbers.

pub mod headline;
mod measure;
pub mod report;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prsl::{BeliefMatrix, Model};
use prsl_testkit::{Golden, GoldenTest, golden, simulated};

/// The settings of loopy propagation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// The settings of the paper's authors.
    Authors,
    /// The default settings of prsl.
    Default,
}

impl Setting {
    /// Both settings.
    pub const ALL: [Setting; 2] = [Setting::Authors, Setting::Default];

    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Setting::Authors => "authors' setting",
            Setting::Default => "default setting",
        }
    }
}

/// A method that guesses the most probable assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Loopy max-product.
    Loopy(Setting),
    /// The authors' loopy max-product, with their stored answers in rows in which their rounding decided between ties.
    AuthorsTies,
    /// The best category of each loopy marginal, in the authors' setting.
    Marginals,
    /// Branch and bound.
    BranchAndBound,
}

/// A timed computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Exact marginals by the junction tree.
    Marginals,
    /// Loopy marginals.
    LoopyMarginals(Setting),
    /// The most probable assignment by the max-product tree.
    Tree,
    /// The most probable assignment by branch and bound.
    BranchAndBound,
    /// Loopy max-product.
    LoopyBest(Setting),
}

/// A measured quantity of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Pearson's correlation of loopy and exact marginals, over all categories of all rows.
    Correlation(Setting),
    /// The mean absolute error of a loopy marginal.
    MeanError(Setting),
    /// The largest absolute error of a loopy marginal.
    WorstError(Setting),
    /// The share of rows in which loopy marginals converged.
    Converged(Setting),
    /// The share of rows in which a guess is the most probable assignment.
    Match(Method),
    /// The share of rows whose assignment branch and bound has proven.
    Proven,
    /// Seconds of CPU time per row.
    Seconds(Task),
    /// The authors' side experiment: the shares found by prsl's exact marginals and loopy max-product.
    Side(bool),
    /// The same shares as stored by the authors.
    SideStored(bool),
}

/// The source of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The authors published it.
    Golden,
    /// Drawn by [`prsl::simulate`].
    Own,
}

/// A model to measure.
pub struct Case {
    /// Its source.
    pub source: Source,
    /// Its name in messages.
    pub name: String,
    model: Model,
    rows: BeliefMatrix,
    /// Rows in which the authors' rounding decided, with their answers.
    ties: Vec<(usize, Vec<usize>)>,
    side: Option<GoldenTest>,
}

/// The results of one model.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The source of the model.
    pub source: Source,
    /// Its name in messages.
    pub name: String,
    /// The number of its labels.
    pub n_labels: usize,
    /// The number of rows answered by loopy propagation and branch and bound.
    pub n_rows: usize,
    /// The number of these rows that were compared with exact marginals.
    pub n_exact_rows: usize,
    /// The reasons why exact marginals or assignments by the tree are missing.
    pub refused: Vec<String>,
    /// The number of rows left out because the exact marginals lost too many digits.
    pub n_imprecise: usize,
    /// The number of rows left out because branch and bound ended without proof, and the tree did not fit.
    pub n_unproven: usize,
    /// The measured quantities. Those that could not be measured are missing.
    pub values: BTreeMap<Measure, f64>,
}

/// The numbers of simulated models and rows.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Models of each size.
    pub replications: usize,
    /// Rows of each model.
    pub rows: usize,
    /// Seed of the models.
    pub seed: u64,
}

/// The sizes at which the authors published models, with the names they gave them.
pub const GOLDEN_SIZES: [(usize, &str); 3] = [(5, "small"), (10, "medium"), (30, "almostLarge")];
/// Multiply-adds per row above which a max-product tree is measured on this number of rows only. Branch and bound gives
/// the assignments of all rows.
const SLOW_TREE: (f64, usize) = (3e7, 4);
/// Maximum number of labels for which a plan is compiled.
const EXACT_UP_TO: usize = 60;

/// The authors' models of a size, with all replications and rows. Empty if the files are not available.
pub fn golden_cases(n_labels: usize) -> Vec<Case> {
    let name = GOLDEN_SIZES.iter().find(|size| size.0 == n_labels).map(|size| size.1);
    name.map(golden).unwrap_or_default().into_iter().map(golden_case).collect()
}

fn golden_case(golden: Golden) -> Case {
    let stored = golden.approx_mpe.unwrap_or_default();
    let ties = golden.approx_mpe_unstable_rows;
    Case {
        source: Source::Golden,
        name: golden.name,
        model: golden.model,
        rows: golden.rows,
        ties: ties.into_iter().filter_map(|row| Some((row, stored.get(row)?.clone()))).collect(),
        side: golden.test,
    }
}

/// Models of a size, with as many rules as labels.
pub fn own_cases(n_labels: usize, draw: Draw) -> Vec<Case> {
    (0..draw.replications).map(|replication| own_case(n_labels, draw, replication)).collect()
}

fn own_case(n_labels: usize, draw: Draw, replication: usize) -> Case {
    let (model, rows) = simulated(n_labels, n_labels, draw.rows, draw.seed + replication as u64);
    Case {
        source: Source::Own,
        name: format!("{n_labels} labels, replication {}", replication + 1),
        model,
        rows,
        ties: Vec::new(),
        side: None,
    }
}

/// Measures all cases, `n_threads` side by side, each on one thread; progress goes to stderr.
///
/// Computations that take less than `floor` are repeated for that long, so that their time can be measured.
pub fn run(cases: &[Case], n_threads: usize, floor: Duration) -> Vec<Measured> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..n_threads.max(1) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let measured = measure_on_one_thread(case, floor);
                    eprintln!("{}", progress(&measured));
                    done.lock().expect("no measurement panics").insert(measured.name.clone(), measured);
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no measurement panics");
    cases.iter().filter_map(|case| done.remove(&case.name)).collect()
}

fn measure_on_one_thread(case: &Case, floor: Duration) -> Measured {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
    pool.install(|| measure::measure(case, floor))
}

fn progress(measured: &Measured) -> String {
    let shown =
        |measure| measured.values.get(&measure).map_or("none".to_owned(), |value| format!("{value:.4}"));
    format!(
        "{}: correlation {}, most probable assignment matched {}{}",
        measured.name,
        shown(Measure::Correlation(Setting::Default)),
        shown(Measure::Match(Method::Loopy(Setting::Default))),
        measured.refused.iter().map(|reason| format!("; {reason}")).collect::<String>()
    )
}
