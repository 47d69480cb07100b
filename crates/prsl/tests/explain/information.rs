//! Information gains of random small models agree with their definition over the enumerated joint distribution.

use proptest::prelude::*;
use prsl::explain::InformationGains;
use prsl::infer::EngineChoice;
use prsl::{Assignment, BeliefMatrix, CategoryId, Engines, Evidence, LabelId, Model};
use prsl_testkit::{close, small_model};

/// Tolerance of a gain in bits. Entropies are sums of a few logarithms.
const BITS: f64 = 1e-10;

const CHOICES: [EngineChoice; 4] =
    [EngineChoice::Exact, EngineChoice::JunctionTree, EngineChoice::Circuit, EngineChoice::Enumeration];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn gains_agree_with_the_enumerated_joint((model, rows) in small_model(), seed in any::<u32>()) {
        let engine = Engines::new(&model).with_choice(CHOICES[seed as usize % 4]).marginals().unwrap();
        for index in 0..rows.n_rows() {
            let mut row = rows.select(&[index]);
            let first = model.label_ids().next().filter(|_| seed & 8 == 0);
            if let Some(label) = first {
                row.observe(0, label, CategoryId::new(0)).unwrap();
            }
            let joint = Joint::new(&row);
            let about = model.label_ids().nth(seed as usize >> 4 & 7);
            for about in [None, about] {
                let gains = engine.information_gains(&row.row(0), about).unwrap();
                joint.check(&gains, first, about).map_err(|wrong| {
                    TestCaseError::fail(format!("{wrong}\nrow {:?} of\n{model}\n{gains:#?}", row.row(0)))
                })?;
            }
        }
    }
}

/// All assignments of a row with their probabilities; empty if the row is impossible.
struct Joint {
    model: Model,
    list: Vec<(Assignment, f64)>,
}

impl Joint {
    fn new(row: &BeliefMatrix) -> Self {
        let model = row.model().clone();
        let mut assignments = vec![Vec::new()];
        for label in model.labels() {
            let extended = |y: &Vec<usize>| {
                (0..label.n_categories()).map(|category| [&y[..], &[category]].concat()).collect::<Vec<_>>()
            };
            assignments = assignments.iter().flat_map(extended).collect();
        }
        let weigh = |y: Vec<usize>| {
            let y = Assignment::from_indices(y);
            let log_weight = model.log_weight(&row.row(0), &y);
            (y, log_weight)
        };
        let weighed: Vec<(Assignment, f64)> = assignments.into_iter().map(weigh).collect();
        let largest = weighed.iter().map(|(_, log_weight)| *log_weight).fold(f64::NEG_INFINITY, f64::max);
        if largest == f64::NEG_INFINITY {
            return Self { model, list: Vec::new() };
        }
        let mut list: Vec<_> = weighed.into_iter().map(|(y, log)| (y, (log - largest).exp())).collect();
        let sum: f64 = list.iter().map(|(_, weight)| weight).sum();
        list.iter_mut().for_each(|(_, weight)| *weight /= sum);
        Self { model, list }
    }

    /// Σ P(a, b) log₂ (P(a, b) / (P(a) P(b))). For a label with itself, this is its entropy.
    fn mutual_information(&self, a: LabelId, b: LabelId) -> f64 {
        let probability = |labels: &[(LabelId, CategoryId)]| -> f64 {
            let agrees =
                |y: &Assignment| labels.iter().all(|&(label, category)| y.category(label) == category);
            self.list.iter().filter(|(y, _)| agrees(y)).map(|(_, p)| p).sum()
        };
        let categories = |label: LabelId| (0..self.model.label(label).n_categories()).map(CategoryId::new);
        let mut information = 0.0;
        for x in categories(a) {
            for y in categories(b) {
                let both = probability(&[(a, x), (b, y)]);
                if both > 0.0 {
                    information += both * (both / (probability(&[(a, x)]) * probability(&[(b, y)]))).log2();
                }
            }
        }
        information
    }

    fn check(
        &self,
        gains: &InformationGains,
        observed: Option<LabelId>,
        about: Option<LabelId>,
    ) -> Result<(), String> {
        if self.list.is_empty() {
            let is_empty = !gains.possible && gains.entropy.is_none() && gains.gains.is_empty();
            return if is_empty { Ok(()) } else { Err("impossible".to_owned()) };
        }
        let interest: Vec<LabelId> =
            about.map_or_else(|| self.model.label_ids().collect(), |label| vec![label]);
        let entropy: f64 = interest.iter().map(|&label| self.mutual_information(label, label)).sum();
        let near = |actual: f64, expected: f64, what: &str| match close(actual, expected, BITS) {
            true => Ok(()),
            false => Err(format!("{what} is {actual} instead of {expected}")),
        };
        near(gains.entropy.ok_or("no entropy")?, entropy, "the entropy")?;
        let mut n_asked = 0;
        for label in self.model.label_ids().filter(|&label| Some(label) != about && Some(label) != observed) {
            let name = self.model.label(label).name();
            let gain = gains.gain(name).ok_or_else(|| format!("`{name}` is not asked"))?;
            let expected: f64 = interest.iter().map(|&other| self.mutual_information(label, other)).sum();
            near(gain.gain, expected, name)?;
            near(gain.entropy, self.mutual_information(label, label), "its own entropy")?;
            n_asked += 1;
        }
        let is_sorted = gains.gains.windows(2).all(|pair| pair[0].gain >= pair[1].gain - 1e-9);
        if gains.gains.len() != n_asked || !is_sorted { Err("the list".to_owned()) } else { Ok(()) }
    }
}

fn gains(model: &str, evidence: &Evidence, about: Option<&str>) -> InformationGains {
    let model = Model::parse(model).unwrap();
    let about = about.map(|label| model.find_label(label).unwrap());
    Engines::new(&model).marginals().unwrap().information_gains(evidence, about).unwrap()
}

fn worked_evidence() -> Evidence {
    Evidence::new().belief("activity", [0.1, 0.4, 0.5]).belief("feet", [0.05, 0.95])
}

#[test]
fn gains_about_one_label_read_well() {
    insta::assert_snapshot!(gains(crate::WORKED_EXAMPLE, &worked_evidence(), Some("activity")));
}

#[test]
fn gains_about_all_labels_read_well() {
    let evidence = worked_evidence().observe("hands", "high");
    insta::assert_snapshot!(gains(crate::WORKED_EXAMPLE, &evidence, None));
}

#[test]
fn a_label_without_common_rules_tells_nothing() {
    let model = "label rain\nlabel wet\nlabel alarm\nrule 0.9: rain <-> wet";
    insta::assert_snapshot!(gains(model, &Evidence::new(), Some("wet")));
}

#[test]
fn an_impossible_row_has_no_gains() {
    let evidence = Evidence::new().observe("activity", "walking").observe("feet", "standing");
    let gains = gains(crate::WORKED_EXAMPLE, &evidence, None);
    assert!(!gains.possible && gains.gains.is_empty());
    insta::assert_snapshot!(gains);
}

#[test]
fn a_large_model_is_summarized() {
    let labels: String = (0..30).map(|label| format!("label l{label}\n")).collect();
    let rules: String = (1..20).map(|label| format!("rule 0.8: l{} -> l{label}\n", label - 1)).collect();
    insta::assert_snapshot!(gains(&(labels + &rules), &Evidence::new(), Some("l10")));
}

#[test]
fn loopy_gains_are_approximate() {
    let model = Model::parse(crate::WORKED_EXAMPLE).unwrap();
    let engine = Engines::new(&model).with_choice(EngineChoice::Loopy).marginals().unwrap();
    let gains = engine.information_gains(&worked_evidence(), None).unwrap();
    assert!(gains.approximate && gains.to_string().starts_with("approximate: "));
}
