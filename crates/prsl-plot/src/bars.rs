//! Bar charts: a number for each rule.

use crate::axis::Axis;
use crate::svg::{Anchor, Svg, rounded, series, width, wrapped};

/// Horizontal bars, longest first, negative ones to the left.
///
/// ```
/// use prsl_plot::{Bar, BarChart};
///
/// let bar = |name: &str, value| Bar { name: name.to_owned(), value };
/// let chart = BarChart {
///     title: "What each rule gains".to_owned(),
///     x_label: "mean gain in joint log-likelihood".to_owned(),
///     bars: vec![bar("a -> b", Some(-0.02)), bar("b -> c", Some(0.3)), bar("never asked", None)],
/// };
/// let svg = chart.to_svg();
/// assert!(svg.find("b -&gt; c") < svg.find("a -&gt; b"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// The title.
    pub title: String,
    /// The label of the horizontal axis.
    pub x_label: String,
    /// The bars, in any order.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The name beside the bar.
    pub name: String,
    /// Its length; `None` if unknown.
    pub value: Option<f64>,
}

/// Maximum number of bars; the others are only counted.
const MAX_BARS: usize = 20;
/// Maximum length of a line of a name in columns. Longer names take several lines.
const NAME: usize = 56;
/// Height of a bar with a name of one line.
const ROW: f64 = 24.0;
/// Height of each further line.
const LINE: f64 = 15.0;
const TOP: f64 = 52.0;
const PLOT: f64 = 380.0;
/// Space for a number beside its bar.
const NUMBER: f64 = 64.0;

impl BarChart {
    /// The figure.
    pub fn to_svg(&self) -> String {
        let mut bars: Vec<&Bar> = self.bars.iter().collect();
        let size = |bar: &Bar| bar.value.filter(|value| value.is_finite()).map_or(-1.0, f64::abs);
        bars.sort_by(|a, b| size(b).total_cmp(&size(a)));
        let left_out = bars.len().saturating_sub(MAX_BARS);
        bars.truncate(MAX_BARS);
        let mut svg = Svg::new(&self.title, &self.description(&bars, left_out));
        let names = bars.iter().flat_map(|bar| shown_name(bar)).map(|line| width(&line));
        let names = names.fold(60.0, f64::max) + 24.0;
        let right = names + PLOT + 2.0 * NUMBER;
        let axis = axis(&bars, names + NUMBER);
        let heights: Vec<f64> = bars.iter().map(|bar| height(bar)).collect();
        let bottom = TOP + heights.iter().sum::<f64>();
        for (value, name) in axis.ticks(4) {
            svg.line("grid", (axis.at(value), TOP - 4.0), (axis.at(value), bottom + 4.0), 1.0);
            svg.text("soft", Anchor::Middle, (axis.at(value), bottom + 22.0), &name);
        }
        let mut top = TOP;
        for (bar, height) in bars.iter().zip(heights) {
            draw_bar(&mut svg, axis, bar, names, (top, height));
            top += height;
        }
        svg.line("base", (axis.at(0.0), TOP - 4.0), (axis.at(0.0), bottom + 4.0), 1.0);
        svg.text("title", Anchor::Start, (16.0, 28.0), &self.title);
        svg.text("soft", Anchor::Middle, (names + NUMBER + PLOT / 2.0, bottom + 44.0), &self.x_label);
        if left_out > 0 {
            svg.text("soft", Anchor::Start, (16.0, bottom + 22.0), &format!("and {left_out} with less"));
        }
        svg.finish([0.0, 0.0, right, bottom + 60.0])
    }

    fn description(&self, bars: &[&Bar], left_out: usize) -> String {
        let tooltip = |bar: &&Bar| format!("{}: {}", bar.name, shown(bar.value));
        let mut parts: Vec<String> = bars.iter().take(10).map(tooltip).collect();
        let more = bars.len().saturating_sub(10) + left_out;
        if more > 0 {
            parts.push(format!("and {more} more"));
        }
        format!("{}. {}", self.x_label, parts.join("; "))
    }
}

/// The axis from this position on; 0 is at its end if all bars have the same sign.
fn axis(bars: &[&Bar], start: f64) -> Axis {
    let values = || bars.iter().filter_map(|bar| bar.value).filter(|value| value.is_finite());
    let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let high = if low == high { 1.0 } else { high };
    let start = if low < 0.0 { start } else { start - NUMBER + 8.0 };
    Axis::new((low, high), (start, start + PLOT))
}

/// The height of a bar and its name.
fn height(bar: &Bar) -> f64 {
    ROW + LINE * shown_name(bar).len().saturating_sub(1) as f64
}

fn draw_bar(svg: &mut Svg, axis: Axis, bar: &Bar, names: f64, (top, height): (f64, f64)) {
    for (index, line) in shown_name(bar).iter().enumerate() {
        let baseline = top + ROW / 2.0 + 4.0 + LINE * index as f64;
        svg.text("", Anchor::End, (names - 8.0, baseline), line.trim_start());
    }
    let top = top + (height - ROW) / 2.0;
    let baseline = top + ROW / 2.0 + 4.0;
    let value = bar.value.filter(|value| value.is_finite()).unwrap_or(0.0);
    let (zero, end) = (axis.at(0.0), axis.at(value));
    let color = if value < 0.0 { series(1) } else { series(0) };
    let tooltip = format!("{}: {}", bar.name, shown(bar.value));
    let (left, length) = (zero.min(end), (zero - end).abs());
    svg.rectangle(&format!("bar {color}"), (left, top + 4.0), (length, ROW - 8.0), &tooltip);
    let (anchor, x) = if value < 0.0 { (Anchor::End, end - 6.0) } else { (Anchor::Start, end + 6.0) };
    svg.text("soft", anchor, (x, baseline), &shown(bar.value));
}

fn shown_name(bar: &Bar) -> Vec<String> {
    wrapped(&rounded(&bar.name), NAME)
}

/// A number with three significant digits.
fn shown(value: Option<f64>) -> String {
    match value {
        Some(0.0) => "0".to_owned(),
        None => "unknown".to_owned(),
        Some(value) if !value.is_finite() => "unknown".to_owned(),
        Some(value) if value.abs() < 1e-4 => format!("{value:.1e}"),
        Some(value) => format!("{value:.*}", (2.0 - value.abs().log10().floor()).clamp(0.0, 6.0) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let values = [0.0, 0.31, 0.0123, 1.5, -123.4, 2e-7, 12345.0];
        let expected = ["0", "0.310", "0.0123", "1.50", "-123", "2.0e-7", "12345"];
        assert_eq!(values.map(|value| shown(Some(value))), expected);
        assert_eq!(shown(None), "unknown");
    }
}
