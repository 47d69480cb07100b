//! Learning curves: scores over optimizer steps.

use crate::axis::Axis;
use crate::svg::{Anchor, Svg, series};

/// Scores over optimizer steps, with the best step marked.
///
/// ```
/// use prsl_plot::{LearningCurve, Series};
///
/// let series = |name: &str, scores: [f64; 3]| Series {
///     name: name.to_owned(),
///     points: [0.0, 50.0, 100.0].into_iter().zip(scores).collect(),
/// };
/// let curve = LearningCurve {
///     title: "Learning".to_owned(),
///     x_label: "step".to_owned(),
///     y_label: "mean joint log-likelihood".to_owned(),
///     series: vec![series("training", [-2.5, -2.0, -1.8]), series("validation", [-2.5, -2.1, -2.2])],
///     best: Some(50.0),
/// };
/// assert!(curve.to_svg().contains("best step: 50"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LearningCurve {
    /// The title.
    pub title: String,
    /// The label of the horizontal axis.
    pub x_label: String,
    /// The label of the vertical axis.
    pub y_label: String,
    /// The curves, such as training and validation; at most five.
    pub series: Vec<Series>,
    /// The step whose parameters were kept.
    pub best: Option<f64>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Steps and scores, in order; points that are not finite are left out.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 696.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 364.0;
/// Maximum number of points that are drawn with a dot each.
const MAX_DOTS: usize = 60;

impl LearningCurve {
    /// The figure.
    pub fn to_svg(&self) -> String {
        let description = format!("{} over {}. {}", self.y_label, self.x_label, self.best_note());
        let mut svg = Svg::new(&self.title, description.trim_end());
        svg.text("title", Anchor::Start, (LEFT, 28.0), &self.title);
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        svg.legend((LEFT, 54.0), &names);
        let points = || self.series.iter().flat_map(|series| series.finite());
        let x = Axis::covering(points().map(|point| point.0).chain(self.best), (LEFT, RIGHT));
        let y = Axis::covering(points().map(|point| point.1), (BOTTOM, TOP));
        self.draw_frame(&mut svg, x, y);
        for (index, series) in self.series.iter().enumerate() {
            series.draw(&mut svg, x, y, index);
        }
        self.draw_best(&mut svg, x, y);
        svg.finish([0.0, 0.0, WIDTH, HEIGHT])
    }

    fn best_note(&self) -> String {
        self.best.map_or(String::new(), |step| format!("best {}: {step}", self.x_label))
    }

    fn draw_frame(&self, svg: &mut Svg, x: Axis, y: Axis) {
        for (value, name) in y.ticks(5) {
            svg.line("grid", (LEFT, y.at(value)), (RIGHT, y.at(value)), 1.0);
            svg.text("soft", Anchor::End, (LEFT - 8.0, y.at(value) + 4.0), &name);
        }
        for (value, name) in x.ticks(6) {
            svg.text("soft", Anchor::Middle, (x.at(value), BOTTOM + 18.0), &name);
        }
        svg.line("base", (LEFT, BOTTOM), (RIGHT, BOTTOM), 1.0);
        svg.text("soft", Anchor::Middle, ((LEFT + RIGHT) / 2.0, HEIGHT - 14.0), &self.x_label);
        svg.upward_text("soft", (18.0, (TOP + BOTTOM) / 2.0), &self.y_label);
    }

    /// A vertical line at the best step, and a dot on the last series, which determines it.
    fn draw_best(&self, svg: &mut Svg, x: Axis, y: Axis) {
        let Some(step) = self.best.filter(|step| step.is_finite()) else { return };
        let tooltip = self.best_note();
        svg.line("base dashed", (x.at(step), TOP), (x.at(step), BOTTOM), 1.5);
        let anchor = if x.at(step) > (LEFT + RIGHT) / 2.0 { Anchor::End } else { Anchor::Start };
        svg.text("soft", anchor, (x.at(step), TOP - 6.0), &tooltip);
        if let Some((index, series)) = self.series.iter().enumerate().next_back()
            && let Some(point) = series.finite().find(|point| point.0 == step)
        {
            let class = format!("dot {}", crate::svg::series(index));
            svg.circle(&class, (x.at(point.0), y.at(point.1)), 6.0, &format!("{tooltip}, {:.4}", point.1));
        }
    }
}

impl Series {
    fn finite(&self) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().copied().filter(|point| point.0.is_finite() && point.1.is_finite())
    }

    fn draw(&self, svg: &mut Svg, x: Axis, y: Axis, index: usize) {
        let points: Vec<(f64, f64)> = self.finite().map(|point| (x.at(point.0), y.at(point.1))).collect();
        svg.curve(&series(index), &points);
        if points.len() <= MAX_DOTS {
            for (point, (step, score)) in points.iter().zip(self.finite()) {
                let tooltip = format!("{}: {score:.4} at {step}", self.name);
                svg.circle(&format!("dot {}", series(index)), *point, 3.5, &tooltip);
            }
        }
    }
}
