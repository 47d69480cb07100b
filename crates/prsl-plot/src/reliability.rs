//! Reliability diagrams.

use prsl::metrics::Reliability;

use crate::axis::Axis;
use crate::svg::{Anchor, Svg, series};

/// Predicted probabilities against observed frequencies. Calibrated predictions are on the diagonal. Counts are shown
/// below the diagram.
///
/// ```
/// use prsl::metrics::{Reliability, ReliabilityBin};
/// use prsl_plot::ReliabilityDiagram;
///
/// let bin = |count, probability, frequency| ReliabilityBin { count, probability, frequency };
/// let before = Reliability { bins: vec![bin(80, 0.2, 0.1), bin(20, 0.8, 0.95)] };
/// let after = Reliability { bins: vec![bin(85, 0.1, 0.1), bin(15, 0.93, 0.95)] };
/// let series = vec![("beliefs alone".to_owned(), before), ("with the rules".to_owned(), after)];
/// let svg = ReliabilityDiagram { title: "Reliability".to_owned(), series }.to_svg();
/// assert!(svg.contains("with the rules: 15 predictions of 0.930 on average, 0.950 of them true"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReliabilityDiagram {
    /// The title.
    pub title: String,
    /// Series of predictions with their names; at most five.
    pub series: Vec<(String, Reliability)>,
}

const WIDTH: f64 = 520.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 500.0;
/// Top and bottom of the diagram, and of the counts below it.
const DIAGRAM: (f64, f64) = (76.0, 512.0);
const COUNTS: (f64, f64) = (536.0, 636.0);
const HEIGHT: f64 = 690.0;

impl ReliabilityDiagram {
    /// The figure.
    pub fn to_svg(&self) -> String {
        let description = "Observed frequencies by predicted probability. On the dashed diagonal, probabilities and \
                           frequencies are equal. The bars below show the number of predictions.";
        let mut svg = Svg::new(&self.title, description);
        svg.text("title", Anchor::Start, (LEFT, 28.0), &self.title);
        let names: Vec<&str> = self.series.iter().map(|(name, _)| name.as_str()).collect();
        svg.legend((LEFT, 54.0), &names);
        let x = Axis::new((0.0, 1.0), (LEFT, RIGHT));
        draw_frame(&mut svg, x);
        self.draw_counts(&mut svg, x);
        for (index, (name, reliability)) in self.series.iter().enumerate() {
            draw_series(&mut svg, x, index, name, reliability);
        }
        svg.finish([0.0, 0.0, WIDTH, HEIGHT])
    }

    /// Draws counts as bars of logarithmic height, because most predictions are near 0 and other bins must stay
    /// visible.
    fn draw_counts(&self, svg: &mut Svg, x: Axis) {
        let bins = self.series.iter().flat_map(|(_, reliability)| &reliability.bins);
        let largest = bins.map(|bin| bin.count).max().unwrap_or(0).max(1);
        let decades = ((largest as f64).log10().ceil().max(1.0)) as i32;
        // Starts half a decade below 1, so that a single prediction is visible.
        let y = Axis::new((-0.5, f64::from(decades)), (COUNTS.1, COUNTS.0));
        let every = (decades + 2) / 3;
        for decade in (0..=decades).step_by(every as usize) {
            let height = y.at(f64::from(decade));
            svg.line("grid", (LEFT, height), (RIGHT, height), 1.0);
            svg.text("soft", Anchor::End, (LEFT - 8.0, height + 4.0), &power_of_ten(decade as usize));
        }
        for (index, (name, reliability)) in self.series.iter().enumerate() {
            let slot = (RIGHT - LEFT) / reliability.bins.len().max(1) as f64;
            let width = slot * 0.8 / self.series.len() as f64;
            for (bin, members) in reliability.bins.iter().enumerate().filter(|(_, bin)| bin.count > 0) {
                let left = LEFT + slot * (bin as f64 + 0.1) + width * index as f64;
                let top = y.at((members.count as f64).log10());
                let tooltip = format!("{name}: {} predictions", members.count);
                svg.rectangle(
                    &format!("bar {}", series(index)),
                    (left, top),
                    (width, COUNTS.1 - top),
                    &tooltip,
                );
            }
        }
        svg.line("base", (LEFT, COUNTS.1), (RIGHT, COUNTS.1), 1.0);
        svg.upward_text("soft", (18.0, (COUNTS.0 + COUNTS.1) / 2.0), "predictions");
        for (value, name) in x.ticks(5) {
            svg.text("soft", Anchor::Middle, (x.at(value), COUNTS.1 + 18.0), &name);
        }
        svg.text("soft", Anchor::Middle, ((LEFT + RIGHT) / 2.0, HEIGHT - 14.0), "predicted probability");
    }
}

/// `1`, `10`, `100`, `1k` and so on.
fn power_of_ten(exponent: usize) -> String {
    let unit = ["", "k", "M", "G", "T", "P", "E"][(exponent / 3).min(6)];
    format!("1{}{unit}", "0".repeat(exponent % 3))
}

fn draw_frame(svg: &mut Svg, x: Axis) {
    let y = Axis::new((0.0, 1.0), (DIAGRAM.1, DIAGRAM.0));
    for (value, name) in y.ticks(5) {
        svg.line("grid", (LEFT, y.at(value)), (RIGHT, y.at(value)), 1.0);
        svg.line("grid", (x.at(value), DIAGRAM.0), (x.at(value), DIAGRAM.1), 1.0);
        svg.text("soft", Anchor::End, (LEFT - 8.0, y.at(value) + 4.0), &name);
    }
    svg.line("base dashed", (LEFT, DIAGRAM.1), (RIGHT, DIAGRAM.0), 1.5);
    svg.upward_text("soft", (18.0, (DIAGRAM.0 + DIAGRAM.1) / 2.0), "observed frequency");
}

fn draw_series(svg: &mut Svg, x: Axis, index: usize, name: &str, reliability: &Reliability) {
    let y = Axis::new((0.0, 1.0), (DIAGRAM.1, DIAGRAM.0));
    let members: Vec<_> = reliability.bins.iter().filter(|bin| bin.count > 0).collect();
    let points: Vec<(f64, f64)> =
        members.iter().map(|bin| (x.at(bin.probability), y.at(bin.frequency))).collect();
    svg.curve(&series(index), &points);
    for (bin, point) in members.iter().zip(points) {
        let tooltip = format!(
            "{name}: {} predictions of {:.3} on average, {:.3} of them true",
            bin.count, bin.probability, bin.frequency
        );
        svg.circle(&format!("dot {}", series(index)), point, 4.5, &tooltip);
    }
}
