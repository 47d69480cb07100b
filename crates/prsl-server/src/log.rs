//! The log on standard error.

use std::io;

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One line of text for each event.
    Text,
    /// One JSON object for each event.
    Json,
}

/// Writes events to standard error from now on. Does nothing if the process has a log already.
pub fn start_log(format: LogFormat) {
    let builder = tracing_subscriber::fmt().with_writer(io::stderr).with_target(false).with_ansi(false);
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}
