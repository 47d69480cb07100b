//! Random small models as text in the rule language.

use proptest::prelude::*;
use proptest::sample::Index;
use prsl::Model;

/// Names of labels as written in formulas, including some that need quotes.
const LABELS: [&str; 5] = ["plain", "\"two words\"", "größe", "\"label\"", "\"quo\\\"te\\u{2028}\""];
const CATEGORIES: [&str; 4] = ["a", "\"in\"", "\"1st\"", "ß"];

/// A model of one to five labels, up to `max_rules` rules including hard ones and noisy-or rules, and up to three
/// typical combinations.
pub fn model(max_rules: usize) -> impl Strategy<Value = Model> {
    prop::collection::vec((2_usize..5, any::<bool>(), 0_usize..3, probability()), 1..=5)
        .prop_flat_map(move |labels| {
            let sizes: Vec<usize> = labels.iter().map(|(size, ..)| *size).collect();
            let declarations: Vec<String> =
                labels.iter().enumerate().map(|(index, label)| declaration(index, label)).collect();
            let binary = labels.iter().map(|(size, bare, ..)| *size == 2 && *bare).collect::<Vec<_>>();
            let rules = prop::collection::vec(rule(sizes.clone(), binary.clone()), 0..=max_rules);
            let typical = typical(sizes.clone(), binary.clone());
            let expectations = prop::collection::vec(expectation(sizes, binary), 0..3);
            (Just(declarations), rules, typical, expectations)
        })
        .prop_map(|(labels, rules, typical, expectations)| {
            let text = [labels, rules, typical, expectations].concat().join("\n");
            Model::parse(&text).unwrap_or_else(|error| panic!("{text}\n{error}"))
        })
}

/// A model of five labels with many rules of probability 1 or 0, each of them a small clause, count or noisy-or.
#[allow(dead_code, reason = "not every test needs it")]
pub fn hard_model(max_rules: usize) -> impl Strategy<Value = Model> {
    let index = any::<Index>;
    let shape = (0_usize..8, prop::collection::vec((index(), index()), 3), prop::bool::weighted(0.1));
    (prop::collection::vec(2_usize..4, 5), prop::collection::vec(shape, 4..=max_rules)).prop_map(
        |(sizes, rules)| {
            let binary = vec![false; sizes.len()];
            let labels =
                sizes.iter().enumerate().map(|(index, size)| declaration(index, &(*size, false, 0, 0.0)));
            let rules = rules.iter().map(|(shape, atoms, negative)| {
                let [a, b, c] = [0, 1, 2].map(|i: usize| atom(&sizes, &binary, &atoms[i].0, &atoms[i].1));
                let p = if *negative { "0" } else { "1" };
                match shape {
                    0 => format!("rule {p}: {a} -> {b}"),
                    1 => format!("rule {p}: {a} -> {b} | {c}"),
                    2 => format!("rule {p}: {a} & {b} -> {c}"),
                    3 => format!("rule {p}: !({a})"),
                    4 => format!("rule {p}: at_most 1 of {{{a}, {b}, {c}}}"),
                    5 => format!("rule {p}: exactly 1 of {{{a}, {b}}} <- {c}"),
                    6 if a != b => format!("noisy_or {p}: {a} 0.5, {b} 0"),
                    _ => format!("rule 0.8: {a} -> !{b} | {c}"),
                }
            });
            let text: Vec<String> = labels.chain(rules).collect();
            Model::parse(&text.join("\n")).unwrap_or_else(|error| panic!("{text:?}\n{error}"))
        },
    )
}

/// Probabilities, including edge cases.
pub fn probability() -> impl Strategy<Value = f64> {
    prop_oneof![3 => Just(1.0), 1 => Just(0.0), 1 => Just(0.5), 1 => Just(f64::MIN_POSITIVE / 8.0), 4 => 0.0..1.0]
}

fn declaration(index: usize, (size, bare, classifier, prior): &(usize, bool, usize, f64)) -> String {
    let categories =
        if *size == 2 && *bare { String::new() } else { format!(": {}", CATEGORIES[..*size].join(", ")) };
    let classifier = ["", " latent", " from \"the camera\""][*classifier];
    let prior = if *size == 2 && *prior > 0.1 {
        format!(" prior {:?}, {:?}", prior, 1.0 - prior)
    } else {
        String::new()
    };
    let prior = if *bare { prior.split(',').next().unwrap_or("").to_owned() } else { prior };
    let prior = if categories.is_empty() == *bare { prior } else { String::new() };
    format!("label {}{categories}{classifier}{prior}", LABELS[index])
}

fn atom(sizes: &[usize], binary: &[bool], label: &Index, category: &Index) -> String {
    let label = label.index(sizes.len());
    let category = category.index(sizes[label]);
    let name = if binary[label] { ["yes", "no"][category] } else { CATEGORIES[category] };
    format!("{}={name}", LABELS[label])
}

fn formula(sizes: Vec<usize>, binary: Vec<bool>) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        12 => (any::<Index>(), any::<Index>()).prop_map(move |(l, c)| atom(&sizes, &binary, &l, &c)),
        1 => Just("true".to_owned()),
        1 => Just("false".to_owned()),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        let several = prop::collection::vec(inner.clone(), 1..5);
        prop_oneof![
            inner.clone().prop_map(|a| format!("!({a})")),
            (several.clone(), 0_usize..3).prop_map(|(members, operator)| {
                let quoted: Vec<_> = members.iter().map(|member| format!("({member})")).collect();
                quoted.join([" & ", " | ", " xor "][operator])
            }),
            (inner.clone(), inner, 0_usize..3)
                .prop_map(|(a, b, operator)| format!("({a}) {} ({b})", ["->", "<-", "<->"][operator])),
            (several, any::<Index>(), 0_usize..3).prop_map(|(members, n, bound)| {
                let bound = ["at_least", "at_most", "exactly"][bound];
                format!("{bound} {} of {{{}}}", n.index(members.len() + 1), members.join(", "))
            }),
        ]
    })
}

fn rule(sizes: Vec<usize>, binary: Vec<bool>) -> impl Strategy<Value = String> {
    let inhibition = prop_oneof![Just(0.0), Just(1.0), 0.0..1.0];
    let inhibitions = prop::collection::btree_map(0_usize..40, inhibition, 1..4);
    let noisy_or = {
        let (sizes, binary) = (sizes.clone(), binary.clone());
        (probability(), inhibitions).prop_map(move |(p, inhibitions)| {
            let mut terms = std::collections::BTreeMap::new();
            for (key, q) in inhibitions {
                let label = key % sizes.len();
                let category = (key / sizes.len()) % sizes[label];
                let name = if binary[label] { ["yes", "no"][category] } else { CATEGORIES[category] };
                terms.insert(format!("{}={name}", LABELS[label]), q);
            }
            let terms: Vec<_> = terms.iter().map(|(atom, q)| format!("{atom} {q:?}")).collect();
            format!("noisy_or {p:?}: {}", terms.join(", "))
        })
    };
    let stated = prop_oneof![
        4 => (probability(), formula(sizes, binary)).prop_map(|(p, formula)| format!("rule {p:?}: {formula}")),
        1 => noisy_or,
    ];
    (prop::bool::weighted(0.2), stated, prop::option::weighted(0.3, note())).prop_map(
        |(is_fixed, rule, note)| {
            let rule = if is_fixed { format!("fixed {rule}") } else { rule };
            note.map_or(rule.clone(), |note| format!("{rule}  {note}"))
        },
    )
}

/// The comment about a learned rule, with numbers of more digits than a note has.
fn note() -> impl Strategy<Value = String> {
    let number = || prop_oneof![Just(0.0), Just(5e-324), Just(1e300), 0.0..1e-3, 0.0..1e3, 0.0..1e7];
    (number(), number(), number(), 0.0..=1.0, any::<bool>()).prop_map(
        |(gain, known, expected, share, sure)| {
            let sure = if sure { ", sure" } else { "" };
            let broken = known * share;
            format!("# learned: gain {gain:?}, broken {broken:?} of {known:?}, expected {expected:?}{sure}")
        },
    )
}

/// Up to three combinations, no two of them the same.
fn typical(sizes: Vec<usize>, binary: Vec<bool>) -> impl Strategy<Value = Vec<String>> {
    let combination = prop::collection::vec(any::<Index>(), sizes.len());
    let weight = prop_oneof![Just(0.0), Just(1e17), 0.0..10.0];
    prop::collection::vec((combination, weight), 0..4).prop_map(move |combinations| {
        let mut texts = std::collections::BTreeMap::new();
        for (combination, weight) in combinations {
            let categories: Vec<usize> =
                combination.iter().zip(&sizes).map(|(category, &size)| category.index(size)).collect();
            let named = (0..sizes.len()).map(|label| {
                let names: &[&str] = if binary[label] { &["yes", "no"] } else { &CATEGORIES };
                format!("{}={}", LABELS[label], names[categories[label]])
            });
            texts.insert(named.collect::<Vec<_>>().join(", "), weight);
        }
        texts.into_iter().map(|(categories, weight)| format!("typical {weight:?}: {categories}")).collect()
    })
}

fn expectation(sizes: Vec<usize>, binary: Vec<bool>) -> impl Strategy<Value = String> {
    let index = any::<Index>;
    (index(), index(), index(), index(), probability(), any::<bool>()).prop_map(
        move |(a, b, c, d, p, mpe)| {
            let given = atom(&sizes, &binary, &a, &b);
            let asked = atom(&sizes, &binary, &c, &d);
            if mpe { format!("expect => mpe {asked}") } else { format!("expect {given} => {asked} >= {p:?}") }
        },
    )
}
