//! Rules of other programs as models.

use std::io::Cursor;

use proptest::collection::vec;
use proptest::prelude::*;
use prsl::{Assignment, Model, RuleId};
use prsl_data::{Error, MulanLabels, Result, TableReader, import};

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn r(text: &str) -> Result<Model> {
    import::r(Cursor::new(text.to_owned()), "rules.txt", None, 1.0)
}

fn dimacs(text: &str) -> Result<Model> {
    import::dimacs(Cursor::new(text.to_owned()), "rules.cnf")
}

fn taxonomy(text: &str) -> Result<Model> {
    import::taxonomy(TableReader::csv(Cursor::new(text.to_owned()), "tree.csv")?)
}

fn mulan(text: &str) -> Result<Model> {
    import::mulan(&MulanLabels::new(Cursor::new(text.to_owned()), "labels.xml")?)
}

fn rules(model: &Model) -> Vec<String> {
    let text = |id: RuleId| format!("{}: {}", model.rule(id).probability(), model.rule_text(id));
    model.rule_ids().map(text).collect()
}

/// Whether a rule holds for every assignment of yes/no labels, given by the bits of a number.
fn holds(model: &Model, rule: usize, bits: usize) -> bool {
    let assignment = (0..model.labels().len()).map(|label| usize::from(bits >> label & 1 == 0));
    let assignment = Assignment::from_indices(assignment.collect::<Vec<_>>());
    model.rules()[rule].formula().expect("a formula").holds(&assignment)
}

/// The text of a model reads back as the same model.
fn reads_back(model: &Model) {
    assert_eq!(&Model::parse(&model.to_string()).expect("a model text"), model);
}

#[test]
fn rules_of_r_have_alternatives_to_the_left_and_conditions_to_the_right() {
    let text = "\
# rules of the warehouse
A, B <- !C, D
0.8: happy.pleased <-sad-lonely
<- A, D   # never both
A, C <-

\"A <- B\", 0.25,
'!A <- !!B'
time:day <- A
";
    let expected = [
        "1: !C & D -> A | B",
        "0.8: \"sad-lonely\" -> \"happy.pleased\"",
        "1: !(A & D)",
        "1: A | C",
        "0.25: B -> A",
        "1: B -> !A",
        "1: A -> \"time:day\"",
    ];
    let model = r(text).expect("rules");
    assert_eq!(rules(&model), expected);
    let names: Vec<&str> = model.labels().iter().map(|label| label.name()).collect();
    assert_eq!(names, ["A", "B", "C", "D", "happy.pleased", "sad-lonely", "time:day"]);
    reads_back(&model);
}

#[test]
fn rules_of_r_may_use_the_labels_of_a_model() {
    let base = Model::parse("label feet: gait, standing\nlabel alarm\nrule 0.9: gait").expect("a model");
    let read = |text: &'static str| import::r(text.as_bytes(), "rules.txt", Some(&base), 0.7);
    let model = read("alarm <- feet=standing\ngait <- !alarm\n").expect("rules");
    assert_eq!(rules(&model), ["0.9: gait", "0.7: standing -> alarm", "0.7: !alarm -> gait"]);
    assert_eq!(model.labels(), base.labels());
    assert_eq!(
        read("alarm <- gait\n  alarm <- !stnding\n").unwrap_err().to_string(),
        "`rules.txt`, line 2, column 13: unknown category `stnding`; did you mean `standing`?"
    );
}

#[test]
fn errors_have_file_line_and_column() {
    let message = |result: Result<Model>| result.expect_err("refused").to_string();
    let of_r = |text: &str| message(r(text)).replace("`rules.txt`, ", "");
    assert_eq!(
        of_r("A <- B\nA -> B\n"),
        "line 2, column 1: the rule has no `<-`; write `A, B <- C, D`, where either side may be empty"
    );
    assert_eq!(of_r("A <- B, , C"), "line 1, column 8: a name is missing; names are separated by commas");
    assert_eq!(of_r("A <- B <- C"), "line 1, column 8: a second `<-` in one rule; write one rule per line");
    assert_eq!(of_r(" <- "), "line 1, column 2: both sides of `<-` are empty; name at least one category");
    assert_eq!(
        of_r("é <- b\n 1.5: A <- B"),
        "line 2, column 2: `1.5` is not a probability, expected a number from 0 to 1"
    );
    assert_eq!(of_r("\"A <- B"), "line 1, column 1: a quote is not closed on its line");
    let of_cnf = |text: &str| message(dimacs(text)).replace("`rules.cnf`, ", "");
    assert_eq!(of_cnf("c\n1 0\n"), "line 2, column 1: expected the header `p cnf VARIABLES CLAUSES` first");
    assert_eq!(
        of_cnf("p cnf 2 1\n1 -3 0\n"),
        "line 2, column 3: literal -3 has no variable, expected a number from 1 to 2 or its negative"
    );
    assert_eq!(of_cnf("p cnf 2 1\n1 x 0\n"), "line 2, column 3: `x` is not a whole number");
    assert_eq!(of_cnf("p cnf 2 1\n1 2\n"), "line 2, column 1: the last clause does not end in 0");
    assert_eq!(
        of_cnf("p cnf 2 2\n1 2 0\n"),
        "line 2, column 1: the file has 1 clauses, expected 2 as in its header"
    );
    assert_eq!(of_cnf("p cnf 99999999999 0\n"), "line 1, column 7: more than 1000000 variables");
    assert_eq!(of_cnf("p wcnf 2 2 5\n"), "line 1, column 1: a header has the form `p cnf VARIABLES CLAUSES`");
    let of_tree = |text: &str| message(taxonomy(text)).replace("`tree.csv`", "");
    assert_eq!(
        of_tree("dog,animal\n"),
        ": expected the columns `child` and `parent`, found `dog`, `animal`; add a header"
    );
    assert_eq!(
        of_tree("child;parent\na;b\n"),
        ": the columns seem to be separated by `;`; ask for this delimiter"
    );
    assert_eq!(
        of_tree("child,parent\na,b\n,b\n"),
        ", row 2, column `child`: no name; each row needs a child, and its parent if it has one"
    );
    assert_eq!(
        of_tree("child,parent\na,a\n"),
        ", row 1, column `parent`: `a` is its own parent; leave the cell empty if it has none"
    );
    assert_eq!(
        of_tree("child,parent\nd,a\na,b\nb,c\nc,a\ne,\n"),
        ": the parents form a cycle: `a` above `c` above `b` above `a`; remove one of these rows"
    );
    let long: String = (0..1000).map(|name| format!("n{},n{name}\n", (name + 1) % 1000)).collect();
    assert_eq!(
        of_tree(&format!("child,parent\n{long}")),
        ": the parents form a cycle: `n1` above `n2` above `n3` above `n4` above 995 others above `n0` above `n1`; \
         remove one of these rows"
    );
    assert_eq!(
        message(mulan("<labels>\n <label/></labels>")),
        "`labels.xml`, line 2, column 2: a `label` without the attribute `name`"
    );
    assert!(matches!(
        import::dimacs(&b"c\n\xff"[..], "b.cnf"),
        Err(Error::Import { line: 2, column: 1, .. })
    ));
}

#[test]
fn taxonomies_and_label_files_are_implications() {
    let text = "\
parent,note,child
,root,animal
animal,,dog
animal,,cat
\"pet, small\",,cat
animal,again,cat
";
    let model = taxonomy(text).expect("a taxonomy");
    let expected = ["1: dog -> animal", "1: cat -> animal", "1: cat -> \"pet, small\""];
    assert_eq!(rules(&model), expected);
    reads_back(&model);
    let nested = "<labels><label name=\"a\"><label name=\"b\"><label name=\"c\"/></label></label></labels>";
    assert_eq!(rules(&mulan(nested).expect("labels")), ["1: b -> a", "1: c -> b"]);
}

#[test]
fn clauses_may_span_lines_and_be_empty() {
    let model = dimacs("c comment\np cnf 3 3\n1 -2\n3 0 2 2 0\n0\n%\n0\n").expect("clauses");
    assert_eq!(rules(&model), ["1: x1 | !x2 | x3", "1: x2", "1: false"]);
    reads_back(&model);
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        for result in [
            import::r(Cursor::new(bytes.clone()), "x", None, 0.5),
            import::dimacs(Cursor::new(bytes.clone()), "x"),
            TableReader::csv(Cursor::new(bytes.clone()), "x").and_then(import::taxonomy),
            MulanLabels::new(Cursor::new(bytes.clone()), "x").and_then(|labels| import::mulan(&labels)),
        ] {
            match result {
                Ok(model) => reads_back(&model),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn any_text_that_looks_like_rules_is_read_or_refused(text in "[ABé!, <\\-\"'#:.0-9=\n\r\t]{0,60}") {
        let base = Model::parse("label A\nlabel q: B, C").expect("a model");
        for base in [None, Some(&base)] {
            match import::r(Cursor::new(text.clone()), "x", base, 0.5) {
                Ok(model) => reads_back(&model),
                Err(error) => prop_assert!(error.to_string().starts_with("`x`, line "), "{error}"),
            }
        }
    }

    #[test]
    fn any_text_that_looks_like_clauses_is_read_or_refused(text in "(p cnf [0-9]{1,2} [0-9]\n)?[-0-9 cp%\n\tx]{0,40}") {
        match dimacs(&text) {
            Ok(model) => reads_back(&model),
            Err(error) => prop_assert!(error.to_string().starts_with("`rules.cnf`, line "), "{error}"),
        }
    }

    #[test]
    fn any_text_that_looks_like_a_taxonomy_is_read_or_refused(text in "child,parent\n([a-d\"]{0,2},[a-d]{0,2}\n){0,8}") {
        if let Ok(model) = taxonomy(&text) {
            reads_back(&model);
        }
    }

    /// A rule holds if one of its conditions fails, or one of its alternatives is true.
    #[test]
    fn rules_of_r_mean_what_they_say(clauses in vec((vec((0_usize..4, any::<bool>()), 0..4), vec((0_usize..4, any::<bool>()), 0..4)), 1..5)) {
        let side = |literals: &[(usize, bool)]| {
            let literal = |&(label, negated): &(usize, bool)| {
                format!("{}{}", if negated { "!" } else { "" }, ["a", "b", "c", "d"][label])
            };
            literals.iter().map(literal).collect::<Vec<_>>().join(", ")
        };
        let clauses: Vec<_> = clauses.into_iter().filter(|(a, b)| !a.is_empty() || !b.is_empty()).collect();
        let lines: Vec<String> = clauses.iter().map(|(then, given)| format!("{} <- {}", side(then), side(given))).collect();
        let base = Model::parse("label a\nlabel b\nlabel c\nlabel d").expect("a model");
        let model = import::r(Cursor::new(lines.join("\n")), "x", Some(&base), 1.0).expect("rules");
        reads_back(&model);
        for (rule, (then, given)) in clauses.iter().enumerate() {
            for bits in 0..16 {
                let is_true = |&(label, negated): &(usize, bool)| (bits >> label & 1 == 1) != negated;
                let expected = !given.iter().all(is_true) || then.iter().any(is_true);
                prop_assert_eq!(holds(&model, rule, bits), expected, "{} {}", &lines[rule], bits);
            }
        }
    }

    #[test]
    fn clauses_mean_what_they_say(clauses in vec(vec((1_i64..5, any::<bool>()), 0..5), 0..6)) {
        let literal = |&(variable, negated): &(i64, bool)| if negated { -variable } else { variable };
        let lines: Vec<String> = clauses
            .iter()
            .map(|clause| clause.iter().map(|it| format!("{} ", literal(it))).collect::<String>() + "0\n")
            .collect();
        let model = dimacs(&format!("p cnf 4 {}\n{}", clauses.len(), lines.concat())).expect("clauses");
        reads_back(&model);
        for (rule, clause) in clauses.iter().enumerate() {
            for bits in 0..16 {
                let is_true = |&(variable, negated): &(i64, bool)| (bits >> (variable - 1) & 1 == 1) != negated;
                prop_assert_eq!(holds(&model, rule, bits), clause.iter().any(is_true));
            }
        }
    }

    /// Every name but the first is below an earlier one, so there is no cycle.
    #[test]
    fn taxonomies_and_label_files_give_the_same_model(above in vec(any::<prop::sample::Index>(), 1..12)) {
        let parents: Vec<usize> = above.iter().enumerate().map(|(child, index)| index.index(child + 1)).collect();
        let csv: String = parents.iter().enumerate().map(|(child, parent)| format!("n{},n{parent}\n", child + 1)).collect();
        let from_table = taxonomy(&format!("child,parent\nn0,\n{csv}")).expect("a taxonomy");
        fn element(name: usize, parents: &[usize]) -> String {
            let children = (0..parents.len()).filter(|&child| parents[child] == name);
            let inner: String = children.map(|child| element(child + 1, parents)).collect();
            format!("<label name=\"n{name}\">{inner}</label>")
        }
        let from_xml = mulan(&format!("<labels>{}</labels>", element(0, &parents))).expect("labels");
        let sorted = |model: &Model| {
            let mut rules = rules(model);
            rules.sort();
            rules
        };
        prop_assert_eq!(sorted(&from_table), sorted(&from_xml));
        prop_assert_eq!(from_table.rules().len(), parents.len());
        reads_back(&from_table);
    }
}
