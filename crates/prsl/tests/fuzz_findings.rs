//! One test for each finding of the fuzz targets.

use prsl::{Error, Model};

#[test]
fn a_bare_label_whose_categories_could_not_be_read_is_reported() {
    let Err(Error::Text(diagnostics)) = Model::parse("label a: ~, y\nlabel b\nrule 1: b -> a\n") else {
        panic!("the declaration has an error");
    };
    let messages: Vec<&str> = diagnostics.list().iter().map(|d| d.message.as_str()).collect();
    assert_eq!(messages, ["expected a category, found `~`", "`a` is a label without categories"]);
}

/// Each of these texts took minutes, or hours at the maximum size, because the work per statement grew with the text.
#[test]
fn large_texts_are_read_in_one_pass() {
    const N: usize = 20_000;
    let each = |line: &dyn Fn(usize) -> String| (0..N).map(line).collect::<String>();
    let list = |item: &dyn Fn(usize) -> String| (0..N).map(item).collect::<Vec<_>>().join(", ");
    let labels = each(&|i| format!("label l{i}\n"));
    let texts = [
        // Every rule was printed, even if its name was not needed.
        format!("{labels}{}", each(&|i| format!("rule 0.5: l{i} -> l0\n"))),
        // Every wrong name was compared with every known one.
        format!("{labels}{}", each(&|i| format!("rule 1: x{i}\n"))),
        format!("{labels}rule 1: true{}\n", each(&|i| format!(" | x{i}"))),
        format!("label a: {}\nrule 1: true{}\n", list(&|i| format!("c{i}")), each(&|i| format!(" | a=x{i}"))),
        // Comparing names took time and memory quadratic in their length.
        format!("label {0}\nlabel {0}y\nrule 1: {0}z\n", "x".repeat(N)),
        // Every error about an ambiguous name listed all its meanings.
        format!("{labels}{}", each(&|_| "rule 1: yes\n".to_owned())),
        // All categories were searched for each named one.
        format!("label a: {}\nrule 1: a in {{{0}}}\n", list(&|i| format!("c{i}"))),
        format!("{labels}noisy_or 0.5: {}\n", list(&|i| format!("l{i} 0.5"))),
        // All unreadable positions were searched for each statement, and all lines for each repetition.
        each(&|_| "rule 1: ?\n".to_owned()),
        format!("{labels}{}", each(&|i| format!("label l{}\n", N - 1 - i % 2))),
        // Formatting searched for the end of the comments from each comment.
        format!("label a\nrule 1: a\n{}| a\n", each(&|_| "#\n".to_owned())),
    ];
    for text in texts {
        match prsl::Document::format(&text) {
            Ok(formatted) => drop(Model::parse(&formatted).unwrap().to_string()),
            Err(error) => drop(error.to_string()),
        }
    }
}
