//! Memory sizes with units.

use std::fmt;
use std::str::FromStr;

/// An amount of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The number of bytes.
    pub bytes: u64,
}

/// Units as in the tools of GNU: K and KiB count by 1024, KB by 1000. Case does not matter.
const UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

impl fmt::Display for Memory {
    /// `1.5 GiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
        let (mut size, mut unit) = (self.bytes as f64, 0);
        while size >= 1024.0 && unit + 1 < UNITS.len() {
            (size, unit) = (size / 1024.0, unit + 1);
        }
        let digits = usize::from(unit > 0);
        write!(f, "{size:.digits$} {}", UNITS[unit])
    }
}

impl FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted =
            || "expected a number of bytes, or one with a unit as in 512MiB, 2GiB or 500MB".to_owned();
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = unit.trim_start().to_ascii_lowercase();
        let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(wanted)?;
        let number: f64 = number.parse().map_err(|_| wanted())?;
        // `as` saturates at the largest number.
        Ok(Memory { bytes: (number * factor as f64) as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        let bytes = |text: &str| text.parse::<Memory>().map(|memory| memory.bytes).ok();
        assert_eq!(bytes("1000000"), Some(1_000_000));
        assert_eq!(bytes("512MiB"), Some(512 << 20));
        assert_eq!(bytes("2 GiB"), Some(2 << 30));
        assert_eq!(bytes("1.5k"), Some(1536));
        assert_eq!(bytes("3MB"), Some(3_000_000));
        assert_eq!(bytes("7b"), Some(7));
        assert_eq!(bytes("99999999999999G"), Some(u64::MAX));
        for wrong in ["", "MiB", "-1", "1TiBB", "1e6", "1..5", "lots"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
