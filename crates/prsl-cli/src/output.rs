//! Text for people and for files. Whoever reads it may stop reading: see [`is_broken_pipe`].

use std::io::{self, Write};
use std::path::Path;

use anstream::AutoStream;
use anyhow::Result;
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
