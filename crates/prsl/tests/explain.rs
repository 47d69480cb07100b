//! Explanations: their numbers answer to enumeration, their wording is reviewed like code.

use proptest::prelude::*;
use prsl::explain::{Became, RuleExplanation};
use prsl::infer::{Enumeration, MaxProductTree};
use prsl::{
    Assignment, BeliefMatrix, Error, Evidence, Explainer, Explanation, LabelId, Limits, Model, Normalize,
    Row, RuleId,
};
use prsl_testkit::{EXACT, close, small_model};

const WORKED_EXAMPLE: &str = "
label activity: walking, normal, overhead from camera
label feet: gait, standing from shoe
label hands: high, centered, low
rule 0.8 reach: high & standing -> overhead
rule 0.9: normal -> centered | low
rule 1: walking <-> gait
";

fn explain(model: &str, evidence: Evidence) -> Explanation {
    Explainer::compile(&Model::parse(model).unwrap()).unwrap().explain(&evidence).unwrap()
}

fn worked_example() -> Explanation {
    let evidence = Evidence::new()
        .belief("activity", [0.1, 0.4, 0.5])
        .belief("feet", [0.05, 0.95])
        .belief("hands", [0.5, 0.3, 0.2]);
    explain(WORKED_EXAMPLE, evidence)
}

#[test]
fn the_worked_example_is_explained() {
    insta::assert_snapshot!(worked_example());
}

#[test]
fn every_rule_has_a_sentence() {
    for seed in 0..300 {
        let (model, _) = prsl_testkit::random_model(&prsl_testkit::RandomModel::default(), seed);
        for rule in model.rule_ids() {
            let sentence = model.rule_sentence(rule);
            assert!(
                !sentence.is_empty() && !sentence.contains("NaN") && !sentence.contains('\n'),
                "{sentence}"
            );
        }
        for combination in model.typical() {
            assert!(model.combination_sentence(combination).ends_with(" times"));
        }
    }
}

#[test]
fn the_worked_example_is_json() {
    insta::assert_snapshot!(rounded(&worked_example().to_json()));
}

/// The last digits are the engine's business.
fn rounded(json: &str) -> String {
    let round = |line: &str| match line.split_once(": ") {
        Some((key, value)) => match value.trim_end_matches(',').parse::<f64>() {
            Ok(number) if value.contains('.') => {
                let comma = if value.ends_with(',') { "," } else { "" };
                format!("{key}: {}{comma}", (number * 1e9).round() / 1e9)
            }
            _ => line.to_owned(),
        },
        None => line.to_owned(),
    };
    json.lines().map(round).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_conflict_is_told() {
    let model = "
label smoke from detector
label fire latent prior 0.01
label alarm
rule 0.95: fire -> smoke
rule 0.9 causes: smoke -> fire
rule 1: fire -> alarm
";
    let evidence = Evidence::new().belief("smoke", [0.97]).belief("alarm", [0.02]);
    insta::assert_snapshot!(explain(model, evidence));
}

#[test]
fn impossible_evidence_is_explained_by_its_rules() {
    let model = "
label a
label b
label c
rule 0.7: a -> c
rule 1: a -> b
rule 1 never: !(a & b)
rule 1: c | b
";
    insta::assert_snapshot!(explain(model, Evidence::new().observe("a", "yes").belief("b", [0.25])));
}

#[test]
fn one_rule_excludes_everything_and_another_pair_does_too() {
    let model = "label a\nlabel b\nrule 0: a\nrule 1: a -> b\nrule 1: b -> !a";
    let explanation = explain(model, Evidence::new().observe("a", "yes"));
    assert!(explanation.conflicts().count() > 0);
    assert!(explanation.rules.iter().all(|rule| !rule.possible_without));
    insta::assert_snapshot!(explanation);
}

#[test]
fn certainty_ties_and_tiny_numbers_read_well() {
    let model = "
label \"two words\": \"so so\", fine
label a
label b
label c
rule 1: a -> b
rule 1: b -> a
rule 0.5 shrug: a -> c
rule 0: c & a
noisy_or 1: a=no 0.2, \"two words\"=fine 1e-200
";
    let evidence = Evidence::new()
        .belief("two words", [1e-300, 1.0 - 1e-300])
        .belief("a", [1e-200])
        .observe("b", "yes")
        .belief("c", [0.5]);
    insta::assert_snapshot!(explain(model, evidence));
}

#[test]
fn equally_probable_explanations_are_called_so() {
    insta::assert_snapshot!(explain("label a\nlabel b\nrule 0.9: a xor b", Evidence::new()));
}

#[test]
fn large_models_are_summarized() {
    let mut model = String::new();
    for index in 1..=40 {
        model.push_str(&format!("label topic_{index} prior 0.02\n"));
    }
    for index in 1..=20 {
        model.push_str(&format!("rule 0.5: topic_{index} -> topic_{}\n", index + 1));
    }
    let all: Vec<String> = (1..=40).map(|index| format!("topic_{index}")).collect();
    model.push_str("rule 0.99: topic_1 -> topic_2\nrule 0.9: topic_2 -> topic_3 & topic_4\n");
    model.push_str(&format!("rule 0.99 some: {}\n", all.join(" | ")));
    insta::assert_snapshot!(explain(&model, Evidence::new().belief("topic_1", [0.93])));
}

#[test]
fn a_model_without_labels_or_rules_is_explained() {
    insta::assert_snapshot!(explain("", Evidence::new()));
    assert_eq!(explain("label a", Evidence::new()).rules.len(), 0);
}

#[test]
fn a_violated_soft_rule_conflicts_even_where_it_moves_nothing() {
    let observed = Evidence::new().observe("a", "yes").observe("b", "no");
    let explanation = explain("label a\nlabel b\nrule 0.8: a -> b\nrule 0.2: a & !b\nrule 0.5: b", observed);
    let conflicts: Vec<bool> = explanation.rules.iter().map(|rule| rule.conflict).collect();
    assert_eq!(conflicts, [true, true, false]);
    assert!(close(explanation.rules[0].agreement.unwrap(), 0.2, EXACT));
    assert_eq!(explanation.rules[0].largest_change, Some(0.0));
    assert!(explanation.to_string().contains("CONFLICT"));
}

#[test]
fn undecided_evidence_is_no_conflict() {
    let explanation =
        explain("label a\nlabel b: x, y, z, w\nrule 0.9: a\nrule 0.1: b in {x, y}", Evidence::new());
    assert_eq!(explanation.conflicts().count(), 0);
}

#[test]
fn rows_of_another_model_are_errors() {
    let model = Model::parse("label a\nlabel b: x, y, z\nrule 0.9: a -> x").unwrap();
    let explainer = Explainer::compile(&model).unwrap();
    let other = Model::parse("label a\nlabel b: x, y\nrule 0.9: a -> x").unwrap();
    let message = |model: &Model| {
        let row = model.row(&Evidence::new()).unwrap();
        explainer.explain(&row).unwrap_err().to_string()
    };
    assert_eq!(
        message(&other),
        "the rows are of another model than the engine: label `b` differs from the engine's label in its place; make the rows \
         with the engine's model"
    );
    assert_eq!(
        message(&Model::parse("label a").unwrap()),
        "the rows are of another model than the engine: they have 1 label, the engine has 2; make the rows with the engine's \
         model"
    );
    assert!(explainer.explain(&model.row(&Evidence::new()).unwrap()).is_ok());
}

/// Wide noisy-ors split for sums and do not for maxima, so the second plan is the larger one.
#[test]
fn joint_explanations_do_not_need_a_tree() {
    let model = noisy_ring(9);
    let sum = prsl::JunctionTree::compile(&model).unwrap().cost().bytes;
    let tree = MaxProductTree::compile(&model).unwrap();
    assert!(sum < tree.cost().bytes, "{sum} {}", tree.cost());
    let limits = Limits { memory: tree.cost().bytes as u64 - 8 };
    let row = model.row(&Evidence::new()).unwrap();
    let explanation = Explainer::compile_within(&model, limits).unwrap().explain(&row).unwrap();
    assert_eq!(explanation.joint_refused, None);
    let joint = [&explanation.best, &explanation.runner_up].map(|joint| joint.as_ref().unwrap());
    for (found, expected) in joint.into_iter().zip(tree.top(&row, 2).unwrap()) {
        assert!(found.proven);
        assert!(close(found.log_weight, expected.log_weight, 10.0 * EXACT));
    }
    let limits = Limits { memory: (sum / 2.0) as u64 };
    assert!(matches!(Explainer::compile_within(&model, limits), Err(Error::TooCostly { .. })));
}

#[test]
fn explanations_without_proof_or_none_at_all_say_so() {
    let mut explanation = worked_example();
    explanation.best.as_mut().unwrap().proven = false;
    let shown = explanation.to_string();
    assert!(
        shown.contains("\n            the search was given up: something else may be more probable\n"),
        "{shown}"
    );
    (explanation.best, explanation.runner_up) = (None, None);
    explanation.joint_refused = Some("rule `wide` needs too much".to_owned());
    let shown = explanation.to_string();
    assert!(shown.contains("\nmost probable\n  not affordable: rule `wide` needs too much\n"), "{shown}");
}

/// Overlapping noisy-ors of general inhibition over `n` labels.
fn noisy_ring(n: usize) -> Model {
    let mut text: String = (0..n).map(|label| format!("label l{label}: a, b, c\n")).collect();
    for start in 0..n {
        let terms: Vec<String> = (0..n - 1)
            .map(|i| format!("l{}={} 0.{}", (start + i) % n, ["a", "b"][i % 2], 1 + i % 8))
            .collect();
        text.push_str(&format!("noisy_or 0.9: {}\n", terms.join(", ")));
    }
    Model::parse(&text).unwrap()
}

#[test]
fn lines_stay_within_a_terminal() {
    let labels: Vec<String> = (0..30).map(|index| format!("a_rather_long_label_name_{index}")).collect();
    let mut text: String =
        labels.iter().map(|label| format!("label {label} from \"the very long classifier\"\n")).collect();
    text.push_str(&format!("rule 0.9: {}\n", labels.join(" & ")));
    text.push_str(&format!("rule 0.9 other: {}\n", labels.join(" | ")));
    let shown = explain(&text, Evidence::new().belief(labels[0].as_str(), [0.9])).to_string();
    assert!(shown.lines().all(|line| line.chars().count() < 100), "{shown}");
    assert!(shown.lines().all(|line| line.trim_end() == line), "{shown}");
}

#[test]
fn a_typical_combination_is_called_so() {
    let model = "label anger\nlabel joy\nlabel sad\nrule 0.9 mood: joy -> !sad\ntypical 3: anger, sad\ntypical 1e17: joy";
    let evidence = Evidence::new().belief("anger", [0.7, 0.3]).observe("sad", "yes");
    insta::assert_snapshot!(explain(model, evidence));
    assert_eq!(explain(model, Evidence::new()).best.unwrap().typical, Some(1e17));
}

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

    /// Beliefs so small that products of two underflow.
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
            // The search does not tell weights apart that are closer than this.
            let [found, best] = [joint.log_weight, expected.log_weight];
            ensure(close(found, best, 10.0 * EXACT), || format!("a joint weighs {found} instead of {best}"))?;
            let probability = (found - explanation.log_evidence.unwrap()).exp();
            near(Some(joint.probability), Some(probability), "a joint probability")?;
            // Of several equally probable ones it may be another, but it has to weigh what it says.
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
    // Formulas about more are taken to be true somewhere and false somewhere.
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

/// The definition of a conflict, from the body's probability given all else: less than halfway to what the rule can reach.
/// The rules in conflict exclude every assignment that the row allows, and all of them are needed for that.
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
    if let Some(said) = rule.body_probability {
        ensure((said - body).abs() <= EXACT / (2.0 * p - 1.0).abs(), || {
            format!("F {said} instead of {body}")
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
            let said = &influence.categories[index - model.block(id).start];
            near(said.with, with.map(|with| with[index]), "with")?;
            near(said.without, without.map(|without| without[index]), "without")?;
            near(said.change, change, "a change")?;
            if let (Some(with), Some(without)) = (said.with, said.without) {
                let expected = log_odds(with) - log_odds(without);
                let inside = |p: f64| p > 1e-6 && p < 1.0 - 1e-6;
                if inside(with) && inside(without) {
                    // ln p / (1 − p) of numbers 1e-12 apart, from 1e-6 to 1 − 1e-6.
                    ensure((said.log_odds_change.unwrap() - expected).abs() < 1e-5, || {
                        "log-odds".to_owned()
                    })?;
                }
                match said.became {
                    Some(Became::Certain) => ensure(with > 1.0 - 1e-9, || "certain".to_owned())?,
                    Some(Became::Impossible) => ensure(with < 1e-9, || "impossible".to_owned())?,
                    Some(other) => return Err(format!("{other:?} is not checked")),
                    None => {
                        // Unless it was rounded to 0 without the rule, and is a number with it.
                        let told = said.log_odds_change.is_some() || without == 0.0 || without > 1.0 - 1e-15;
                        ensure(told, || format!("no log-odds: {said:?}"))?;
                    }
                }
            }
        }
        largest = with.zip(without).map(|_| largest.unwrap_or(0.0).max(moved));
        let told = rule.influence(label.name()).is_some();
        ensure(told || moved < MOVED + EXACT, || format!("{} moved by {moved}", label.name()))?;
        ensure(told || !scope.contains(&id), || format!("{} is not told", label.name()))?;
    }
    near(rule.largest_change.filter(|_| largest.is_some()), largest, "the largest change")
}

fn check_texts(explanation: &Explanation) -> Result<(), String> {
    let value: serde_json::Value =
        serde_json::from_str(&explanation.to_json()).map_err(|error| error.to_string())?;
    // serde_json writes NaN and infinities as null: where a number is due, there has to be one.
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

#[test]
fn a_noisy_or_whose_causes_all_hold_is_no_conflict() {
    let model = "label a\nlabel b\nnoisy_or 0.999: a 0.77, b=no 0.77\n";
    let rule =
        |a: &str, b: &str| explain(model, Evidence::new().observe("a", a).observe("b", b)).rules.remove(0);
    let agrees = rule("yes", "no");
    assert!(close(agrees.agreement_range[1], agrees.agreement.unwrap(), EXACT), "{agrees:?}");
    assert!(close(agrees.agreement_range[0], 0.001, EXACT), "{agrees:?}");
    assert!(!agrees.conflict);
    // One of two causes is a little more than half of what it can be, and none is nothing.
    assert!(!rule("yes", "yes").conflict);
    assert!(rule("no", "yes").conflict);
    let shown = explain(model, Evidence::new().observe("a", "no").observe("b", "yes")).to_string();
    assert!(shown.contains("(agrees 0.001 of at most 0.407)"), "{shown}");
}

#[test]
fn a_rule_that_is_always_true_never_conflicts() {
    let rules = "rule 0.2: a | !a\nrule 0.9: a & !a\nrule 0.9: a\nnoisy_or 0.1: a 0.9, a=no 0.9\nrule 0.5: b";
    let explanation = explain(&format!("label a\nlabel b\n{rules}"), Evidence::new().observe("a", "no"));
    let conflicts: Vec<usize> = explanation.conflicts().map(|rule| rule.number).collect();
    assert_eq!(conflicts, [3]);
}
