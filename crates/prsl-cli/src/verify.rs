//! `--verify`: compares the answers of some rows with those of a more exact engine.

use std::fmt::Write as _;

use prsl::infer::{
    EngineSettings, Enumeration, Gibbs, GibbsSettings, MaxProductTree, RankedAssignments, Sampling,
    SearchLimits,
};
use prsl::{BeliefMatrix, BranchAndBound, Engine, JunctionTree, Model, Row, Status};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::progress::{StepBar, counted, grouped};
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
/// Maximum multiply-adds per row for verification by a junction tree: the limit of the automatic choice for marginals.
const MAX_TREE_WORK: f64 = 2e9;
/// Maximum work per row for verification by branch and bound, in units of about a nanosecond.
const MAX_SEARCH_WORK: u64 = 1_000_000_000;
/// Maximum work per row for verification by Gibbs sampling: categories of the rules that are evaluated. A unit takes a few
/// nanoseconds.
const MAX_SAMPLING_WORK: f64 = 5e8;
/// Maximum number of samples per row; the error of a marginal is then about 0.01.
const MAX_SAMPLES: f64 = 10_000.0;
/// Minimum number of samples per row, for any work; the error of a marginal is then about 0.1.
const MIN_SAMPLES: f64 = 100.0;
/// Maximum difference of log weights (relative to their size above 1) of equally good assignments.
const SAME: f64 = 1e-9;
/// Maximum difference of marginals that is due to rounding.
const ROUNDING: f64 = 1e-12;

impl Verification {
    /// Samples this number of rows.
    pub fn new(wanted: usize, seed: u64) -> Verification {
        Verification { wanted, seen: 0, rng: ChaCha8Rng::seed_from_u64(seed), seed, kept: Vec::new() }
    }

    /// Takes some rows of the stream, with their numbers in the table. Each row of the whole table is kept with the same probability.
    pub fn observe(&mut self, rows: &BeliefMatrix, answers: &Answers, numbers: &[u64]) {
        for row in 0..rows.n_rows() {
            self.seen += 1;
            if self.kept.len() < self.wanted {
                self.kept.push(Kept::new(numbers[row], rows, row, answers));
            } else {
                let place = self.rng.random_range(0..self.seen);
                if place < self.wanted as u64 {
                    self.kept[place as usize] = Kept::new(numbers[row], rows, row, answers);
                }
            }
        }
    }

    /// Repeats the rows, and reports the errors.
    pub fn report(mut self, model: &Model, settings: &EngineSettings) -> prsl::Result<String> {
        self.kept.sort_by_key(|kept| kept.row);
        let n_rows = counted(self.kept.len() as u64, "row");
        let mut bar = StepBar::new("verifying", 2 * self.kept.len() as u64);
        let heading = styled(style::STRONG, format_args!("verified {n_rows} of {}", grouped(self.seen)));
        let mut text = String::new();
        if let Some((engine, _)) = self.kept.iter().find_map(|kept| kept.marginals.as_ref()) {
            let referee = Referee::for_marginals(model, *engine, settings);
            let _ = writeln!(text, "{heading}: {}", self.marginals(model, &referee, &mut bar)?);
        }
        if let Some((engine, _)) = self.kept.iter().find_map(|kept| kept.best.as_ref()) {
            let referee = Referee::for_assignments(model, *engine, settings)?;
            let _ = writeln!(text, "{heading}: {}", self.assignments(&referee, &mut bar)?);
        }
        bar.finish();
        Ok(text)
    }

    fn marginals(&self, model: &Model, referee: &Referee, bar: &mut StepBar) -> prsl::Result<String> {
        let names: Vec<String> = model
            .labels()
            .iter()
            .flat_map(|label| label.categories().iter().map(|it| format!("{}={it}", label.name())))
            .collect();
        let (mut sum, mut n, mut disputed) = (0.0, 0u64, 0u64);
        let mut worst: Option<(f64, String)> = None;
        for (n_done, kept) in self.kept.iter().enumerate() {
            bar.update(n_done as u64, "verifying marginals");
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

    fn assignments(&self, referee: &Referee, bar: &mut StepBar) -> prsl::Result<String> {
        let (mut worse, mut disputed, mut largest, mut not_proven) = (0u64, 0u64, 0.0f64, 0u64);
        for (n_done, kept) in self.kept.iter().enumerate() {
            bar.update((self.kept.len() + n_done) as u64, "verifying assignments");
            let Some((_, answered)) = kept.best else { continue };
            let found = referee.top(&kept.beliefs.row(0))?;
            not_proven += u64::from(!matches!(found.status(0), Status::Ok | Status::Impossible));
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
        if not_proven > 0 {
            let rows = counted(not_proven, "row");
            let _ = write!(
                text,
                "; its budget of {} units of work was not enough for a proof in {rows}",
                referee.budget()
            );
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
    /// With the number of samples per row.
    Gibbs(Box<Gibbs>, usize),
    MaxProductTree(Box<MaxProductTree>),
    BranchAndBound(Box<BranchAndBound>),
}

impl Referee {
    /// Enumeration for small models, else the junction tree if a row is within the budget, else samples.
    fn for_marginals(model: &Model, engine: Engine, settings: &EngineSettings) -> Referee {
        if let Some(referee) = Self::enumeration(model, engine) {
            return referee;
        }
        match JunctionTree::compile_within(model, settings.limits) {
            Ok(tree) if engine != Engine::JunctionTree && tree.cost().multiply_adds <= MAX_TREE_WORK => {
                Referee::JunctionTree(Box::new(tree))
            }
            _ => {
                let settings = GibbsSettings::default();
                let n_samples = n_samples(model, settings);
                Referee::Gibbs(Box::new(Gibbs::compile(model, settings)), n_samples)
            }
        }
    }

    /// Enumeration for small models, else the junction tree if a row is within the budget, else branch and bound.
    fn for_assignments(model: &Model, engine: Engine, settings: &EngineSettings) -> prsl::Result<Referee> {
        if let Some(referee) = Self::enumeration(model, engine) {
            return Ok(referee);
        }
        if engine != Engine::JunctionTree
            && let Ok(tree) = MaxProductTree::compile_within(model, settings.limits)
            && tree.cost().multiply_adds <= MAX_TREE_WORK
        {
            return Ok(Referee::MaxProductTree(Box::new(tree)));
        }
        let search = SearchLimits { work: settings.search.work.min(MAX_SEARCH_WORK), ..settings.search };
        let search = BranchAndBound::compile_within(model, settings.limits, search)?;
        Ok(Referee::BranchAndBound(Box::new(search)))
    }

    fn enumeration(model: &Model, engine: Engine) -> Option<Referee> {
        let n: f64 = model.labels().iter().map(|label| label.n_categories() as f64).product();
        let few = n <= FEW_ASSIGNMENTS && engine != Engine::Enumeration;
        few.then(|| Enumeration::compile(model).ok().map(Referee::Enumeration)).flatten()
    }

    /// Units of work per row for the search.
    fn budget(&self) -> String {
        match self {
            Referee::BranchAndBound(search) => grouped(search.limits().work),
            _ => "unlimited".to_owned(),
        }
    }

    fn name(&self) -> String {
        match self {
            Referee::Enumeration(_) => "the sum over all assignments".to_owned(),
            Referee::JunctionTree(_) | Referee::MaxProductTree(_) => "the junction tree".to_owned(),
            Referee::Gibbs(_, n_samples) => {
                let error = format!("{:.2}", 1.0 / (*n_samples as f64).sqrt());
                let estimate = format!("itself an estimate, with errors of about {error} or more");
                match *n_samples < MAX_SAMPLES as usize {
                    true => format!(
                        "Gibbs sampling ({estimate}: its budget of {MAX_SAMPLING_WORK:e} units of work was enough for {} \
                         a row only)",
                        counted(*n_samples as u64, "sample")
                    ),
                    false => format!("Gibbs sampling ({estimate})"),
                }
            }
            Referee::BranchAndBound(_) => "branch and bound".to_owned(),
        }
    }

    /// The marginals of a row, `None` if it is impossible.
    fn marginals(&self, row: &BeliefMatrix, seed: u64) -> prsl::Result<Option<Vec<f64>>> {
        let posteriors = match self {
            Referee::Enumeration(engine) => engine.infer_batch(row)?,
            Referee::JunctionTree(engine) => engine.infer_batch(row)?,
            Referee::Gibbs(engine, n_samples) => return sampled(engine, &row.row(0), *n_samples, seed),
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
            Referee::JunctionTree(_) | Referee::Gibbs(..) => unreachable!("a referee for marginals"),
        }
    }
}

/// The number of samples per row that the budget allows. Each sweep draws every label: it evaluates the rules about the
/// label for each of its categories.
fn n_samples(model: &Model, settings: GibbsSettings) -> usize {
    let work_of_rule = |rule: &prsl::Rule| {
        let scope = rule.scope();
        let n_categories: usize = scope.iter().map(|&label| model.label(label).n_categories()).sum();
        (n_categories * scope.len()) as f64
    };
    let work_of_sweep = model.n_categories() as f64 + model.rules().iter().map(work_of_rule).sum::<f64>();
    let n_sweeps = MAX_SAMPLING_WORK / work_of_sweep - (settings.burn_in * settings.chains) as f64;
    (n_sweeps / settings.thin as f64).clamp(MIN_SAMPLES, MAX_SAMPLES) as usize
}

/// The frequency of each category among the samples.
fn sampled(engine: &Gibbs, row: &Row<'_>, n_samples: usize, seed: u64) -> prsl::Result<Option<Vec<f64>>> {
    let sampling = Sampling { n_samples, seed, first_row: 0 };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_counted_by_their_work() {
        let settings = GibbsSettings::default();
        let model = |n_labels: usize| {
            let names: Vec<String> = (0..n_labels).map(|label| format!("l{label}")).collect();
            let labels: String = names.iter().map(|name| format!("label {name}\n")).collect();
            Model::parse(&format!("{labels}rule 0.9: {}\n", names.join(" | "))).expect("a model")
        };
        assert_eq!(n_samples(&model(10), settings), 10_000);
        assert_eq!(n_samples(&model(100), settings), 6_088);
        assert_eq!(n_samples(&model(2000), settings), 100);
        let referee = Referee::Gibbs(Box::new(Gibbs::compile(&model(100), settings)), 2_500);
        assert_eq!(
            referee.name(),
            "Gibbs sampling (itself an estimate, with errors of about 0.02 or more: its budget of 5e8 units of work was \
             enough for 2,500 samples a row only)"
        );
    }
}
