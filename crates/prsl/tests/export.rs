//! Exports: what they look like, and that the UAI text means what the model means.

use proptest::prelude::*;
use prsl::export::ExportFormat;
use prsl::{Assignment, Error, Evidence, Model};

const WAREHOUSE: &str = "\
label activity: walking, normal, overhead from camera
label feet: gait, standing
label hands: high, centered, low
label alarm prior 0.1
label posture: upright, bent latent prior 0.9, 0.1

rule 0.8 overhead_work: high & standing -> overhead
rule 1: walking <-> gait
rule 0.25: at_most 1 of {alarm, posture=bent, hands in {high, low}}
noisy_or 0.999 lifts: overhead 0.07, hands=high 0.2, feet=gait 0.9
";

const AWKWARD: &str = r#"
label "größe <b>": klein, "groß'", "\\"
label "network": "table", "1st", "a&b", "A_b" prior 0.5, 0.25, 0.125, 0.125
label "R_1": "line\nbreak", "say \"hi\"" latent
label "1": "a b", "a-b"
rule 0.75 "two\nlines": "1st" & "\\" -> "R_1"="line\nbreak" xor "a-b"
rule 0: true
noisy_or 1: "groß'" 1e-20, "say \"hi\"" 0
"#;

fn evidence() -> Evidence {
    Evidence::new().belief("activity", [0.1, 0.4, 0.5]).belief("feet", [0.05, 0.95])
}

#[test]
fn a_model_in_every_format() {
    let model = Model::parse(WAREHOUSE).unwrap();
    for format in ExportFormat::ALL {
        insta::assert_snapshot!(
            format!("warehouse_{}", format.name()),
            model.export(&evidence(), format).unwrap()
        );
    }
}

#[test]
fn awkward_names_in_every_format() {
    let model = Model::parse(AWKWARD).unwrap();
    for format in ExportFormat::ALL {
        let text = model.export(&Evidence::new(), format).unwrap();
        insta::assert_snapshot!(format!("awkward_{}", format.name()), text);
    }
    insta::assert_snapshot!("awkward_uai_names", model.export_uai_names().unwrap());
}

fn wide(n: usize, rule: impl Fn(&[String]) -> String) -> Model {
    let names: Vec<String> = (1..=n).map(|i| format!("a{i}")).collect();
    let labels: Vec<String> = names.iter().map(|name| format!("label {name}\n")).collect();
    Model::parse(&format!("{}{}\n", labels.concat(), rule(&names))).unwrap()
}

#[test]
fn wide_clauses_are_chains() {
    let model = wide(12, |names| format!("rule 0.9: {}", names.join(" | ")));
    insta::assert_snapshot!("wide_uai", model.export(&Evidence::new(), ExportFormat::Uai).unwrap());
    insta::assert_snapshot!("wide_uai_names", model.export_uai_names().unwrap());
    insta::assert_snapshot!("wide_bif", model.export(&Evidence::new(), ExportFormat::Bif).unwrap());
}

#[test]
fn clauses_of_any_width_are_exported() {
    let terms =
        |names: &[String]| names.iter().map(|name| format!("{name} 0.5")).collect::<Vec<_>>().join(", ");
    for model in [
        wide(2000, |names| format!("rule 0.9: {} -> a1", names[1..].join(" & "))),
        wide(2000, |names| format!("rule 0.9: {}", names.join(" & "))),
        wide(2000, |names| format!("noisy_or 0.9: {}", terms(names))),
    ] {
        for format in ExportFormat::ALL {
            assert!(model.export(&Evidence::new(), format).unwrap().len() < 1_500_000, "{format:?}");
        }
    }
}

#[test]
fn other_formulas_too_large_for_a_table_are_refused() {
    let model = wide(40, |names| format!("rule 0.9 few: at_most 2 of {{{}}}", names.join(", ")));
    for format in [ExportFormat::Uai, ExportFormat::Bif] {
        let error = model.export(&Evidence::new(), format).unwrap_err();
        assert!(matches!(error, Error::TooCostly { .. }));
        assert_eq!(
            error.to_string(),
            "rule `few` needs a table of about 2^40 entries, more than the limit of 2^20; split it into rules \
             over fewer labels, or export to ProbLog, which needs no tables"
        );
    }
    assert!(model.export(&Evidence::new(), ExportFormat::ProbLog).is_ok());
    let huge = wide(2000, |names| format!("rule 0.9 half: exactly 1000 of {{{}}}", names.join(", ")));
    let error = huge.export(&Evidence::new(), ExportFormat::ProbLog).unwrap_err();
    insta::assert_snapshot!(error, @"counting in rule `half` needs about 4004000 clauses, more than the limit of 1048576; count fewer formulas at a time");
}

const TYPICAL: &str = "\
label a prior 0.25
label t
label c: x, y, z prior 0.5, 0.25, 0.25
rule 0.875: a -> t | x
typical 6: a, t, x
typical 0.5: y
typical 1e17: t, z
";

#[test]
fn typical_combinations_are_states_of_one_more_variable() {
    let model = Model::parse(TYPICAL).unwrap();
    let text = model.export(&Evidence::new(), ExportFormat::Uai).unwrap();
    insta::assert_snapshot!("typical_uai", text);
    insta::assert_snapshot!("typical_uai_names", model.export_uai_names().unwrap());
    let uai = Uai::parse(&text);
    let mut sums = Sums::new(&model);
    for index in 0..uai.cardinalities.iter().product() {
        let mut rest: usize = index;
        let mut digit = |n: &usize| (rest % n, rest /= n).0;
        let states: Vec<usize> = uai.cardinalities.iter().map(&mut digit).collect();
        let place =
            |scope: &[usize]| scope.iter().fold(0, |place, &v| place * uai.cardinalities[v] + states[v]);
        let weight = uai.factors.iter().map(|(scope, values)| values[place(scope)]).product();
        sums.add(&states[..3], weight);
    }
    let expected = prsl::infer::Enumeration::compile(&model).unwrap().infer(&Evidence::new()).unwrap();
    assert!((sums.total.ln() - expected.log_evidence()).abs() < 1e-12);
    for (sum, expected) in sums.sums.iter().zip(expected.marginals()) {
        assert!((sum / sums.total - expected).abs() < 1e-12);
    }
}

#[test]
fn typical_combinations_are_exported_or_refused() {
    let model = Model::parse(TYPICAL).unwrap();
    let refused = model.export(&Evidence::new(), ExportFormat::ProbLog).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the model with typical combinations of such weights needs a probability of 1e-17 for all others, more than \
         the limit of 15 decimals, to which ProbLog rounds; export to UAI or BIF, or lower the weights"
    );
    let moderate = Model::parse(&TYPICAL.replace("1e17", "3")).unwrap();
    for format in [ExportFormat::Bif, ExportFormat::ProbLog, ExportFormat::Dot] {
        let text = moderate.export(&Evidence::new(), format).unwrap();
        insta::assert_snapshot!(format!("typical_{}", format.name()), text);
    }
    assert!(model.export(&Evidence::new(), ExportFormat::Bif).is_ok());
}

#[test]
fn evidence_that_does_not_fit_is_an_error() {
    let model = Model::parse(WAREHOUSE).unwrap();
    let wrong = Evidence::new().observe("hand", "high");
    for format in ExportFormat::ALL {
        assert!(matches!(model.export(&wrong, format), Err(Error::UnknownLabel { .. })));
    }
}

#[test]
fn rules_over_the_same_labels_share_a_factor_unless_it_would_underflow() {
    let scopes = |text: &str| {
        let model = Model::parse(text).unwrap();
        Uai::parse(&model.export(&Evidence::new(), ExportFormat::Uai).unwrap()).factors.len()
    };
    assert_eq!(scopes("label a\nlabel b\nrule 0.9: a -> b\nrule 0.8: b -> a"), 3);
    assert_eq!(scopes("label a\nlabel b\nrule 1e-200: a -> b\nrule 1e-200: a | b"), 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_uai_text_has_the_weights_of_the_model(model in small_model()) {
        let row = model.row(&Evidence::new()).unwrap();
        let text = model.export(&Evidence::new(), ExportFormat::Uai).unwrap();
        let names = model.export_uai_names().unwrap();
        let uai = Uai::parse(&text);
        let n_states: usize = uai.cardinalities.iter().sum();
        prop_assert_eq!(names.lines().count(), n_states);
        for (label, n) in model.labels().iter().zip(&uai.cardinalities) {
            prop_assert_eq!(label.n_categories(), *n);
        }
        let n_labels = model.labels().len();
        let (mut expected, mut actual) = (Sums::new(&model), Sums::new(&model));
        let mut assignment = vec![0; n_labels];
        loop {
            let beliefs: f64 = model.label_ids().map(|l| row[model.block(l)][assignment[l.index()]]).product();
            let rules: f64 = model.rules().iter().map(|rule| rule.weight(&Assignment::from_indices(&assignment[..]))).product();
            let typical = model.find_typical(&Assignment::from_indices(&assignment[..])).map_or(0.0, |place| model.typical()[place].weight());
            let weight = rules * beliefs * (1.0 + typical);
            expected.add(&assignment, weight);
            actual.add(&assignment, uai.weight(&assignment));
            let Some(label) = (0..n_labels).find(|&l| assignment[l] + 1 < uai.cardinalities[l]) else { break };
            assignment[..label].fill(0);
            assignment[label] += 1;
        }
        // A dozen factors in another order: each product is off by some units in the last place.
        prop_assert!((expected.total - actual.total).abs() <= 1e-13 * expected.total.max(1e-300));
        for (a, b) in expected.sums.iter().zip(&actual.sums) {
            prop_assert!((a - b).abs() <= 1e-13 * expected.total, "{} {}\n{}\n{}", a, b, model, text);
        }
    }

    #[test]
    fn every_format_takes_every_model(model in small_model()) {
        for format in ExportFormat::ALL {
            let text = model.export(&Evidence::new(), format).unwrap();
            prop_assert_eq!(text, model.export(&Evidence::new(), format).unwrap());
        }
    }
}

/// Sums of weights: all, and by category.
struct Sums {
    total: f64,
    sums: Vec<f64>,
    offsets: Vec<usize>,
}

impl Sums {
    fn new(model: &Model) -> Self {
        let offsets = model.label_ids().map(|label| model.block(label).start).collect();
        Self { total: 0.0, sums: vec![0.0; model.n_categories()], offsets }
    }

    fn add(&mut self, assignment: &[usize], weight: f64) {
        self.total += weight;
        for (offset, category) in self.offsets.iter().zip(assignment) {
            self.sums[offset + category] += weight;
        }
    }
}

/// A Markov network as the format describes it: the last variable of each scope changes fastest.
struct Uai {
    cardinalities: Vec<usize>,
    factors: Vec<(Vec<usize>, Vec<f64>)>,
}

impl Uai {
    fn parse(text: &str) -> Self {
        let mut words = text.split_whitespace();
        assert_eq!(words.next(), Some("MARKOV"));
        let whole =
            |words: &mut std::str::SplitWhitespace<'_>| words.next().unwrap().parse::<usize>().unwrap();
        let n = whole(&mut words);
        let cardinalities: Vec<usize> = (0..n).map(|_| whole(&mut words)).collect();
        let n_factors = whole(&mut words);
        let scopes: Vec<Vec<usize>> = (0..n_factors)
            .map(|_| {
                let size = whole(&mut words);
                (0..size).map(|_| whole(&mut words)).collect()
            })
            .collect();
        let factors = scopes
            .into_iter()
            .map(|scope| {
                let size = whole(&mut words);
                assert_eq!(size, scope.iter().map(|&variable| cardinalities[variable]).product::<usize>());
                let values = (0..size).map(|_| words.next().unwrap().parse().unwrap()).collect();
                (scope, values)
            })
            .collect();
        assert_eq!(words.next(), None);
        Self { cardinalities, factors }
    }

    fn value(&self, factor: usize, state: impl Fn(usize) -> usize) -> f64 {
        let (scope, values) = &self.factors[factor];
        values
            [scope.iter().fold(0, |index, &variable| index * self.cardinalities[variable] + state(variable))]
    }

    /// The weight of an assignment to the labels, the auxiliary variables behind them summed out one by one:
    /// each meets at most the one before it.
    fn weight(&self, labels: &[usize]) -> f64 {
        let highest = |factor: usize| self.factors[factor].0.iter().copied().max().unwrap_or(0);
        let of = |variable: usize| (0..self.factors.len()).filter(move |&f| highest(f) == variable);
        let mut weight: f64 = (0..self.factors.len())
            .filter(|&factor| self.factors[factor].0.iter().all(|&variable| variable < labels.len()))
            .map(|factor| self.value(factor, |variable| labels[variable]))
            .product();
        let mut message = [1.0, 0.0];
        for variable in labels.len()..self.cardinalities.len() {
            let continues = of(variable).any(|factor| self.factors[factor].0.contains(&(variable - 1)))
                && variable > labels.len();
            if !continues {
                weight *= message[0] + message[1];
                message = [1.0, 0.0];
            }
            let mut next = [0.0; 2];
            for (before, &mass) in message.iter().enumerate() {
                for (state, sum) in next.iter_mut().enumerate() {
                    let local: f64 = of(variable)
                        .map(|factor| {
                            self.value(factor, |v| match v {
                                v if v == variable => state,
                                v if v >= labels.len() => {
                                    assert_eq!(v, variable - 1);
                                    before
                                }
                                v => labels[v],
                            })
                        })
                        .product();
                    *sum += mass * local;
                }
            }
            message = next;
        }
        weight * (message[0] + message[1])
    }
}

/// Probabilities, the extremes among them.
fn probability() -> impl Strategy<Value = f64> {
    prop_oneof![1 => Just(0.0), 1 => Just(1.0), 1 => Just(0.5), 6 => 0.0..=1.0]
}

/// A few labels of two to four categories, or eleven of two, so that wide rules become chains.
fn small_model() -> impl Strategy<Value = Model> {
    let few = prop::collection::vec(2usize..=4, 1..=5);
    let many = Just(vec![2usize; 11]);
    prop_oneof![4 => few, 1 => many].prop_flat_map(|cardinalities| {
        let rules = prop::collection::vec(rule(cardinalities.clone()), 0..=6);
        let priors = prop::collection::vec(prop::collection::vec(0.01..1.0, 4), cardinalities.len());
        (Just(cardinalities), priors, rules).prop_map(|(cardinalities, priors, rules)| {
            let mut text = String::new();
            for (label, (&n, prior)) in cardinalities.iter().zip(&priors).enumerate() {
                let categories: Vec<String> = (0..n).map(|c| format!("c{c}")).collect();
                let sum: f64 = prior[..n].iter().sum();
                let prior: Vec<String> = prior[..n].iter().map(|p| (p / sum).to_string()).collect();
                text.push_str(&format!(
                    "label l{label}: {} prior {}\n",
                    categories.join(", "),
                    prior.join(", ")
                ));
            }
            text.push_str(&rules.concat());
            Model::parse(&text).unwrap_or_else(|error| panic!("{text}{error}"))
        })
    })
}

/// One statement of a model text.
fn rule(cardinalities: Vec<usize>) -> impl Strategy<Value = String> {
    let wide: Vec<String> = (0..cardinalities.len()).map(|label| format!("l{label}=c0")).collect();
    let n = cardinalities.len();
    prop_oneof![
        4 => (probability(), formula(cardinalities.clone())).prop_map(|(p, f)| format!("rule {p:?}: {f}\n")),
        2 => (probability(), prop::collection::vec(probability(), n), prop::collection::vec(probability(), n)).prop_map(
            |(p, q, other)| {
                let pairs = q.iter().zip(&other).enumerate();
                let terms: Vec<String> =
                    pairs.map(|(label, (q, other))| format!("l{label}=c0 {q:?}, l{label}=c1 {other:?}")).collect();
                format!("noisy_or {p:?}: {}\n", terms.join(", "))
            }
        ),
        1 => (probability(), prop::sample::select(vec![" | ", " & "]), any::<bool>()).prop_map(move |(p, sign, not)| {
            format!("rule {p:?}: {}({})\n", if not { "!" } else { "" }, wide.join(sign))
        }),
    ]
}

fn formula(cardinalities: Vec<usize>) -> impl Strategy<Value = String> {
    // At most five labels, so that the table stays small.
    let atoms: Vec<(usize, usize)> = cardinalities
        .iter()
        .enumerate()
        .take(5)
        .flat_map(|(label, &n)| (0..n).map(move |c| (label, c)))
        .collect();
    let leaf = prop_oneof![
        8 => prop::sample::select(atoms).prop_map(|(label, category)| format!("l{label}=c{category}")),
        2 => Just("l0 in {c0, c1}".to_owned()),
        1 => Just("true".to_owned()),
        1 => Just("false".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let operator = prop::sample::select(vec!["&", "|", "xor", "->", "<-", "<->"]);
        let bound = prop::sample::select(vec!["at_least", "at_most", "exactly"]);
        prop_oneof![
            1 => inner.clone().prop_map(|f| format!("!({f})")),
            4 => (inner.clone(), operator, inner.clone()).prop_map(|(a, o, b)| format!("(({a}) {o} ({b}))")),
            1 => prop::collection::vec(inner.clone(), 3).prop_map(|fs| format!("(({}))", fs.join(") xor ("))),
            1 => (bound, 0usize..=3, prop::collection::vec(inner, 3))
                .prop_map(|(bound, n, fs)| format!("{bound} {n} of {{{}}}", fs.join(", "))),
        ]
    })
}
