//! Writes small models in every export format, with marginals summed over all assignments, for other programs
//! to check: `cargo run -p prsl --example oracle_models -- FOLDER`.
//!
//! Most numbers are binary fractions, which readers that round to single precision keep as they are.

use std::path::Path;

use prsl::export::ExportFormat;
use prsl::{Assignment, Evidence, Model};

/// Name, model, and whether single precision keeps all its numbers.
const MODELS: [(&str, &str, bool); 16] = [
    (
        "typical",
        "label a prior 0.25\nlabel b\nlabel c: x, y, z prior 0.5, 0.25, 0.25
        rule 0.875: a -> b | c=x
        typical 6: a, b, x
        typical 0.5: y
        typical 0.5: b, z",
        true,
    ),
    (
        "warehouse",
        "label activity: walking, normal, overhead prior 0.1, 0.4, 0.5
        label feet: gait, standing prior 0.05, 0.95
        label hands: high, centered, low prior 0.5, 0.3, 0.2
        rule 0.8: high & standing -> overhead
        rule 0.9: normal -> centered | low
        rule 1: walking <-> gait",
        false,
    ),
    (
        "clauses",
        "label a prior 0.25\nlabel b prior 0.625\nlabel c\nlabel d: x, y, z prior 0.5, 0.25, 0.25
        rule 0.8125: a & b -> c | d=z
        rule 0.9375: d=x <- !c
        rule 0.125: !(a & d=y)
        rule 0.75: d in {x, z} | b",
        true,
    ),
    (
        "equivalences",
        "label a prior 0.25\nlabel b\nlabel c: u, v, w prior 0.125, 0.375, 0.5
        rule 1: a <-> c=u
        rule 0.875: (a <-> b) <-> c=w",
        true,
    ),
    (
        "parity",
        "label a prior 0.25\nlabel b prior 0.375\nlabel c\nlabel d prior 0.75
        rule 0.9375: a xor b xor c xor d
        rule 0.25: (a xor !b) & c",
        true,
    ),
    (
        "counts",
        "label a prior 0.75\nlabel b prior 0.625\nlabel c prior 0.5\nlabel d: x, y, z prior 0.25, 0.25, 0.5
        rule 0.9375: at_most 2 of {a, b, c, d=x}
        rule 0.75: at_least 2 of {a & b, !c, d in {y, z}}
        rule 0.625: exactly 1 of {a, a, b | c}
        rule 0.875: exactly 0 of {b, c}
        rule 0.75: at_least 0 of {a}
        rule 0.375: !(at_most 3 of {a, b, c, d=z})",
        true,
    ),
    (
        "noisy_or",
        "label a prior 0.25\nlabel b: x, y, z prior 0.5, 0.25, 0.25\nlabel c prior 0.875
        noisy_or 0.9375: a 0.25, b=x 0.5, b=y 0.125, c=no 0.75
        noisy_or 0.5: a 0.5, c 0.25",
        true,
    ),
    (
        "certain_noisy_or",
        "label a prior 0.25\nlabel b: x, y, z prior 0.5, 0.25, 0.25\nlabel c prior 0.875
        noisy_or 1: a 0, b=x 1, b=y 0.5, c=no 0
        noisy_or 0.0625: b=z 0, c 1, a=no 1",
        true,
    ),
    (
        "hard",
        "label a prior 0.25\nlabel b prior 1\nlabel c: x, y, z prior 0.5, 0, 0.5\nlabel d
        rule 1: a -> c=x
        rule 1: b -> a | d
        rule 0: a & d
        rule 1: c in {x, y} xor d",
        true,
    ),
    (
        "four_categories",
        "label color: red, green, blue, black\nlabel size: s, m, l, xl prior 0.5, 0.25, 0.125, 0.125\nlabel latent_one latent
        rule 0.875: color != black -> size in {m, l}
        rule 0.75: red & !(size = s) <- latent_one
        rule 0.9375: exactly 1 of {color=red, size=s, size=xl, latent_one}",
        true,
    ),
    (
        "awkward_names",
        r#"label "größe": klein, "groß'", "\\" prior 0.5, 0.25, 0.25
        label "network": "table", "default", "1st", "😀" prior 0.5, 0.25, 0.125, 0.125
        label "R_1": "a b", "a-b", "A_b", "it's" prior 0.125, 0.375, 0.25, 0.25
        label "variable {": "line\nbreak", "tab\t\"quote\"" prior 0.625, 0.375
        label "% // /* 'x\\'"
        rule 0.875 "called\nso": "1st" & "\\" -> "R_1"="a b" | "% // /* 'x\\'"
        rule 0.75: "variable {"="line\nbreak" <-> "a-b"
        noisy_or 0.9375: "it's" 0.25, "groß'" 0.5, "😀" 0.125"#,
        true,
    ),
    (
        "wide",
        "label a prior 0.25\nlabel b\nlabel c\nlabel d\nlabel e\nlabel f\nlabel g\nlabel h\nlabel i\nlabel j\nlabel k: x, y, z prior 0.25, 0.5, 0.25
        rule 0.9375: a & b & c & d & e -> f | g | h | i | j | k=x
        noisy_or 0.875: a 0.5, b 0.75, c 0.25, d 0.5, e 0.5, f 0.875, g 0.5, h 0.5, i 0.25, j 1, k=y 0, k=z 0.5",
        true,
    ),
    (
        "wide_conjunction",
        "label a prior 0.875\nlabel b prior 0.75\nlabel c prior 0.75\nlabel d prior 0.75\nlabel e prior 0.75\nlabel f prior 0.75
        label g prior 0.75\nlabel h prior 0.75\nlabel i prior 0.75\nlabel j prior 0.75\nlabel k prior 0.75
        rule 0.96875: a & b & c & d & e & f & g & h & i & j & !k
        rule 0.75: a | b | c | d | e | f | g | h | i | j | k | true
        rule 0.75: k <-> a",
        true,
    ),
    (
        "constants",
        "label a prior 0.25\nlabel b: x, y, z prior 0.25, 0.25, 0.5
        rule 0.75: true
        rule 0.25: a & false | b=x
        rule 0.875: at_most 0 of {}",
        true,
    ),
    (
        "contrary",
        "label a prior 0.25\nlabel b prior 0.375
        rule 0: a & b
        rule 0.5: a -> b
        rule 0.0625: a | b",
        true,
    ),
    (
        "nested",
        "label a prior 0.25\nlabel b prior 0.5\nlabel c: x, y, z prior 0.25, 0.25, 0.5\nlabel d prior 0.125
        rule 0.9375: ((a -> b) -> c=x) <- !(d xor (a <-> c=y))
        rule 0.875: at_most 1 of {a xor b, exactly 1 of {c=z, d, !a}, c=y -> d}
        noisy_or 0.75: c=x 0.5, d 0.25",
        true,
    ),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: oracle_models FOLDER")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    for (name, text, exact_in_single_precision) in MODELS {
        let model = Model::parse(text).map_err(|error| format!("{name}: {error}"))?;
        for format in [ExportFormat::Uai, ExportFormat::Bif, ExportFormat::ProbLog] {
            let path = folder.join(format!("{name}.{}", format.extension()));
            std::fs::write(path, model.export(&Evidence::new(), format)?)?;
        }
        let expected = serde_json::json!({
            "name": name,
            "exact_in_single_precision": exact_in_single_precision,
            "n_rules": model.rules().len(),
            "marginals": marginals(&model)?,
        });
        std::fs::write(folder.join(format!("{name}.json")), serde_json::to_string_pretty(&expected)?)?;
    }
    println!("{} models in {}", MODELS.len(), folder.display());
    Ok(())
}

/// The distribution of each label, summed over all assignments.
fn marginals(model: &Model) -> Result<Vec<Vec<f64>>, prsl::Error> {
    let row = model.row(&Evidence::new())?;
    let mut sums = vec![0.0; model.n_categories()];
    let mut assignment = vec![0; model.labels().len()];
    let mut total = 0.0;
    loop {
        let weight = model.log_weight(&row, &Assignment::from_indices(&assignment[..])).exp();
        total += weight;
        for label in model.label_ids() {
            sums[model.block(label).start + assignment[label.index()]] += weight;
        }
        let next =
            (0..assignment.len()).find(|&label| assignment[label] + 1 < model.labels()[label].n_categories());
        match next {
            Some(label) => {
                assignment[..label].fill(0);
                assignment[label] += 1;
            }
            None => break,
        }
    }
    Ok(model
        .label_ids()
        .map(|label| sums[model.block(label)].iter().map(|sum| sum / total).collect())
        .collect())
}
