//! `--verify`: how far the answers of some rows are from those of a more exact engine.

use std::fmt::Write as _;

use prsl::engines::Settings;
use prsl::{
    BeliefMatrix, BranchAndBound, Engine, Enumeration, Gibbs, GibbsSettings, JunctionTree, MaxProductTree,
    Model, MostProbable, RankedExplanations, Sampling, Status,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::progress::{counted, grouped};
use crate::style::{self, styled};
use crate::table::Answers;

/// Rows drawn at random from those that go by, with what was answered.
pub struct Verification {
    wanted: usize,
    seen: u64,
    rng: ChaCha8Rng,
    seed: u64,
    kept: Vec<Kept>,
}

/// A row, and what was answered: marginals and an explanation, each where it was asked for.
struct Kept {
    row: u64,
    beliefs: BeliefMatrix,
    marginals: Option<(Engine, Option<Vec<f64>>)>,
    best: Option<(Engine, Option<f64>)>,
}

/// Assignments up to which all of them are gone through, which is beyond doubt.
const FEW_ASSIGNMENTS: f64 = 65_536.0;
/// Samples for a row where nothing exact is affordable: a marginal is then off by 0.01 or so.
const SAMPLES: usize = 10_000;
/// Explanations whose log weights are this close (relative to their size above 1) are equally good.
const SAME: f64 = 1e-9;
/// Marginals this close differ by rounding alone.
const ROUNDING: f64 = 1e-12;

impl Verification {
    /// Will keep this many rows.
    pub fn new(wanted: usize, seed: u64) -> Verification {
        Verification { wanted, seen: 0, rng: ChaCha8Rng::seed_from_u64(seed), seed, kept: Vec::new() }
    }

    /// Lets some rows go by. Each row of the whole table is kept with the same probability.
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

    /// Answers the rows again, and tells how far off the answers were.
    pub fn report(mut self, model: &Model, settings: &Settings) -> prsl::Result<String> {
        self.kept.sort_by_key(|kept| kept.row);
        let n_rows = counted(self.kept.len() as u64, "row");
        let heading = styled(style::STRONG, format_args!("verified {n_rows} of {}", grouped(self.seen)));
        let mut text = String::new();
        if let Some((engine, _)) = self.kept.iter().find_map(|kept| kept.marginals.as_ref()) {
            let referee = Referee::for_marginals(model, *engine, settings);
            let _ = writeln!(text, "{heading}: {}", self.marginals(model, &referee)?);
        }
        if let Some((engine, _)) = self.kept.iter().find_map(|kept| kept.best.as_ref()) {
            let referee = Referee::for_explanations(model, *engine, settings)?;
            let _ = writeln!(text, "{heading}: {}", self.explanations(&referee));
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
                    let place = format!("row {}, {name}: {answered:.4} for {expected:.4}", kept.row);
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

    fn explanations(&self, referee: &Referee) -> String {
        let (mut worse, mut disputed, mut largest) = (0u64, 0u64, 0.0f64);
        for (kept, answered) in self.kept.iter().filter_map(|kept| Some((kept, kept.best.as_ref()?.1))) {
            let Some(best) = referee.best(kept.beliefs.row(0)) else { continue };
            match (answered, best) {
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
        let mut text = format!("against {}, the explanation has a smaller weight in {rows}", referee.name());
        if worse > 0 {
            let _ = write!(text, " (log_weight smaller by {} at worst)", short(largest));
        }
        if disputed > 0 {
            let _ = write!(text, "; whether it is possible differs in {}", counted(disputed, "row"));
        }
        text
    }
}

impl Kept {
    fn new(number: u64, rows: &BeliefMatrix, row: usize, answers: &Answers) -> Kept {
        let marginals = answers.posteriors.as_ref();
        let best = answers.best.as_ref();
        let explained = |it: &Vec<RankedExplanations>| match (it[row].first(), it[row].status(0)) {
            (Some(best), _) => Some((best.engine, Some(best.log_weight))),
            (None, Status::NotFound) => None,
            (None, _) => Some((Engine::BranchAndBound, None)),
        };
        Kept {
            row: number,
            beliefs: rows.slice(row..row + 1),
            marginals: marginals.map(|it| (it.engine(), it.marginals(row).map(<[f64]>::to_vec))),
            best: best.and_then(explained),
        }
    }
}

/// Whoever the answers are compared with.
enum Referee {
    Enumeration(Enumeration),
    JunctionTree(Box<JunctionTree>),
    Gibbs(Box<Gibbs>),
    MaxProductTree(Box<MaxProductTree>),
    BranchAndBound(Box<BranchAndBound>),
}

impl Referee {
    /// All assignments where they are few, else the junction tree, else samples.
    fn for_marginals(model: &Model, engine: Engine, settings: &Settings) -> Referee {
        if let Some(referee) = Self::enumeration(model, engine) {
            return referee;
        }
        match JunctionTree::compile_within(model, settings.limits) {
            Ok(tree) if engine != Engine::JunctionTree => Referee::JunctionTree(Box::new(tree)),
            _ => Referee::Gibbs(Box::new(Gibbs::compile(model, GibbsSettings::default()))),
        }
    }

    /// All assignments where they are few, else the junction tree, else branch and bound.
    fn for_explanations(model: &Model, engine: Engine, settings: &Settings) -> prsl::Result<Referee> {
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
            Referee::Gibbs(_) => "Gibbs sampling (statistical: itself off by 0.01 or more)",
            Referee::BranchAndBound(_) => "branch and bound",
        }
    }

    /// The marginals of a row, `None` if it is impossible.
    fn marginals(&self, row: &BeliefMatrix, seed: u64) -> prsl::Result<Option<Vec<f64>>> {
        let posteriors = match self {
            Referee::Enumeration(engine) => engine.infer_batch(row),
            Referee::JunctionTree(engine) => engine.infer_batch(row),
            Referee::Gibbs(engine) => return sampled(engine, row.row(0), seed),
            Referee::MaxProductTree(_) | Referee::BranchAndBound(_) => return Ok(None),
        };
        Ok(posteriors.marginals(0).map(<[f64]>::to_vec))
    }

    /// The best explanation of a row, `None` inside if it is impossible; `None` if it does not know.
    fn best(&self, row: &[f64]) -> Option<Option<MostProbable>> {
        match self {
            Referee::Enumeration(engine) => Some(engine.top(row, 1).into_iter().next()),
            Referee::MaxProductTree(engine) => Some(engine.best_row(row)),
            Referee::BranchAndBound(engine) => {
                let found = engine.top(row, 1);
                (found.status(0) != Status::NotFound).then(|| found.into_best())
            }
            Referee::JunctionTree(_) | Referee::Gibbs(_) => None,
        }
    }
}

/// How often each category is drawn.
fn sampled(engine: &Gibbs, row: &[f64], seed: u64) -> prsl::Result<Option<Vec<f64>>> {
    let sampling = Sampling { n_samples: SAMPLES, seed, first_row: 0 };
    let samples = match engine.sample_row(row, &sampling) {
        Err(prsl::Error::Impossible { .. }) => return Ok(None),
        samples => samples?,
    };
    let mut starts = vec![0];
    for label in engine.model().labels() {
        starts.push(starts[starts.len() - 1] + label.n_categories());
    }
    let mut shares = vec![0.0; row.len()];
    for sample in &samples {
        for (start, category) in starts.iter().zip(sample) {
            shares[start + category] += 1.0 / samples.len() as f64;
        }
    }
    Ok(Some(shares))
}

/// Four decimals, or fewer digits where that would be zero.
fn short(error: f64) -> String {
    if error == 0.0 || error >= 1e-3 { format!("{error:.4}") } else { format!("{error:.1e}") }
}
