//! Output: a file that becomes visible when it is complete, or standard output.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::NamedTempFile;

use crate::error::{Error, Result};
use crate::source::has_extension;

/// The destination of written data.
///
/// ```
/// use prsl_data::Target;
///
/// assert!(matches!(Target::from("-".as_ref()), Target::StandardOutput));
/// assert!(matches!(Target::from("posterior.csv".as_ref()), Target::File(_)));
/// ```
pub enum Target {
    /// A file. It is written under a hidden name in the same folder and renamed when it is complete, so an incomplete
    /// file is never visible. After an error the old file stays. Hidden files of killed runs are removed when a file is
    /// next written in the folder. Devices and pipes are written directly.
    File(PathBuf),
    /// Standard output.
    StandardOutput,
    /// Anything else, and the name that stands for it in messages.
    Writer(Box<dyn Write + Send>, String),
}

impl Target {
    /// Writes all bytes at once, for data that is not a table.
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

    /// Replaces the content of a file with these bytes. Returns an error, and does not change the file, if it has
    /// further names (hard links) or another owner.
    ///
    /// ```
    /// use prsl_data::Target;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let [path, link] = ["model.prsl", "link.prsl"].map(|name| folder.path().join(name));
    /// std::fs::write(&path, "label  alarm")?;
    /// Target::File(path.clone()).rewrite(b"label alarm\n")?;
    /// assert_eq!(std::fs::read_to_string(&path)?, "label alarm\n");
    /// # #[cfg(unix)] {
    /// std::fs::hard_link(&path, link)?;
    /// assert!(Target::File(path).rewrite(b"label fire\n").is_err());
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rewrite(self, bytes: &[u8]) -> Result<()> {
        let mut output = Output::create(self)?;
        let written = output.take_over_owner().and_then(|()| output.write_all(bytes));
        written.map_err(|cause| Error::Write { file: output.name.clone(), cause })?;
        output.finish()
    }

    /// Checks whether a file can be written, without changing anything.
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
            // Opening and closing a device or a pipe would signal the end of the data to its reader.
            Target::File(path) if !path.exists() || path.is_file() || path.is_dir() => {
                Output::create(Target::File(path.clone())).map(drop)
            }
            _ => Ok(()),
        }
    }
}

impl From<&Path> for Target {
    /// Interprets `-` as standard output.
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

/// An open target. If it is dropped without [`Output::finish`], no file remains.
pub(crate) struct Output {
    name: String,
    writer: Packing,
}

/// Whether the output is compressed.
enum Packing {
    Plain(Writer),
    Gzip(Box<GzEncoder<Writer>>),
}

impl Output {
    pub(crate) fn create(target: Target) -> Result<Output> {
        let (name, writer) = open(target)?;
        Ok(Output { name, writer: Packing::Plain(writer) })
    }

    /// The same, compressed if the name of the file ends in `.gz`.
    pub(crate) fn create_packed(target: Target) -> Result<Output> {
        let is_packed = matches!(&target, Target::File(path) if has_extension(path, "gz"));
        let (name, writer) = open(target)?;
        let writer = match is_packed {
            true => Packing::Gzip(Box::new(GzEncoder::new(writer, Compression::default()))),
            false => Packing::Plain(writer),
        };
        Ok(Output { name, writer })
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Rejects a replacement that would not keep the file's owner and hard links.
    fn take_over_owner(&self) -> io::Result<()> {
        match &self.writer {
            Packing::Plain(Writer::Temporary { file, place }) => {
                take_over_owner(file.get_ref().as_file(), place)
            }
            _ => Ok(()),
        }
    }

    /// Renames the file to its final name.
    pub(crate) fn finish(self) -> Result<()> {
        let Output { name, writer } = self;
        let writer = match writer {
            Packing::Plain(writer) => Ok(writer),
            Packing::Gzip(encoder) => encoder.finish(),
        };
        writer.and_then(finish).map_err(|cause| Error::Write { file: name, cause })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Packing::Plain(writer) => writer.write(bytes),
            Packing::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Packing::Plain(writer) => writer.flush(),
            Packing::Gzip(encoder) => encoder.flush(),
        }
    }
}

/// Opens a target. Also returns its name in messages.
fn open(target: Target) -> Result<(String, Writer)> {
    match target {
        Target::File(path) => {
            let name = path.display().to_string();
            match create_file(&path) {
                Ok(writer) => Ok((name, writer)),
                Err(cause) => Err(Error::Write { file: name, cause }),
            }
        }
        Target::StandardOutput => {
            let writer = Writer::Stream(BufWriter::with_capacity(1 << 16, Box::new(io::stdout())));
            Ok(("standard output".to_owned(), writer))
        }
        Target::Writer(writer, name) => Ok((name, Writer::Stream(BufWriter::new(writer)))),
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Writer::Stream(stream) => stream.write(bytes),
            Writer::Temporary { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
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
    // A symbolic link stays; the file that it points to is replaced.
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
    place.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let file = temporary(folder)?;
    if let Some(existing) = existing {
        file.as_file().set_permissions(existing.permissions())?;
    }
    Ok(Writer::Temporary { file: BufWriter::with_capacity(1 << 16, file), place })
}

/// Prefix and suffix of the names of incomplete files.
const PART: [&str; 2] = [".prsl-", ".part"];

/// A temporary file with the default permissions of a new file, instead of private ones.
///
/// It is locked while it is written. The system releases the lock when the process ends for any reason, so a part file
/// that can be locked is no longer being written.
fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    remove_stale_parts(folder);
    let mut builder = tempfile::Builder::new();
    builder.prefix(PART[0]).suffix(PART[1]);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    loop {
        let file = builder.tempfile_in(folder)?;
        // On file systems without locks, part files are never considered stale.
        let is_locked = file.as_file().lock().is_ok();
        // Another process may have removed it as stale before it was locked.
        if !is_locked || file.path().exists() {
            return Ok(file);
        }
    }
}

/// Removes the part files of killed runs from a folder, ignoring errors.
fn remove_stale_parts(folder: &Path) {
    let is_part = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(PART[0]) && name.ends_with(PART[1]) && entry.file_type().is_ok_and(|it| it.is_file())
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(is_part) {
        if let Ok(file) = File::options().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path()); // before the lock is released
        }
    }
}

/// Gives a new file the owner of the file that it replaces. Fails if that is not permitted, or if the old file has
/// further names, which would keep the old content.
#[cfg(unix)]
fn take_over_owner(new: &File, place: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    const ADVICE: &str = "write to another file, and copy its content into this one";
    let (Ok(old), created) = (fs::metadata(place), new.metadata()?) else { return Ok(()) };
    if old.nlink() > 1 {
        let n = old.nlink();
        return Err(io::Error::other(format!(
            "it is one of {n} hard links, and only it would change; {ADVICE}"
        )));
    }
    if old.uid() != created.uid() {
        let [old, new] = [old.uid(), created.uid()];
        return Err(io::Error::other(format!(
            "it belongs to user {old}, and would belong to user {new} afterwards; {ADVICE}"
        )));
    }
    if old.gid() != created.gid() && fchown(new, None, Some(old.gid())).is_err() {
        let [old, new] = [old.gid(), created.gid()];
        return Err(io::Error::other(format!(
            "it belongs to group {old}, and would belong to group {new} afterwards; {ADVICE}"
        )));
    }
    Ok(())
}

#[cfg(not(unix))]
fn take_over_owner(_: &File, _: &Path) -> io::Result<()> {
    Ok(())
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
