//! Output to readers that stop reading.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::runner::{BELIEFS, Folder, WAREHOUSE};

#[test]
fn a_closed_pipe_is_no_error() {
    let folder = Folder::warehouse();
    for arguments in [
        "check warehouse.prsl",
        "check warehouse.prsl --format json",
        "fmt warehouse.prsl",
        "predict warehouse.prsl beliefs.csv",
        "predict warehouse.prsl beliefs.csv --format jsonl",
        "explain warehouse.prsl beliefs.csv --row 1",
        "explain warehouse.prsl beliefs.csv --row 1 --format json",
        "export warehouse.prsl --to json",
        "demo",
        "schema",
        "completions bash",
        "--help",
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = folder.command(arguments).stdout(writer).output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments}");
        assert_eq!(output.status.code(), Some(0), "{arguments}");
    }
}

#[test]
fn head_reads_two_lines() {
    let (header, row) = BELIEFS.split_once('\n').expect("a header");
    let many = format!("{header}\n{}", row.repeat(30_000));
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE), ("many.csv", &many)]);
    let mut command = folder.command("predict warehouse.prsl many.csv");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    for _ in 0..2 {
        lines.read_line(&mut String::new()).expect("a line");
    }
    drop(lines);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}
