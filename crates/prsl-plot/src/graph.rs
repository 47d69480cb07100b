//! The graph of rules and labels.

use prsl::{Body, Label, LabelId, Model, Rule, RuleId};

use crate::layout::{Box2, place};
use crate::svg::{Anchor, Svg, rounded, series, width, wrapped};

/// Labels as boxes, rules as numbered dots connected with their labels; below it the rules as sentences.
///
/// Of many rules only the twenty strongest are drawn, with their labels: rules that were not learned come before learned
/// ones, and these by their gain.
///
/// ```
/// use prsl::Model;
/// use prsl_plot::RuleGraph;
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95 wets: wet <- rain")?;
/// let svg = RuleGraph { title: "Rules".to_owned(), model: &model }.to_svg();
/// assert!(svg.contains("1. wets: if rain then wet, 0.95"));
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RuleGraph<'a> {
    /// The title.
    pub title: String,
    /// The model.
    pub model: &'a Model,
}

/// Maximum length of a line of text in columns. Longer sentences take several lines.
const COLUMNS: usize = 110;
/// Maximum number of rules. More of them overlap.
const MAX_RULES: usize = 20;
const LABEL_HEIGHT: f64 = 26.0;
const RADIUS: f64 = 11.0;
const MARGIN: f64 = 24.0;
const HEAD: f64 = 60.0;
const LINE: f64 = 19.0;

impl RuleGraph<'_> {
    /// The figure.
    pub fn to_svg(&self) -> String {
        let rules = self.strongest();
        let labels = self.labels_of(&rules);
        let boxes: Vec<Box2> = labels
            .iter()
            .map(|&label| label_box(self.model.label(label)))
            .chain(rules.iter().map(|_| rule_box()))
            .collect();
        let edges = self.edges(&labels, &rules);
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
        for (&label, (place, size)) in labels.iter().zip(places.iter().zip(&boxes)) {
            draw_label(&mut svg, self.model.label(label), *place, size);
        }
        for (&rule, place) in rules.iter().zip(&places[labels.len()..]) {
            self.draw_rule(&mut svg, rule, *place);
        }
        let listed = self.list_rules(&mut svg, &rules, labels.len(), size.1 + LINE);
        let width = size.0.max(listed.0).max(420.0);
        svg.finish([0.0, 0.0, width + MARGIN, listed.1 + MARGIN])
    }

    fn description(&self) -> String {
        let (labels, rules) = (self.model.labels().len(), self.model.rules().len());
        format!("{labels} labels as boxes, {rules} rules as dots; each rule is connected with its labels.")
    }

    /// The rules that are drawn, in the model's order.
    fn strongest(&self) -> Vec<RuleId> {
        let gain = |id: &RuleId| self.model.rule(*id).learned().map_or(f64::INFINITY, |note| note.gain);
        let certainty = |id: &RuleId| (2.0 * self.model.rule(*id).probability() - 1.0).abs();
        let mut rules: Vec<RuleId> = self.model.rule_ids().collect();
        rules.sort_by(|a, b| gain(b).total_cmp(&gain(a)).then(certainty(b).total_cmp(&certainty(a))));
        rules.truncate(MAX_RULES);
        rules.sort();
        rules
    }

    /// The labels of these rules; all labels if all rules are drawn.
    fn labels_of(&self, rules: &[RuleId]) -> Vec<LabelId> {
        let is_all = rules.len() == self.model.rules().len();
        let is_drawn = |label: &LabelId| {
            is_all || rules.iter().any(|&rule| self.model.rule(rule).scope().contains(label))
        };
        self.model.label_ids().filter(is_drawn).collect()
    }

    fn edges(&self, labels: &[LabelId], rules: &[RuleId]) -> Vec<Edge> {
        let of = |(index, &rule): (usize, &RuleId)| -> Vec<Edge> {
            let rule = self.model.rule(rule);
            let edge = |label: LabelId| {
                let place = labels.iter().position(|&other| other == label).expect("its labels are drawn");
                let width = 0.6 + 2.4 * strength(rule, label);
                Edge { ends: (place, labels.len() + index), color: color(rule), width }
            };
            rule.scope().into_iter().map(edge).collect()
        };
        rules.iter().enumerate().flat_map(of).collect()
    }

    fn draw_rule(&self, svg: &mut Svg, rule: RuleId, place: (f64, f64)) {
        let class = format!("rule {}", color(self.model.rule(rule)));
        svg.circle(&class, place, RADIUS, &self.rule_text(rule));
        svg.text("number", Anchor::Middle, (place.0, place.1 + 3.5), &format!("{}", rule.index() + 1));
    }

    /// Writes the rules as sentences, and returns the lower end.
    fn list_rules(&self, svg: &mut Svg, rules: &[RuleId], n_labels: usize, top: f64) -> (f64, f64) {
        let (mut right, mut bottom) = (0.0f64, top);
        let mut lines: Vec<String> =
            rules.iter().flat_map(|&rule| wrapped(&self.rule_text(rule), COLUMNS)).collect();
        let left_out = [
            (self.model.rules().len() - rules.len(), "weaker rules"),
            (self.model.labels().len() - n_labels, "labels of other rules"),
        ];
        let left_out = left_out.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
        let left_out: Vec<String> = left_out.collect();
        if !left_out.is_empty() {
            lines.push(format!("Left out: {}.", left_out.join(", ")));
        }
        for line in lines {
            svg.text("soft", Anchor::Start, (MARGIN, bottom), &line);
            right = right.max(MARGIN + width(&line));
            bottom += LINE;
        }
        (right, bottom - LINE)
    }

    /// `3. wets: if rain then wet, 0.95`
    fn rule_text(&self, id: RuleId) -> String {
        let name = self.model.rule(id).name().map_or(String::new(), |name| format!("{name}: "));
        format!("{}. {name}{}", id.index() + 1, rounded(&self.model.rule_sentence(id)))
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
    Box2 { width: width(label.name()) + 20.0, height: LABEL_HEIGHT }
}

fn rule_box() -> Box2 {
    Box2 { width: 2.0 * RADIUS, height: 2.0 * RADIUS }
}

fn draw_label(svg: &mut Svg, label: &Label, (x, y): (f64, f64), size: &Box2) {
    let class = if label.classifier().is_none() { "label latent" } else { "label" };
    let tooltip = format!("{}: {}", label.name(), label.categories().join(", "));
    let corner = (x - size.width / 2.0, y - size.height / 2.0);
    svg.rectangle(class, corner, (size.width, size.height), &tooltip);
    svg.text("", Anchor::Middle, (x, y + 4.0), label.name());
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
