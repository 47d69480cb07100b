//! Models read from files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use prsl::Document;

use crate::failure::InvalidText;

/// A model with its text and the file it is from.
#[derive(Debug)]
pub struct ModelFile {
    /// The name of the file in messages.
    pub name: String,
    /// The text and the model.
    pub document: Document,
}

impl ModelFile {
    /// Reads text or JSON; `-` is standard input.
    pub fn read(path: &Path) -> Result<ModelFile> {
        let name = name(path);
        let text = read_text(path)?;
        let document = valid(Document::read(&text), &name)?;
        Ok(ModelFile { name, document })
    }
}

/// The name of a file in messages.
pub fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// The text of a file; `-` is standard input.
pub fn read_text(path: &Path) -> Result<String> {
    let name = name(path);
    let mut bytes = Vec::new();
    // Reads slightly more than the limit, so that the library detects the excess.
    let limit = Document::MAX_BYTES as u64 + 1;
    let read = if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        let file = File::open(path).with_context(|| format!("cannot open `{name}`"))?;
        file.take(limit).read_to_end(&mut bytes)
    };
    read.with_context(|| format!("cannot read `{name}`"))?;
    if bytes.len() > Document::MAX_BYTES {
        bail!("`{name}` is larger than {} bytes, the most that a model may have", Document::MAX_BYTES);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = good.iter().filter(|&&byte| byte == b'\n').count() + 1;
            bail!("`{name}` is not UTF-8 text (line {line}); save it as UTF-8")
        }
    }
}

/// The parsed text of a file, or all its errors.
pub fn valid<T>(result: prsl::Result<T>, file: &str) -> Result<T> {
    result.map_err(|error| match error {
        prsl::Error::Text(diagnostics) => InvalidText { file: file.to_owned(), diagnostics }.into(),
        other => anyhow::Error::new(other).context(format!("`{file}`")),
    })
}
