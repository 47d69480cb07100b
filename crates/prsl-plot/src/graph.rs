//! The graph of rules and labels.

use prsl::{Body, Label, LabelId, Model, Rule, RuleId};

use crate::layout::{Box2, place};
use crate::svg::{Anchor, Svg, rounded, series, shortened, width};

/// Labels as boxes, rules as numbered dots connected with their labels; below it the text of the rules.
///
/// ```
/// use prsl::Model;
/// use prsl_plot::RuleGraph;
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95 wets: wet <- rain")?;
/// let svg = RuleGraph { title: "Rules".to_owned(), model: &model }.to_svg();
/// assert!(svg.contains("1. wets (0.95): wet &lt;- rain"));
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RuleGraph<'a> {
    /// The title.
    pub title: String,
    /// The model.
    pub model: &'a Model,
}

/// Maximum length of a label's name in columns; longer ones are shortened.
const NAME: usize = 22;
/// Maximum length of a rule's text in columns; longer ones are shortened.
const RULE: usize = 110;
/// Maximum number of rules whose text is shown.
const LISTED: usize = 40;
const LABEL_HEIGHT: f64 = 26.0;
const RADIUS: f64 = 11.0;
const MARGIN: f64 = 24.0;
const HEAD: f64 = 60.0;
const LINE: f64 = 19.0;

impl RuleGraph<'_> {
    /// The figure.
    pub fn to_svg(&self) -> String {
        let (labels, rules) = (self.model.labels(), self.model.rules());
        let boxes: Vec<Box2> = labels.iter().map(label_box).chain(rules.iter().map(|_| rule_box())).collect();
        let edges = self.edges();
        let places = place(&boxes, &edges.iter().map(|edge| edge.ends).collect::<Vec<_>>());
        let (places, size) = moved_to_corner(places, &boxes);
        let mut svg = Svg::new(&self.title, &self.description());
        svg.text("title", Anchor::Start, (MARGIN, 28.0), &self.title);
        svg.text(
            "soft",
            Anchor::Start,
            (MARGIN, 46.0),
            "green: probably holds, orange: probably does not; wider lines: surer",
        );
        for edge in &edges {
            svg.line(&format!("edge {}", edge.color), places[edge.ends.0], places[edge.ends.1], edge.width);
        }
        for (label, (place, size)) in labels.iter().zip(places.iter().zip(&boxes)) {
            draw_label(&mut svg, label, *place, size);
        }
        for (rule, place) in self.model.rule_ids().zip(&places[labels.len()..]) {
            self.draw_rule(&mut svg, rule, *place);
        }
        let listed = self.list_rules(&mut svg, size.1 + LINE);
        let width = size.0.max(listed.0).max(420.0);
        svg.finish([0.0, 0.0, width + MARGIN, listed.1 + MARGIN])
    }

    fn description(&self) -> String {
        let (labels, rules) = (self.model.labels().len(), self.model.rules().len());
        format!("{labels} labels as boxes, {rules} rules as dots; each rule is connected with its labels.")
    }

    fn edges(&self) -> Vec<Edge> {
        let n_labels = self.model.labels().len();
        let of = |(index, rule): (usize, &Rule)| -> Vec<Edge> {
            let edge = |label: LabelId| Edge {
                ends: (label.index(), n_labels + index),
                color: color(rule),
                width: 0.6 + 2.4 * strength(rule, label),
            };
            rule.scope().into_iter().map(edge).collect()
        };
        self.model.rules().iter().enumerate().flat_map(of).collect()
    }

    fn draw_rule(&self, svg: &mut Svg, rule: RuleId, place: (f64, f64)) {
        let class = format!("rule {}", color(self.model.rule(rule)));
        svg.circle(&class, place, RADIUS, &self.told(rule));
        svg.text("number", Anchor::Middle, (place.0, place.1 + 3.5), &format!("{}", rule.index() + 1));
    }

    /// Writes the text of the rules, and returns its lower end.
    fn list_rules(&self, svg: &mut Svg, top: f64) -> (f64, f64) {
        let (mut right, mut bottom) = (0.0f64, top);
        for rule in self.model.rule_ids().take(LISTED) {
            let text = shortened(&self.told(rule), RULE);
            svg.text("soft", Anchor::Start, (MARGIN, bottom), &text);
            right = right.max(MARGIN + width(&text));
            bottom += LINE;
        }
        let more = self.model.rules().len().saturating_sub(LISTED);
        if more > 0 {
            svg.text("soft", Anchor::Start, (MARGIN, bottom), &format!("and {more} more rules"));
            bottom += LINE;
        }
        (right, bottom - LINE)
    }

    /// `3. wets (0.95): wet <- rain`
    fn told(&self, id: RuleId) -> String {
        let rule = self.model.rule(id);
        let name = rule.name().map_or(String::new(), |name| format!("{name} "));
        let text = rounded(&self.model.rule_text(id));
        format!("{}. {name}({}): {text}", id.index() + 1, rounded(&rule.probability().to_string()))
    }
}

struct Edge {
    ends: (usize, usize),
    color: String,
    width: f64,
}

/// Green for a rule with a probability above ½, orange for one below.
fn color(rule: &Rule) -> String {
    match rule.probability() {
        p if p > 0.5 => series(2),
        p if p < 0.5 => series(1),
        _ => series(4),
    }
}

/// The strength of a rule on a label, from 0 to 1: its certainty, times how easily the label makes a noisy-or fire.
fn strength(rule: &Rule, label: LabelId) -> f64 {
    let certainty = (2.0 * rule.probability() - 1.0).abs();
    let fires = match rule.body() {
        Body::NoisyOr(noisy_or) => {
            let named = noisy_or.inhibitions().iter().filter(|it| it.label == label);
            1.0 - named.map(|it| it.probability).fold(1.0, f64::min)
        }
        _ => 1.0,
    };
    certainty * fires
}

fn label_box(label: &Label) -> Box2 {
    Box2 { width: width(&shortened(label.name(), NAME)) + 20.0, height: LABEL_HEIGHT }
}

fn rule_box() -> Box2 {
    Box2 { width: 2.0 * RADIUS, height: 2.0 * RADIUS }
}

fn draw_label(svg: &mut Svg, label: &Label, (x, y): (f64, f64), size: &Box2) {
    let class = if label.classifier().is_none() { "label latent" } else { "label" };
    let told = format!("{}: {}", label.name(), label.categories().join(", "));
    let corner = (x - size.width / 2.0, y - size.height / 2.0);
    svg.rectangle(class, corner, (size.width, size.height), &told);
    svg.text("", Anchor::Middle, (x, y + 4.0), &shortened(label.name(), NAME));
}

/// The positions moved so that the upper left corner is at the margin, and the resulting lower right corner.
fn moved_to_corner(mut places: Vec<(f64, f64)>, boxes: &[Box2]) -> (Vec<(f64, f64)>, (f64, f64)) {
    let lowest = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
    let left = lowest(&mut places.iter().zip(boxes).map(|(place, size)| place.0 - size.width / 2.0));
    let top = lowest(&mut places.iter().zip(boxes).map(|(place, size)| place.1 - size.height / 2.0));
    let (mut right, mut bottom) = (0.0f64, HEAD);
    for (place, size) in places.iter_mut().zip(boxes) {
        *place = (place.0 - left + MARGIN, place.1 - top + HEAD + 4.0);
        right = right.max(place.0 + size.width / 2.0);
        bottom = bottom.max(place.1 + size.height / 2.0);
    }
    (places, (right, bottom + 12.0))
}
