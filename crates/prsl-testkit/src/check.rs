//! Checks every engine against the precise oracle on models with extreme numbers, for tests and fuzzing.

use prsl::infer::{Circuit, Gibbs, GibbsSettings, LoopySettings, MaxProductTree, Sampling, Schedule};
use prsl::metrics::{joint_log_likelihoods, label_log_likelihoods};
use prsl::{
    Assignment, BeliefMatrix, BranchAndBound, CategoryId, Engines, Error, JunctionTree, LabelId, Loopy,
    Model, MostProbable, Posteriors, RuleId, Status, Truth,
};

use crate::{Extreme, Precise, Sums, close, is_tree};

/// The result of a check. The error describes a difference, with the numbers.
pub type Checked = Result<(), String>;

/// Maximum relative error of a marginal.
const RELATIVE: f64 = 1e-9;
/// Marginals below this may lose digits, but must not become zero.
const SMALL: f64 = 1e-300;
/// Maximum error of a logarithm, relative to its size above 1.
const LOGARITHM: f64 = 1e-10;
/// Maximum error of a logarithm for loopy propagation, which treats weights that differ by less than 1e-9 as equal.
const TIE: f64 = 1e-8;
/// Assignments with a smaller probability must never be drawn.
const NEVER: f64 = 1e-30;

macro_rules! ensure {
    ($holds:expr, $($message:tt)*) => {{
        let holds: bool = $holds;
        if !holds {
            return Err(format!($($message)*));
        }
    }};
}

/// Marginals and ln Z of the exact engines.
pub fn check_marginals(Extreme { model, rows }: &Extreme) -> Checked {
    let precise = Precise::new(model);
    let engine = JunctionTree::compile(model).map_err(message)?;
    let posteriors = engine.infer_batch(rows).map_err(message)?;
    for row in 0..rows.n_rows() {
        let sums = precise.sums(&rows.row(row));
        agree(&posteriors, row, &sums).map_err(|wrong| format!("junction tree, row {row}: {wrong}"))?;
        match engine.infer(&rows.row(row)) {
            Ok(alone) => {
                let both = alone.marginals().iter().zip(posteriors.marginals(row).into_iter().flatten());
                ensure!(
                    alone.log_evidence().to_bits() == posteriors.log_evidence(row).to_bits()
                        && both.clone().all(|(a, b)| a.to_bits() == b.to_bits()),
                    "row {row} alone is {:?} with ln Z {}, not {:?} with {}",
                    alone.marginals(),
                    alone.log_evidence(),
                    posteriors.marginals(row),
                    posteriors.log_evidence(row)
                );
                for agreement in engine.agreement(&rows.row(row)).map_err(message)? {
                    ensure!((0.0..=1.0 + 1e-9).contains(&agreement), "row {row}: agreement {agreement}");
                }
            }
            Err(Error::Impossible { .. }) => {
                ensure!(!posteriors.is_possible(row), "row {row} is impossible alone")
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    let chosen = Engines::new(model).marginals().map_err(message)?;
    ensure!(chosen.infer_batch(rows).map_err(message)? == posteriors, "the chosen engine answers otherwise");
    Ok(())
}

/// All queries of a circuit: marginals, ln Z, agreement, the best assignments and samples.
pub fn check_circuit(Extreme { model, rows }: &Extreme) -> Checked {
    const N: usize = 100;
    let (precise, engine) = (Precise::new(model), Circuit::compile(model).map_err(message)?);
    // Agreement ignores typical combinations.
    let rules_only = |keep: &dyn Fn(RuleId) -> bool| {
        let model = model.edit().remove_typical().retain_rules(keep).build();
        model.map(|model| Precise::new(&model)).map_err(message)
    };
    let all_rules = rules_only(&|_| true)?;
    let without_each: Vec<Precise> =
        model.rule_ids().map(|rule| rules_only(&|other| other != rule)).collect::<Result<_, _>>()?;
    let posteriors = engine.infer_batch(rows).map_err(message)?;
    let best = engine.best_batch(rows).map_err(message)?;
    let sampling = Sampling { n_samples: N, ..Sampling::default() };
    let samples = engine.sample_batch(rows, &sampling).map_err(message)?;
    for row in 0..rows.n_rows() {
        let (beliefs, sums) = (rows.row(row), precise.sums(&rows.row(row)));
        let what = |wrong: String| format!("circuit, row {row}: {wrong}");
        agree(&posteriors, row, &sums).map_err(what)?;
        same_weights(&precise, &beliefs, &sums, best[row].as_slice(), 1).map_err(what)?;
        same_weights(&precise, &beliefs, &sums, &engine.top(&beliefs, 4).map_err(message)?, 4)
            .map_err(what)?;
        let samples = samples[row].as_ref().map_err(|error| what(error.to_string()))?;
        frequencies(&precise, &beliefs, samples.as_deref(), N).map_err(what)?;
        let alone = match engine.infer(&beliefs) {
            Ok(alone) => alone,
            Err(Error::Impossible { .. }) => {
                ensure!(!posteriors.is_possible(row), "{}", what("impossible alone".to_owned()));
                continue;
            }
            Err(error) => return Err(what(error.to_string())),
        };
        let both = alone.marginals().iter().zip(posteriors.marginals(row).into_iter().flatten());
        ensure!(
            alone.log_evidence().to_bits() == posteriors.log_evidence(row).to_bits()
                && both.clone().all(|(a, b)| a.to_bits() == b.to_bits()),
            "{}",
            what(format!("alone {:?}, in a batch {:?}", alone.marginals(), posteriors.marginals(row)))
        );
        let log_all = all_rules.sums(&beliefs).log_evidence;
        let agreement = engine.agreement(&beliefs).map_err(message)?;
        for (rule, (actual, without)) in agreement.into_iter().zip(&without_each).enumerate() {
            let expected = (log_all - without.sums(&beliefs).log_evidence).exp();
            let is_right = if expected > SMALL {
                (actual - expected).abs() <= RELATIVE * expected
            } else {
                (0.0..=1.1 * SMALL).contains(&actual)
            };
            ensure!(
                is_right,
                "{}",
                what(format!("agreement of rule {rule} is {actual:e} instead of {expected:e}"))
            );
        }
    }
    Ok(())
}

/// The best and the next best assignments of the exact engines.
pub fn check_assignments(Extreme { model, rows }: &Extreme) -> Checked {
    let precise = Precise::new(model);
    let tree = MaxProductTree::compile(model).map_err(message)?;
    let chosen = Engines::new(model).assignments().map_err(message)?;
    let (best, chosen) = (tree.best_batch(rows).map_err(message)?, chosen.best_batch(rows).map_err(message)?);
    for row in 0..rows.n_rows() {
        let (beliefs, sums) = (rows.row(row), precise.sums(&rows.row(row)));
        let same = |who: &str, found: Vec<MostProbable>, n: usize| {
            same_weights(&precise, &beliefs, &sums, &found, n)
                .map_err(|wrong| format!("{who}, row {row}: {wrong}"))
        };
        same("max-product tree", best[row].clone().into_iter().collect(), 1)?;
        same("chosen engine", chosen[row].clone().into_iter().collect(), 1)?;
        same("max-product tree", tree.top(&beliefs, 4).map_err(message)?.to_vec(), 4)?;
    }
    Ok(())
}

/// The best and the next best assignments of branch and bound.
pub fn check_search(Extreme { model, rows }: &Extreme) -> Checked {
    let (precise, search) = (Precise::new(model), BranchAndBound::compile(model).map_err(message)?);
    for row in 0..rows.n_rows() {
        let (beliefs, sums) = (rows.row(row), precise.sums(&rows.row(row)));
        for n in [1, 4] {
            same_weights(&precise, &beliefs, &sums, &search.top(&beliefs, n).map_err(message)?, n)
                .map_err(|wrong| format!("branch and bound, row {row}: {wrong}"))?;
        }
    }
    Ok(())
}

/// Samples: every sample is possible, and the frequencies of exact samples are right.
pub fn check_samples(Extreme { model, rows }: &Extreme) -> Checked {
    const N: usize = 300;
    let precise = Precise::new(model);
    let sampler = Engines::new(model).sampler().map_err(message)?;
    let many =
        sampler.sample_batch(rows, &Sampling { n_samples: N, ..Sampling::default() }).map_err(message)?;
    // Enough rows to fill the lanes, with a small number of samples each.
    let repeated = rows.select(&[0, 1, 2, 1, 0]);
    let few = sampler
        .sample_batch(&repeated, &Sampling { n_samples: 4, ..Sampling::default() })
        .map_err(message)?;
    let settings = GibbsSettings { burn_in: 3, thin: 1, chains: 2, ..GibbsSettings::default() };
    let gibbs = Gibbs::compile(model, settings);
    for row in 0..rows.n_rows() {
        let probabilities = precise.probabilities(&rows.row(row));
        let possible = precise.sums(&rows.row(row)).log_evidence > f64::NEG_INFINITY;
        let place = |sample: &Assignment| precise.assignments().iter().position(|y| y == sample.indices());
        let samples = many[row].as_ref().map_err(|error| error.to_string())?;
        frequencies(&precise, &rows.row(row), samples.as_deref(), N)
            .map_err(|wrong| format!("row {row}: {wrong}"))?;
        for samples in
            few.iter().zip([0, 1, 2, 1, 0]).filter(|(_, of)| *of == row).map(|(samples, _)| samples)
        {
            let samples = samples.as_ref().map_err(|error| error.to_string())?;
            for sample in samples.iter().flatten() {
                let p = probabilities[place(sample).ok_or("no assignment of the model")?];
                ensure!(p >= NEVER, "row {row} in a lane: drew what has probability {p:e}");
            }
        }
        match gibbs.sample(&rows.row(row), &Sampling { n_samples: 4, ..Sampling::default() }) {
            Ok(samples) => {
                let is_possible =
                    |sample: &Assignment| model.log_weight(&rows.row(row), sample) > f64::NEG_INFINITY;
                ensure!(possible && samples.iter().all(is_possible), "row {row}: Gibbs {samples:?}");
            }
            Err(error) => {
                ensure!(!possible && matches!(error, Error::Impossible { .. }), "row {row}: Gibbs {error}")
            }
        }
    }
    Ok(())
}

/// Joint and label-wise log-likelihoods of complete and partial truths.
pub fn check_scores(Extreme { model, rows }: &Extreme) -> Checked {
    let precise = Precise::new(model);
    let engine = JunctionTree::compile(model).map_err(message)?;
    let posteriors = engine.infer_batch(rows).map_err(message)?;
    for every in [1, 2] {
        let truth = |row: usize| -> Truth {
            let y = &precise.assignments()[(row * 7919 + 31) % precise.assignments().len()];
            let known = |(label, &c): (usize, &usize)| (label % every == 0).then_some(CategoryId::new(c));
            y.iter().enumerate().map(known).collect()
        };
        let truths: Vec<Truth> = (0..rows.n_rows()).map(truth).collect();
        let infer = |rows: &BeliefMatrix| engine.infer_batch(rows);
        let joint = joint_log_likelihoods(rows, &truths, &posteriors, infer).map_err(message)?;
        let joint = joint.ok_or("the junction tree is exact")?;
        let labels = label_log_likelihoods(rows, &truths, &posteriors, infer).map_err(message)?;
        for row in (0..rows.n_rows()).filter(|&row| posteriors.is_possible(row)) {
            let expected = precise.log_likelihood(&rows.row(row), &truths[row]);
            let actual = joint[row].ok_or("labels are known")?;
            ensure!(
                close(actual, expected.min(0.0), RELATIVE),
                "row {row}: ln P {actual} instead of {expected}"
            );
            for (label, actual) in labels[row].iter().enumerate() {
                let Some(actual) = actual else { continue };
                let label_id = LabelId::new(label);
                let mut alone = Truth::unknown(labels[row].len());
                alone.set(label_id, truths[row].category(label_id));
                let expected = precise.log_likelihood(&rows.row(row), &alone);
                ensure!(
                    close(*actual, expected.min(0.0), RELATIVE),
                    "row {row}, label {label}: ln P {actual} instead of {expected}"
                );
            }
        }
    }
    Ok(())
}

/// Loopy propagation: exact on trees, and never impossible or undefined for a possible row.
pub fn check_loopy(Extreme { model, rows }: &Extreme) -> Checked {
    let precise = Precise::new(model);
    let residual = LoopySettings { schedule: Schedule::Residual, ..LoopySettings::default() };
    for settings in [LoopySettings::default(), LoopySettings::authors(), residual] {
        let engine = Loopy::compile_with(model, settings).map_err(message)?;
        let (posteriors, best) =
            (engine.infer_batch(rows).map_err(message)?, engine.decode_batch(rows).map_err(message)?);
        for row in 0..rows.n_rows() {
            let sums = precise.sums(&rows.row(row));
            let is_possible = sums.log_evidence > f64::NEG_INFINITY;
            let what = |wrong: String| format!("{:?}, row {row}: {wrong}", settings.schedule);
            if settings == LoopySettings::default() && is_tree(model) {
                agree(&posteriors, row, &sums).map_err(what)?;
                let found: Vec<MostProbable> =
                    best[row].iter().filter_map(|decoded| decoded.best.clone()).collect();
                let weight = found.first().map(|best| best.log_weight);
                let expected = sums.log_weights.first().copied();
                ensure!(
                    weight.is_some() == expected.is_some()
                        && weight.zip(expected).is_none_or(|(a, b)| close(a, b, TIE)),
                    "{}",
                    what(format!("ln weight {weight:?} instead of {expected:?}"))
                );
            }
            let marginals = posteriors.marginals(row);
            ensure!(!is_possible || marginals.is_some(), "{}", what("called impossible".to_owned()));
            ensure!(!is_possible || best[row].is_some(), "{}", what("no assignment was found".to_owned()));
            ensure!(!posteriors.log_evidence(row).is_nan(), "{}", what("ln Z is no number".to_owned()));
            if let Some(marginals) = marginals {
                distributions(model, marginals).map_err(what)?;
            }
            if let Ok(alone) = engine.infer(&rows.row(row)) {
                distributions(model, alone.marginals()).map_err(what)?;
                let agreement = engine.agreement(&rows.row(row)).map_err(message)?;
                let is_number = agreement.iter().all(|agreement| !agreement.is_nan());
                ensure!(is_number, "{}", what("agreement is no number".to_owned()));
            }
        }
    }
    Ok(())
}

fn message(error: Error) -> String {
    error.to_string()
}

fn distributions(model: &Model, marginals: &[f64]) -> Checked {
    for label in model.label_ids() {
        let block = &marginals[model.block(label)];
        let total: f64 = block.iter().sum();
        ensure!(close(total, 1.0, 1e-9) && block.iter().all(|&p| p >= 0.0), "marginals {block:?}");
    }
    Ok(())
}

/// Compares a row's posterior with the precise sums.
fn agree(posteriors: &Posteriors, row: usize, sums: &Sums) -> Checked {
    let (actual, expected) = (posteriors.log_evidence(row), sums.log_evidence);
    ensure!(close(actual, expected, LOGARITHM), "ln Z {actual} instead of {expected}");
    let status = posteriors.status(row);
    let Some(marginals) = posteriors.marginals(row) else { return Ok(()) };
    ensure!(status == Status::Ok, "status {status:?}");
    for (place, (&actual, &expected)) in marginals.iter().zip(&sums.marginals).enumerate() {
        let is_right = if expected > SMALL {
            (actual - expected).abs() <= RELATIVE * expected
        } else {
            let is_possible = sums.log_marginals[place] > f64::NEG_INFINITY;
            actual <= 1.1 * SMALL && (actual > 0.0) == is_possible
        };
        ensure!(is_right, "marginal {place} is {actual:e} instead of {expected:e}");
    }
    Ok(())
}

/// Checks that `n` samples are as frequent as they are probable; there are none if the row is impossible.
fn frequencies(precise: &Precise, row: &[f64], samples: Option<&[Assignment]>, n: usize) -> Checked {
    let is_possible = precise.sums(row).log_evidence > f64::NEG_INFINITY;
    ensure!(samples.is_some() == is_possible, "samples {samples:?}");
    let probabilities = precise.probabilities(row);
    let mut counts = vec![0.0; probabilities.len()];
    for sample in samples.into_iter().flatten() {
        let place = precise.assignments().iter().position(|y| y == sample.indices());
        counts[place.ok_or("no assignment of the model")?] += 1.0;
    }
    for (count, p) in counts.into_iter().zip(&probabilities) {
        // Ten standard deviations, and a constant for rare assignments.
        let expected = n as f64 * p;
        let bound = 10.0 * (expected * (1.0 - p)).sqrt() + 15.0;
        ensure!((count - expected).abs() <= bound, "{count} samples of {expected}");
        ensure!(count == 0.0 || *p >= NEVER, "drew what has probability {p:e}");
    }
    Ok(())
}

/// Checks that these are the `n` best assignments. Only weights are compared, because ties make assignments differ.
fn same_weights(precise: &Precise, row: &[f64], sums: &Sums, found: &[MostProbable], n: usize) -> Checked {
    let expected = &sums.log_weights[..n.min(sums.log_weights.len())];
    ensure!(found.len() == expected.len(), "{} assignments instead of {}", found.len(), expected.len());
    for (place, (found, &expected)) in found.iter().zip(expected).enumerate() {
        let (stated, actual) = (found.log_weight, precise.log_weight(row, found.assignment.indices()));
        ensure!(
            close(stated, expected, LOGARITHM),
            "assignment {place} weighs {stated} instead of {expected}"
        );
        ensure!(
            close(stated, actual, LOGARITHM),
            "assignment {place} is said to weigh {stated}, not {actual}"
        );
        ensure!(found.is_optimal(), "assignment {place} is not proven: {:?}", found.gap);
    }
    Ok(())
}
