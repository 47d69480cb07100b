//! Progress bars.

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const STEPS: u64 = 1000;
/// Time between two pictures of a bar. Work that takes less shows none.
const TICK: Duration = Duration::from_millis(200);

/// The bar that is on the terminal.
static ACTIVE: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Prints something while the bar, if there is one, is hidden.
pub fn beside_bar<T>(print: impl FnOnce() -> T) -> T {
    let active = ACTIVE.lock().ok().and_then(|active| active.clone());
    match active {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// A spinner on standard error, which becomes a bar when a share of the work is known. It is removed when it is dropped.
struct Bar(Option<ProgressBar>);

impl Bar {
    /// Shown from the start, if it is wanted and standard error is a terminal.
    fn new(what: &str, wanted: bool) -> Bar {
        if !wanted || !io::stderr().is_terminal() {
            return Bar(None);
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template("  {spinner:.cyan} {msg} ({elapsed}) ");
        let bar = bar.with_style(style.expect("the template is well formed")).with_message(what.to_owned());
        bar.enable_steady_tick(TICK);
        if let Ok(mut active) = ACTIVE.lock() {
            *active = Some(bar.clone());
        }
        Bar(Some(bar))
    }

    fn tell(&self, what: String) {
        if let Some(bar) = &self.0 {
            bar.set_message(what);
        }
    }

    fn set_share(&self, share: f64) {
        if let Some(bar) = &self.0 {
            set_share(bar, share);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        let Some(bar) = &self.0 else { return };
        bar.finish_and_clear();
        if let Ok(mut active) = ACTIVE.lock() {
            *active = None;
        }
    }
}

/// The progress of rows, from the start: also before the first ones are done.
pub struct Progress {
    start: Instant,
    /// What stands before the numbers.
    title: String,
    bar: Bar,
}

impl Progress {
    /// A bar; `wanted` unless it would disturb other output.
    pub fn new(wanted: bool) -> Progress {
        Progress::of("reading the first rows", wanted)
    }

    /// A bar that first says what is being done.
    pub fn of(what: &str, wanted: bool) -> Progress {
        Progress { start: Instant::now(), title: String::new(), bar: Bar::new(what, wanted) }
    }

    /// The same bar with a title before the numbers.
    pub fn titled(self, title: &str) -> Progress {
        Progress { title: format!("{title}: "), ..self }
    }

    /// Reports the number of finished rows, and their share of all rows if known.
    pub fn update(&mut self, rows: u64, part: Option<f64>) {
        let speed = rows as f64 / self.start.elapsed().as_secs_f64();
        self.bar.tell(format!("{}{} rows, {} a second", self.title, grouped(rows), grouped(speed as u64)));
        if let Some(part) = part {
            self.bar.set_share(part);
        }
    }

    /// Removes the bar.
    pub fn finish(self) {}
}

/// The progress of work that is counted in steps.
pub struct StepBar {
    n_steps: u64,
    bar: Bar,
}

impl StepBar {
    /// A bar that first says what is being done.
    pub fn new(what: &str, n_steps: u64) -> StepBar {
        StepBar { n_steps, bar: Bar::new(what, true) }
    }

    /// Reports the number of finished steps, with a message.
    pub fn update(&mut self, n_done: u64, how: &str) {
        self.bar.tell(how.to_owned());
        self.bar.set_share(n_done as f64 / self.n_steps.max(1) as f64);
    }

    /// Reports the share of the work that is done, from any thread.
    pub fn set_share(&self, share: f64) {
        self.bar.set_share(share);
    }

    /// Removes the bar.
    pub fn finish(self) {}
}

/// Work of unknown length. The spinner turns while the library computes.
pub struct Spinner {
    bar: Bar,
}

impl Spinner {
    /// Shown from the start, if standard error is a terminal.
    pub fn new(what: &str) -> Spinner {
        Spinner { bar: Bar::new(what, true) }
    }

    /// Says what is being done.
    pub fn tell(&self, what: String) {
        self.bar.tell(what);
    }

    /// Removes the spinner.
    pub fn finish(self) {}
}

/// Shows a share of the work. Shares from several threads may arrive in any order.
fn set_share(bar: &ProgressBar, share: f64) {
    if bar.length().is_none() {
        bar.set_length(STEPS);
        let style = ProgressStyle::with_template("  {wide_bar:.cyan/dim} {percent:>3}%  {msg}, {eta} left ");
        bar.set_style(style.expect("the template is well formed").progress_chars("━╸─"));
    }
    bar.set_position(bar.position().max((share * STEPS as f64) as u64));
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
