//! The modules of the library form no cycle: each uses only modules that can be understood before it.
//!
//! Every top-level module is a node of the graph, and so is every child of `infer`. Edges are the paths of `use`
//! declarations, and the paths in the code that begin with `crate`, `super` or `self`. Tests and comments do not
//! count. A name that `lib.rs` or `infer/mod.rs` re-exports stands for the module that defines it.
//!
//! Run it with `--nocapture` to see the modules in order of dependency.

mod examples;
mod graph;
mod source;

use std::fs;
use std::path::Path;

use graph::Graph;

/// A node of the graph, such as `["model"]` or `["infer", "loopy"]`.
type Module = Vec<String>;

#[test]
fn modules_form_no_cycle() {
    let graph = Graph::new(&sources());
    match graph.order() {
        Ok(order) => order.iter().for_each(|module| println!("{}", graph.describe(module))),
        Err(message) => panic!("{message}"),
    }
}

/// Modules that may use inference: the last row of the map in ARCHITECTURE.md.
const ABOVE_INFERENCE: [&str; 8] =
    ["explain", "sentence", "metrics", "calibrate", "lint", "export", "simulate", "learn"];

#[test]
fn only_the_uses_of_engines_depend_on_inference() {
    let graph = Graph::new(&sources());
    for ((from, to), places) in &graph.uses {
        let is_allowed = from[0] == "infer" || ABOVE_INFERENCE.contains(&from[0].as_str());
        assert!(is_allowed || to[0] != "infer", "{} uses {}: {places:?}", from.join("::"), to.join("::"));
    }
}

/// All source files of the library: paths relative to `src`, and their texts.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry of the folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).expect("it is below the root").components();
                let name: Vec<_> = name.map(|part| part.as_os_str().to_string_lossy()).collect();
                files.push((name.join("/"), fs::read_to_string(&path).expect("a readable source")));
            }
        }
    }
    files.sort();
    files
}
