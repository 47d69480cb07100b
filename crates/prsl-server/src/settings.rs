//! Settings of the service.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use subtle::ConstantTimeEq;

use crate::startup::StartError;

/// Settings of the service. [`Settings::default`] is for a loopback address without a token.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The token that requests must carry; `None` if none is needed.
    pub token: Option<Token>,
    /// Whether the `Host` header must name this machine. It stops web pages elsewhere from reaching a service on a
    /// loopback address through a name of their own.
    pub local_host_only: bool,
    /// Whether models can be written and deleted.
    pub writable: bool,
    /// Limits of requests.
    pub limits: RequestLimits,
    /// Bytes of memory for the engines of one served model.
    pub memory: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            token: None,
            local_host_only: true,
            writable: false,
            limits: RequestLimits::default(),
            memory: 1 << 30,
        }
    }
}

/// Limits of requests. What exceeds them is refused.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// Bytes of a request body.
    pub body_bytes: usize,
    /// Bytes of all request bodies in memory. More requests are answered with 503.
    pub buffered_bytes: usize,
    /// Time for reading a request body.
    pub body_time: Duration,
    /// Rows of one request.
    pub rows: usize,
    /// Numbers in the answer to one request: its rows times the categories of all labels.
    pub numbers: usize,
    /// Time from a read request to its answer.
    pub time: Duration,
    /// Requests that run or wait. More are answered with 503.
    pub requests: usize,
    /// Requests that run at the same time.
    pub workers: usize,
    /// Open connections. More wait until one is closed.
    pub connections: usize,
    /// Limits of models that a request brings along.
    pub posted: PostedLimits,
}

/// Limits of models in requests. Such models are not trusted.
#[derive(Clone, Copy, Debug)]
pub struct PostedLimits {
    /// Bytes of the text.
    pub bytes: usize,
    /// Bytes of memory for its engines.
    pub memory: u64,
    /// Multiply-adds of the plan for all its answers, known before it runs.
    pub work: f64,
    /// Requests with a model that run or wait. They have a queue of their own.
    pub requests: usize,
    /// Models that stay compiled for further requests with the same text. Together they take at most the memory of one.
    pub kept: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            body_bytes: 32 << 20,
            buffered_bytes: 512 << 20,
            body_time: Duration::from_secs(10),
            rows: 10_000,
            numbers: 5_000_000,
            time: Duration::from_secs(30),
            requests: 512,
            workers: cores.max(2),
            connections: 4096,
            posted: PostedLimits::default(),
        }
    }
}

impl Default for PostedLimits {
    fn default() -> Self {
        Self { bytes: 1 << 20, memory: 256 << 20, work: 2e9, requests: 32, kept: 8 }
    }
}

/// A secret that requests carry. It is never printed.
#[derive(Clone)]
pub struct Token(String);

/// Minimum number of characters of a token. Shorter ones can be guessed.
const MIN_TOKEN: usize = 16;

impl Token {
    /// A token of at least 16 visible ASCII characters.
    pub fn new(text: &str) -> Result<Self, StartError> {
        let text = text.trim();
        if text.len() < MIN_TOKEN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(StartError::Token { given: text.len(), wanted: MIN_TOKEN });
        }
        Ok(Self(text.to_owned()))
    }

    /// Reads the token from a file. White space around it does not count.
    pub fn read(path: &Path) -> Result<Self, StartError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|cause| StartError::Read { file: path.display().to_string(), cause })?;
        Self::new(&text)
    }

    /// Whether the token is `given`. The time does not depend on where they differ, only on the length.
    pub fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_and_never_printed() {
        assert!(Token::new("short").is_err() && Token::new("sixteen and more but with spaces").is_err());
        let token = Token::new(" 0123456789abcdef\n").expect("long enough");
        assert!(token.is(b"0123456789abcdef") && !token.is(b"0123456789abcdeg") && !token.is(b""));
        assert_eq!(format!("{token:?}"), "Token(..)");
    }
}
