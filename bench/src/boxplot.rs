//! Box plots as SVG, for a page that defines their colors.
//!
//! Groups are side by side along the x axis, each with a box per series. A box extends from the first to the third
//! quartile, and its line is the median. Whiskers extend to the outermost values within 1.5 times the box's height.
//! Values beyond them are dots.

use std::fmt::Write as _;

use crate::document::escape;
use crate::statistics::quantile;

/// The scale of the y axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// A linear scale that covers the values and these two.
    Linear {
        /// A value that the axis always covers.
        from: f64,
        /// Another value that the axis always covers.
        to: f64,
    },
    /// A logarithmic scale.
    Log,
}

/// A figure.
#[derive(Clone, Debug)]
pub struct BoxPlot {
    /// A description in one sentence, also for screen readers.
    pub title: String,
    /// The label of the x axis.
    pub x_label: String,
    /// The label of the y axis.
    pub y_label: String,
    /// The scale of the y axis.
    pub scale: Scale,
    /// Formats a value.
    pub format: fn(f64) -> String,
    /// The names of the series, at most five because there are five colors.
    pub series: Vec<String>,
    /// The groups.
    pub groups: Vec<Group>,
}

/// A position on the x axis.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name on the axis.
    pub name: String,
    /// The values of every series. A series without values has no box.
    pub values: Vec<Vec<f64>>,
}

/// The five numbers of a box, and its outliers.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Lower whisker, first quartile, median, third quartile, upper whisker.
    pub numbers: [f64; 5],
    /// The values beyond the whiskers.
    pub outliers: Vec<f64>,
}

impl Summary {
    /// Computes the box of these values; `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let [first, median, third] = [0.25, 0.5, 0.75].map(|share| quantile(values, share));
        let (first, median, third) = (first?, median?, third?);
        let reach = 1.5 * (third - first);
        let inside = |value: &f64| (first - reach..=third + reach).contains(value);
        let (kept, outliers): (Vec<f64>, Vec<f64>) = values.iter().partition(|value| inside(value));
        // Quartiles are interpolated, so there may be no value between the limit of a whisker and the box.
        let low = kept.iter().copied().fold(first, f64::min);
        let high = kept.iter().copied().fold(third, f64::max);
        Some(Self { numbers: [low, first, median, third, high], outliers })
    }
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// The mean width of a letter, and the height of a line.
const LETTER: f64 = 6.4;
const LINE: f64 = 20.0;
/// Margin between the ends of the y axis and the outermost values.
const MARGIN: f64 = 0.04;

impl BoxPlot {
    /// The figure.
    pub fn to_svg(&self) -> String {
        let axis = Axis::new(self);
        let places = self.legend_places();
        let top = places.first().map_or(0.0, |first| first.1 - 18.5);
        let title = escape(&self.title);
        let mut svg = format!(
            "<svg class=\"boxplot\" viewBox=\"0 {top} {WIDTH} {}\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n",
            HEIGHT - top
        );
        self.draw_legend(&mut svg, &places);
        self.draw_y_axis(&mut svg, &axis);
        self.draw_x_axis(&mut svg);
        for (index, group) in self.groups.iter().enumerate() {
            self.draw_group(&mut svg, &axis, index, group);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_legend(&self, svg: &mut String, places: &[(f64, f64)]) {
        for (index, (name, (x, y))) in self.series.iter().zip(places).enumerate() {
            line(
                svg,
                format_args!(
                    "<rect class=\"series-{index}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" rx=\"2\"/>",
                    y - 10.5
                ),
            );
            line(svg, format_args!("<text x=\"{:.1}\" y=\"{y:.1}\">{}</text>", x + 18.0, escape(name)));
        }
    }

    /// The positions of the names of the series. They take one line, or several lines above the figure.
    fn legend_places(&self) -> Vec<(f64, f64)> {
        let (mut x, mut row) = (LEFT, 0.0);
        let mut places = Vec::new();
        for name in &self.series {
            let width = 40.0 + LETTER * name.chars().count() as f64;
            if x > LEFT && x + width > WIDTH {
                (x, row) = (LEFT, row + 1.0);
            }
            places.push((x, row));
            x += width;
        }
        places.into_iter().map(|(x, place)| (x, 18.5 + LINE * (place - row))).collect()
    }

    fn draw_y_axis(&self, svg: &mut String, axis: &Axis) {
        for tick in axis.ticks() {
            let y = axis.y(tick);
            line(
                svg,
                format_args!(
                    "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                    WIDTH - RIGHT
                ),
            );
            let text = (self.format)(tick);
            line(
                svg,
                format_args!(
                    "<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>",
                    LEFT - 8.0,
                    y + 4.0,
                    escape(&text)
                ),
            );
        }
        let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
        line(
            svg,
            format_args!(
                "<text class=\"axis\" text-anchor=\"middle\" transform=\"translate(14 {middle}) rotate(-90)\">{}</text>",
                escape(&self.y_label)
            ),
        );
    }

    fn draw_x_axis(&self, svg: &mut String) {
        let y = HEIGHT - BOTTOM;
        line(
            svg,
            format_args!(
                "<line class=\"base\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/>",
                WIDTH - RIGHT
            ),
        );
        for (index, group) in self.groups.iter().enumerate() {
            let x = LEFT + (index as f64 + 0.5) * self.group_width();
            line(
                svg,
                format_args!(
                    "<text class=\"tick\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{}\">{}</text>",
                    y + 18.0,
                    escape(&group.name)
                ),
            );
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        line(
            svg,
            format_args!(
                "<text class=\"axis\" text-anchor=\"middle\" x=\"{middle}\" y=\"{}\">{}</text>",
                HEIGHT - 10.0,
                escape(&self.x_label)
            ),
        );
    }

    fn group_width(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64
    }

    fn draw_group(&self, svg: &mut String, axis: &Axis, index: usize, group: &Group) {
        let slot = (self.group_width() * 0.8 / self.series.len().max(1) as f64).min(48.0);
        let start = LEFT + (index as f64 + 0.5) * self.group_width() - slot * self.series.len() as f64 / 2.0;
        for (series, values) in group.values.iter().enumerate() {
            let Some(summary) = Summary::of(values) else { continue };
            let center = start + (series as f64 + 0.5) * slot;
            line(
                svg,
                format_args!(
                    "<g class=\"series-{series}\"><title>{}</title>",
                    escape(&self.told(group, series, &summary))
                ),
            );
            draw_box(svg, axis, center, (slot * 0.72).min(28.0), &summary);
            svg.push_str("</g>\n");
        }
    }

    fn told(&self, group: &Group, series: usize, summary: &Summary) -> String {
        let [low, first, median, third, high] = summary.numbers.map(self.format);
        let outliers = match summary.outliers.len() {
            0 => String::new(),
            1 => ", 1 value beyond".to_owned(),
            n => format!(", {n} values beyond"),
        };
        format!(
            "{}, {}: median {median}, quartiles {first} and {third}, whiskers {low} and {high}{outliers}",
            group.name, self.series[series]
        )
    }
}

fn draw_box(svg: &mut String, axis: &Axis, center: f64, width: f64, summary: &Summary) {
    let [low, first, median, third, high] = summary.numbers.map(|value| axis.y(value));
    let (left, right) = (center - width / 2.0, center + width / 2.0);
    for (from, to) in [(low, first), (third, high)] {
        line(
            svg,
            format_args!(
                "<line class=\"whisker\" x1=\"{center:.1}\" x2=\"{center:.1}\" y1=\"{from:.1}\" y2=\"{to:.1}\"/>"
            ),
        );
    }
    let height = (first - third).max(1.0);
    line(
        svg,
        format_args!(
            "<rect class=\"box\" x=\"{left:.1}\" y=\"{third:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"1.5\"/>"
        ),
    );
    line(
        svg,
        format_args!(
            "<line class=\"median\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{median:.1}\" y2=\"{median:.1}\"/>"
        ),
    );
    for &value in &summary.outliers {
        line(
            svg,
            format_args!(
                "<circle class=\"outlier\" cx=\"{center:.1}\" cy=\"{:.1}\" r=\"2.5\"/>",
                axis.y(value)
            ),
        );
    }
}

fn line(svg: &mut String, text: std::fmt::Arguments) {
    writeln!(svg, "{text}").expect("text can be written to");
}

/// The y axis: positions of values, and labeled ticks. On a logarithmic scale, positions are logarithms.
struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Axis {
    fn new(plot: &BoxPlot) -> Self {
        let values = plot.groups.iter().flat_map(|group| group.values.iter().flatten());
        let positions = values.map(|&value| match plot.scale {
            Scale::Linear { .. } => value,
            Scale::Log => value.log10(),
        });
        let known = match plot.scale {
            Scale::Linear { from, to } => vec![from, to],
            Scale::Log => Vec::new(),
        };
        let (mut low, mut high) = known
            .into_iter()
            .chain(positions)
            .filter(|position| position.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let room = ((high - low) * MARGIN).max(1e-9);
        Self { scale: plot.scale, low: low - room, high: high + room }
    }

    fn y(&self, value: f64) -> f64 {
        let position = if self.scale == Scale::Log { value.log10() } else { value };
        let share = ((position - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    /// Ticks on the axis: powers of ten, or multiples of 1, 2 or 5 times a power of ten.
    fn ticks(&self) -> Vec<f64> {
        let step = if self.scale == Scale::Log { 1.0 } else { round_step((self.high - self.low) / 4.0) };
        let positions = (self.low / step).ceil() as i64..=(self.high / step).floor() as i64;
        let value = |index: i64| {
            if self.scale == Scale::Log { 10f64.powi(index as i32) } else { index as f64 * step }
        };
        positions.map(value).collect()
    }
}

/// The largest of 1, 2 and 5 times a power of ten that is not above `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [5.0, 2.0, 1.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|&round| round <= step * (1.0 + 1e-9))
        .unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(scale: Scale, values: Vec<Vec<f64>>) -> BoxPlot {
        BoxPlot {
            title: "Errors & more".to_owned(),
            x_label: "labels".to_owned(),
            y_label: "error".to_owned(),
            scale,
            format: |value| format!("{value:.2}"),
            series: vec!["a".to_owned(), "b".to_owned()],
            groups: vec![Group { name: "5".to_owned(), values }],
        }
    }

    const UNIT: Scale = Scale::Linear { from: 0.0, to: 1.0 };

    #[test]
    fn boxes_have_five_numbers_and_outliers() {
        let summary = Summary::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 100.0]).unwrap();
        assert_eq!(summary.numbers, [1.0, 2.25, 3.5, 4.75, 5.0]);
        assert_eq!(summary.outliers, [100.0]);
        assert_eq!(Summary::of(&[2.0]).unwrap().numbers, [2.0; 5]);
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn whiskers_never_end_inside_the_box() {
        // The third quartile is 2.5, but the largest value within the limit is 0.
        let summary = Summary::of(&[0.0, 0.0, 0.0, 10.0]).unwrap();
        assert_eq!(summary.numbers, [0.0, 0.0, 0.0, 2.5, 2.5]);
        assert_eq!(summary.outliers, [10.0]);
    }

    #[test]
    fn larger_values_are_higher_up() {
        for scale in [UNIT, Scale::Log] {
            let axis = Axis::new(&plot(scale, vec![vec![0.001, 0.5]]));
            assert!(axis.y(0.5) < axis.y(0.001));
            assert!((TOP..=HEIGHT - BOTTOM).contains(&axis.y(0.5)));
        }
    }

    #[test]
    fn ticks_are_round() {
        let shown =
            |axis: &Axis| axis.ticks().iter().map(|tick| format!("{tick:.6}")).collect::<Vec<_>>().join(" ");
        let axis = Axis { scale: UNIT, low: -0.04, high: 1.04 };
        assert_eq!(shown(&axis), "0.000000 0.200000 0.400000 0.600000 0.800000 1.000000");
        let axis = Axis { scale: Scale::Log, low: -5.5, high: -2.0 };
        assert_eq!(shown(&axis), "0.000010 0.000100 0.001000 0.010000");
    }

    #[test]
    fn a_figure_names_its_axes_series_and_medians() {
        let svg = plot(UNIT, vec![vec![0.1, 0.2, 0.3], vec![]]).to_svg();
        for part in
            ["<title>Errors &amp; more</title>", ">labels</text>", ">error</text>", ">a</text>", ">b</text>"]
        {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
        assert!(svg.contains("5, a: median 0.20, quartiles 0.15 and 0.25, whiskers 0.10 and 0.30"));
        assert_eq!(svg.matches("class=\"median\"").count(), 1);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn long_names_of_series_take_several_lines() {
        let mut plot = plot(UNIT, vec![]);
        let short = plot.legend_places();
        assert!(short[0].1 == short[1].1 && short[0].0 < short[1].0);
        plot.series = vec!["a name of some forty letters, or a few more".to_owned(); 3];
        let long = plot.legend_places();
        assert!(long[0].1 < long[2].1 && long[0].0 == long[2].0);
        assert!(plot.to_svg().contains("viewBox=\"0 -20 760 360\""));
    }

    #[test]
    fn nothing_to_show_is_an_empty_figure() {
        let svg = plot(Scale::Log, vec![]).to_svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}
