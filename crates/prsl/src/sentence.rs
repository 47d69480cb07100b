//! Rules and combinations as sentences, for people who do not read formulas.

use std::collections::HashMap;

use crate::combination::{self, Combination};
use crate::formula::{Atom, Bound, Formula, Node, NodeId};
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::names::{Bare, Names};
use crate::noisy_or::NoisyOr;
use crate::rule::{Body, Rule, RuleId};
use crate::text::print;

/// Labels of a noisy-or whose strengths differ by no more than this are equally good consequences.
const TIE: f64 = 0.05;
/// Categories of a noisy-or with less than this share of the largest strength go unsaid.
const FAINT: f64 = 0.1;
/// From so many conditions on, nobody reads an implication: what makes the rule true is listed instead, the first few of it.
const MANY: usize = 6;
const LISTED: usize = 5;

impl Model {
    /// A rule as a sentence, with how sure it is.
    ///
    /// A formula comes with its probability. A noisy-or is read as an implication: the label that makes it true most surely is the
    /// consequence, the others are conditions. It comes with the probability of the consequence where the conditions hold and the
    /// beliefs are undecided, and with how often the consequence leaves the rule silent. Categories that hardly make the rule true any more
    /// often than others of their label go unsaid.
    ///
    /// ```
    /// use prsl::{Model, RuleId};
    ///
    /// let model = Model::parse("
    ///     label feet: gait, standing
    ///     label hands: high, centered, low
    ///     label overhead
    ///     rule 0.8: standing & high -> overhead
    ///     noisy_or 0.93: gait 0.1, hands in {centered, low} 0.2, overhead 0.04
    /// ")?;
    /// assert_eq!(model.rule_sentence(RuleId::new(0)), "if standing and high then overhead, 0.8");
    /// assert_eq!(
    ///     model.rule_sentence(RuleId::new(1)),
    ///     "if standing and high then overhead, 0.93; silent 4 % of the time"
    /// );
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn rule_sentence(&self, id: RuleId) -> String {
        let writer = Writer { names: Names::new(self.labels()) };
        let rule = self.rule(id);
        match rule.body() {
            Body::Formula(formula) => {
                format!("{}, {}", writer.formula(formula).text, print::number(rule.probability()))
            }
            Body::NoisyOr(noisy_or) => writer.noisy_or(rule, noisy_or),
        }
    }

    /// A typical combination as a sentence, with how often it counts.
    ///
    /// ```
    /// use prsl::Model;
    ///
    /// let model = Model::parse("label anger\nlabel joy\nlabel sad\ntypical 3: anger, sad\ntypical 0.5: none")?;
    /// assert_eq!(model.combination_sentence(&model.typical()[0]), "anger and sad, nothing else, 4 times");
    /// assert_eq!(model.combination_sentence(&model.typical()[1]), "nothing at all, 1.5 times");
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn combination_sentence(&self, combination: &Combination) -> String {
        let writer = Writer { names: Names::new(self.labels()) };
        let named = combination::named(self.labels(), combination.categories());
        let phrases = named.iter().map(|&(label, category)| writer.one_of(label, &[category]).text);
        let what = match (named.len(), self.labels().len()) {
            (0, _) => "nothing at all".to_owned(),
            (n, all) if n < all => format!("{}, nothing else", listed(phrases, "and")),
            _ => listed(phrases, "and"),
        };
        format!("{what}, {} times", times(1.0 + combination.weight()))
    }
}

/// What a part of a sentence is, which decides where it needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `overhead`, `not overhead`, `hands is high`
    Word,
    /// `a and b`
    And,
    /// `a or b`
    Or,
    /// `at most 1 of a, b and c`
    List,
    /// `if a then b`
    Sentence,
}

/// A part of a sentence.
#[derive(Clone)]
struct Phrase {
    text: String,
    form: Form,
}

impl Phrase {
    fn new(form: Form, text: impl Into<String>) -> Self {
        Self { text: text.into(), form }
    }

    /// The text, in parentheses unless it has one of these forms.
    fn unless(&self, forms: &[Form]) -> String {
        if forms.contains(&self.form) { self.text.clone() } else { format!("({})", self.text) }
    }
}

/// What a noisy-or says about one label.
struct Voice {
    label: LabelId,
    /// q of every category.
    inhibitions: Vec<f64>,
}

impl Voice {
    /// How much more surely a category of this q makes the rule true than the label's weakest: 1 − q / largest q, from 0 to 1.
    fn strength(&self, q: f64) -> f64 {
        if q < self.largest() { 1.0 - q / self.largest() } else { 0.0 }
    }

    fn smallest(&self) -> f64 {
        self.inhibitions.iter().copied().fold(1.0, f64::min)
    }

    fn largest(&self) -> f64 {
        self.inhibitions.iter().copied().fold(0.0, f64::max)
    }

    /// The strength of its strongest category.
    fn strongest(&self) -> f64 {
        self.strength(self.smallest())
    }

    /// The categories whose q is so.
    fn categories(&self, is_wanted: impl Fn(f64) -> bool) -> Vec<CategoryId> {
        let wanted = self.inhibitions.iter().enumerate().filter(|(_, q)| is_wanted(**q));
        wanted.map(|(category, _)| CategoryId::new(category)).collect()
    }
}

/// Writes about the labels of one model.
struct Writer<'a> {
    names: Names<'a>,
}

impl Writer<'_> {
    fn noisy_or(&self, rule: &Rule, noisy_or: &NoisyOr) -> String {
        let voices = self.voices(noisy_or);
        if voices.is_empty() {
            return "says nothing".to_owned();
        }
        let strongest = voices.iter().map(Voice::strongest).fold(0.0, f64::max);
        if strongest == 0.0 {
            let causes = listed(self.causes(&voices), "or");
            return format!("one of {causes} makes it true, {}", print::number(rule.probability()));
        }
        let chosen = self.consequence(&voices, strongest);
        let speaks = |voice: &Voice, q: f64| voice.strength(q) >= FAINT * strongest;
        let consequence = &voices[chosen];
        let consequence = self.one_of(consequence.label, &consequence.categories(|q| speaks(consequence, q)));
        let others = voices.iter().enumerate().filter(|(place, _)| *place != chosen).map(|(_, voice)| voice);
        let conditions: Vec<Phrase> = others
            .filter(|voice| speaks(voice, voice.smallest()))
            .map(|voice| self.one_of(voice.label, &voice.categories(|q| !speaks(voice, q))))
            .collect();
        let silent = match (100.0 * voices[chosen].smallest()).round() {
            0.0 => String::new(),
            percent => format!("; silent {percent} % of the time"),
        };
        if conditions.len() >= MANY {
            let causes = self.strongest_causes(&voices, FAINT * strongest);
            return format!("one of {causes}, {}{silent}", print::number(rule.probability()));
        }
        let conditions = match &conditions[..] {
            [one] => one.text.clone(),
            several => joined(several, Form::And).text,
        };
        let sentence = if conditions.is_empty() {
            consequence.text
        } else {
            format!("if {conditions} then {}", consequence.text)
        };
        let sure =
            sureness(rule.probability(), &voices, chosen).map_or(String::new(), |sure| format!(", {sure}"));
        format!("{sentence}{sure}{silent}")
    }

    /// The labels of which some category may make the rule true, in order of appearance.
    fn voices(&self, noisy_or: &NoisyOr) -> Vec<Voice> {
        let silent = |label: LabelId| Voice {
            label,
            inhibitions: vec![1.0; self.names.labels()[label.index()].n_categories()],
        };
        let mut voices: Vec<Voice> = noisy_or.scope().into_iter().map(silent).collect();
        let places: HashMap<LabelId, usize> =
            voices.iter().enumerate().map(|(place, voice)| (voice.label, place)).collect();
        for i in noisy_or.inhibitions() {
            voices[places[&i.label]].inhibitions[i.category.index()] = i.probability;
        }
        voices.retain(|voice| voice.smallest() < 1.0);
        voices
    }

    /// All categories that may make the rule true.
    fn causes(&self, voices: &[Voice]) -> impl Iterator<Item = String> {
        voices.iter().flat_map(|voice| {
            let categories = voice.categories(|q| q < 1.0).into_iter();
            categories.map(|category| self.one_of(voice.label, &[category]).text)
        })
    }

    /// The categories that are at least so strong, the strongest first, some of them by number.
    fn strongest_causes(&self, voices: &[Voice], least: f64) -> String {
        let of_voice = |voice: &Voice| {
            let strengths = voice.inhibitions.iter().map(|&q| voice.strength(q)).enumerate();
            let named = |(category, strength): (usize, f64)| {
                (strength, self.one_of(voice.label, &[CategoryId::new(category)]).text)
            };
            strengths.filter(|(_, strength)| *strength >= least).map(named).collect::<Vec<_>>()
        };
        let mut causes: Vec<(f64, String)> = voices.iter().flat_map(of_voice).collect();
        causes.sort_by(|a, b| b.0.total_cmp(&a.0));
        let n_more = causes.len().saturating_sub(LISTED);
        let more = (n_more > 0).then(|| format!("{n_more} more"));
        listed(causes.into_iter().take(LISTED).map(|(_, text)| text).chain(more), "or")
    }

    /// The place of the label to conclude upon: of the strongest one that says what is, not what is not, the last if there are
    /// several.
    fn consequence(&self, voices: &[Voice], strongest: f64) -> usize {
        let is_negative = |voice: &Voice| {
            let is_binary = self.names.labels()[voice.label.index()].is_binary();
            is_binary && voice.inhibitions[1] < voice.inhibitions[0]
        };
        let least = (strongest - TIE).max(FAINT * strongest);
        (0..voices.len())
            .filter(|&place| voices[place].strongest() >= least)
            .max_by_key(|&place| (!is_negative(&voices[place]), place))
            .expect("the strongest is among them")
    }

    /// That a label is one of these categories.
    fn one_of(&self, label: LabelId, categories: &[CategoryId]) -> Phrase {
        let others: Vec<CategoryId> = (0..self.names.labels()[label.index()].n_categories())
            .map(CategoryId::new)
            .filter(|category| !categories.contains(category))
            .collect();
        if self.names.labels()[label.index()].is_binary() && categories.len() == 1 {
            let name = plain(self.names.labels()[label.index()].name());
            let is_yes = categories[0] == CategoryId::new(0);
            return Phrase::new(Form::Word, if is_yes { name } else { format!("not {name}") });
        }
        match (categories.len(), others.len()) {
            (3.., 1 | 2) => self.none_of(label, &others),
            (1, _) => self.stated(label, "", categories, "or"),
            _ => Phrase { form: Form::Or, ..self.stated(label, "", categories, "or") },
        }
    }

    /// That a label is none of these categories.
    fn none_of(&self, label: LabelId, categories: &[CategoryId]) -> Phrase {
        match categories.len() {
            1 => self.stated(label, "not ", categories, ""),
            _ => self.stated(label, "neither ", categories, "nor"),
        }
    }

    /// The names of categories alone where each is unique in the model, with their label otherwise.
    fn stated(&self, label: LabelId, before: &str, categories: &[CategoryId], conjunction: &str) -> Phrase {
        let declared = &self.names.labels()[label.index()];
        let is_unique = |&category: &CategoryId| matches!(self.names.bare(declared.category(category)), Bare::Atom(atom) if atom == Atom::new(label, category));
        let names: Vec<String> =
            categories.iter().map(|&category| plain(declared.category(category))).collect();
        let list = match conjunction {
            "nor" => names.join(" nor "),
            _ => listed(names.into_iter(), conjunction),
        };
        let alone = !declared.is_binary() && categories.iter().all(is_unique);
        let subject = if alone { String::new() } else { format!("{} is ", plain(declared.name())) };
        Phrase::new(Form::Word, format!("{subject}{before}{list}"))
    }

    fn formula(&self, formula: &Formula) -> Phrase {
        let mut phrases: Vec<Phrase> = Vec::with_capacity(formula.nodes().len());
        for node in formula.nodes() {
            let phrase = self.node(formula, node, &phrases);
            phrases.push(phrase);
        }
        phrases.pop().expect("a formula has at least one node")
    }

    /// A node, after all nodes below it.
    fn node(&self, formula: &Formula, node: &Node, phrases: &[Phrase]) -> Phrase {
        let clause = |id: &NodeId| phrases[id.index()].unless(&[Form::Word, Form::And, Form::Or, Form::List]);
        let all = |ids: &[NodeId]| ids.iter().map(|id| phrases[id.index()].clone()).collect::<Vec<_>>();
        let words = |ids: &[NodeId], last: &str| {
            listed(ids.iter().map(|id| phrases[id.index()].unless(&[Form::Word])), last)
        };
        match node {
            Node::Constant(value) => Phrase::new(Form::Word, value.to_string()),
            Node::Atom(atom) => self.one_of(atom.label(), atom.categories()),
            Node::Not(child) => match &formula.nodes()[child.index()] {
                Node::Atom(atom) => self.negated(atom),
                _ => Phrase::new(Form::Word, format!("not ({})", phrases[child.index()].text)),
            },
            Node::And(children) => joined(&all(children), Form::And),
            Node::Or(children) => joined(&all(children), Form::Or),
            Node::Xor(children) => Phrase::new(
                Form::List,
                match children.len() {
                    2 => format!("either {} but not both", words(children, "or")),
                    _ => format!("an odd number of {}", words(children, "and")),
                },
            ),
            Node::Implies(condition, then) | Node::ImpliedBy(then, condition) => {
                Phrase::new(Form::Sentence, format!("if {} then {}", clause(condition), clause(then)))
            }
            Node::Iff(a, b) => {
                Phrase::new(Form::Sentence, format!("{} if and only if {}", clause(a), clause(b)))
            }
            Node::Count(bound, n, children) => {
                let bound = match bound {
                    Bound::AtLeast => "at least",
                    Bound::AtMost => "at most",
                    Bound::Exactly => "exactly",
                };
                Phrase::new(Form::List, format!("{bound} {n} of {}", words(children, "and")))
            }
        }
    }

    fn negated(&self, atom: &Atom) -> Phrase {
        let label = &self.names.labels()[atom.label().index()];
        match atom.categories() {
            [category] if label.is_binary() => {
                self.one_of(atom.label(), &[CategoryId::new(1 - category.index())])
            }
            categories => self.none_of(atom.label(), categories),
        }
    }
}

/// How probable the consequence is where the conditions hold and beliefs are undecided between its strongest and its weakest
/// category. `None` where the rule leaves neither possible.
fn sureness(probability: f64, voices: &[Voice], consequence: usize) -> Option<String> {
    let others = voices.iter().enumerate().filter(|(place, _)| *place != consequence);
    let silent: f64 = others.map(|(_, voice)| voice.largest()).product();
    let chosen = &voices[consequence];
    let weight = |silent: f64| probability * (1.0 - silent) + (1.0 - probability) * silent;
    let (so, otherwise) = (weight(silent * chosen.smallest()), weight(silent * chosen.largest()));
    (so + otherwise > 0.0).then(|| rounded(so / (so + otherwise)))
}

/// Two digits, and as many more as it takes not to be 0 or 1 if it is not.
fn rounded(probability: f64) -> String {
    let is_certain = |value: f64| value == 0.0 || value == 1.0;
    let shown =
        |digits: usize| format!("{probability:.digits$}").parse::<f64>().expect("a number was written");
    let digits = (2..12).find(|&digits| is_certain(probability) || !is_certain(shown(digits)));
    print::number(shown(digits.unwrap_or(12)))
}

/// Three digits that matter.
fn times(factor: f64) -> String {
    if factor < 1e6 {
        let digits = (2.0 - factor.log10().floor()).max(0.0) as usize;
        return print::number(format!("{factor:.digits$}").parse().expect("a number was written"));
    }
    format!("{factor:.2e}")
}

/// `a and b`, or the one that there is.
fn joined(phrases: &[Phrase], form: Form) -> Phrase {
    let operator = if form == Form::And { " and " } else { " or " };
    let texts: Vec<String> = phrases.iter().map(|phrase| phrase.unless(&[Form::Word, form])).collect();
    Phrase::new(form, texts.join(operator))
}

/// `a, b and c`
fn listed(texts: impl Iterator<Item = String>, last: &str) -> String {
    let mut texts: Vec<String> = texts.collect();
    match (texts.pop(), texts.is_empty()) {
        (None, _) => "nothing".to_owned(),
        (Some(only), true) => only,
        (Some(end), false) => format!("{} {last} {end}", texts.join(", ")),
    }
}

/// The words of sentences, which are names only in quotes.
const WORDS: [&str; 15] = [
    "and", "but", "both", "either", "false", "if", "is", "neither", "nor", "not", "nothing", "of", "or",
    "then", "true",
];

/// A name, in quotes where it would not be read as one.
fn plain(name: &str) -> String {
    let is_word = name.chars().all(|c| c.is_alphanumeric() || "_-.+/".contains(c));
    if is_word && !WORDS.contains(&name) {
        return name.to_owned();
    }
    let quoted = print::name(name);
    if quoted == name { format!("\"{name}\"") } else { quoted }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: &str = "\
label a
label b
label c
label feet: gait, standing
label hands: high, centered, low
label pose: high, bent, flat, odd, \"two words\"
label \"if\"
";

    fn sentence(rule: &str) -> String {
        Model::parse(&format!("{LABELS}{rule}")).expect(rule).rule_sentence(RuleId::new(0))
    }

    #[track_caller]
    fn reads(rule: &str, expected: &str) {
        assert_eq!(sentence(rule), expected, "{rule}");
    }

    #[test]
    fn a_learned_implication_reads_as_one() {
        reads("noisy_or 0.999: a=no 0.05, b 0.07", "if a then b, 0.999; silent 7 % of the time");
        reads("noisy_or 0.999: b 0.07, a=no 0.05", "if a then b, 0.999; silent 7 % of the time");
        reads("noisy_or 0.9: a 0.01, b=no 0.2", "if b then a, 0.9; silent 1 % of the time");
        reads("noisy_or 0.9: a=no 0.001, b=no 0.002", "if a then not b, 0.9");
        reads("noisy_or 0.9: a 0, b 0", "if not a then b, 0.9");
        reads("noisy_or 0.9: a=no 0, b=no 0, c 0", "if a and b then c, 0.9");
        // Far surer, though it says what is not.
        reads("noisy_or 0.9: a=no 0.1, b 0.6", "if not b then not a, 0.89; silent 10 % of the time");
    }

    #[test]
    fn labels_of_more_categories_are_conditions_by_what_is_left() {
        reads("noisy_or 0.9: gait 0.1, a 0", "if standing then a, 0.9");
        reads("noisy_or 0.9: centered 0.1, a 0", "if hands is high or low then a, 0.9");
        reads("noisy_or 0.9: hands=high 0.1, a 0", "if centered or low then a, 0.9");
        reads("noisy_or 0.9: hands=high 0.1, gait 0.1, a 0", "if (centered or low) and standing then a, 0.9");
        reads("noisy_or 0.9: centered 0.1, low 0.3, a 0", "if hands is high then a, 0.9");
        reads("noisy_or 0.9: bent 0.1, a 0", "if not bent then a, 0.9");
        reads("noisy_or 0.9: bent 0.1, odd 0.1, a 0", "if neither bent nor odd then a, 0.9");
        reads("noisy_or 0.9: pose=high 0.1, odd 0.1, a 0", "if pose is neither high nor odd then a, 0.9");
    }

    #[test]
    fn a_consequence_may_be_several_categories() {
        reads(
            "noisy_or 0.9: a=no 0.3, centered 0.02, low 0.1",
            "if a then centered or low, 0.9; silent 2 % of the time",
        );
        reads("noisy_or 0.93: \"two words\" 0.04", "\"two words\", 0.93; silent 4 % of the time");
        reads("noisy_or 0.93: a=no 0", "not a, 0.93");
        reads("noisy_or 0.93: bent 0, flat 0, odd 0, pose=high 0", "not \"two words\", 0.93");
        reads("noisy_or 0.93: \"if\" 0, a=no 0", "if a then \"if\", 0.93");
    }

    #[test]
    fn many_causes_are_listed() {
        reads(
            "noisy_or 0.99: a 0.8, b 0.7, c 0.9, gait 0.85, centered 0.75, bent 0.6, flat 0.65, \"if\" 0.95",
            "one of bent, flat, b, centered, a or 3 more, 0.99; silent 60 % of the time",
        );
    }

    #[test]
    fn only_differences_between_categories_of_a_label_are_told() {
        reads("noisy_or 0.9: a 1, b 1", "says nothing");
        reads("noisy_or 0.9: a 0.2, a=no 0.2", "one of a or not a makes it true, 0.9");
        reads(
            "noisy_or 0.9: a 0.2, a=no 0.2, gait 0, standing 0",
            "one of a, not a, gait or standing makes it true, 0.9",
        );
        reads("noisy_or 0.9: a 0.1, a=no 0.2", "a, 0.53; silent 10 % of the time");
        // The last label hardly cares: it is no consequence, however close the strengths are.
        reads(
            "noisy_or 0.9: a 0.95, a=no 0.97, gait 0.922, standing 0.9225",
            "a, 0.52; silent 95 % of the time",
        );
        reads("noisy_or 0.9: a 0.1, a=no 0.2, b 0.3", "if not a then b, 0.54; silent 30 % of the time");
        reads("noisy_or 0.9: a 0.2, a=no 0.2, b 0.3", "b, 0.54; silent 30 % of the time");
        // As they are learned: some numbers hardly matter.
        reads(
            "noisy_or 0.999: a 0.997, a=no 0.274, b 0.975, b=no 0.975, c 0.723, c=no 0.991",
            "if not c then not a, 0.95; silent 27 % of the time",
        );
        reads(
            "noisy_or 0.999: gait 0.999, standing 0.432, centered 0.471, low 0.46, a 0.993, a=no 0.999",
            "if gait then centered or low, 0.99; silent 46 % of the time",
        );
    }

    #[test]
    fn extreme_probabilities_stay_apart_from_certain_ones() {
        reads("noisy_or 1: a=no 0, b 0", "if a then b, 1");
        reads("noisy_or 0: a=no 0, b 0", "if a then b, 0");
        reads("noisy_or 0.999999: a=no 0, b 0", "if a then b, 0.999999");
        reads("noisy_or 0.5: a=no 0, b 0.004", "if a then b, 0.5");
        reads("noisy_or 0: a 0, a=no 0, b 0", "b");
    }

    #[test]
    fn formulas_in_words() {
        reads("rule 0.8: standing & a -> b", "if standing and a then b, 0.8");
        reads("rule 0.8: b <- standing | a", "if standing or a then b, 0.8");
        reads("rule 1: a <-> !b", "a if and only if not b, 1");
        reads("rule 0.9: a -> hands in {centered, low}", "if a then centered or low, 0.9");
        reads("rule 0.9: a & hands!=high", "a and hands is not high, 0.9");
        reads(
            "rule 0.9: a & centered | !(hands in {high, low})",
            "(a and centered) or hands is neither high nor low, 0.9",
        );
        reads("rule 0.9: a & (b | c)", "a and (b or c), 0.9");
        reads("rule 0.9: a & hands in {centered, low}", "a and (centered or low), 0.9");
        reads("rule 0.9: !(a & b)", "not (a and b), 0.9");
        reads("rule 0.9: !!a", "not (not a), 0.9");
        reads("rule 0.9: a xor b", "either a or b but not both, 0.9");
        reads("rule 0.9: a xor b xor !c", "an odd number of a, b and not c, 0.9");
        reads("rule 0.95: at_most 1 of {a, bent, b & c}", "at most 1 of a, bent and (b and c), 0.95");
        reads("rule 0.95: exactly 0 of {}", "exactly 0 of nothing, 0.95");
        reads("rule 0.7: (a -> b) -> c", "if (if a then b) then c, 0.7");
        reads("rule 0.7: true", "true, 0.7");
    }

    #[test]
    fn combinations_in_words() {
        let model =
            Model::parse("label a\nlabel feet: gait, standing\ntypical 2.5: a, gait\ntypical 1e17: standing");
        let model = model.expect("a model");
        let sentences: Vec<String> =
            model.typical().iter().map(|combination| model.combination_sentence(combination)).collect();
        assert_eq!(sentences, ["a and gait, 3.5 times", "standing, nothing else, 1.00e17 times"]);
    }
}
