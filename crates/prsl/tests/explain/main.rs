//! Numbers in explanations agree with enumeration, and their wording is snapshot-tested.

mod conflicts;
mod counterfactuals;
mod enumeration;
mod information;
mod limits;
mod wording;

use prsl::{Evidence, Explainer, Explanation, Model};

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
