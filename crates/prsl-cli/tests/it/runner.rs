//! Runs the command in a temporary folder.

use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The worked example of the paper.
pub const WAREHOUSE: &str = include_str!("../../../../examples/warehouse.prsl");
/// Its input.
pub const BELIEFS: &str = "\
activity=walking,activity=normal,activity=overhead,feet=gait,feet=standing,hands=high,hands=centered,hands=low
0.1,0.4,0.5,0.05,0.95,0.5,0.3,0.2
";

/// A folder with files in it.
pub struct Folder {
    folder: TempDir,
}

/// The result of a run of the command.
pub struct Run {
    command: String,
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Folder {
    /// A folder with these files.
    pub fn new(files: &[(&str, &str)]) -> Folder {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content).expect("a file in it");
        }
        Folder { folder }
    }

    /// A folder with `warehouse.prsl` and `beliefs.csv`.
    pub fn warehouse() -> Folder {
        Folder::new(&[("warehouse.prsl", WAREHOUSE), ("beliefs.csv", BELIEFS)])
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The text of a file in it.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file with text")
    }

    /// The names of all files in it.
    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("the folder is there");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// The command to be run in it.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_prsl"));
        command.current_dir(self.folder.path()).args(arguments.split_whitespace());
        for variable in ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(variable);
        }
        command
    }

    /// Runs `prsl` with arguments that have no spaces in them.
    pub fn prsl(&self, arguments: &str) -> Run {
        self.prsl_with_input(arguments, b"")
    }

    /// Runs `prsl` with arguments that may have spaces in them.
    pub fn prsl_with(&self, arguments: &[&str]) -> Run {
        let mut command = self.command("");
        command.args(arguments);
        run(command, format!("prsl {}", arguments.join(" ")), b"")
    }

    /// Runs `prsl` with this text on standard input.
    pub fn prsl_with_input(&self, arguments: &str, input: &[u8]) -> Run {
        run(self.command(arguments), format!("prsl {arguments}"), input)
    }
}

/// Runs a command; its text is for messages.
fn run(mut command: Command, text: String, input: &[u8]) -> Run {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    // The command may end before it has read all input.
    let _ = child.stdin.take().expect("piped").write_all(input);
    let output = child.wait_with_output().expect("the command ends");
    Run {
        command: text,
        code: output.status.code().expect("the command exits"),
        stdout: String::from_utf8(output.stdout).expect("text on standard output"),
        stderr: String::from_utf8(output.stderr).expect("text on standard error"),
    }
}

impl Run {
    /// Checks that the run was successful and printed no messages, except that all rows are answered. Removes that line.
    pub fn done(mut self) -> Run {
        let is_summary = |line: &str| {
            let is_done = line.ends_with(" answered") || line.contains(" written to ");
            line.starts_with(|c: char| c.is_ascii_digit()) && is_done && !line.contains(": ")
        };
        if self.stderr.lines().count() == 1 && self.stderr.lines().all(is_summary) {
            self.stderr.clear();
        }
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self}");
        self
    }

    /// The value in a row and a column of the CSV on standard output.
    pub fn cell(&self, row: usize, column: &str) -> String {
        cell(&self.stdout, row, column)
    }

    /// The number in a row and a column of the CSV on standard output.
    pub fn number(&self, row: usize, column: &str) -> f64 {
        self.cell(row, column).parse().expect("a number")
    }
}

/// The value in a row (from 1) and a column of a CSV without quotes.
pub fn cell(csv: &str, row: usize, column: &str) -> String {
    let mut lines = csv.lines();
    let mut header = lines.next().expect("a header").split(',');
    let index = header.position(|name| name == column).unwrap_or_else(|| panic!("no {column} in {csv}"));
    lines.nth(row - 1).expect("the row").split(',').nth(index).expect("the cell").to_owned()
}

impl fmt::Display for Run {
    /// As in a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ {}", self.command)?;
        f.write_str(&self.stdout)?;
        if !self.stderr.is_empty() {
            write!(f, "--- standard error\n{}", self.stderr)?;
        }
        writeln!(f, "--- exit code {}", self.code)
    }
}
