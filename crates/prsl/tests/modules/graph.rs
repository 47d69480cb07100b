//! The graph of modules, its order, and its shortest cycle.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::Module;
use crate::source::{File, parse_all};

/// Modules whose children are separate nodes.
const SPLIT: [&str; 1] = ["infer"];

/// The graph of modules.
pub struct Graph {
    pub modules: BTreeSet<Module>,
    /// For each pair of modules, the lines in which the first uses the second.
    pub uses: BTreeMap<(Module, Module), Vec<String>>,
}

impl Graph {
    /// The graph of some files.
    pub fn new(files: &[(String, String)]) -> Self {
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
    pub fn order(&self) -> Result<Vec<&Module>, String> {
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
    pub fn describe(&self, module: &Module) -> String {
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
