//! The modules of the library form no cycle: each uses only modules that can be understood before it.
//!
//! Every top-level module is a node of the graph, and so is every child of `infer`. Edges are the paths of `use`
//! declarations, and the paths in the code that begin with `crate`, `super` or `self`. Tests and comments do not
//! count. A name that `lib.rs` or `infer/mod.rs` re-exports stands for the module that defines it.
//!
//! Run it with `--nocapture` to see the modules in order of dependency.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs;
use std::path::Path;

/// Modules whose children are separate nodes.
const SPLIT: [&str; 1] = ["infer"];

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

/// The graph of modules.
struct Graph {
    modules: BTreeSet<Module>,
    /// For each pair of modules, the lines in which the first uses the second.
    uses: BTreeMap<(Module, Module), Vec<String>>,
}

impl Graph {
    /// The graph of some files.
    fn new(files: &[(String, String)]) -> Self {
        let files = parse_all(files);
        let known: BTreeSet<Module> = files.iter().map(|file| file.module.clone()).collect();
        let exports = exports(&files, &known);
        let mut graph = Self { modules: BTreeSet::new(), uses: BTreeMap::new() };
        // The root is not a node. It re-exports names, which are resolved to their modules.
        for file in files.iter().filter(|file| !file.module.is_empty()) {
            let from = node(&file.module, &known);
            graph.modules.insert(from.clone());
            for found in &file.paths {
                let module = [&file.module[..], &found.inline[..]].concat();
                let Some(path) = absolute(&found.segments, &module, &known) else { continue };
                let to = node(&follow(path, &exports, &known), &known);
                if to != from && known.contains(&to) && !to.is_empty() {
                    let place = format!("{}:{}: {}", file.name, found.line, found.segments.join("::"));
                    graph.uses.entry((from.clone(), to)).or_default().push(place);
                }
            }
        }
        graph
    }

    /// The modules that a module uses.
    fn used_by<'a>(&'a self, module: &'a Module) -> impl Iterator<Item = &'a Module> {
        self.uses.keys().filter(move |(from, _)| from == module).map(|(_, to)| to)
    }

    /// The modules, each after all that it uses; or a message about a cycle.
    fn order(&self) -> Result<Vec<&Module>, String> {
        let mut order: Vec<&Module> = Vec::new();
        while order.len() < self.modules.len() {
            let is_placed = |module: &&Module| order.contains(module);
            let is_next =
                |module: &&Module| !is_placed(module) && self.used_by(module).all(|used| is_placed(&used));
            let next: Vec<&Module> = self.modules.iter().filter(is_next).collect();
            if next.is_empty() {
                let left: Vec<&Module> = self.modules.iter().filter(|module| !is_placed(module)).collect();
                return Err(self.message(&self.shortest_cycle(&left)));
            }
            order.extend(next);
        }
        Ok(order)
    }

    /// The shortest cycle that one of these modules lies on, its first module repeated at the end.
    fn shortest_cycle<'a>(&'a self, modules: &[&'a Module]) -> Vec<&'a Module> {
        let cycles = modules.iter().filter_map(|&start| self.cycle_from(start));
        cycles.min_by_key(Vec::len).expect("modules that cannot be ordered depend on a cycle")
    }

    /// The shortest path from a module back to itself, by breadth-first search.
    fn cycle_from<'a>(&'a self, start: &'a Module) -> Option<Vec<&'a Module>> {
        let mut before: HashMap<&Module, &Module> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(module) = queue.pop_front() {
            for used in self.used_by(module) {
                if before.contains_key(used) {
                    continue;
                }
                before.insert(used, module);
                queue.push_back(used);
                if used == start {
                    let mut cycle = vec![start];
                    while cycle.len() == 1 || cycle[cycle.len() - 1] != start {
                        cycle.push(before[cycle[cycle.len() - 1]]);
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
            }
        }
        None
    }

    /// A cycle, and the places that close it.
    fn message(&self, cycle: &[&Module]) -> String {
        let names: Vec<String> = cycle.iter().map(|module| module.join("::")).collect();
        let mut message = format!("modules use each other in a cycle: {}\n", names.join(" -> "));
        for pair in cycle.windows(2) {
            message.push_str(&format!("{} uses {}:\n", pair[0].join("::"), pair[1].join("::")));
            for place in &self.uses[&(pair[0].clone(), pair[1].clone())] {
                message.push_str(&format!("    {place}\n"));
            }
        }
        message
    }

    /// `model: error formula label`
    fn describe(&self, module: &Module) -> String {
        let used: Vec<String> = self.used_by(module).map(|used| used.join("::")).collect();
        format!("{}: {}", module.join("::"), used.join(" "))
    }
}

/// The node of the graph that a path belongs to.
fn node(path: &[String], known: &BTreeSet<Module>) -> Module {
    let is_split = path.first().is_some_and(|first| SPLIT.contains(&first.as_str()));
    let length = if is_split && path.len() > 1 && known.contains(&path[..2]) { 2 } else { path.len().min(1) };
    path[..length].to_vec()
}

/// The path from the root of the crate, or `None` if it leads out of the crate.
fn absolute(segments: &[String], module: &Module, known: &BTreeSet<Module>) -> Option<Vec<String>> {
    let n_super = segments.iter().take_while(|segment| *segment == "super").count();
    let child = || [&module[..], &segments[..1]].concat();
    match segments[0].as_str() {
        "crate" => Some(segments[1..].to_vec()),
        "self" => Some([module, &segments[1..]].concat()),
        "super" => Some([&module[..module.len() - n_super], &segments[n_super..]].concat()),
        _ if known.contains(&child()) => Some([module, segments].concat()),
        _ => None,
    }
}

/// For the root and every split module, the paths of the names that it imports or re-exports.
fn exports(files: &[File], known: &BTreeSet<Module>) -> HashMap<Vec<String>, Vec<String>> {
    let is_exporter = |module: &Module| module.is_empty() || SPLIT.contains(&module.join("::").as_str());
    let mut exports = HashMap::new();
    for file in files.iter().filter(|file| is_exporter(&file.module)) {
        for found in &file.paths {
            if let (Some(name), Some(path)) = (&found.alias, absolute(&found.segments, &file.module, known)) {
                exports.insert([&file.module[..], std::slice::from_ref(name)].concat(), path);
            }
        }
    }
    exports
}

/// Replaces a re-exported name at the start of a path by the path that it stands for.
fn follow(
    path: Vec<String>,
    exports: &HashMap<Vec<String>, Vec<String>>,
    known: &BTreeSet<Module>,
) -> Vec<String> {
    for length in 1..=path.len().min(2) {
        let start = &path[..length];
        if let Some(origin) = exports.get(start).filter(|_| !known.contains(start)) {
            return follow([&origin[..], &path[length..]].concat(), exports, known);
        }
    }
    path
}

/// A source file and the paths in it.
struct File {
    name: String,
    module: Module,
    paths: Vec<Found>,
}

/// A path in a source file.
struct Found {
    line: usize,
    segments: Vec<String>,
    /// The modules inside of the file that it is in: `sealed` in `mod sealed { ... }`.
    inline: Vec<String>,
    /// The name that a `use` declaration gives it.
    alias: Option<String>,
}

/// Reads all files, except the modules that are compiled for tests only.
fn parse_all(files: &[(String, String)]) -> Vec<File> {
    let mut test_modules: Vec<Module> = Vec::new();
    let mut parsed = Vec::new();
    for (name, text) in files {
        let module = module_of(name);
        let (tokens, tests) = without_tests(tokens(text));
        test_modules.extend(tests.into_iter().map(|test| [&module[..], &[test]].concat()));
        parsed.push(File { name: name.clone(), module, paths: paths(&tokens) });
    }
    parsed.retain(|file| !test_modules.iter().any(|test| file.module.starts_with(test)));
    parsed
}

/// `infer/mod.rs` is `infer`, `model/check.rs` is `model::check`, `lib.rs` is the root.
fn module_of(file: &str) -> Module {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    let mut module: Module = path.split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "mod" || last == "lib") {
        module.pop();
    }
    module
}

/// A word or a sign of a source file, and its line.
struct Token {
    text: String,
    line: usize,
}

/// Words, `::` and single signs. Comments, strings and characters are left out.
fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let starts = |at: usize, text: &str| text.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c));
    let mut tokens: Vec<Token> = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let end = match chars[at] {
            '/' if starts(at, "//") => find(&chars, at, |at| chars[at] == '\n'),
            '/' if starts(at, "/*") => find(&chars, at + 2, |at| starts(at, "*/")) + 2,
            '"' => end_of_quoted(&chars, at, raw_hashes(&chars, at)),
            // A character, as opposed to a lifetime.
            '\'' if chars.get(at + 1) == Some(&'\\') => find(&chars, at + 3, |at| chars[at] == '\'') + 1,
            '\'' if chars.get(at + 2) == Some(&'\'') => at + 3,
            c if is_word(c) => find(&chars, at, |at| !is_word(chars[at])),
            ':' if starts(at, "::") => at + 2,
            _ => at + 1,
        };
        let end = end.min(chars.len());
        let is_token =
            is_word(chars[at]) || (end - at <= 2 && !chars[at].is_whitespace() && chars[at] != '"');
        if is_token && !starts(at, "//") {
            tokens.push(Token { text: chars[at..end].iter().collect(), line });
        }
        line += chars[at..end].iter().filter(|&&c| c == '\n').count();
        at = end;
    }
    tokens
}

/// The first position from `at` on for which the condition holds, or the end.
fn find(chars: &[char], at: usize, condition: impl Fn(usize) -> bool) -> usize {
    (at..chars.len()).find(|&at| condition(at)).unwrap_or(chars.len())
}

/// For a quote that begins a raw string, the number of `#` before it.
fn raw_hashes(chars: &[char], quote: usize) -> Option<usize> {
    let hashes = chars[..quote].iter().rev().take_while(|&&c| c == '#').count();
    chars[..quote - hashes].ends_with(&['r']).then_some(hashes)
}

/// The position after a string.
fn end_of_quoted(chars: &[char], quote: usize, raw_hashes: Option<usize>) -> usize {
    let mut at = quote + 1;
    while at < chars.len() {
        match (chars[at], raw_hashes) {
            ('"', Some(hashes)) if chars[at + 1..].iter().take(hashes).all(|&c| c == '#') => {
                return at + 1 + hashes;
            }
            ('"', None) => return at + 1,
            ('\\', None) => at += 2,
            _ => at += 1,
        }
    }
    chars.len()
}

/// Removes items under `#[cfg(test)]`. Also returns the names of modules among them that are files of their own.
fn without_tests(tokens: Vec<Token>) -> (Vec<Token>, Vec<String>) {
    const ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut modules = Vec::new();
    let mut tokens = VecDeque::from(tokens);
    while !tokens.is_empty() {
        if !tokens.iter().zip(ATTRIBUTE).all(|(token, wanted)| token.text == wanted) {
            kept.extend(tokens.pop_front());
            continue;
        }
        tokens.drain(..ATTRIBUTE.len());
        let item = item_length(&tokens);
        let texts: Vec<&str> = tokens.range(..item).map(|token| token.text.as_str()).collect();
        if let [.., "mod", name, ";"] = texts[..] {
            modules.push(name.to_owned());
        }
        tokens.drain(..item);
    }
    (kept, modules)
}

/// The number of tokens of an item: up to a semicolon or the end of a block outside of all other brackets.
fn item_length(tokens: &VecDeque<Token>) -> usize {
    let mut depth = 0;
    let is_use = tokens.iter().take(4).any(|token| token.text == "use");
    for (index, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 && (token.text == ";" || (token.text == "}" && !is_use)) {
            return index + 1;
        }
    }
    tokens.len()
}

/// The paths of `use` declarations, and all other paths that begin with `crate`, `super` or `self`.
fn paths(tokens: &[Token]) -> Vec<Found> {
    let mut found = Vec::new();
    let mut depth = 0;
    // The modules inside of the file, and the depth of their braces.
    let mut inline: Vec<(String, usize)> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let text = |offset: usize| tokens.get(at + offset).map_or("", |token| token.text.as_str());
        let n_found = found.len();
        let mut end = at + 1;
        match text(0) {
            "mod" if text(2) == "{" => inline.push((text(1).to_owned(), depth)),
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                inline.pop_if(|(_, outer)| *outer == depth);
            }
            "use" if is_declaration(tokens, at) => end = use_tree(tokens, at + 1, &[], &mut found),
            "crate" | "super" | "self" if text(1) == "::" => {
                let segments;
                (segments, end) = self::segments(tokens, at);
                let line = tokens[at].line;
                found.push(Found { line, segments, inline: Vec::new(), alias: None });
            }
            _ => {}
        }
        let modules = inline.iter().map(|(name, _)| name.clone());
        found[n_found..].iter_mut().for_each(|found| found.inline = modules.clone().collect());
        at = end;
    }
    found
}

/// Whether this `use` begins a declaration: `use<>` is a bound of an `impl Trait`.
fn is_declaration(tokens: &[Token], at: usize) -> bool {
    tokens.get(at + 1).is_some_and(|next| next.text != "<")
}

/// Reads the names of a path that are joined by `::`, and where it ends.
fn segments(tokens: &[Token], mut at: usize) -> (Vec<String>, usize) {
    let is_name = |at: usize| tokens.get(at).is_some_and(|token| !["{", "*", "<"].contains(&&*token.text));
    let mut segments = vec![tokens[at].text.clone()];
    at += 1;
    while tokens.get(at).is_some_and(|token| token.text == "::") && is_name(at + 1) {
        segments.push(tokens[at + 1].text.clone());
        at += 2;
    }
    (segments, at)
}

/// Reads one tree of a `use` declaration. Returns the position of what follows it.
fn use_tree(tokens: &[Token], mut at: usize, prefix: &[String], found: &mut Vec<Found>) -> usize {
    let line = tokens[at].line;
    let mut path = prefix.to_vec();
    if !["{", "*"].contains(&&*tokens[at].text) {
        let (segments, end) = segments(tokens, at);
        path.extend(segments);
        at = end + usize::from(tokens[end].text == "::");
    }
    if tokens[at].text == "{" {
        at += 1;
        while tokens[at].text != "}" {
            at = use_tree(tokens, at, &path, found);
            at += usize::from(tokens[at].text == ",");
        }
        return at + 1;
    }
    let is_glob = tokens[at].text == "*";
    at += usize::from(is_glob);
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let mut alias = path.last().cloned().filter(|_| !is_glob);
    if tokens[at].text == "as" {
        alias = Some(tokens[at + 1].text.clone());
        at += 2;
    }
    found.push(Found { line, segments: path, inline: Vec::new(), alias });
    at
}

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
