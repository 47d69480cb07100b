//! Functions shared by the bench programs: CPU time, medians and tables. The simulation study is here too, so that
//! tests can run it.

pub mod boxplot;
pub mod document;
pub mod publish;
pub mod statistics;
pub mod study;

use std::time::{Duration, Instant};

/// CPU time of all living threads of this process; wall time if the system does not report it.
///
/// Threads that have ended no longer count: keep a pool alive between two readings.
pub fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    threads_cpu_time().unwrap_or_else(|| START.get_or_init(Instant::now).elapsed())
}

/// The sum of `/proc/self/task/*/schedstat`, whose first number is the nanoseconds spent on a processor.
fn threads_cpu_time() -> Option<Duration> {
    let mut nanoseconds = 0;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        nanoseconds += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(nanoseconds))
}

/// CPU time of the calling thread; wall time if the system does not report it.
pub fn thread_cpu_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let own = || -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
    };
    own().unwrap_or_else(|| START.get_or_init(Instant::now).elapsed())
}

/// Seconds of CPU time that one call takes: the median of five measurements of at least `floor` each.
///
/// The floor is necessary because the system counts a running thread's time in ticks of some milliseconds.
pub fn seconds_per_call(floor: Duration, mut call: impl FnMut()) -> f64 {
    let mut calls = 1;
    let mut measure = |calls: u32| {
        let start = cpu_time();
        (0..calls).for_each(|_| call());
        cpu_time().saturating_sub(start).as_secs_f64()
    };
    // The first runs warm up caches and determine how many calls take at least the floor.
    loop {
        let seconds = measure(calls);
        if seconds >= 2.0 {
            return seconds / f64::from(calls);
        }
        if seconds >= floor.as_secs_f64() {
            break;
        }
        calls *= 2;
    }
    median((0..5).map(|_| measure(calls) / f64::from(calls))).expect("five measurements")
}

/// The median; `None` without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[values.len() / 2 - 1] + upper) / 2.0 })
}

/// A time with three digits and a unit: `93.1 ms`.
pub fn seconds(value: f64) -> String {
    let (value, unit) = match value {
        v if v < 1e-3 => (v * 1e6, "µs"),
        v if v < 1.0 => (v * 1e3, "ms"),
        v => (v, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A number with three digits: `0.0123`, `1.23`, `12.3`, `123`, `12300`.
pub fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let scale = 10f64.powf(2.0 - value.abs().log10().floor());
    let decimals = scale.log10().round().max(0.0) as usize;
    format!("{:.decimals$}", (value * scale).round() / scale)
}

/// A Markdown table with aligned columns.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    pub fn new(heads: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { rows: vec![heads.into_iter().map(Into::into).collect()] }
    }

    /// The column heads, then the rows.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Adds a row; cells beyond the heads are not shown.
    pub fn push(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
        let n_columns = self.rows[0].len();
        let widest =
            |column| self.rows.iter().map(|row| cell(row, column).chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..n_columns).map(|column| widest(column).max(3)).collect();
        for (index, row) in self.rows.iter().enumerate() {
            for (column, &width) in widths.iter().enumerate() {
                write!(f, "| {:>width$} ", cell(row, column))?;
            }
            writeln!(f, "|")?;
            if index == 0 {
                widths.iter().try_for_each(|width| write!(f, "|{}:", "-".repeat(width + 1)))?;
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_values() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median([1.0, f64::INFINITY, f64::INFINITY]), Some(f64::INFINITY));
        assert_eq!(median([]), None);
    }

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!(seconds(0.0931), "93.1 ms");
        assert_eq!(seconds(1.234e-6), "1.23 µs");
        assert_eq!(seconds(123.4), "123 s");
        assert_eq!(three_digits(12345.0), "12300");
        assert_eq!(three_digits(0.01234), "0.0123");
    }

    #[test]
    fn tables_are_aligned_markdown() {
        let mut table = Table::new(["labels", "µs"]);
        table.push(["5", "1.5"]);
        table.push(["10"]);
        assert_eq!(
            table.to_string(),
            "| labels |  µs |\n|-------:|----:|\n|      5 | 1.5 |\n|     10 |     |\n"
        );
    }

    #[test]
    fn work_takes_cpu_time() {
        let start = cpu_time();
        let mut sum = 0u64;
        while cpu_time().saturating_sub(start) < Duration::from_millis(5) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(seconds_per_call(Duration::from_millis(5), || sum = std::hint::black_box(sum + 1)) < 1e-3);
    }
}
