//! Text output to terminals and files. A closed pipe is not an error: see [`is_broken_pipe`].

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use anstream::AutoStream;
use anyhow::{Result, bail};
use prsl_data::Target;
use same_file::Handle;

use crate::model;
use crate::progress::beside_bar;

/// Prints text for people, with colors on a terminal only.
pub fn print(text: &str) -> Result<()> {
    let mut stream = AutoStream::auto(io::stdout().lock());
    stream.write_all(text.as_bytes())?;
    Ok(stream.flush()?)
}

/// Writes text for programs unchanged: to a file that becomes visible when it is complete, or to standard output.
pub fn write(text: &str, file: Option<&Path>) -> Result<()> {
    let target = file.map_or(Target::StandardOutput, Target::from);
    Ok(target.write_all(text.as_bytes())?)
}

/// Rejects an output file that is also an input, or that cannot be written, before any work is done.
pub fn prepare(file: &Path, inputs: &[&Path]) -> Result<()> {
    spare(inputs, &[file])?;
    Ok(Target::from(file).check()?)
}

/// Rejects an output file that is also an input under any name: links of both kinds lead to the same file.
pub fn spare(inputs: &[&Path], outputs: &[&Path]) -> Result<()> {
    for output in outputs.iter().filter(|output| **output != Path::new("-")) {
        let Some(written) = handle(output) else { continue };
        let is_read = |input: &&&Path| handle(input).is_some_and(|read| read == written);
        if let Some(input) = inputs.iter().find(is_read) {
            bail!(
                "cannot write `{}`: it is the same file as `{}`, which is an input; name another file",
                output.display(),
                model::name(input)
            );
        }
    }
    Ok(())
}

/// The identity of a file, if it exists; `-` is standard input.
fn handle(path: &Path) -> Option<Handle> {
    if path == Path::new("-") {
        return Handle::stdin().ok();
    }
    // Opening a pipe would block until its other end is opened.
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    is_file.then(|| Handle::from_path(path).ok()).flatten()
}

/// Prints text for people: on standard error if standard output is used for data.
pub fn print_beside(file: &Path, text: &str) -> Result<()> {
    if matches!(Target::from(file), Target::StandardOutput) {
        complain(text);
        return Ok(());
    }
    print(text)
}

/// The name of a file in messages.
pub fn name(file: &Path) -> String {
    match Target::from(file) {
        Target::StandardOutput => "standard output".to_owned(),
        _ => file.display().to_string(),
    }
}

/// Prints text for people on standard error; errors are ignored.
pub fn complain(text: &str) {
    beside_bar(|| {
        let mut stream = AutoStream::auto(io::stderr().lock());
        let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    });
}

/// Prints a note on standard error, unless the same one has been printed before.
pub fn complain_once(text: String) {
    static PRINTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let Ok(mut printed) = PRINTED.lock() else { return };
    if !printed.contains(&text) {
        complain(&text);
        printed.push(text);
    }
}

/// Whether the reader of our output has closed it, as `head` does. This is not reported as an error.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    let data = error.downcast_ref::<prsl_data::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        || data.is_some_and(prsl_data::Error::is_broken_pipe)
}
