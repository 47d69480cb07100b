//! Every number in an explanation of a random small model agrees with enumeration.

use proptest::prelude::*;
use prsl::explain::{Became, RuleExplanation};
use prsl::infer::Enumeration;
use prsl::{
    Assignment, BeliefMatrix, Error, Evidence, Explainer, Explanation, LabelId, Model, Normalize, Row, RuleId,
};
use prsl_testkit::{EXACT, close, small_model};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn every_number_agrees_with_enumeration((model, rows) in small_model()) {
        let explainer = Explainer::compile(&model).unwrap();
        let oracle = Enumeration::compile(&model).unwrap();
        for index in 0..rows.n_rows() {
            let row = rows.row(index);
            let explanation = explainer.explain(&row).unwrap();
            check(&model, &oracle, &row, &explanation)
                .map_err(|wrong| TestCaseError::fail(format!("{wrong}\nrow {row:?} of\n{model}\n{explanation}")))?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Beliefs so small that the product of two underflows.
    #[test]
    fn tiny_beliefs_are_explained_like_others((model, rows) in small_model(), tiny in any::<u64>()) {
        let explainer = Explainer::compile(&model).unwrap();
        let oracle = Enumeration::compile(&model).unwrap();
        for index in 0..rows.n_rows() {
            let mut row = rows.row(index).to_vec();
            for (label, id) in model.label_ids().enumerate() {
                let block = model.block(id);
                let category = block.start + (tiny >> (4 * label)) as usize % block.len();
                if tiny >> (32 + label) & 1 == 1 && row[category] < 1.0 {
                    row[category] *= 1e-200;
                    let sum: f64 = row[block.clone()].iter().sum();
                    row[block].iter_mut().for_each(|belief| *belief /= sum);
                }
            }
            let cells: Vec<Option<f64>> = row.into_iter().map(Some).collect();
            let mut rows = BeliefMatrix::new(&model);
            rows.push(&cells, Normalize::Never).unwrap();
            let row = rows.row(0);
            let explanation = explainer.explain(&row).unwrap();
            check(&model, &oracle, &row, &explanation)
                .map_err(|wrong| TestCaseError::fail(format!("{wrong}\nrow {row:?} of\n{model}\n{explanation}")))?;
        }
    }
}

/// The smallest change of a probability that an explanation shows.
const MOVED: f64 = 0.0005;

fn log_odds(p: f64) -> f64 {
    p.ln() - (-p).ln_1p()
}

fn ensure(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong()) }
}

fn near(actual: Option<f64>, expected: Option<f64>, what: &str) -> Result<(), String> {
    let agree = match (actual, expected) {
        (Some(actual), Some(expected)) => close(actual, expected, EXACT),
        (actual, expected) => actual == expected,
    };
    ensure(agree, || format!("{what} is {actual:?} instead of {expected:?}"))
}

fn check(
    model: &Model,
    oracle: &Enumeration,
    row: &Row<'_>,
    explanation: &Explanation,
) -> Result<(), String> {
    let posterior = oracle.infer(row);
    let agreement = oracle.agreement(row).ok();
    let marginals = posterior.as_ref().ok().map(|posterior| posterior.marginals());
    ensure(explanation.possible == posterior.is_ok(), || "possible".to_owned())?;
    near(explanation.log_evidence, posterior.as_ref().ok().map(|p| p.log_evidence()), "ln Z")?;
    for (id, label) in model.label_ids().zip(&explanation.labels) {
        for (category, index) in label.categories.iter().zip(model.block(id)) {
            near(Some(category.before), Some(row[index]), "a belief before")?;
            near(category.after, marginals.map(|marginals| marginals[index]), "a belief after")?;
        }
    }
    for (id, rule) in model.rule_ids().zip(&explanation.rules) {
        let without = oracle.without(row, id).unwrap();
        ensure(rule.number == id.index() + 1, || "number".to_owned())?;
        ensure(rule.possible_without == without.is_some(), || format!("rule {}", rule.number))?;
        near(rule.agreement, agreement.as_ref().map(|agreement| agreement[id.index()]), "an agreement")?;
        check_conflict(model, row, rule)?;
        check_influences(model, rule, marginals, without.as_deref())?;
    }
    if let Err(Error::Impossible { rules }) = &posterior {
        let named: Vec<String> =
            explanation.conflicts().map(|rule| model.rule_name(RuleId::new(rule.number - 1))).collect();
        ensure(&named == rules, || format!("conflict {named:?} instead of {rules:?}"))?;
        check_conflicting_rules(model, row, explanation)?;
    }
    let top = if posterior.is_ok() { oracle.top(row, 2).unwrap().to_vec() } else { Vec::new() };
    for (joint, rank) in [(&explanation.best, 0), (&explanation.runner_up, 1)] {
        let expected = top.get(rank);
        ensure(joint.is_some() == expected.is_some(), || format!("joint explanation {rank}"))?;
        if let (Some(joint), Some(expected)) = (joint, expected) {
            // The search treats weights within this tolerance as equal.
            let [found, best] = [joint.log_weight, expected.log_weight];
            ensure(close(found, best, 10.0 * EXACT), || format!("a joint weighs {found} instead of {best}"))?;
            let probability = (found - explanation.log_evidence.unwrap()).exp();
            near(Some(joint.probability), Some(probability), "a joint probability")?;
            // It may be another one of several equally probable assignments, but its weight must be the stated one.
            let place = |(label, choice): (&prsl::Label, &prsl::explain::Choice)| {
                assert_eq!(label.name(), choice.label);
                label.find_category(&choice.category).unwrap().index()
            };
            let assignment: Vec<usize> = model.labels().iter().zip(&joint.choices).map(place).collect();
            near(Some(model.log_weight(row, &assignment.into())), Some(joint.log_weight), "a joint weight")?;
        }
    }
    ensure(explanation.best.is_none() || explanation.best != explanation.runner_up, || {
        "twice the same".to_owned()
    })?;
    check_texts(explanation)
}

/// The smallest and the largest weight that a rule gives any assignment.
fn weight_range(model: &Model, rule: RuleId) -> (f64, f64) {
    let mut scope = model.rule(rule).scope();
    scope.sort_unstable();
    let sizes: Vec<usize> = scope.iter().map(|&label| model.label(label).n_categories()).collect();
    let n: usize = sizes.iter().product();
    // A formula with more assignments is assumed to be true for some and false for others.
    if model.rule(rule).formula().is_some() && n > 256 {
        let p = model.rule(rule).probability();
        return (p.min(1.0 - p), p.max(1.0 - p));
    }
    let weight = |mut index: usize| {
        let mut assignment = vec![0; model.labels().len()];
        for (label, size) in scope.iter().zip(&sizes) {
            assignment[label.index()] = index % size;
            index /= size;
        }
        model.rule(rule).weight(&Assignment::from_indices(assignment))
    };
    let weights = (0..n).map(weight);
    weights.fold((f64::INFINITY, 0.0), |(least, most), weight| (weight.min(least), weight.max(most)))
}

/// Checks that the rules in conflict exclude every assignment of the row, and that all of them are necessary.
fn check_conflicting_rules(model: &Model, row: &[f64], explanation: &Explanation) -> Result<(), String> {
    let conflict: Vec<RuleId> = explanation.conflicts().map(|rule| RuleId::new(rule.number - 1)).collect();
    let sizes: Vec<usize> = model.labels().iter().map(|label| label.n_categories()).collect();
    let assignments = (0..sizes.iter().product::<usize>()).map(|mut index| {
        let digit = |size: &usize| {
            let digit = index % size;
            index /= size;
            digit
        };
        Assignment::from_indices(sizes.iter().map(digit).collect::<Vec<_>>())
    });
    let is_allowed = |assignment: &Assignment| {
        let belief = |label: LabelId| row[model.block(label).start + assignment.category(label).index()];
        model.label_ids().all(|label| belief(label) > 0.0)
    };
    let allowed: Vec<Assignment> = assignments.filter(is_allowed).collect();
    let excluded = |rules: &[RuleId]| {
        let excludes = |rule: &RuleId, y: &Assignment| model.rule(*rule).log_weight(y) == f64::NEG_INFINITY;
        allowed.iter().all(|y| rules.iter().any(|rule| excludes(rule, y)))
    };
    ensure(excluded(&conflict), || format!("rules {conflict:?} leave something possible"))?;
    for rule in &conflict {
        let others: Vec<RuleId> = conflict.iter().copied().filter(|other| other != rule).collect();
        ensure(!excluded(&others), || format!("rule {rule:?} is not needed in {conflict:?}"))?;
    }
    Ok(())
}

fn check_conflict(model: &Model, row: &Row<'_>, rule: &RuleExplanation) -> Result<(), String> {
    let Some(agreement) = rule.agreement else { return Ok(()) };
    // P(body | all other rules): the agreement of the same rule with probability 1.
    let id = RuleId::new(rule.number - 1);
    let others = model.edit().retain_rules(|other| other != id);
    let asked = others.add_rule(model.rule(id).clone().with_probability(1.0)).build().unwrap();
    let body = match Enumeration::compile(&asked).unwrap().agreement(row) {
        Ok(agreement) => agreement[model.rules().len() - 1],
        Err(_) => 0.0,
    };
    let p = rule.probability;
    ensure(close(agreement, p * body + (1.0 - p) * (1.0 - body), EXACT), || {
        format!("F {body} Z {agreement}")
    })?;
    if let Some(stated) = rule.body_probability {
        ensure((stated - body).abs() <= EXACT / (2.0 * p - 1.0).abs(), || {
            format!("F {stated} instead of {body}")
        })?;
    }
    let (least, most) = weight_range(model, id);
    let [said_least, said_most] = rule.agreement_range;
    ensure(close(said_least, least, EXACT) && close(said_most, most, EXACT), || {
        format!("range {said_least} to {said_most} instead of {least} to {most}")
    })?;
    let halfway = 0.5 * (least + most);
    if (agreement - halfway).abs() > 1e-6 * (most - least) + EXACT {
        ensure(rule.conflict == (agreement < halfway), || {
            format!("conflict at p {p}, F {body}, Z {agreement} of {least} to {most}")
        })?;
    }
    Ok(())
}

fn check_influences(
    model: &Model,
    rule: &RuleExplanation,
    with: Option<&[f64]>,
    without: Option<&[f64]>,
) -> Result<(), String> {
    let scope = model.rule(RuleId::new(rule.number - 1)).scope();
    let mut largest: Option<f64> = None;
    for (id, label) in model.label_ids().zip(model.labels()) {
        let mut moved: f64 = 0.0;
        for index in model.block(id) {
            let change = with.zip(without).map(|(with, without)| with[index] - without[index]);
            moved = moved.max(change.unwrap_or(0.0).abs());
            let Some(influence) = rule.influence(label.name()) else { continue };
            ensure(influence.mentioned == scope.contains(&id), || "mentioned".to_owned())?;
            let stated = &influence.categories[index - model.block(id).start];
            near(stated.with, with.map(|with| with[index]), "with")?;
            near(stated.without, without.map(|without| without[index]), "without")?;
            near(stated.change, change, "a change")?;
            if let (Some(with), Some(without)) = (stated.with, stated.without) {
                let expected = log_odds(with) - log_odds(without);
                let inside = |p: f64| p > 1e-6 && p < 1.0 - 1e-6;
                if inside(with) && inside(without) {
                    // ln p / (1 − p) of numbers 1e-12 apart, from 1e-6 to 1 − 1e-6.
                    ensure((stated.log_odds_change.unwrap() - expected).abs() < 1e-5, || {
                        "log-odds".to_owned()
                    })?;
                }
                match stated.became {
                    Some(Became::Certain) => ensure(with > 1.0 - 1e-9, || "certain".to_owned())?,
                    Some(Became::Impossible) => ensure(with < 1e-9, || "impossible".to_owned())?,
                    Some(other) => return Err(format!("{other:?} is not checked")),
                    None => {
                        // The log-odds may be missing if the probability without the rule was rounded to 0.
                        let has_log_odds =
                            stated.log_odds_change.is_some() || without == 0.0 || without > 1.0 - 1e-15;
                        ensure(has_log_odds, || format!("no log-odds: {stated:?}"))?;
                    }
                }
            }
        }
        largest = with.zip(without).map(|_| largest.unwrap_or(0.0).max(moved));
        let has_log_odds = rule.influence(label.name()).is_some();
        ensure(has_log_odds || moved < MOVED + EXACT, || format!("{} moved by {moved}", label.name()))?;
        ensure(has_log_odds || !scope.contains(&id), || format!("{} is not has_log_odds", label.name()))?;
    }
    near(rule.largest_change.filter(|_| largest.is_some()), largest, "the largest change")
}

fn check_texts(explanation: &Explanation) -> Result<(), String> {
    let value: serde_json::Value =
        serde_json::from_str(&explanation.to_json()).map_err(|error| error.to_string())?;
    // serde_json writes NaN and infinities as null. A required number must not be null.
    let numbers =
        value["labels"].as_array().unwrap().iter().flat_map(|label| label["categories"].as_array().unwrap());
    for category in numbers {
        ensure(category["before"].is_f64(), || format!("{category}"))?;
        ensure(category["after"].is_f64() == explanation.possible, || format!("{category}"))?;
    }
    for joint in [&explanation.best, &explanation.runner_up].into_iter().flatten() {
        ensure(joint.probability.is_finite() && joint.log_weight.is_finite(), || format!("{joint:?}"))?;
    }
    let text = explanation.to_string();
    ensure(!text.contains("NaN") && !text.contains("inf "), || "NaN".to_owned())?;
    ensure(text.lines().all(|line| line.chars().count() < 100), || "a line is too long".to_owned())
}

/// The effect of combinations is the difference between the model with and without them.
#[test]
fn combinations_have_their_share() {
    let text = "label a\nlabel b: x, y, z\nrule 0.8: a -> x\ntypical 3: a, y\ntypical 2: a=no, z\ncalibrate a platt 2 -0.5";
    let model = Model::parse(text).unwrap();
    let evidence = Evidence::new().belief("a", [0.7]).belief("b", [0.2, 0.3, 0.5]);
    let explanation = Explainer::compile(&model).unwrap().explain(&evidence).unwrap();
    let typical = explanation.typical.as_ref().unwrap();
    assert_eq!(typical.n, 2);
    let [with, without] = [&model, &model.edit().remove_typical().build().unwrap()]
        .map(|model| Enumeration::compile(model).unwrap().infer(&evidence).unwrap().marginals().to_vec());
    let changes = typical.influences.iter().flat_map(|influence| &influence.categories);
    for (place, change) in changes.enumerate() {
        assert!((change.with.unwrap() - with[place]).abs() < EXACT);
        assert!((change.without.unwrap() - without[place]).abs() < EXACT);
    }
    // The belief as it was given is shown apart from the calibrated one.
    let a = &explanation.labels[0].categories[0];
    assert_eq!(a.given, Some(0.7));
    let odds = 2.0 * (0.7f64 / 0.3).ln() - 0.5;
    assert!((a.before - 1.0 / (1.0 + (-odds).exp())).abs() < EXACT);
    assert_eq!(explanation.labels[1].categories[0].given, None);
    let shown = explanation.to_string();
    assert!(shown.starts_with("beliefs (as given => calibrated -> posterior)"), "{shown}");
    assert!(shown.contains("0.700 => "), "{shown}");
    assert!(shown.contains("2 typical combinations, all together"), "{shown}");
}
