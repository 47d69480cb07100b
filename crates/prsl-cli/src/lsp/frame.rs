//! Frames: a header with the length, an empty line, and a body.

use std::io::{self, BufRead, Read, Write};

/// Maximum size of a message, in bytes. A model text has at most 16 MiB, and escapes in JSON at most multiply it by six;
/// texts that consist of control characters are no models.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum size of a line of a header, in bytes.
const MAX_LINE: u64 = 4096;

/// What was read between two frames.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// The body of a message.
    Body(Vec<u8>),
    /// A message that cannot be read, and the reason. The next one can.
    Refused(String),
}

/// Reads the next frame. Returns `None` at the end of the input, even if a frame is incomplete.
pub fn read(input: &mut impl BufRead) -> io::Result<Option<Frame>> {
    let mut length = None;
    let mut n_lines = 0;
    loop {
        let mut line = Vec::new();
        if input.take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(line.trim_ascii_end());
        if line.is_empty() && n_lines > 0 {
            break;
        }
        n_lines += usize::from(!line.is_empty());
        if let Some((name, value)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case("content-length")
        {
            length = Some(value.trim().parse::<u64>().map_err(|_| value.trim().to_owned()));
        }
    }
    match length {
        None => Ok(Some(Frame::Refused("the header has no `Content-Length`".to_owned()))),
        Some(Err(given)) => {
            let given: String = given.chars().take(80).collect();
            Ok(Some(Frame::Refused(format!("`Content-Length` is `{given}`, expected a number of bytes"))))
        }
        Some(Ok(length)) => body(input, length),
    }
}

/// Reads a body. A body that is too large is skipped.
fn body(input: &mut impl BufRead, length: u64) -> io::Result<Option<Frame>> {
    if length > MAX_BYTES {
        let skipped = io::copy(&mut input.take(length), &mut io::sink())?;
        let reason = format!("the message has {length} bytes, more than the limit of {MAX_BYTES}");
        return Ok((skipped == length).then_some(Frame::Refused(reason)));
    }
    let mut body = Vec::new();
    input.take(length).read_to_end(&mut body)?;
    Ok((body.len() as u64 == length).then_some(Frame::Body(body)))
}

/// Writes a frame.
pub fn write(output: &mut impl Write, body: &[u8]) -> io::Result<()> {
    write!(output, "Content-Length: {}\r\n\r\n", body.len())?;
    output.write_all(body)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(input: &[u8]) -> Vec<Frame> {
        let mut input = input;
        std::iter::from_fn(|| read(&mut input).expect("memory can be read")).collect()
    }

    fn body(text: &str) -> Frame {
        Frame::Body(text.as_bytes().to_vec())
    }

    #[test]
    fn what_is_written_is_read() {
        let mut written = Vec::new();
        for text in ["{}", "", "é"] {
            write(&mut written, text.as_bytes()).expect("memory can be written");
        }
        assert_eq!(frames(&written), [body("{}"), body(""), body("é")]);
    }

    #[test]
    fn headers_are_read_as_in_http() {
        let input =
            b"\r\ncontent-length:2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}";
        assert_eq!(frames(input), [body("{}")]);
    }

    #[test]
    fn a_bad_header_does_not_hide_the_next_message() {
        let input = b"Content-Type: x\r\n\r\nContent-Length: many\r\n\r\nContent-Length: 2\r\n\r\n{}";
        let [Frame::Refused(first), Frame::Refused(second), third] = &frames(input)[..] else {
            panic!("expected three frames")
        };
        assert_eq!(first, "the header has no `Content-Length`");
        assert_eq!(second, "`Content-Length` is `many`, expected a number of bytes");
        assert_eq!(*third, body("{}"));
    }

    #[test]
    fn incomplete_and_huge_messages_take_no_memory() {
        assert_eq!(frames(b"Content-Length: 10\r\n\r\n{}"), []);
        assert_eq!(frames(b"Content-Length: 10"), []);
        let huge = format!("Content-Length: {}\r\n\r\n{{}}", u64::MAX);
        assert_eq!(frames(huge.as_bytes()), []);
        let line = "x".repeat(3 * MAX_LINE as usize) + "\r\n\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(frames(line.as_bytes()).last(), Some(&body("{}")));
    }
}
