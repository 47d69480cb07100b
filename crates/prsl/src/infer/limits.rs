//! The cost of a compiled engine, and the limits on it.

/// Limits on the memory of a compiled model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory for tables, over all threads.
    pub memory: u64,
}

/// Engines that take less memory than this are never refused, for any limit. The program itself takes as much.
pub(crate) const FREE_MEMORY: f64 = (16 << 20) as f64;

impl Default for Limits {
    /// One gibibyte.
    fn default() -> Self {
        Self { memory: 1 << 30 }
    }
}

/// The cost of a plan, known before it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// Number of entries in all tables of one row.
    pub entries: f64,
    /// Bytes for one row: each table, its derivative and the plan itself.
    pub bytes: f64,
    /// Number of multiply-adds for the marginals of one row.
    pub multiply_adds: f64,
}

impl std::fmt::Display for Cost {
    /// `1,234 table entries (20.0 KiB), 5,678 multiply-adds a row`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (entries, work) = (quantity(self.entries), quantity(self.multiply_adds));
        write!(f, "{entries} table entries ({}), {work} multiply-adds a row", bytes(self.bytes))
    }
}

/// Formats a number: `20,000`, and from a million on `2.0e9`.
pub(crate) fn quantity(x: f64) -> String {
    if x < 1e6 { quantity_in_full(x) } else { format!("{x:.1e}") }
}

/// Formats a whole number with commas: `1,073,741,824`.
fn quantity_in_full(x: f64) -> String {
    let digits = format!("{x:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a number of bytes with a unit: `1.5 GiB`.
pub(crate) fn bytes(x: f64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let power = (x.max(1.0).log2() / 10.0).floor().min(4.0) as usize;
    let scaled = x / 1024f64.powi(power as i32);
    if power == 0 {
        format!("{x:.0} bytes")
    } else if scaled < 1e4 {
        format!("{scaled:.1} {}", units[power])
    } else {
        format!("{scaled:.1e} {}", units[power])
    }
}

/// Formats a number of bytes and the limit that it exceeds, with enough digits to distinguish them.
pub(crate) fn bytes_above(needed: f64, limit: f64) -> [String; 2] {
    let [shown, shown_limit] = [needed, limit].map(bytes);
    if shown != shown_limit {
        return [shown, shown_limit];
    }
    [needed, limit].map(|x| format!("{} bytes", quantity_in_full(x)))
}
