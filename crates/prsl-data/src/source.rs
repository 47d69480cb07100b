//! Sources of bytes: files, compressed files, standard input, memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;

use crate::error::{Error, Result};

const BUFFER_BYTES: usize = 64 * 1024;

/// A named stream of bytes that counts the bytes read.
pub(crate) struct Source {
    pub(crate) name: String,
    reader: Box<dyn BufRead + Send>,
    read: Arc<AtomicU64>,
    total: Option<u64>,
}

impl Source {
    /// Opens a file, unpacking it if its name ends in `.gz`.
    pub(crate) fn open(path: &Path) -> Result<Source> {
        let name = path.display().to_string();
        let file = open_file(path)?;
        let total = file.metadata().ok().filter(|metadata| metadata.is_file()).map(|metadata| metadata.len());
        let mut source = if has_extension(path, "gz") {
            let read = Arc::new(AtomicU64::new(0));
            let counting = Counting { inner: file, read: Arc::clone(&read) };
            let unpacked = MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, counting));
            let reader = Box::new(BufReader::with_capacity(BUFFER_BYTES, unpacked));
            Source { name, reader, read, total: None }
        } else {
            Source::new(file, name)
        };
        source.total = total;
        Ok(source)
    }

    /// Reads from anything, which `name` stands for in messages.
    pub(crate) fn new(reader: impl Read + Send + 'static, name: impl Into<String>) -> Source {
        let read = Arc::new(AtomicU64::new(0));
        let counting = Counting { inner: reader, read: Arc::clone(&read) };
        let reader = Box::new(BufReader::with_capacity(BUFFER_BYTES, counting));
        Source { name: name.into(), reader, read, total: None }
    }

    /// The buffered bytes, at least one unless the source has ended.
    pub(crate) fn fill(&mut self) -> Result<&[u8]> {
        loop {
            match self.reader.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(read_error(&self.name, error)),
            }
        }
        // The borrow checker does not allow a return from within the loop, so the buffer is requested again. Nothing
        // is read twice.
        self.reader.fill_buf().map_err(|error| read_error(&self.name, error))
    }

    /// Marks `n` bytes of [`Source::fill`] as used.
    pub(crate) fn consume(&mut self, n: usize) {
        self.reader.consume(n);
    }

    /// Skips a byte order mark at the start.
    pub(crate) fn skip_byte_order_mark(&mut self) -> Result<()> {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        let mut start = Vec::new();
        while start.len() < MARK.len() && MARK.starts_with(&start) {
            let Some(&byte) = self.fill()?.first() else { break };
            start.push(byte);
            self.consume(1);
        }
        if start != MARK {
            let rest = std::mem::replace(&mut self.reader, Box::new(io::empty()));
            self.reader = Box::new(io::Cursor::new(start).chain(rest));
        }
        Ok(())
    }

    /// The share of the source that has been read, 0 to 1, if its size is known.
    pub(crate) fn progress(&self) -> Option<f64> {
        let total = self.total.filter(|&total| total > 0)?;
        Some((self.read.load(Ordering::Relaxed) as f64 / total as f64).min(1.0))
    }
}

/// Opens a file for reading.
pub(crate) fn open_file(path: &Path) -> Result<File> {
    File::open(path).map_err(|cause| Error::Open { file: path.display().to_string(), cause })
}

/// Whether the name ends in `.extension`, in any case.
pub(crate) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

/// The name without a final `.gz`.
pub(crate) fn without_gz(path: &Path) -> std::path::PathBuf {
    if has_extension(path, "gz") { path.with_extension("") } else { path.to_path_buf() }
}

fn read_error(file: &str, cause: io::Error) -> Error {
    let file = file.to_owned();
    match cause.kind() {
        io::ErrorKind::UnexpectedEof => Error::Truncated { file },
        _ => Error::Read { file, cause },
    }
}

struct Counting<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
