//! Where written bytes go: a file that appears when it is complete, or standard output.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Where a table is written to.
///
/// ```
/// use prsl_data::Target;
///
/// assert!(matches!(Target::from("-".as_ref()), Target::StandardOutput));
/// assert!(matches!(Target::from("posterior.csv".as_ref()), Target::File(_)));
/// ```
pub enum Target {
    /// A file. It is written next to its place under another name and takes its place when it is complete, so that
    /// nobody sees half of it; whatever was there stays if anything goes wrong. Devices and pipes are written
    /// directly.
    File(PathBuf),
    /// Standard output.
    StandardOutput,
    /// Anything else, and the name that stands for it in messages.
    Writer(Box<dyn Write + Send>, String),
}

impl Target {
    /// Writes all of it at once, for what is no table.
    ///
    /// ```
    /// use prsl_data::Target;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("model.prsl");
    /// Target::File(path.clone()).write_all(b"label alarm\n")?;
    /// assert_eq!(std::fs::read_to_string(&path)?, "label alarm\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_all(self, bytes: &[u8]) -> Result<()> {
        let mut output = Output::create(self)?;
        output.write_all(bytes).map_err(|cause| Error::Write { file: output.name.clone(), cause })?;
        output.finish()
    }

    /// Tells beforehand what would be in the way of writing a file; nothing is written, and what is there stays.
    ///
    /// ```
    /// use prsl_data::Target;
    ///
    /// let folder = tempfile::tempdir()?;
    /// Target::File(folder.path().join("model.prsl")).check()?;
    /// let error = Target::File(folder.path().join("models/model.prsl")).check().unwrap_err();
    /// assert!(error.to_string().contains("there is no folder"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self) -> Result<()> {
        match self {
            // Who opens a device or a pipe only to close it tells its reader that it has ended.
            Target::File(path) if !path.exists() || path.is_file() || path.is_dir() => {
                Output::create(Target::File(path.clone())).map(drop)
            }
            _ => Ok(()),
        }
    }
}

impl From<&Path> for Target {
    /// Takes `-` for standard output.
    fn from(path: &Path) -> Target {
        if path == Path::new("-") { Target::StandardOutput } else { Target::File(path.to_path_buf()) }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::File(path) => f.debug_tuple("File").field(path).finish(),
            Target::StandardOutput => f.write_str("StandardOutput"),
            Target::Writer(_, name) => f.debug_tuple("Writer").field(name).finish(),
        }
    }
}

/// An open target. Dropped without [`Output::finish`], it leaves nothing behind.
pub(crate) struct Output {
    name: String,
    writer: Writer,
}

impl Output {
    pub(crate) fn create(target: Target) -> Result<Output> {
        match target {
            Target::File(path) => {
                let name = path.display().to_string();
                match create_file(&path) {
                    Ok(writer) => Ok(Output { name, writer }),
                    Err(cause) => Err(Error::Write { file: name, cause }),
                }
            }
            Target::StandardOutput => {
                let writer = Writer::Stream(BufWriter::with_capacity(1 << 16, Box::new(io::stdout())));
                Ok(Output { name: "standard output".to_owned(), writer })
            }
            Target::Writer(writer, name) => {
                Ok(Output { name, writer: Writer::Stream(BufWriter::new(writer)) })
            }
        }
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Puts the file in its place.
    pub(crate) fn finish(self) -> Result<()> {
        let Output { name, writer } = self;
        finish(writer).map_err(|cause| Error::Write { file: name, cause })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Writer::Stream(stream) => stream.write(bytes),
            Writer::Temporary { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::Stream(stream) => stream.flush(),
            Writer::Temporary { file, .. } => file.flush(),
        }
    }
}

enum Writer {
    Stream(BufWriter<Box<dyn Write + Send>>),
    Temporary { file: BufWriter<NamedTempFile>, place: PathBuf },
}

fn create_file(path: &Path) -> io::Result<Writer> {
    // Through a link, the file it points to is replaced, and not the link.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let existing = fs::metadata(&place).ok();
    if existing.as_ref().is_some_and(|metadata| metadata.is_dir()) {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
        let device = File::options().write(true).open(&place)?;
        return Ok(Writer::Stream(BufWriter::new(Box::new(device))));
    }
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("there is no folder `{}`", folder.display()),
        ));
    }
    let mut prefix = OsString::from(".");
    prefix.push(place.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    prefix.push(".");
    let file = temporary(&prefix, folder)?;
    if let Some(existing) = existing {
        file.as_file().set_permissions(existing.permissions())?;
    }
    Ok(Writer::Temporary { file: BufWriter::with_capacity(1 << 16, file), place })
}

/// A temporary file with the permissions of an ordinary new file, not of a secret one.
fn temporary(prefix: &OsString, folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(".part");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

fn finish(writer: Writer) -> io::Result<()> {
    match writer {
        Writer::Stream(mut stream) => stream.flush(),
        Writer::Temporary { file, place } => {
            let file = file.into_inner().map_err(|error| error.into_error())?;
            file.as_file().sync_all()?; // a disk may report only now that it is full
            file.persist(place).map_err(|error| error.error)?;
            Ok(())
        }
    }
}
