//! Counterfactuals of random small models agree with enumeration: thresholds, minimality, observations and ties.

use proptest::prelude::*;
use prsl::calibrate::BeliefOrigin;
use prsl::explain::{BeliefChange, Counterfactuals, LabelCounterfactual};
use prsl::infer::{EngineChoice, Enumeration, MarginalEngine};
use prsl::{BeliefMatrix, CategoryId, Engines, Evidence, LabelId, Model, Normalize};
use prsl_testkit::{EXACT, close, small_model};

/// Relative lead below which two categories are equally probable.
const TIE: f64 = 1e-11;

/// Distance from a threshold at which the answer is checked on both sides.
const STEP: f64 = 1e-7;

/// Points per line of beliefs on which no smaller change may suffice.
const GRID: usize = 16;

const CHOICES: [EngineChoice; 4] =
    [EngineChoice::Exact, EngineChoice::JunctionTree, EngineChoice::Circuit, EngineChoice::Enumeration];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn thresholds_are_where_enumeration_changes_its_answer((model, rows) in small_model(), seed in any::<u32>()) {
        let choice = CHOICES[seed as usize % CHOICES.len()];
        let engine = Engines::new(&model).with_choice(choice).marginals().unwrap();
        let oracle = Enumeration::compile(&model).unwrap();
        for index in 0..rows.n_rows() {
            let row = partly_observed(&rows.select(&[index]), seed >> 8);
            for label in model.label_ids() {
                let target = CategoryId::new((seed as usize >> 4) % model.label(label).n_categories());
                let found = engine.counterfactuals(&row.row(0), label, target).unwrap();
                Case { oracle: &oracle, row: &row, label, target: target.index() }.check(&found).map_err(|wrong| {
                    TestCaseError::fail(format!("{wrong}\nrow {:?} of\n{model}\n{found:#?}", row.row(0)))
                })?;
            }
        }
    }

    /// The raw belief at a threshold is where the answer changes after calibration.
    #[test]
    fn raw_thresholds_are_where_the_calibrated_answer_changes((model, rows) in small_model(), seed in any::<u32>()) {
        let model = calibrated(&model, seed);
        let engine = Engines::new(&model).marginals().unwrap();
        let oracle = Enumeration::compile(&model).unwrap();
        let mut raw = BeliefMatrix::new(&model.without_calibrators());
        raw.push(&cells(rows.row(0).to_vec()), Normalize::Always).unwrap();
        for label in model.label_ids() {
            let found = engine.counterfactuals_raw(&raw, 0, label, CategoryId::new(0)).unwrap();
            for change in found.changes.iter().chain(&found.own) {
                let id = model.find_label(&change.label).unwrap();
                let Some(belief) = &change.belief else { continue };
                let lead = |raw: BeliefMatrix| lead(&oracle, &raw.calibrated_by(&model).unwrap(), label, 0);
                check_raw(&raw, id, belief, lead)
                    .map_err(|wrong| TestCaseError::fail(format!("{wrong}\nrow {:?} of\n{model}\n{found:#?}", raw.row(0))))?;
            }
        }
    }
}

fn cells(values: Vec<f64>) -> Vec<Option<f64>> {
    values.into_iter().map(Some).collect()
}

/// The row with some labels observed, as the bits of `seed` tell.
fn partly_observed(row: &BeliefMatrix, seed: u32) -> BeliefMatrix {
    let mut row = row.clone();
    let model = row.model().clone();
    for (index, label) in model.label_ids().enumerate() {
        if seed >> (2 * index) & 3 == 0 {
            let category = CategoryId::new((seed >> index) as usize % model.label(label).n_categories());
            row.observe(0, label, category).unwrap();
        }
    }
    row
}

/// The row with another belief about one label.
fn with_belief(row: &BeliefMatrix, label: LabelId, belief: &[f64]) -> BeliefMatrix {
    let mut values = row.row(0).to_vec();
    values[row.model().block(label)].copy_from_slice(belief);
    let mut changed = BeliefMatrix::new(&row.model().without_calibrators());
    changed.push(&cells(values), Normalize::Always).unwrap();
    changed
}

/// The belief with `value` in one category, where the others keep their proportions.
fn moved(before: &[f64], category: usize, value: f64) -> Option<Vec<f64>> {
    let rest: f64 = before.iter().sum::<f64>() - before[category];
    let share = |other: usize| match before.len() {
        _ if other == category => value,
        2 => 1.0 - value,
        _ => (1.0 - value) * before[other] / rest,
    };
    (before.len() == 2 || rest > 1e-9).then(|| (0..before.len()).map(share).collect())
}

/// The smallest relative lead of the target over any rival; `None` for an impossible row.
fn lead(oracle: &Enumeration, row: &BeliefMatrix, label: LabelId, target: usize) -> Option<f64> {
    let mut rows = BeliefMatrix::new(oracle.model());
    let observed = vec![true; oracle.model().labels().len()]; // not calibrated again
    rows.push_with_observed(&cells(row.row(0).to_vec()), &observed, Normalize::Always).unwrap();
    let posterior = oracle.infer(&rows.row(0)).ok()?;
    let marginal = posterior.marginal(label);
    let rivals = (0..marginal.len()).filter(|&rival| rival != target);
    let leads = rivals
        .map(|rival| (marginal[target] - marginal[rival]) / (marginal[target] + marginal[rival]).max(1e-300));
    leads.reduce(f64::min)
}

fn ensure(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong()) }
}

struct Case<'a> {
    oracle: &'a Enumeration,
    row: &'a BeliefMatrix,
    label: LabelId,
    target: usize,
}

impl Case<'_> {
    fn check(&self, found: &Counterfactuals) -> Result<(), String> {
        let now = self.lead(self.row);
        ensure(!found.approximate && found.possible == now.is_some(), || "possible".to_owned())?;
        if now.is_some_and(|lead| lead > TIE) {
            return ensure(found.already && found.changes.is_empty() && found.own.is_none(), || {
                "already".to_owned()
            });
        }
        ensure(!found.already, || format!("not already: the lead is {now:?}"))?;
        let sorted = found.changes.windows(2).all(|pair| pair[0].distance <= pair[1].distance + 1e-9);
        ensure(sorted, || "not sorted".to_owned())?;
        for id in self.row.model().label_ids() {
            let name = self.row.model().label(id).name();
            let change = found.change(name);
            let is_listed = found.unable.iter().any(|unable| unable == name);
            ensure(id == self.label || is_listed != change.is_some(), || {
                format!("`{name}` is listed wrongly")
            })?;
            self.check_belief(id, change).map_err(|wrong| format!("belief of {name}: {wrong}"))?;
            self.check_observations(id, change).map_err(|wrong| format!("observation of {name}: {wrong}"))?;
        }
        Ok(())
    }

    fn lead(&self, row: &BeliefMatrix) -> Option<f64> {
        lead(self.oracle, row, self.label, self.target)
    }

    /// The lead on the line of a category.
    fn lead_at(&self, id: LabelId, category: usize, value: f64) -> Option<f64> {
        let belief = moved(self.row.belief(0, id), category, value)?;
        self.lead(&with_belief(self.row, id, &belief))
    }

    fn check_belief(&self, id: LabelId, change: Option<&LabelCounterfactual>) -> Result<(), String> {
        let label = self.row.model().label(id);
        let belief = change.and_then(|change| change.belief.as_ref());
        if label.classifier().is_none() || self.row.origin(0, id) == BeliefOrigin::Observed {
            return ensure(belief.is_none(), || "it cannot change".to_owned());
        }
        if let Some(belief) = belief {
            self.check_threshold(id, belief)?;
        }
        // No smaller change suffices, on any line.
        let before = self.row.belief(0, id);
        let distance = belief.map_or(2.0, |belief| belief.distance);
        for category in (0..before.len()).filter(|&category| id != self.label || category == self.target) {
            for point in 0..=GRID {
                let value = point as f64 / GRID as f64;
                let wins = self.lead_at(id, category, value).is_some_and(|lead| lead > TIE);
                let is_smaller = (value - before[category]).abs() < distance - STEP;
                ensure(!(wins && is_smaller), || format!("{category} at {value} suffices"))?;
            }
        }
        Ok(())
    }

    fn check_threshold(&self, id: LabelId, belief: &BeliefChange) -> Result<(), String> {
        let label = self.row.model().label(id);
        let category = label.find_category(&belief.category).unwrap().index();
        let before = self.row.belief(0, id);
        ensure(belief.before == before[category], || "before".to_owned())?;
        ensure(close(belief.distance, (belief.needed - belief.before).abs(), EXACT), || {
            "distance".to_owned()
        })?;
        let expected = moved(before, category, belief.needed).unwrap();
        let agree = expected.iter().zip(&belief.belief).all(|(a, b)| close(*a, b.belief, EXACT));
        ensure(agree, || format!("{:?} instead of {expected:?}", belief.belief))?;
        let [low, high] = belief.range;
        let step = STEP.min(0.25 * (high - low));
        let inward = if belief.needed <= 0.5 * (low + high) { step } else { -step };
        for (value, wanted) in [(0.5 * (low + high), true), (belief.needed + inward, true)] {
            let lead = self.lead_at(id, category, value);
            ensure(lead.is_some_and(|lead| lead > 0.0) == wanted, || {
                format!("the lead at {value} is {lead:?}")
            })?;
        }
        if belief.distance > STEP {
            let short = belief.needed - STEP * (belief.needed - belief.before).signum();
            let lead = self.lead_at(id, category, short);
            ensure(lead.is_none_or(|lead| lead < TIE), || format!("the lead before it is {lead:?}"))?;
        }
        Ok(())
    }

    fn check_observations(&self, id: LabelId, change: Option<&LabelCounterfactual>) -> Result<(), String> {
        let label = self.row.model().label(id);
        let is_observed = self.row.origin(0, id) == BeliefOrigin::Observed;
        let observations = change.map_or(&[][..], |change| &change.observations);
        for (category, name) in label.categories().iter().enumerate() {
            let mut observed = self.row.clone();
            observed.observe(0, id, CategoryId::new(category)).unwrap();
            let lead = self.lead(&observed);
            let listed = observations.iter().find(|observation| observation.category == *name);
            let is_sure = lead.is_none_or(|lead| lead.abs() > TIE);
            let wanted = lead.is_some_and(|lead| lead > 0.0) && (id != self.label || is_observed);
            ensure(!is_sure || listed.is_some() == wanted, || format!("`{name}`: the lead is {lead:?}"))?;
            if let Some(listed) = listed {
                let posterior = self.oracle.infer(&observed.row(0)).unwrap();
                let probability = posterior.marginal(self.label)[self.target];
                ensure(close(listed.probability, probability, EXACT), || format!("`{name}`: {probability}"))?;
            }
        }
        let prior = with_belief(self.row, id, &label.prior_or_uniform());
        let lead = self.lead(&prior).filter(|_| is_observed);
        let unobserved = change.is_some_and(|change| change.unobserved.is_some());
        let is_sure = lead.is_none_or(|lead| lead.abs() > TIE);
        ensure(!is_sure || unobserved == lead.is_some_and(|lead| lead > 0.0), || {
            format!("not observed: {lead:?}")
        })
    }
}

/// The model with calibrators of all kinds that have an inverse.
fn calibrated(model: &Model, seed: u32) -> Model {
    let mut text = model.to_string();
    for (index, label) in model.labels().iter().enumerate() {
        if label.classifier().is_none() {
            continue;
        }
        let name = format!("{:?}", label.name());
        text += &match (label.n_categories(), (seed >> (3 * index)) % 6) {
            (2, 0) => format!("\ncalibrate {name} platt 0.7 -0.3"),
            (2, 1) => format!("\ncalibrate {name} platt -1.5 0.2"),
            (2, 2) => format!("\ncalibrate {name} dirichlet [1.2 0.1; 0 0.9] [0.2 0]"),
            (2, 3) => format!("\ncalibrate {name} confusion [7 1; 3 9]"),
            (_, 4) => format!("\ncalibrate {name} temperature 1.8"),
            _ => String::new(),
        };
    }
    Model::parse(&text).unwrap()
}

fn check_raw(
    raw: &BeliefMatrix,
    id: LabelId,
    change: &BeliefChange,
    lead: impl Fn(BeliefMatrix) -> Option<f64>,
) -> Result<(), String> {
    let label = raw.model().label(id);
    let Some(needed) = change.needed_given else {
        return ensure(!change.calibrated || label.n_categories() > 2, || "no raw belief".to_owned());
    };
    let category = label.find_category(&change.category).unwrap().index();
    ensure(change.given == Some(raw.belief(0, id)[category]), || "given".to_owned())?;
    ensure(close(change.belief[category].belief, needed, EXACT), || "belief".to_owned())?;
    let whole: Vec<f64> = change.belief.iter().map(|category| category.belief).collect();
    let at_threshold = lead(with_belief(raw, id, &whole));
    ensure(at_threshold.is_none_or(|lead| lead.abs() < 1e-6), || {
        format!("at the threshold: {at_threshold:?}")
    })?;
    if label.n_categories() > 2 {
        return Ok(());
    }
    // One side of the raw threshold wins, the other does not.
    let leads = [needed - STEP, needed + STEP].map(|value| {
        let belief = moved(raw.belief(0, id), category, value.clamp(0.0, 1.0)).unwrap();
        lead(with_belief(raw, id, &belief)).is_some_and(|lead| lead > 0.0)
    });
    ensure(leads[0] != leads[1], || format!("around {needed}: {leads:?}"))
}

fn found(model: &str, evidence: &Evidence, target: [&str; 2]) -> Counterfactuals {
    let model = Model::parse(model).unwrap();
    let engine = Engines::new(&model).marginals().unwrap();
    ask(&engine, evidence, target)
}

fn ask(engine: &MarginalEngine, evidence: &Evidence, [label, category]: [&str; 2]) -> Counterfactuals {
    let model = engine.model();
    let label = model.find_label(label).unwrap();
    engine.counterfactuals(evidence, label, model.find_category(label, category).unwrap()).unwrap()
}

fn worked_evidence() -> Evidence {
    Evidence::new()
        .belief("activity", [0.1, 0.4, 0.5])
        .belief("feet", [0.05, 0.95])
        .belief("hands", [0.5, 0.3, 0.2])
}

#[test]
fn the_worked_example_reads_well() {
    insta::assert_snapshot!(found(crate::WORKED_EXAMPLE, &worked_evidence(), ["hands", "high"]));
}

#[test]
fn only_the_own_belief_changes_the_activity() {
    insta::assert_snapshot!(found(crate::WORKED_EXAMPLE, &worked_evidence(), ["activity", "normal"]));
}

#[test]
fn the_most_probable_category_needs_no_change() {
    insta::assert_snapshot!(found(crate::WORKED_EXAMPLE, &worked_evidence(), ["activity", "overhead"]));
}

#[test]
fn observations_can_be_corrected() {
    let evidence = Evidence::new().observe("feet", "standing").belief("activity", [0.6, 0.2, 0.2]);
    insta::assert_snapshot!(found(crate::WORKED_EXAMPLE, &evidence, ["activity", "walking"]));
    // No other label changes an observed one.
    let feet = found(crate::WORKED_EXAMPLE, &evidence, ["feet", "gait"]);
    assert!(feet.changes.is_empty());
    assert_eq!(feet.own.unwrap().observations[0].category, "gait");
}

#[test]
fn an_impossible_row_becomes_possible_by_its_changes() {
    let evidence = Evidence::new().observe("activity", "walking").observe("feet", "standing");
    let evidence = evidence.belief("hands", [0.2, 0.2, 0.6]);
    insta::assert_snapshot!(found(crate::WORKED_EXAMPLE, &evidence, ["hands", "low"]));
}

#[test]
fn ties_are_neither_won_nor_lost() {
    let model = "label rain\nlabel wet\nlabel alarm\nrule 0.9: rain <-> wet";
    let tie = found(model, &Evidence::new(), ["rain", "yes"]);
    assert!(!tie.already);
    let wet = tie.changes[0].belief.as_ref().unwrap();
    assert_eq!((wet.distance, wet.needed, wet.range), (0.0, 0.5, [0.5, 1.0]));
    insta::assert_snapshot!(tie);
}

#[test]
fn a_prior_a_latent_label_and_calibrators_read_well() {
    let model = "
label fire prior 0.3
label smoke
label heat latent prior 0.4
label sensor: silent, warning, alarm
calibrate smoke platt 0.6 -0.5
calibrate sensor dirichlet [1 0 0; 0 1 0; 0 0 1] [0 0.1 0.2]
rule 0.9: fire <-> smoke
rule 0.95: fire <-> heat
rule 0.8: fire <-> alarm
";
    let evidence = Evidence::new().belief("smoke", [0.6]).belief("sensor", [0.4, 0.3, 0.3]);
    insta::assert_snapshot!(found(model, &evidence, ["fire", "yes"]));
}

#[test]
fn a_belief_beyond_the_reach_of_a_calibrator_is_no_change() {
    // Clipping keeps the calibrated belief below 0.999, and more would be needed.
    let model = "label a\nlabel b\ncalibrate b temperature 1\nrule 0.9: a <-> b";
    let evidence = Evidence::new().belief("a", [0.1004]).belief("b", [0.5]);
    let change = found(model, &evidence, ["a", "yes"]);
    let b = change.change("b").unwrap();
    assert!(b.belief.is_none(), "{b:?}");
    assert_eq!(b.observations[0].category, "yes");
}

#[test]
fn loopy_propagation_is_approximate() {
    let model = Model::parse(crate::WORKED_EXAMPLE).unwrap();
    let engine = Engines::new(&model).with_choice(EngineChoice::Loopy).marginals().unwrap();
    let found = ask(&engine, &worked_evidence(), ["activity", "normal"]);
    assert!(found.approximate);
    assert!(found.to_string().starts_with("approximate: "));
    assert!(found.to_json().contains("\"approximate\": true"));
}

#[test]
fn unknown_ids_are_errors() {
    let model = Model::parse("label a\nlabel b").unwrap();
    let engine = Engines::new(&model).marginals().unwrap();
    let ask = |label, category| {
        engine.counterfactuals(&Evidence::new(), LabelId::new(label), CategoryId::new(category))
    };
    insta::assert_snapshot!(format!("{}\n{}", ask(2, 0).unwrap_err(), ask(0, 2).unwrap_err()));
}
