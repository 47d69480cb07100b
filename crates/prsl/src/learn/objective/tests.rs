//! The objective against enumeration, its gradient against differences.

use super::*;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A random problem with every kind of parameter, and rows for it.
struct Case {
    problem: Problem,
    parameters: Vec<f64>,
    rows: Rows,
}

fn case(seed: u64) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let n_labels = rng.random_range(2..6);
    let sizes: Vec<usize> = (0..n_labels).map(|_| rng.random_range(2..4)).collect();
    let scope = |rng: &mut ChaCha8Rng| -> Vec<usize> {
        // Now and then all labels: such rules are outer products.
        let share = if rng.random_bool(0.2) { 1.0 } else { 0.5 };
        let mut scope: Vec<usize> = (0..n_labels).filter(|_| rng.random_bool(share)).collect();
        if scope.is_empty() {
            scope.push(rng.random_range(0..n_labels));
        }
        scope
    };
    let scopes: Vec<Vec<usize>> = (0..rng.random_range(1..5)).map(|_| scope(&mut rng)).collect();
    let tree = CliqueTree::new(&sizes, &scopes).unwrap();
    let mut parameters = Vec::new();
    let mut calibrations = Vec::new();
    for &size in &sizes {
        let start = parameters.len();
        let calibration = match rng.random_range(0..3) {
            0 => Calibration::Identity,
            1 if size == 2 => Calibration::Platt(start),
            _ => Calibration::Dirichlet(start),
        };
        parameters.extend((0..calibration.n_parameters(size)).map(|_| rng.random_range(-1.0..1.5)));
        calibrations.push(calibration);
    }
    let mut rules = Vec::new();
    for labels in scopes {
        let size = labels.iter().map(|&label| sizes[label]).product();
        let learned = rng.random_bool(0.6);
        let silence = if learned {
            let places = labels.iter().map(|&label| {
                let q = |_| if rng.random_bool(0.15) { 0.0 } else { rng.random_range(0.2..1.0) };
                parameters.extend((0..sizes[label]).map(q));
                parameters.len() - sizes[label]
            });
            Silence::Learned(places.collect())
        } else {
            Silence::Given((0..size).map(|_| f64::from(u8::from(rng.random_bool(0.5)))).collect())
        };
        let probability = match rng.random_range(0..3) {
            0 => Probability::Given(1.0),
            1 => Probability::Given(0.9),
            _ => {
                parameters.push(rng.random_range(0.6..0.9));
                Probability::Learned(parameters.len() - 1)
            }
        };
        rules.push(RuleShape { labels, home: None, silence, probability });
    }
    for _ in 0..rng.random_range(0..3) {
        let silence = Silence::Wide { start: parameters.len(), is_learned: true };
        parameters.extend((0..sizes.iter().sum()).map(|_| rng.random_range(0.2..1.0)));
        let probability = Probability::Given(if rng.random_bool(0.3) { 0.2 } else { 0.95 });
        rules.push(RuleShape { labels: (0..n_labels).collect(), home: None, silence, probability });
    }
    let n_rows = rng.random_range(1..20);
    let known = rng.random_range(0..3);
    let truths: Vec<Option<usize>> = (0..n_rows)
        .flat_map(|_| sizes.clone())
        .map(|size| (known == 2 || known == 1 && rng.random_bool(0.5)).then(|| rng.random_range(0..size)))
        .collect();
    let weights: Vec<f64> = (0..n_rows).map(|_| f64::from(rng.random_range(1..3))).collect();
    let counted = truths.chunks(n_labels).zip(weights.iter().copied());
    let mut fixed = std::collections::BTreeMap::new();
    for _ in 0..rng.random_range(0..3) {
        let categories = sizes.iter().map(|&size| rng.random_range(0..size)).collect();
        fixed.insert(categories, rng.random_range(-2.0..2.0));
    }
    let is_typical = rng.random_bool(0.6);
    let typical = if is_typical { Typical::count(counted, &fixed, &sizes, parameters.len()) } else { None };
    if let Some(typical) = &typical {
        parameters.extend((0..typical.n_parameters()).map(|_| rng.random_range(0.1..1.0)));
    }
    let combination = |truths: &[Option<usize>]| {
        let categories: Option<Vec<usize>> = truths.iter().copied().collect();
        typical.as_ref()?.index.get(&categories?).copied()
    };
    let combination = truths.chunks(n_labels).map(combination).collect();
    let log_beliefs = (0..n_rows).flat_map(|_| sizes.clone()).flat_map(|size| {
        let raw: Vec<f64> = (0..size).map(|_| rng.random_range(0.05..1.0)).collect();
        let total: f64 = raw.iter().sum();
        raw.into_iter().map(move |x| (x / total).ln()).collect::<Vec<_>>()
    });
    let mut log_beliefs: Vec<f64> = log_beliefs.collect();
    let is_learned: Vec<bool> = (0..n_rows * n_labels).map(|_| rng.random_bool(0.9)).collect();
    // Now and then a belief that is sure of one category.
    let mut start = 0;
    for (at, size) in (0..n_rows).flat_map(|_| sizes.clone()).enumerate() {
        let is_raw = !is_learned[at] || calibrations[at % n_labels] == Calibration::Identity;
        if is_raw && rng.random_bool(0.2) {
            log_beliefs[start..start + size].fill(f64::NEG_INFINITY);
            log_beliefs[start + rng.random_range(0..size)] = 0.0;
        }
        start += size;
    }
    let counted = rng.random_bool(0.5);
    let rows = Rows { n_rows, log_beliefs, is_learned, truths, combination, weights, counted };
    let n_parameters = parameters.len();
    let given = vec![Calibrator::Identity; n_labels];
    let (of_clique, reaches) = (Vec::new(), Vec::new());
    let mut problem = Problem {
        tree: tree.clone(),
        rules,
        of_clique,
        calibrations,
        given,
        typical,
        reaches,
        is_loopy: false,
        n_parameters,
        spare: Mutex::default(),
        spare_tables: Mutex::default(),
    };
    problem.arrange(tree);
    Case { problem, parameters, rows }
}

impl Case {
    fn gradient(&self) -> (f64, Vec<f64>) {
        let all: Vec<usize> = (0..self.rows.n_rows).collect();
        let mut gradient = vec![0.0; self.parameters.len()];
        let value = self.problem.gradient(&self.parameters, &self.rows, &all, &mut gradient);
        (value, gradient)
    }

    /// Only rules that can be in a table, none of them hard, and no combinations.
    fn plain(mut self) -> Self {
        self.problem.rules.retain(|rule| !matches!(rule.silence, Silence::Wide { .. }));
        for rule in &mut self.problem.rules {
            if matches!(rule.probability, Probability::Given(_)) {
                rule.probability = Probability::Given(0.8);
            }
        }
        self.problem.typical = None;
        let tree = self.problem.tree.clone();
        self.problem.arrange(tree);
        self
    }

    /// Only rules that can be in a table, hard ones among them.
    fn narrow(mut self) -> Self {
        self.problem.rules.retain(|rule| !matches!(rule.silence, Silence::Wide { .. }));
        self
    }

    /// Asks for the q of the labels that rules are not connected with, too.
    fn reaching(mut self) -> Self {
        let sizes = &self.problem.tree.sizes;
        for (rule, shape) in self.problem.rules.iter().enumerate() {
            if !matches!(shape.silence, Silence::Learned(_)) {
                continue;
            }
            let outside = (0..sizes.len()).filter(|label| !shape.labels.contains(label));
            let labels = outside.map(|label| {
                self.parameters.extend(vec![1.0; sizes[label]]);
                (label, self.parameters.len() - sizes[label])
            });
            self.problem.reaches.push(Reach { rule, labels: labels.collect() });
        }
        self.problem.n_parameters = self.parameters.len();
        self
    }

    /// Learned rules that hold for certain, and many a q of 1: they exclude what leaves them silent. No combinations, which
    /// have no part in the gradient of a rule that excludes them.
    fn excluding(mut self) -> Self {
        self.problem.typical = None;
        let sizes = self.problem.tree.sizes.clone();
        for shape in &mut self.problem.rules {
            if let Silence::Learned(places) = &shape.silence {
                shape.probability = Probability::Given(1.0);
                let own =
                    places.iter().zip(&shape.labels).flat_map(|(place, &label)| *place..place + sizes[label]);
                own.for_each(|at| {
                    self.parameters[at] = if self.parameters[at] > 0.5 { 1.0 } else { self.parameters[at] }
                });
            }
        }
        self
    }

    /// The slope in one parameter, from values at and below it.
    fn slope_from_below(&mut self, at: usize) -> f64 {
        // Terms may be as steep as 1e5, and cancel: steps are short.
        let (x, h) = (self.parameters[at], 1e-7);
        let all: Vec<usize> = (0..self.rows.n_rows).collect();
        let mut below = |by: f64| {
            self.parameters[at] = x - by;
            self.problem.value(&self.parameters, &self.rows, &all)
        };
        let values = [0.0, 1.0, 2.0, 3.0].map(|steps| below(steps * h));
        self.parameters[at] = x;
        (11.0 * values[0] - 18.0 * values[1] + 9.0 * values[2] - 2.0 * values[3]) / (6.0 * h)
    }

    /// With a tree for what rules are connected with, or with one clique for everything.
    fn arranged(mut self, is_joint: bool) -> Self {
        let sizes = self.problem.tree.sizes.clone();
        let scopes: Vec<Vec<usize>> = if is_joint {
            vec![(0..sizes.len()).collect()]
        } else {
            self.problem.rules.iter().map(|rule| rule.labels.clone()).collect()
        };
        self.problem.arrange(CliqueTree::new(&sizes, &scopes).unwrap());
        self
    }

    fn loopy(mut self) -> Self {
        self.problem.is_loopy = true;
        let tree = CliqueTree::new(&self.problem.tree.sizes, &[]).unwrap();
        self.problem.arrange(tree);
        self
    }
}

/// ln Z of the labels that are known, by going through all assignments.
fn enumerate(case: &Case, row: usize, truths: &[Option<usize>]) -> f64 {
    let Case { problem, parameters, rows } = case;
    let sizes = &problem.tree.sizes;
    let tables = problem.tables(parameters);
    let n_categories: usize = sizes.iter().sum();
    let mut log_beliefs = Vec::new();
    let mut start = 0;
    for (label, size) in sizes.iter().enumerate() {
        let mut block = vec![0.0; *size];
        let is_learned = rows.is_learned[row * sizes.len() + label];
        let calibration = if is_learned { problem.calibrations[label] } else { Calibration::Identity };
        calibration.apply(parameters, &rows.log_beliefs[row * n_categories + start..][..*size], |m, log| {
            block[m] = log
        });
        log_beliefs.push(block);
        start += size;
    }
    let mut total = 0.0;
    for mut number in 0..sizes.iter().product::<usize>() {
        let mut assignment = vec![0; sizes.len()];
        for (category, size) in assignment.iter_mut().zip(sizes) {
            (*category, number) = (number % size, number / size);
        }
        if truths
            .iter()
            .zip(&assignment)
            .any(|(truth, category)| truth.is_some_and(|truth| truth != *category))
        {
            continue;
        }
        let beliefs: f64 = assignment.iter().zip(&log_beliefs).map(|(m, logs)| logs[*m]).sum();
        let cliques = 0..problem.tree.cliques.len();
        let rules: f64 =
            cliques.map(|c| tables.potentials[problem.tree.entry(c, |label| assignment[label])]).product();
        let wide: f64 =
            problem.wide().map(|wide| wide.factor(parameters, |label| assignment[label])).product();
        let weight = problem.typical.as_ref().and_then(|typical| {
            let combination = *typical.index.get(&assignment)?;
            let own = rows.counted && rows.combination[row] == Some(combination);
            Some(typical.log_weight(parameters, combination, if own { rows.weights[row] } else { 0.0 }).exp())
        });
        total += beliefs.exp() * rules * wide * (1.0 + weight.unwrap_or(0.0));
    }
    total.ln()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_objective_is_what_enumeration_says(seed in any::<u64>()) {
        let case = case(seed);
        let n = case.problem.tree.sizes.len();
        let (mut sum, mut weight) = (0.0, 0.0);
        for row in 0..case.rows.n_rows {
            let truths = &case.rows.truths[row * n..(row + 1) * n];
            if truths.iter().any(Option::is_some) {
                let log_likelihood = enumerate(&case, row, truths) - enumerate(&case, row, &vec![None; n]);
                let score = if log_likelihood.is_finite() { log_likelihood } else { IMPOSSIBLE };
                sum += case.rows.weights[row] * score;
                weight += case.rows.weights[row];
            }
        }
        let expected = if weight > 0.0 { sum / weight } else { 0.0 };
        let all: Vec<usize> = (0..case.rows.n_rows).collect();
        let value = case.problem.value(&case.parameters, &case.rows, &all);
        prop_assert!((value - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{value} is not {expected}");
    }

    #[test]
    fn the_gradient_is_what_differences_say(seed in any::<u64>()) {
        let case = case(seed);
        let all: Vec<usize> = (0..case.rows.n_rows).collect();
        let mut gradient = vec![0.0; case.parameters.len()];
        let value = case.problem.gradient(&case.parameters, &case.rows, &all, &mut gradient);
        prop_assert_eq!(value, case.problem.value(&case.parameters, &case.rows, &all));
        for (at, slope) in gradient.iter().enumerate() {
            let shifted = |by: f64| {
                let mut parameters = case.parameters.clone();
                parameters[at] += by;
                case.problem.value(&parameters, &case.rows, &all)
            };
            // Steep means that something is near 0: short steps.
            let h = 1e-4 / (1.0 + (shifted(1e-6) - shifted(-1e-6)).abs() / 2e-6);
            // Five points: exact up to the fifth order.
            let expected = (8.0 * (shifted(h) - shifted(-h)) - (shifted(2.0 * h) - shifted(-2.0 * h))) / (12.0 * h);
            // A rule that turns possible rows impossible has no derivative there.
            if [2.0 * h, h, -h, -2.0 * h].iter().any(|&by| (shifted(by) - value).abs() > 1.0) {
                continue;
            }
            let error = (slope - expected).abs();
            prop_assert!(error <= 1e-6 * expected.abs() + 1e-8, "parameter {}: {} is not {}", at, slope, expected);
        }
    }

    /// A label that a rule is not connected with, and the same label inside with q = 1.
    #[test]
    fn outside_of_a_rule_the_gradient_is_what_it_is_inside(seed in any::<u64>()) {
        let mut case = case(seed).plain().reaching();
        let (value, gradient) = case.gradient();
        for Reach { rule, labels } in std::mem::take(&mut case.problem.reaches) {
            let shape = &mut case.problem.rules[rule];
            let Silence::Learned(places) = &mut shape.silence else { unreachable!("what reaches out is learned") };
            for (label, place) in labels {
                shape.labels.push(label);
                places.push(place);
            }
        }
        let case = case.arranged(true);
        let (expected, slopes) = case.gradient();
        prop_assert!((value - expected).abs() <= 1e-9 * expected.abs().max(1.0));
        for (slope, expected) in gradient.iter().zip(&slopes) {
            prop_assert!((slope - expected).abs() <= 1e-8 * expected.abs().max(1.0), "{slope} is not {expected}");
        }
    }

    /// Where a rule's factor is 0, nothing is divided by it, and there is a slope out of it.
    #[test]
    fn rules_that_exclude_have_a_gradient(seed in any::<u64>(), is_joint in any::<bool>()) {
        let mut case = case(seed).narrow().excluding().arranged(is_joint);
        let rows = case.problem.log_likelihoods(&case.parameters, &case.rows);
        prop_assume!(rows.iter().all(|row| *row > IMPOSSIBLE));
        let (_, gradient) = case.gradient();
        for (at, &slope) in gradient.iter().enumerate() {
            let expected = case.slope_from_below(at);
            prop_assert!((slope - expected).abs() <= 1e-4 * expected.abs().max(1.0), "parameter {at}: {slope} is not {expected}");
        }
    }

    #[test]
    fn one_clique_is_as_good_as_a_tree(seed in any::<u64>(), excludes in any::<bool>()) {
        let arranged = |is_joint: bool| {
            let case = case(seed).narrow().reaching();
            if excludes { case.excluding() } else { case }.arranged(is_joint).gradient()
        };
        let ((value, gradient), (expected, slopes)) = (arranged(true), arranged(false));
        prop_assert!((value - expected).abs() <= 1e-10 * expected.abs().max(1.0), "{value} is not {expected}");
        for (at, (slope, expected)) in gradient.iter().zip(&slopes).enumerate() {
            let error = (slope - expected).abs();
            prop_assert!(error <= 1e-9 * expected.abs().max(1.0), "parameter {at}: {slope} is not {expected}");
        }
    }

    /// Rules that hang together as a tree: each pair of them shares a label at most, and there is no ring.
    #[test]
    fn loopy_gradients_are_exact_on_trees(seed in any::<u64>()) {
        let mut case = case(seed).plain();
        let mut together: Vec<usize> = (0..case.problem.tree.sizes.len()).collect();
        case.problem.rules.retain(|rule| {
            let parts: std::collections::BTreeSet<usize> = rule.labels.iter().map(|&label| together[label]).collect();
            let is_tree = parts.len() == rule.labels.len();
            if is_tree {
                let first = together[rule.labels[0]];
                together.iter_mut().filter(|part| parts.contains(part)).for_each(|part| *part = first);
            }
            is_tree
        });
        let tree = case.problem.tree.clone();
        case.problem.arrange(tree);
        let (expected, slopes) = case.gradient();
        let (value, gradient) = case.loopy().gradient();
        prop_assert!((value - expected).abs() <= 1e-8 * expected.abs().max(1.0), "{value} is not {expected}");
        for (slope, expected) in gradient.iter().zip(&slopes) {
            prop_assert!((slope - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{slope} is not {expected}");
        }
    }

    #[test]
    fn loopy_gradients_are_those_of_bethes_likelihood(seed in any::<u64>()) {
        let mut case = case(seed).plain().loopy();
        // Gentle rules, so that messages settle.
        for rule in &case.problem.rules {
            rule.places(&case.problem.tree.sizes).for_each(|at| case.parameters[at] = 0.6 + 0.4 * case.parameters[at]);
        }
        let (value, gradient) = case.gradient();
        let all: Vec<usize> = (0..case.rows.n_rows).collect();
        for (at, slope) in gradient.iter().enumerate() {
            let shifted = |by: f64| {
                let mut parameters = case.parameters.clone();
                parameters[at] += by;
                case.problem.value(&parameters, &case.rows, &all)
            };
            let h = 1e-4;
            if [h, -h].iter().any(|&by| (shifted(by) - value).abs() > 0.1) {
                continue;
            }
            let expected = (8.0 * (shifted(h) - shifted(-h)) - (shifted(2.0 * h) - shifted(-2.0 * h))) / (12.0 * h);
            prop_assert!((slope - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{slope} is not {expected}");
        }
    }
}
