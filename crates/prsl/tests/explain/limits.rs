//! Explainers refuse rows of another model, and stay within a limit of memory.

use prsl::infer::MaxProductTree;
use prsl::{Error, Evidence, Explainer, Limits, Model};
use prsl_testkit::{EXACT, close};

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

/// Wide noisy-or rules are decomposed for sums but not for maxima, so the max-product plan is larger.
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

/// Overlapping noisy-or rules over `n` labels, with q strictly between 0 and 1.
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
