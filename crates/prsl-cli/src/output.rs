//! Text for people and for files. Whoever reads it may stop reading: see [`is_broken_pipe`].

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anstream::AutoStream;
use anyhow::{Result, bail};
use prsl_data::Target;

/// Prints text for people: its colors show on a terminal, and nowhere else.
pub fn print(text: &str) -> Result<()> {
    let mut stream = AutoStream::auto(io::stdout().lock());
    stream.write_all(text.as_bytes())?;
    Ok(stream.flush()?)
}

/// Writes text for programs exactly as it is: to a file that appears when it is complete, or to standard output.
pub fn write(text: &str, file: Option<&Path>) -> Result<()> {
    let target = file.map_or(Target::StandardOutput, Target::from);
    Ok(target.write_all(text.as_bytes())?)
}

/// Refuses a file that is read as well, or that cannot be written: before the work whose result it is for.
pub fn prepare(file: &Path, inputs: &[&Path]) -> Result<()> {
    let place = |path: &Path| fs::canonicalize(path).ok();
    let is_read =
        |input: &&Path| place(input).is_some_and(|input| input.is_file() && place(file) == Some(input));
    if inputs.iter().any(is_read) {
        bail!("cannot write `{}`: it is among what is read; name another file", file.display());
    }
    Ok(Target::from(file).check()?)
}

/// Prints text for people: on standard error where standard output is for the file.
pub fn print_beside(file: &Path, text: &str) -> Result<()> {
    if matches!(Target::from(file), Target::StandardOutput) {
        complain(text);
        return Ok(());
    }
    print(text)
}

/// What a file is called in messages.
pub fn name(file: &Path) -> String {
    match Target::from(file) {
        Target::StandardOutput => "standard output".to_owned(),
        _ => file.display().to_string(),
    }
}

/// Prints text for people on standard error. If nobody listens, there is nobody to tell.
pub fn complain(text: &str) {
    let mut stream = AutoStream::auto(io::stderr().lock());
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
}

/// Whether whoever reads our output has closed it (as `head` does), which is no reason to complain.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    let data = error.downcast_ref::<prsl_data::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        || data.is_some_and(prsl_data::Error::is_broken_pipe)
}
