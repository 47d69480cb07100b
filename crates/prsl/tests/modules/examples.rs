//! Small artificial libraries have the expected graphs of modules.

use crate::graph::Graph;

fn graph(files: &[(&str, &str)]) -> Graph {
    let files: Vec<_> = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Graph::new(&files)
}

#[test]
fn an_artificial_cycle_is_found() {
    let cyclic = graph(&[
        ("lib.rs", "mod a; mod b; mod c; pub use c::Thing;"),
        ("a.rs", "use std::fmt;\nuse crate::b::{\n    self,\n    deep::{One, Two as Other},\n};"),
        (
            "b/mod.rs",
            "mod deep;\nfn f() -> crate::Thing { crate::c::g::<u8>() }\nmod sealed { use super::f; }\nuse deep::One;",
        ),
        ("b/deep.rs", "use super::f;"),
        ("c.rs", "pub(crate) fn g<T>() { super::a::h() }"),
        ("d.rs", "use crate::a::h;"),
    ]);
    assert_eq!(
        cyclic.order().unwrap_err(),
        "modules use each other in a cycle: a -> b -> c -> a
a uses b:
    a.rs:3: crate::b
    a.rs:4: crate::b::deep::One
    a.rs:4: crate::b::deep::Two
b uses c:
    b/mod.rs:2: crate::Thing
    b/mod.rs:2: crate::c::g
c uses a:
    c.rs:1: super::a::h
"
    );
}

#[test]
fn tests_comments_and_strings_do_not_count() {
    let acyclic = graph(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "//! [`crate::b`]\nuse crate::b::B; /* crate::b */"),
        (
            "b/mod.rs",
            r##"
#[cfg(test)]
mod tests;
#[cfg(test)]
use crate::a::{One, Two};
fn f<'a>(c: char) -> &'a str { if c == '"' || c == '\'' { r#"crate::a "quoted""# } else { "\"crate::a" } }
#[cfg(test)]
mod more { fn g() { crate::a::f() } }
"##,
        ),
        ("b/tests.rs", "use crate::a::A;"),
    ]);
    let order: Vec<String> = acyclic.order().expect("no cycle").iter().map(|m| m.join("::")).collect();
    assert_eq!(order, ["b", "a"]);
}

#[test]
fn children_of_infer_are_separate_nodes() {
    let split = graph(&[
        ("lib.rs", "mod infer; mod x;"),
        ("infer/mod.rs", "mod tree;\nmod table;\npub use tree::Tree;"),
        ("infer/tree.rs", "use super::table::Table; use crate::x::X;"),
        ("infer/table.rs", ""),
        ("x.rs", "use crate::infer::table::Table;"),
        ("y.rs", "use crate::infer::Tree;"),
    ]);
    let used: Vec<String> = split.modules.iter().map(|module| split.describe(module)).collect();
    let expected = [
        "infer: infer::tree",
        "infer::table: ",
        "infer::tree: infer::table x",
        "x: infer::table",
        "y: infer::tree",
    ];
    assert_eq!(used, expected);
    assert!(split.order().is_ok());
}
