//! The learner: sizes are tried, the validation rows decide, and what was learned is made readable.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::climb::{Climb, Look, Pace};
use super::examples::Examples;
use super::hidden::Hidden;
use super::objective::Problem;
use super::old_paper::Paper;
use super::readable::{Readable, readable};
use super::task::{Bases, Candidate, Size, Task};
use super::watch::{Watch, never};
use crate::calibrate::CalibrationMethod;
use crate::error::{Error, Result};
use crate::infer::Limits;
use crate::label::Label;
use crate::model::Model;

/// How rules are learned. The defaults suit most data.
///
/// ```
/// use prsl::learn::{Examples, Learner};
/// use prsl::{BeliefMatrix, Model, Normalize, Truth};
///
/// // Two classifiers that know little, of labels that are always equal.
/// let model = Model::parse("label left\nlabel right")?;
/// let mut beliefs = BeliefMatrix::new(&model);
/// let mut truths = Vec::new();
/// for row in 0..200 {
///     let truth = row % 2;
///     let belief = if truth == 0 { 0.6 } else { 0.4 };
///     beliefs.push(&[Some(belief), None, Some(0.5), None], Normalize::Never)?;
///     truths.push(Truth::from_indices([Some(truth), Some(truth)]));
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
    /// Bytes for how far each two labels go together, and for the tables of groups of labels. Sizes that need more are left
    /// out, or refused if there are no others.
    pub memory: u64,
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
            memory: Limits::default().memory,
            seed: 1,
        }
    }
}

/// The steps of the optimizer, and how long it waits for a gain: in steps, and in rounds over the rows, whichever is more.
const STEPS: [usize; 2] = [2000, 40];
const PATIENCE: [usize; 2] = [400, 8];
/// So many rules about a group, or in all, at most.
const MAX_RULES: usize = 100;
/// What there is before anything is learned.
const NOTHING: Candidate = Candidate { size: Size::NOTHING, typical: false, calibrated: true };

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
    /// Whether it was told to stop before everything had been tried; the model is the best so far, at least the base with what
    /// calibrators there were.
    pub is_stopped: bool,
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

    /// The same, taken up where it was left, and told every few steps, and while it prepares them, how far it has come; with `Break`
    /// it ends with the best so far.
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
        let mut ask = || observe(&progress);
        let mut watch = Watch::new(&mut ask);
        let calibrated = self.calibrated(base, train, &mut watch)?;
        let mut is_stopped = watch.is_over();
        let bases = &Bases::new(train.cautious(&valid.cautious(base)?)?, calibrated);
        let hidden = Hidden::new(&bases.calibrated, train);
        let (train, valid) = (&hidden.draw(train, self.seed)?, &hidden.draw(valid, self.seed)?);
        let sizes = self.affordable(base, train);
        while !is_stopped && let Some(candidate) = self.next(&sizes, &progress.done, base, train) {
            let mut ask = || observe(&progress);
            let Some(mut task) = Task::new(self, candidate, bases, train, &mut Watch::new(&mut ask))? else {
                is_stopped = true;
                break;
            };
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
            is_stopped = flow.is_break();
        }
        if progress.done.is_empty() {
            progress.done.push(self.nothing_yet(bases, train, valid)?);
        }
        Ok(Learned { is_stopped, ..self.finish(bases, [train, valid], &progress.done)? })
    }

    /// The base with its calibrators, as it is before anything is learned.
    fn nothing_yet(&self, bases: &Bases, train: &Examples, valid: &Examples) -> Result<Climb> {
        let task = self.whole_task(NOTHING, bases, train)?;
        let mut climb = Climb::new(NOTHING, &task.start);
        climb.look(&task, &task.problem.rows(valid, false), None);
        Ok(climb)
    }

    /// A task that takes the time it needs.
    fn whole_task(&self, candidate: Candidate, bases: &Bases, train: &Examples) -> Result<Task> {
        let mut never = never();
        let task = Task::new(self, candidate, bases, train, &mut Watch::new(&mut never))?;
        Ok(task.expect("nobody says to stop"))
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
            let known = examples.truths().iter().zip(examples.weights());
            let mut known = known.filter(|(truths, _)| truths.n_known() > 0).peekable();
            if known.peek().is_none() {
                let problem = format!("there are no rows with a known truth {which}{advice}");
                return Err(Error::Examples { problem });
            }
            if known.all(|(_, weight)| *weight == 0.0) {
                let problem = format!("all rows with a known truth {which} have weight 0{advice}");
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
            let beliefs = (0..examples.n_rows()).flat_map(|row| examples.beliefs().values_of(row));
            beliefs.chain(examples.weights()).for_each(|number| number.to_bits().hash(&mut hasher));
            examples.truths().hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The base with calibrators that are fitted alone, unless it is calibrated already.
    fn calibrated(&self, base: &Model, train: &Examples, watch: &mut Watch) -> Result<Model> {
        match self.calibrate {
            Calibrating::Given => Ok(base.clone()),
            Calibrating::Alone(method) => train.calibrated_while(base, method, watch),
            Calibrating::Joint => train.calibrated_while(base, CalibrationMethod::Platt, watch),
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
            let mut task = self.whole_task(climb.candidate, bases, train)?;
            task.settle(&mut climb.best.clone())?;
            let scores = task.problem.log_likelihoods(&climb.best, &task.problem.rows(valid, false));
            Ok((task.problem, scores))
        };
        climbs.iter().map(scored).collect()
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
            is_stopped: false,
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
        let bases = Bases::new(base.clone(), base.clone());
        let Task { problem, start, .. } = settings.whole_task(NOTHING, &bases, train)?;
        Ok(problem.mean(&start.parameters, &problem.rows(valid, false)))
    }
}

/// Whether two models have the same labels and categories.
fn are_about_the_same(a: &Model, b: &Model) -> bool {
    let same = |(a, b): (&Label, &Label)| a.name() == b.name() && a.categories() == b.categories();
    a.labels().len() == b.labels().len() && a.labels().iter().zip(b.labels()).all(same)
}
