//! Errors at the start of the service.

use std::io;
use std::net::SocketAddr;

use prsl::lint::Diagnostics;

/// A reason why the service cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A file that cannot be read.
    #[error("cannot read `{file}`: {cause}")]
    Read {
        /// The file.
        file: String,
        /// The cause.
        cause: io::Error,
    },
    /// A model file with errors in its text.
    #[error("{}", .diagnostics.render(.file))]
    Text {
        /// The file.
        file: String,
        /// All errors.
        diagnostics: Diagnostics,
    },
    /// A model that cannot be served.
    #[error("`{file}`: {cause}")]
    Model {
        /// The file.
        file: String,
        /// The cause.
        cause: Box<prsl::Error>,
    },
    /// Two files for one name.
    #[error(
        "`{first}` and `{second}` are both called `{name}`; a model's name is its file's name without the ending, so rename one of them"
    )]
    SameName {
        /// The name.
        name: String,
        /// The first file.
        first: String,
        /// The second file.
        second: String,
    },
    /// A file whose name is no name of a model.
    #[error(
        "`{file}` cannot be served under its name; use letters, digits, `_`, `-` and `.`, and at most 100 of them"
    )]
    Name {
        /// The file.
        file: String,
    },
    /// A token that is too short.
    #[error(
        "the token has {given} characters, or other characters than visible ASCII; expected at least {wanted} of those, as `openssl rand -hex 32` prints them"
    )]
    Token {
        /// Its length.
        given: usize,
        /// The minimum length.
        wanted: usize,
    },
    /// An address that other machines reach, without a token.
    #[error(
        "other machines can reach {address}, so a token is needed; name a file that holds one with `--token-file`, or let everybody in with `--no-auth`"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// An address that cannot be listened on.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        cause: io::Error,
    },
    /// Models that can be written need a folder.
    #[error("writable models need a folder to be written to; name it with `--dir`")]
    NoFolder,
}
