//! The examples of `docs/server.md` run as they are written.

use std::path::Path;

use super::client::Server;
use crate::runner::{Folder, WAREHOUSE};

/// An example: the words of a `curl` command, and the output below it.
struct Example {
    words: Vec<String>,
    output: String,
}

/// The examples of a text: lines that begin with `$ curl`, up to the next one or the end of the block.
fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let (mut in_block, mut in_command) = (false, false);
    let mut command = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = line == "```console";
            in_command = false;
        } else if in_block && (line.starts_with("$ ") || in_command) {
            command.push_str(line.strip_prefix("$ ").unwrap_or(line).trim_end_matches('\\'));
            command.push('\n');
            in_command = line.ends_with('\\');
            if !in_command {
                let words = words(&std::mem::take(&mut command));
                examples.push(Example { words, output: String::new() });
            }
        } else if in_block && let Some(example) = examples.last_mut() {
            example.output.push_str(line);
            example.output.push('\n');
        }
    }
    examples.retain(|example| example.words[0] == "curl");
    examples
}

/// The words of a shell command, with single quotes only.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// Whether a text is the pattern, in which `...` stands for anything.
fn matches(text: &str, pattern: &str) -> bool {
    let mut rest = text;
    for (index, part) in pattern.split("...").enumerate() {
        let Some(found) = rest.find(part) else { return false };
        if index == 0 && found != 0 {
            return false;
        }
        rest = &rest[found + part.len()..];
    }
    rest.is_empty() || pattern.ends_with("...")
}

fn run(server: &Server, example: &Example) {
    let (mut method, mut url, mut body, mut headers) = ("GET", "", "", Vec::new());
    let mut words = example.words[1..].iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--json" => {
                (method, body) =
                    (if method == "GET" { "POST" } else { method }, words.next().expect("a body"))
            }
            "-X" => method = words.next().expect("a method"),
            "-H" => headers.extend(words.next().expect("a header").split_once(": ")),
            "-s" => {}
            _ => url = word,
        }
    }
    let path = url.strip_prefix("localhost:8080").unwrap_or_else(|| panic!("`{url}` is not of the example"));
    let answer = server.send(method, path, &headers, body.as_bytes());
    let text = String::from_utf8(answer.body).expect("text");
    let pattern = example.output.trim_end();
    assert!(matches(text.trim_end(), pattern), "{:?} answers\n{text}\nexpected\n{pattern}", example.words);
}

#[test]
fn the_examples_of_the_document_are_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/server.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let examples = examples(&text);
    assert!(examples.len() >= 10, "only {} examples", examples.len());
    let folder = Folder::new(&[]);
    std::fs::create_dir(folder.path("models")).expect("a folder");
    std::fs::write(folder.path("models/warehouse.prsl"), WAREHOUSE).expect("a file");
    let server = Server::start(folder, "--dir models --writable");
    examples.iter().for_each(|example| run(&server, example));
}
