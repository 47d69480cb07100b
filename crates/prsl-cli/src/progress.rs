//! Progress bars.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Minimum duration of work that shows a bar.
const PATIENCE: Duration = Duration::from_secs(1);
const STEPS: u64 = 1000;

/// A progress bar on standard error, if that is a terminal and the work takes long.
pub struct Progress {
    start: Instant,
    wanted: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Without a bar at first; `wanted` unless it would disturb other output.
    pub fn new(wanted: bool) -> Progress {
        Progress { start: Instant::now(), wanted: wanted && io::stderr().is_terminal(), bar: None }
    }

    /// Reports the number of finished rows, and their share of all rows if known.
    pub fn update(&mut self, rows: u64, part: Option<f64>) {
        if !self.wanted || self.start.elapsed() < PATIENCE {
            return;
        }
        let start = self.start;
        let bar = self.bar.get_or_insert_with(|| new_bar(part.is_some(), start));
        let speed = rows as f64 / start.elapsed().as_secs_f64();
        bar.set_message(format!("{} rows, {} a second", grouped(rows), grouped(speed as u64)));
        match part {
            Some(part) => bar.set_position((part * STEPS as f64) as u64),
            None => bar.tick(),
        }
    }

    /// Removes the bar.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar for work that is counted in steps.
pub struct StepBar {
    start: Instant,
    n_steps: u64,
    bar: Option<ProgressBar>,
}

impl StepBar {
    /// Without a bar at first.
    pub fn new(n_steps: u64) -> StepBar {
        StepBar { start: Instant::now(), n_steps, bar: None }
    }

    /// Reports the number of finished steps, with a message.
    pub fn update(&mut self, n_done: u64, how: &str) {
        if !io::stderr().is_terminal() || self.start.elapsed() < PATIENCE {
            return;
        }
        let start = self.start;
        let bar = self.bar.get_or_insert_with(|| new_bar(true, start));
        bar.set_message(how.to_owned());
        bar.set_position(STEPS * n_done / self.n_steps.max(1));
    }

    /// Removes the bar.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A spinner for work of unknown length. It turns while the library computes.
pub struct Spinner {
    bar: Option<ProgressBar>,
}

impl Spinner {
    /// Shown from the start, if standard error is a terminal.
    pub fn new(what: &str) -> Spinner {
        if !io::stderr().is_terminal() {
            return Spinner { bar: None };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template("  {spinner:.cyan} {msg} ({elapsed}) ");
        let bar = bar.with_style(style.expect("the template is well formed")).with_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Spinner { bar: Some(bar) }
    }

    /// Says what is being done.
    pub fn tell(&self, what: String) {
        if let Some(bar) = &self.bar {
            bar.set_message(what);
        }
    }

    /// Removes the spinner.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn new_bar(with_length: bool, start: Instant) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let (bar, template) = if with_length {
        let template = "  {wide_bar:.cyan/dim} {percent:>3}%  {msg}, {eta} left ";
        (ProgressBar::with_draw_target(Some(STEPS), target), template)
    } else {
        (ProgressBar::with_draw_target(None, target), "  {spinner:.cyan} {msg} ")
    };
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    bar.with_style(style.progress_chars("━╸─")).with_elapsed(start.elapsed())
}

/// A number with thousands separators: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun: `1 row`, `1,234 rows`.
pub fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
