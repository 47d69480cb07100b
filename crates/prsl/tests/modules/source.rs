//! Reads source files: their words and signs, and the paths in them.

use std::collections::VecDeque;

use crate::Module;

/// A source file and the paths in it.
pub struct File {
    pub name: String,
    pub module: Module,
    pub paths: Vec<Found>,
}

/// A path in a source file.
pub struct Found {
    pub line: usize,
    pub segments: Vec<String>,
    /// The modules inside of the file that it is in: `sealed` in `mod sealed { ... }`.
    pub inline: Vec<String>,
    /// The name that a `use` declaration gives it.
    pub alias: Option<String>,
}

/// Reads all files, except the modules that are compiled for tests only.
pub fn parse_all(files: &[(String, String)]) -> Vec<File> {
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
