//! `--verify`: compares the answers of some rows with those of a more exact engine.

use std::fmt::Write as _;

use prsl::infer::{
    EngineSettings, Enumeration, Gibbs, GibbsSettings, MaxProductTree, RankedAssignments, Sampling,
};
use prsl::{BeliefMatrix, BranchAndBound, Engine, JunctionTree, Model, Row, Status};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::progress::{counted, grouped};
use crate::style::{self, styled};
use crate::table::Answers;

/// Rows sampled from the stream, with their answers.
pub struct Verification {
    wanted: usize,
    seen: u64,
    rng: ChaCha8Rng,
    seed: u64,
    kept: Vec<Kept>,
}

/// A row and its answers: marginals and an assignment, each if requested.
struct Kept {
    row: u64,
    beliefs: BeliefMatrix,
    marginals: Option<(Engine, Option<Vec<f64>>)>,
    best: Option<(Engine, Option<f64>)>,
}

/// Maximum number of assignments for enumeration.
const FEW_ASSIGNMENTS: f64 = 65_536.0;
/// Number of samples per row if no exact engine is affordable; the error of a marginal is then about 0.01.
const SAMPLES: usize = 10_000;
/// Maximum difference of log weights (relative to their size above 1) of equally good assignments.
const SAME: f64 = 1e-9;
/// Maximum difference of marginals that is due to rounding.
const ROUNDING: f64 = 1e-12;

impl Verification {
    /// Samples this number of rows.
    pub fn new(wanted: usize, seed: u64) -> Verification {
        Verification { wanted, seen: 0, rng: ChaCha8Rng::seed_from_u64(seed), seed, kept: Vec::new() }
    }

    /// Takes some rows of the stream. Each row of the whole table is kept with the same probability.
    pub fn observe(&mut self, rows: &BeliefMatrix, answers: &Answers) {
        for row in 0..rows.n_rows() {
            self.seen += 1;
            if self.kept.len() < self.wanted {
                self.kept.push(Kept::new(self.seen, rows, row, answers));
            } else {
                let place = self.rng.random_range(0..self.seen);
                if place < self.wanted as u64 {
                    self.kept[place as usize] = Kept::new(self.seen, rows, row, answers);
                }
            }
        }
    }

    /// Repeats the rows, and reports the errors.
    pub fn report(mut self, model: &Model, settings: &EngineSettings) -> prsl::Result<String> {
        self.kept.sort_by_key(|kept| kept.row);
        let n_rows = counted(self.kept.len() as u64, "row");
        let heading = styled(style::STRONG, format_args!("verified {n_rows} of {}", grouped(self.seen)));
        let mut text = String::new();
        if let Some((engine, _)) = self.kept.iter().find_map(|kept| kept.marginals.as_ref()) {
            let referee = Referee::for_marginals(model, *engine, settings);
            let _ = writeln!(text, "{heading}: {}", self.marginals(model, &referee)?);
        }
        if let Some((engine, _)) = self.kept.iter().find_map(|kept| kept.best.as_ref()) {
            let referee = Referee::for_assignments(model, *engine, settings)?;
            let _ = writeln!(text, "{heading}: {}", self.assignments(&referee)?);
        }
        Ok(text)
    }

    fn marginals(&self, model: &Model, referee: &Referee) -> prsl::Result<String> {
        let names: Vec<String> = model
            .labels()
            .iter()
            .flat_map(|label| label.categories().iter().map(|it| format!("{}={it}", label.name())))
            .collect();
        let (mut sum, mut n, mut disputed) = (0.0, 0u64, 0u64);
        let mut worst: Option<(f64, String)> = None;
        for kept in &self.kept {
            let Some((_, answered)) = &kept.marginals else { continue };
            let expected = referee.marginals(&kept.beliefs, self.seed)?;
            let (Some(answered), Some(expected)) = (answered, &expected) else {
                disputed += u64::from(answered.is_some() != expected.is_some());
                continue;
            };
            for ((name, answered), expected) in names.iter().zip(answered).zip(expected) {
                let error = (answered - expected).abs();
                (sum, n) = (sum + error, n + 1);
                if worst.as_ref().is_none_or(|(worst, _)| error > *worst) {
                    let place = format!("row {}, {name}: {answered:.4} instead of {expected:.4}", kept.row);
                    worst = Some((error, place));
                }
            }
        }
        let mut text = format!("against {}, ", referee.name());
        match worst {
            Some((worst, _)) if worst <= ROUNDING => {
                let _ = write!(text, "all marginals agree to {ROUNDING:e}");
            }
            Some((worst, place)) => {
                let mean = sum / n as f64;
                let _ = write!(text, "a marginal is off by {} on average, ", short(mean));
                let _ = write!(text, "by {} at worst ({place})", short(worst));
            }
            None => text.push_str("there is no marginal to compare"),
        }
        if disputed > 0 {
            let _ = write!(text, "; whether it is possible differs in {}", counted(disputed, "row"));
        }
        Ok(text)
    }

    fn assignments(&self, referee: &Referee) -> prsl::Result<String> {
        let (mut worse, mut disputed, mut largest) = (0u64, 0u64, 0.0f64);
        for (kept, answered) in self.kept.iter().filter_map(|kept| Some((kept, kept.best.as_ref()?.1))) {
            let found = referee.top(&kept.beliefs.row(0))?;
            if found.status(0) == Status::NotFound {
                continue;
            }
            match (answered, found.into_best()) {
                (Some(answered), Some(best)) => {
                    let missing = best.log_weight - answered;
                    if missing > SAME * best.log_weight.abs().max(1.0) {
                        (worse, largest) = (worse + 1, largest.max(missing));
                    }
                }
                (answered, best) => disputed += u64::from(answered.is_some() != best.is_some()),
            }
        }
        let rows = counted(worse, "row");
        let mut text = format!("against {}, the assignment has a smaller weight in {rows}", referee.name());
        if worse > 0 {
            let _ = write!(text, " (log_weight smaller by {} at worst)", short(largest));
        }
        if disputed > 0 {
            let _ = write!(text, "; whether it is possible differs in {}", counted(disputed, "row"));
        }
        Ok(text)
    }
}

impl Kept {
    fn new(number: u64, rows: &BeliefMatrix, row: usize, answers: &Answers) -> Kept {
        let marginals = answers.posteriors.as_ref();
        let best = answers.best.as_ref();
        let assignment = |it: &Vec<RankedAssignments>| match (it[row].first(), it[row].status(0)) {
            (Some(best), _) => Some((best.engine, Some(best.log_weight))),
            (None, Status::NotFound) => None,
            (None, _) => Some((Engine::BranchAndBound, None)),
        };
        Kept {
            row: number,
            beliefs: rows.slice(row..row + 1),
            marginals: marginals.map(|it| (it.engine(), it.marginals(row).map(<[f64]>::to_vec))),
            best: best.and_then(assignment),
        }
    }
}

/// The reference engine.
enum Referee {
    Enumeration(Enumeration),
    JunctionTree(Box<JunctionTree>),
    Gibbs(Box<Gibbs>),
    MaxProductTree(Box<MaxProductTree>),
    BranchAndBound(Box<BranchAndBound>),
}

impl Referee {
    /// Enumeration for small models, else the junction tree, else samples.
    fn for_marginals(model: &Model, engine: Engine, settings: &EngineSettings) -> Referee {
        if let Some(referee) = Self::enumeration(model, engine) {
            return referee;
        }
        match JunctionTree::compile_within(model, settings.limits) {
            Ok(tree) if engine != Engine::JunctionTree => Referee::JunctionTree(Box::new(tree)),
            _ => Referee::Gibbs(Box::new(Gibbs::compile(model, GibbsSettings::default()))),
        }
    }

    /// Enumeration for small models, else the junction tree, else branch and bound.
    fn for_assignments(model: &Model, engine: Engine, settings: &EngineSettings) -> prsl::Result<Referee> {
        if let Some(referee) = Self::enumeration(model, engine) {
            return Ok(referee);
        }
        if engine != Engine::JunctionTree
            && let Ok(tree) = MaxProductTree::compile_within(model, settings.limits)
        {
            return Ok(Referee::MaxProductTree(Box::new(tree)));
        }
        let search = BranchAndBound::compile_within(model, settings.limits, settings.search)?;
        Ok(Referee::BranchAndBound(Box::new(search)))
    }

    fn enumeration(model: &Model, engine: Engine) -> Option<Referee> {
        let n: f64 = model.labels().iter().map(|label| label.n_categories() as f64).product();
        let few = n <= FEW_ASSIGNMENTS && engine != Engine::Enumeration;
        few.then(|| Enumeration::compile(model).ok().map(Referee::Enumeration)).flatten()
    }

    fn name(&self) -> &'static str {
        match self {
            Referee::Enumeration(_) => "the sum over all assignments",
            Referee::JunctionTree(_) | Referee::MaxProductTree(_) => "the junction tree",
            Referee::Gibbs(_) => "Gibbs sampling (itself an estimate, with errors of about 0.01 or more)",
            Referee::BranchAndBound(_) => "branch and bound",
        }
    }

    /// The marginals of a row, `None` if it is impossible.
    fn marginals(&self, row: &BeliefMatrix, seed: u64) -> prsl::Result<Option<Vec<f64>>> {
        let posteriors = match self {
            Referee::Enumeration(engine) => engine.infer_batch(row)?,
            Referee::JunctionTree(engine) => engine.infer_batch(row)?,
            Referee::Gibbs(engine) => return sampled(engine, &row.row(0), seed),
            Referee::MaxProductTree(_) | Referee::BranchAndBound(_) => return Ok(None),
        };
        Ok(posteriors.marginals(0).map(<[f64]>::to_vec))
    }

    /// The best assignment of a row.
    fn top(&self, row: &Row<'_>) -> prsl::Result<RankedAssignments> {
        match self {
            Referee::Enumeration(engine) => engine.top(row, 1),
            Referee::MaxProductTree(engine) => engine.top(row, 1),
            Referee::BranchAndBound(engine) => engine.top(row, 1),
            Referee::JunctionTree(_) | Referee::Gibbs(_) => unreachable!("a referee for marginals"),
        }
    }
}

/// The frequency of each category among the samples.
fn sampled(engine: &Gibbs, row: &Row<'_>, seed: u64) -> prsl::Result<Option<Vec<f64>>> {
    let sampling = Sampling { n_samples: SAMPLES, seed, first_row: 0 };
    let samples = match engine.sample(row, &sampling) {
        Err(prsl::Error::Impossible { .. }) => return Ok(None),
        samples => samples?,
    };
    let mut starts = vec![0];
    for label in engine.model().labels() {
        starts.push(starts[starts.len() - 1] + label.n_categories());
    }
    let mut shares = vec![0.0; row.len()];
    for sample in &samples {
        for (start, category) in starts.iter().zip(sample.indices()) {
            shares[start + category] += 1.0 / samples.len() as f64;
        }
    }
    Ok(Some(shares))
}

/// Four decimals, or significant digits if that would be zero.
fn short(error: f64) -> String {
    if error == 0.0 || error >= 1e-3 { format!("{error:.4}") } else { format!("{error:.1e}") }
}
