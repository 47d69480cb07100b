//! The time of an optimizer step of the paper's recipe.

use std::time::Duration;

use anyhow::Result;
use prsl::learn::Examples;
use prsl::learn::paper::{self, PaperLearner};
use prsl::{BeliefMatrix, CategoryId, Model, Normalize};
use prsl_bench::cpu_time;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Page;

/// CPU seconds of one optimizer step of the authors' code.
const STEP_OF_THE_AUTHORS: f64 = 9.8;

/// CPU time of one step: a batch of 20 rows, 14 labels, 20 rules of 5 labels.
pub fn steps(page: &mut Page) -> Result<()> {
    page.table(
        "One step: 20 rows, 14 labels, 20 rules of 5 labels, CPU time",
        &["", "a step", "times less than 9.8 s"],
    );
    let model =
        (0..14).fold(Model::builder(), |builder, at| builder.binary_label(format!("l{at}"))).build()?;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut beliefs, mut truths) = (BeliefMatrix::new(&model), Vec::new());
    for _ in 0..400 {
        let cells: Vec<Option<f64>> =
            (0..14).flat_map(|_| [Some(rng.random_range(0.05..0.95)), None]).collect();
        beliefs.push(&cells, Normalize::Never)?;
        truths.push((0..14).map(|_| Some(CategoryId::new(rng.random_range(0..2)))).collect());
    }
    let rows = Examples::new(beliefs, truths)?;
    let one = rows.select(&[0]);
    let paper = |gradients: paper::Gradients, steps: usize| {
        let rules = vec![20];
        PaperLearner { rules, steps, gradients, patience: None, ..PaperLearner::default() }
    };
    for (name, gradients) in [
        ("paper's recipe, exact", paper::Gradients::Exact),
        ("paper's recipe, loopy", paper::Gradients::Loopy),
    ] {
        let time = |steps: usize| -> Result<Duration> {
            let start = cpu_time();
            paper(gradients, steps).learn(&model, &rows, &one)?;
            Ok(cpu_time().saturating_sub(start))
        };
        let [few, many] = [time(100)?, time(500)?];
        let step = many.saturating_sub(few).as_secs_f64() / 400.0;
        let cells =
            [name.to_owned(), format!("{:.0} µs", 1e6 * step), format!("{:.0}", STEP_OF_THE_AUTHORS / step)];
        page.row(&cells);
    }
    Ok(())
}
