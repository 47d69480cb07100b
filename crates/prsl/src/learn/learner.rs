//! The learner: sizes are tried, the validation rows decide, and what was learned is made readable.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::climb::{Climb, Look, Pace};
use super::examples::Examples;
use super::hidden::Hidden;
use super::objective::Problem;
use super::paper::Paper;
use super::readable::{Readable, readable};
use super::task::{Bases, Candidate, Size, Task};
use crate::calibrate::CalibrationMethod;
use crate::error::{Error, Result};
use crate::label::Label;
use crate::model::Model;

/// How rules are learned. The defaults suit most data.
///
/// ```
/// use prsl::learn::{Examples, Learner};
/// use prsl::{BeliefMatrix, Model, Normalize};
///
/// // Two classifiers that know little, of labels that are always equal.
/// let model = Model::parse("label left\nlabel right")?;
/// let mut beliefs = BeliefMatrix::new(&model);
/// let mut truths = Vec::new();
/// for row in 0..200 {
///     let truth = row % 2;
///     let belief = if truth == 0 { 0.6 } else { 0.4 };
///     beliefs.push(&[Some(belief), None, Some(0.5), None], Normalize::Never)?;
///     truths.push(vec![Some(truth), Some(truth)]);
/// }
/// let (train, valid) = Examples::new(beliefs, truths)?.split(0.2, 1);
/// let learned = Learner { steps: Some(200), ..Learner::default() }.learn(&model, &train, &valid)?;
/// assert!(learned.validation > learned.beliefs_alone);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Learner {
    /// The sizes to choose from, by the validation rows; the smaller ones first. Larger ones are tried as long as there is a gain.
    pub sizes: Vec<Size>,
    /// Steps of the optimizer, at most; `None` is 2,000, or 40 rounds over the rows if that is more.
    pub steps: Option<usize>,
    /// A size is done with when the validation rows have not gained for so many steps; `None` is 400, or 8 rounds if that is more.
    pub patience: Option<usize>,
    /// Rows of a step.
    pub batch: usize,
    /// Step size for probabilities of rules.
    pub learning_rate: f64,
    /// Step size for calibrators and combinations.
    pub other_rate: f64,
    /// What it costs that a category may make a rule true: so much log-likelihood, over all rows, per 1 − q.
    pub penalty: f64,
    /// How strongly calibrators are pulled to where they started: so much, over all rows, per squared distance.
    pub pull: f64,
    /// The probability of learned rules: just below 1, so that no row becomes impossible.
    pub probability: f64,
    /// Whether probabilities of the rules that are there already are learned too.
    pub learn_probabilities: bool,
    /// Whether typical combinations are learned, if the validation rows agree.
    pub typical: bool,
    /// Whether a rule about all labels is tried, too, where rules are learned and no size has any about all labels.
    pub wide: bool,
    /// How far the logarithm of a single combination's weight strays from what its frequency says.
    pub spread: f64,
    /// How beliefs are calibrated.
    pub calibrate: Calibrating,
    /// Whether the noisy-or rules that are there already, and the combinations, are where learning begins; those that are
    /// marked as fixed stay as they are.
    pub relearn: bool,
    /// How gradients are computed.
    pub gradients: Gradients,
    /// For [`Size::Paper`].
    pub paper: Paper,
    /// Draws where rules begin, and batches.
    pub seed: u64,
}

impl Default for Learner {
    fn default() -> Self {
        let size = |width: usize, rules_per_group: usize| Size::Thin { width, rules_per_group, wide: 0 };
        Self {
            sizes: vec![Size::NOTHING, size(2, 1), size(3, 1), size(4, 2), size(6, 4), size(9, 20)],
            steps: None,
            patience: None,
            batch: 40,
            learning_rate: 0.003,
            other_rate: 0.02,
            penalty: 1.5,
            pull: 15.0,
            probability: 0.999,
            learn_probabilities: false,
            typical: true,
            wide: true,
            spread: 1.0,
            calibrate: Calibrating::Joint,
            relearn: false,
            gradients: Gradients::Exact,
            paper: Paper::default(),
            seed: 1,
        }
    }
}

/// The steps of the optimizer, and how long it waits for a gain: in steps, and in rounds over the rows, whichever is more.
const STEPS: [usize; 2] = [2000, 40];
const PATIENCE: [usize; 2] = [400, 8];
/// So many known truths that are not what their labels mostly are, at least, for each inhibition probability to learn.
const RARE_TRUTHS: usize = 2;
/// So many entries of all tables together, at most, for a size to be tried unasked.
const MAX_ENTRIES: f64 = (1u64 << 19) as f64;
/// So many rules about a group, or in all, at most.
const MAX_RULES: usize = 100;
/// So many sizes in a row may gain nothing before the rest is left out, and so many where combinations or calibrators are left out.
const SIZES: usize = 4;
const OTHER_SIZES: usize = 1;
/// More numbers instead of combinations have to gain so many standard errors, and beliefs as they are given instead of calibrators.
const CLEARLY: f64 = 1.5;

/// How beliefs are calibrated while rules are learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calibrating {
    /// By the calibrators that the model has, if any.
    Given,
    /// By calibrators that are fitted first, without rules.
    Alone(CalibrationMethod),
    /// By Platt or Dirichlet calibrators that are fitted first, and then learned together with the rules; as given, where that is
    /// clearly better.
    Joint,
}

/// How gradients are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gradients {
    /// Exactly. What is too costly is refused.
    Exact,
    /// Of Bethe's approximation, by loopy propagation. Learning exploits the errors of the approximation: for comparison, or
    /// where nothing else is affordable.
    Loopy,
}

impl Learner {
    /// The paper's recipe with its settings: so many rules, chosen by the validation rows, and nothing else.
    pub fn paper() -> Self {
        Self {
            sizes: [5, 10, 20].map(|rules| Size::Paper { rules }).to_vec(),
            steps: Some(1000),
            patience: Some(400),
            batch: 20,
            learning_rate: 0.001,
            penalty: 0.0,
            typical: false,
            wide: false,
            calibrate: Calibrating::Given,
            ..Self::default()
        }
    }

    /// The same with sizes of so many rules (about each group, or in all), groups of so many labels less one, and so many rules about
    /// all labels; `None` allows any. Rules about all labels come with every size that has rules about groups. Where rules are learned
    /// anew, no new ones are a size, too.
    ///
    /// ```
    /// use prsl::learn::{Learner, Size};
    ///
    /// let learner = Learner::default().sized(Some(2), None, Some(1));
    /// assert_eq!(learner.sizes, [Size::Thin { width: 4, rules_per_group: 2, wide: 1 }]);
    /// let learner = Learner::paper().sized(Some(7), None, None);
    /// assert_eq!(learner.sizes, [Size::Paper { rules: 7 }]);
    /// ```
    pub fn sized(self, rules: Option<usize>, width: Option<usize>, wide: Option<usize>) -> Self {
        let (tries_wide, wide) = (self.wide && wide.is_none(), wide.unwrap_or(0));
        let allows = |wanted: Option<usize>, number: usize| wanted.is_none_or(|wanted| wanted == number);
        let is_free = rules.is_none() && width.is_none();
        let like = |size: &Size| match *size {
            Size::NOTHING => is_free.then_some(Size::NOTHING),
            Size::Thin { width: of_size, rules_per_group, .. } => {
                let is_wanted = allows(width, of_size) && allows(rules, rules_per_group);
                is_wanted.then_some(Size::Thin { width: of_size, rules_per_group, wide })
            }
            Size::Paper { rules: of_size } => allows(rules, of_size).then_some(*size),
        };
        let mut sizes: Vec<Size> = self.sizes.iter().filter_map(like).collect();
        if rules == Some(0) && wide == 0 {
            sizes = vec![Size::NOTHING];
        }
        if sizes.is_empty() {
            // Nothing of the usual: what was asked for, the rest from the middle of the list.
            sizes = match self.sizes.first() {
                Some(Size::Paper { .. }) => vec![Size::Paper { rules: rules.unwrap_or(10) }],
                _ => {
                    vec![Size::Thin { width: width.unwrap_or(3), rules_per_group: rules.unwrap_or(1), wide }]
                }
            };
        }
        if self.relearn && sizes[0] != Size::NOTHING {
            sizes.insert(0, Size::NOTHING);
        }
        Self { sizes, wide: tries_wide, ..self }
    }
}

/// What was learned.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The base with the learned rules, calibrators and combinations.
    pub model: Model,
    /// The size that was chosen.
    pub size: Size,
    /// Whether calibrators were asked for, and were worth it.
    pub calibrated: bool,
    /// How it went for the chosen size.
    pub curve: Vec<Look>,
    /// The mean joint log-likelihood of the validation rows under the model.
    pub validation: f64,
    /// The same before rules were rounded and left out.
    pub validation_before_rounding: f64,
    /// The same for the beliefs as they were given, without rules.
    pub beliefs_alone: f64,
    /// The same for the beliefs calibrated one by one, with the base's rules.
    pub base_alone: f64,
    /// For each rule of the model: what the validation rows lose without it.
    pub gains: Vec<f64>,
}

/// How far learning has come, for progress bars and for going on after a stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// What the settings, the base and the rows have in common with those that it is about; nothing before the first step.
    fingerprint: Option<u64>,
    /// The candidates that are done: how good they were, and their parameters.
    done: Vec<Climb>,
    /// The one that is under way.
    current: Option<Climb>,
}

impl Progress {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { fingerprint: None, done: Vec::new(), current: None }
    }

    /// How many candidates are done.
    pub fn n_done(&self) -> usize {
        self.done.len()
    }

    /// Steps taken with the present candidate.
    pub fn step(&self) -> usize {
        self.current.as_ref().map_or(0, |climb| climb.step)
    }

    /// The size of the present candidate.
    pub fn size(&self) -> Option<Size> {
        self.current.as_ref().or(self.done.last()).map(|climb| climb.candidate.size)
    }

    /// The last look at the validation rows.
    pub fn last_look(&self) -> Option<Look> {
        self.current.as_ref().or(self.done.last()).and_then(|climb| climb.curve.last().copied())
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Learner {
    /// Learns beside the rules of `base`, which stay as they are (or their probabilities, where that is asked for).
    pub fn learn(&self, base: &Model, train: &Examples, valid: &Examples) -> Result<Learned> {
        self.learn_observed(base, train, valid, Progress::new(), &mut |_| ControlFlow::Continue(()))
    }

    /// The same, taken up where it was left, and told every few steps how far it has come; with `Break` it ends with the best so far.
    pub fn learn_observed(
        &self,
        base: &Model,
        train: &Examples,
        valid: &Examples,
        mut progress: Progress,
        observe: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Learned> {
        self.check(base, train, valid)?;
        let of_another_run = || {
            let problem =
                "what was to be taken up is of other rows, another model or other settings; begin anew";
            Error::Examples { problem: problem.to_owned() }
        };
        let fingerprint = self.fingerprint(base, [train, valid]);
        if *progress.fingerprint.get_or_insert(fingerprint) != fingerprint {
            return Err(of_another_run());
        }
        let calibrated = self.calibrated(base, train)?;
        let bases = &Bases { given: train.cautious(&valid.cautious(base)?)?, calibrated };
        let hidden = Hidden::new(&bases.calibrated, train);
        let (train, valid) = (&hidden.draw(train, self.seed)?, &hidden.draw(valid, self.seed)?);
        let sizes = self.affordable(base, train);
        let widen =
            |size: Size| size.widened(base.labels().len()).filter(|size| is_affordable(*size, base, train));
        while let Some(candidate) = self.next(&sizes, &progress.done, &widen) {
            let mut task = Task::new(self, candidate, bases, train)?;
            let rows = [&task.problem.rows(train, true), &task.problem.rows(valid, false)];
            let mut climb = progress.current.take().unwrap_or_else(|| Climb::new(candidate, &task.start));
            if climb.candidate != candidate || climb.parameters.len() != task.start.parameters.len() {
                return Err(of_another_run());
            }
            let mut goes_on = true;
            let mut flow = ControlFlow::Continue(());
            while goes_on && flow.is_continue() {
                goes_on = climb.go_on(&mut task, self.pace(train), rows)?;
                progress.current = Some(climb);
                flow = observe(&progress);
                climb = progress.current.take().expect("it was put there");
            }
            progress.done.push(climb);
            if flow.is_break() {
                break;
            }
        }
        self.finish(bases, [train, valid], &progress.done)
    }

    /// How many candidates there are at most.
    pub fn max_candidates(&self) -> usize {
        let n_stages = 1 + usize::from(self.typical) + usize::from(self.calibrate == Calibrating::Joint);
        self.sizes.len() * n_stages + 3 * usize::from(self.widens())
    }

    /// Whether a rule about all labels may be tried where none was asked for, but other rules were.
    fn widens(&self) -> bool {
        let learns_rules = self.sizes.iter().any(|size| *size != Size::NOTHING);
        self.wide && learns_rules && !self.sizes.iter().any(|size| size.is_wide())
    }

    /// The first size, and others that the rows can tell something about.
    fn affordable(&self, base: &Model, train: &Examples) -> Vec<Size> {
        let mut sizes: Vec<Size> = self.sizes.iter().map(|size| size.at_most(base.labels().len())).collect();
        let others = sizes.split_off(1);
        sizes.extend(others.into_iter().filter(|size| is_affordable(*size, base, train)));
        sizes
    }

    /// What to try next: larger sizes until some in a row gain nothing; then the best and larger ones without combinations; then a rule
    /// about all labels; then the best of all, larger ones as long as they gain, and nothing but a rule about all labels, with the
    /// beliefs as they are given.
    fn next(
        &self,
        sizes: &[Size],
        done: &[Climb],
        widen: &dyn Fn(Size) -> Option<Size>,
    ) -> Option<Candidate> {
        let [first, plain, wide, given] = self.stages(done);
        let is_at = |later: &[&[Climb]]| later.iter().all(|stage| stage.is_empty());
        let next = |from: usize, tried: &[Climb], patience: usize| {
            let gains = best(tried).is_none_or(|best| tried.len() - best <= patience);
            sizes.get(from + tried.len()).copied().filter(|_| gains)
        };
        let from = best(first).unwrap_or(0);
        if is_at(&[plain, wide, given])
            && let Some(size) = next(0, first, SIZES)
        {
            return Some(Candidate { size, typical: self.typical, calibrated: true });
        }
        if self.typical
            && is_at(&[wide, given])
            && let Some(size) = next(from, plain, OTHER_SIZES)
        {
            return Some(Candidate { size, typical: false, calibrated: true });
        }
        let narrow = &done[..first.len() + plain.len()];
        if self.widens()
            && is_at(&[given])
            && let Some(candidate) = next_wide(narrow, wide, widen)
        {
            return Some(candidate);
        }
        let calibrated = &done[..narrow.len() + wide.len()];
        let best = best(calibrated).filter(|_| self.calibrate == Calibrating::Joint)?;
        let candidate = Candidate { calibrated: false, ..calibrated[best].candidate };
        let alone = widen(Size::NOTHING).map(|size| Candidate { size, ..candidate });
        if given.is_empty() {
            return Some(candidate);
        }
        if given.iter().any(|climb| Some(climb.candidate) == alone) {
            return None;
        }
        // Where the first is no better than it is with calibrators, larger ones are not either.
        let gains = given.iter().all(|climb| climb.best_validation > calibrated[best].best_validation);
        let at = best.checked_sub(first.len()).map_or(best, |plain| from + plain);
        let larger = next(at, given, OTHER_SIZES).filter(|_| gains && best < narrow.len());
        // Calibrators can do much of what a rule about all labels does, and are in its way more than in that of others.
        larger.map(|size| Candidate { size, ..candidate }).or_else(|| alone.filter(|_| self.widens()))
    }

    /// The candidates as they were asked for; then, to see whether that is better, those without combinations, those with a rule about all
    /// labels, and those without calibrators.
    fn stages<'a>(&self, done: &'a [Climb]) -> [&'a [Climb]; 4] {
        let while_it_is = |climbs: &'a [Climb], is: &dyn Fn(&Candidate) -> bool| {
            climbs.split_at(climbs.iter().take_while(|climb| is(&climb.candidate)).count())
        };
        let is_added = |size: Size| size.is_wide() && self.widens();
        let (calibrated, given) = while_it_is(done, &|candidate| candidate.calibrated);
        let (narrow, wide) = while_it_is(calibrated, &|candidate| !is_added(candidate.size));
        let (first, plain) = while_it_is(narrow, &|candidate| candidate.typical == self.typical);
        [first, plain, wide, given]
    }

    /// How many steps a candidate takes at most.
    pub fn n_steps(&self, train: &Examples) -> usize {
        self.steps.unwrap_or_else(|| self.at_least(train, STEPS))
    }

    fn pace(&self, train: &Examples) -> Pace {
        let patience = self.patience.unwrap_or_else(|| self.at_least(train, PATIENCE));
        Pace { steps: self.n_steps(train), batch: self.batch, seed: self.seed, patience }
    }

    /// The larger of so many steps, and so many rounds over the rows.
    fn at_least(&self, train: &Examples, [steps, rounds]: [usize; 2]) -> usize {
        steps.max(rounds * train.n_rows() / self.batch.max(1))
    }

    fn check(&self, base: &Model, train: &Examples, valid: &Examples) -> Result<()> {
        let advice = "; more rows are needed, or some to validate on";
        for (examples, which, advice) in [(train, "to learn from", ""), (valid, "to validate on", advice)] {
            if examples.truths().iter().flatten().flatten().next().is_none() {
                let problem = format!("there are no rows with a known truth {which}{advice}");
                return Err(Error::Examples { problem });
            }
            if !are_about_the_same(examples.beliefs().model(), base) {
                let problem = format!("the rows {which} are about other labels than the model");
                return Err(Error::Examples { problem });
            }
        }
        if self.gradients == Gradients::Loopy {
            let is_thin = self.sizes.iter().any(|size| matches!(size, Size::Thin { .. }));
            let problem = match () {
                () if is_thin => {
                    "rules about thin groups are learned with exact gradients, not with loopy ones"
                }
                () if self.typical || !base.typical().is_empty() => {
                    "typical combinations cannot be learned, nor learned beside, with loopy gradients"
                }
                () => "",
            };
            if !problem.is_empty() {
                return Err(Error::Examples { problem: problem.to_owned() });
            }
        }
        self.check_settings()?;
        if self.sizes.is_empty() || self.batch == 0 {
            return Err(Error::Examples {
                problem: "learning needs a size to try and rows in a batch".to_owned(),
            });
        }
        Ok(())
    }

    fn check_settings(&self) -> Result<()> {
        let is_positive = |x: f64| x > 0.0 && x.is_finite();
        let is_no_less = |x: f64| x >= 0.0 && x.is_finite();
        let n_rules = |size: &Size| match *size {
            Size::Thin { rules_per_group, .. } => rules_per_group,
            Size::Paper { rules } => rules,
        };
        let most = self.sizes.iter().map(n_rules).max().unwrap_or(0);
        let is_between = self.probability > 0.0 && self.probability < 1.0;
        for (setting, value, wanted, is_met) in [
            ("learning_rate", self.learning_rate, "a number above 0", is_positive(self.learning_rate)),
            ("other_rate", self.other_rate, "a number above 0", is_positive(self.other_rate)),
            ("penalty", self.penalty, "a number of 0 or more", is_no_less(self.penalty)),
            ("pull", self.pull, "a number of 0 or more", is_no_less(self.pull)),
            ("spread", self.spread, "a number above 0", is_positive(self.spread)),
            ("probability", self.probability, "a number above 0 and below 1", is_between),
            // A hundred rules that are silent leave (1 − p)¹⁰⁰ of a weight, 1e-300: with more nothing would be left.
            ("rules", most as f64, "100 at most, about each group or in all", most <= MAX_RULES),
        ] {
            if !is_met {
                return Err(Error::Setting { setting, value, wanted });
            }
        }
        Ok(())
    }

    /// What tells runs apart whose steps cannot be mixed.
    fn fingerprint(&self, base: &Model, rows: [&Examples; 2]) -> u64 {
        let mut hasher = DefaultHasher::new();
        (env!("CARGO_PKG_VERSION"), format!("{self:?}"), base.to_string()).hash(&mut hasher);
        for examples in rows {
            let beliefs = (0..examples.n_rows()).flat_map(|row| examples.beliefs().row(row));
            beliefs.chain(examples.weights()).for_each(|number| number.to_bits().hash(&mut hasher));
            examples.truths().hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The base with calibrators that are fitted alone, unless it is calibrated already.
    fn calibrated(&self, base: &Model, train: &Examples) -> Result<Model> {
        match self.calibrate {
            Calibrating::Given => Ok(base.clone()),
            Calibrating::Alone(method) => train.calibrated(base, method),
            Calibrating::Joint => train.calibrated(base, CalibrationMethod::Platt),
        }
    }

    /// What each candidate comes to, with the log-likelihood of every validation row.
    fn scored(
        &self,
        bases: &Bases,
        [train, valid]: [&Examples; 2],
        climbs: &[Climb],
    ) -> Result<Vec<(Problem, Vec<f64>)>> {
        let scored = |climb: &Climb| {
            let mut task = Task::new(self, climb.candidate, bases, train)?;
            task.settle(&mut climb.best.clone())?;
            let scores = task.problem.log_likelihoods(&climb.best, &task.problem.rows(valid, false));
            Ok((task.problem, scores))
        };
        climbs.iter().map(scored).collect()
    }

    /// Which candidate it is to be.
    fn choose(&self, climbs: &[Climb], scored: &[(Problem, Vec<f64>)]) -> usize {
        let scores: Vec<&[f64]> = scored.iter().map(|(_, scores)| &scores[..]).collect();
        let mut chosen = None;
        let mut n_seen = 0;
        for stage in self.stages(climbs).into_iter().filter(|stage| !stage.is_empty()) {
            let other = n_seen + simplest_of_the_best(&scores[n_seen..][..stage.len()]);
            n_seen += stage.len();
            // Leaving out combinations has to be better with fewer numbers, or clearly better; a rule about all labels and leaving out
            // calibrators, clearly better.
            let is_better = |chosen: usize| {
                let (gain, error) = difference(scores[other], scores[chosen]);
                let has_fewer = climbs[other].parameters.len() < climbs[chosen].parameters.len();
                let is_enough = has_fewer && climbs[other].candidate.calibrated;
                gain > if is_enough { 0.0 } else { CLEARLY * error }
            };
            if chosen.is_none_or(is_better) {
                chosen = Some(other);
            }
        }
        chosen.expect("a candidate at least")
    }

    /// Chooses among the candidates, and makes a model of it.
    fn finish(&self, bases: &Bases, rows: [&Examples; 2], climbs: &[Climb]) -> Result<Learned> {
        let scored = self.scored(bases, rows, climbs)?;
        let chosen = self.choose(climbs, &scored);
        let (problem, climb) = (&scored[chosen].0, &climbs[chosen]);
        let base = bases.of(climb.candidate);
        let [train, valid] = rows;
        let rows = problem.rows(valid, false);
        let relearned = base.rules().iter().map(|rule| self.relearns(rule)).collect::<Vec<bool>>();
        let Readable { model, parameters, gains } = readable(base, &relearned, problem, &climb.best, &rows)?;
        Ok(Learned {
            model,
            size: climb.candidate.size,
            calibrated: climb.candidate.calibrated && self.calibrate != Calibrating::Given,
            curve: climb.curve.clone(),
            validation: problem.mean(&parameters, &rows),
            validation_before_rounding: climb.best_validation,
            beliefs_alone: self.baseline(
                &bases.calibrated.without_rules()?.without_calibrators(),
                train,
                valid,
                Calibrating::Given,
            )?,
            base_alone: self.baseline(&bases.calibrated, train, valid, self.calibrate)?,
            gains,
        })
    }

    /// The mean joint log-likelihood of the validation rows without anything learned but calibrators.
    fn baseline(
        &self,
        base: &Model,
        train: &Examples,
        valid: &Examples,
        calibrate: Calibrating,
    ) -> Result<f64> {
        let settings = Self { calibrate, learn_probabilities: false, relearn: false, ..self.clone() };
        let nothing = Candidate { size: Size::NOTHING, typical: false, calibrated: true };
        let bases = Bases { given: base.clone(), calibrated: base.clone() };
        let Task { problem, start, .. } = Task::new(&settings, nothing, &bases, train)?;
        Ok(problem.mean(&start.parameters, &problem.rows(valid, false)))
    }
}

/// Whether the rows can tell something about a size: not too many numbers to learn, and not too large tables.
fn is_affordable(size: Size, base: &Model, train: &Examples) -> bool {
    let most = n_rare(train) / RARE_TRUTHS;
    size.n_parameters(base).is_none_or(|n| n <= most) && size.n_entries(base) <= MAX_ENTRIES
}

/// How many known truths are not the most frequent category of their label: what there is to learn rules from.
fn n_rare(examples: &Examples) -> usize {
    let labels = examples.beliefs().model().labels();
    let of_label = |(at, label): (usize, &Label)| {
        let mut counts = vec![0; label.n_categories()];
        examples.truths().iter().filter_map(|truths| truths[at]).for_each(|truth| counts[truth] += 1);
        counts.iter().sum::<usize>() - counts.iter().max().copied().unwrap_or(0)
    };
    labels.iter().enumerate().map(of_label).sum()
}

/// Whether two models have the same labels and categories.
fn are_about_the_same(a: &Model, b: &Model) -> bool {
    let same = |(a, b): (&Label, &Label)| a.name() == b.name() && a.categories() == b.categories();
    a.labels().len() == b.labels().len() && a.labels().iter().zip(b.labels()).all(same)
}

/// Of several candidates, the simplest first, the first that is not clearly worse than the best: within one standard error of
/// their difference, row by row.
fn simplest_of_the_best(scores: &[&[f64]]) -> usize {
    let best =
        (0..scores.len()).rev().max_by(|&a, &b| mean(scores[a]).total_cmp(&mean(scores[b]))).unwrap_or(0);
    let is_close = |candidate: &usize| {
        let (gain, error) = difference(scores[best], scores[*candidate]);
        gain <= error
    };
    (0..scores.len()).find(is_close).unwrap_or(best)
}

/// The mean difference between two scores of the same rows, and its standard error.
fn difference(a: &[f64], b: &[f64]) -> (f64, f64) {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let n = differences.len() as f64;
    let center = mean(&differences);
    let variance = differences.iter().map(|d| (d - center).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (center, (variance / n).sqrt())
}

/// A rule about all labels to try: beside no others, and if that gains something, beside those that are best without it.
fn next_wide(narrow: &[Climb], wide: &[Climb], widen: &dyn Fn(Size) -> Option<Size>) -> Option<Candidate> {
    let best = narrow[best(narrow)?].candidate;
    let nothing = Candidate { size: Size::NOTHING, ..best };
    let alone = narrow.iter().find(|climb| climb.candidate == nothing);
    let candidate = match (alone, wide) {
        (Some(_), []) => nothing,
        (None, []) => best,
        (Some(alone), [first]) if first.best_validation > alone.best_validation && best != nothing => best,
        _ => return None,
    };
    widen(candidate.size).map(|size| Candidate { size, ..candidate })
}

/// The best of some climbs, the first of equals.
fn best(climbs: &[Climb]) -> Option<usize> {
    (0..climbs.len()).rev().max_by(|&a, &b| climbs[a].best_validation.total_cmp(&climbs[b].best_validation))
}

fn mean(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>() / scores.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::belief::{BeliefMatrix, Normalize};

    #[test]
    fn sizes_with_too_large_tables_or_too_few_truths_are_left_out() {
        let affordable = |n_categories: usize, n_rows: usize| {
            let names: Vec<String> = (0..n_categories).map(|category| format!("c{category}")).collect();
            let label =
                |builder: crate::ModelBuilder, at: usize| builder.label(format!("l{at}"), names.clone());
            let model = (0..12).fold(Model::builder(), label).build().unwrap();
            let mut beliefs = BeliefMatrix::new(&model);
            let even = vec![Some(1.0 / n_categories as f64); 12 * n_categories];
            (0..n_rows).for_each(|_| beliefs.push(&even, Normalize::Always).unwrap());
            let truths = (0..n_rows).map(|row| vec![Some(row % n_categories); 12]).collect();
            let examples = Examples::new(beliefs, truths).unwrap();
            Learner::default().affordable(&model, &examples).len()
        };
        let all = Learner::default().sizes.len();
        assert_eq!(affordable(2, 2000), all);
        // 12⁵ entries are too many, 12⁴ are not.
        assert_eq!(affordable(12, 2000), 3);
        assert_eq!(affordable(2, 1), 1);
    }
}
