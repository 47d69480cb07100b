//! Rules and combinations as sentences, for people who do not read formulas.

mod noisy_or;
mod phrase;
#[cfg(test)]
mod tests;

use crate::combination::{self, Combination};
use crate::formula::{Atom, Bound, Formula, Node, NodeId};
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::names::Names;
use crate::notation::{number, significant};
use crate::rule::{Body, LearnedNote, RuleId};
use phrase::{Form, Phrase, joined, listed, plain, times};

impl Model {
    /// A rule as a sentence with its probability.
    ///
    /// A formula is followed by its probability. A noisy-or becomes an implication. Its consequence is the label that
    /// is most likely to make the rule true; the other labels are conditions. The probability that follows is that of
    /// the consequence if the conditions hold and the beliefs are uniform. Categories that make the rule true hardly
    /// more often than others of their label are left out.
    ///
    /// A rule with a note about learning is followed by the number of training rows that break it, too.
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
    ///     rule 0.94: gait -> !overhead  # learned: gain 12.3, broken 3 of 214, expected 41.2, sure
    /// ")?;
    /// assert_eq!(model.rule_sentence(RuleId::new(0)), "if standing and high then overhead, 0.8");
    /// assert_eq!(model.rule_sentence(RuleId::new(1)), "if standing and high then overhead, 0.93");
    /// assert_eq!(
    ///     model.rule_sentence(RuleId::new(2)),
    ///     "if gait then not overhead (0.94; 3 of 214 rows break it, 41 expected without the rule)"
    /// );
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn rule_sentence(&self, id: RuleId) -> String {
        let writer = Writer { names: self.names() };
        let rule = self.rule(id);
        let (statement, probability) = match rule.body() {
            Body::Formula(formula) => (writer.formula(formula).text, Some(number(rule.probability()))),
            Body::NoisyOr(noisy_or) => writer.noisy_or(rule, noisy_or),
        };
        match (probability, rule.learned().map(broken_rows)) {
            (None, None) => statement,
            (Some(probability), None) => format!("{statement}, {probability}"),
            (None, Some(rows)) => format!("{statement} ({rows})"),
            (Some(probability), Some(rows)) => format!("{statement} ({probability}; {rows})"),
        }
    }

    /// A typical combination as a sentence, with the factor of its weight.
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
        let writer = Writer { names: self.names() };
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

/// Significant digits of numbers of rows.
const ROW_DIGITS: usize = 2;

/// `3 of 214 rows break it, 41 expected without the rule`
fn broken_rows(note: &LearnedNote) -> String {
    let [broken, known, expected] =
        [note.broken, note.known, note.expected].map(|rows| number(significant(rows, ROW_DIGITS)));
    let rows = if known == "1" { "row" } else { "rows" };
    let verb = if broken == "1" || known == "1" { "breaks" } else { "break" };
    format!("{broken} of {known} {rows} {verb} it, {expected} expected without the rule")
}

/// Writes sentences about the labels of one model.
struct Writer<'a> {
    names: &'a Names,
}

impl Writer<'_> {
    /// The statement that a label is one of these categories.
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

    /// The statement that a label is none of these categories.
    fn none_of(&self, label: LabelId, categories: &[CategoryId]) -> Phrase {
        match categories.len() {
            1 => self.stated(label, "not ", categories, ""),
            _ => self.stated(label, "neither ", categories, "nor"),
        }
    }

    /// The names of categories, preceded by their label unless each of them is unique in the model.
    fn stated(&self, label: LabelId, before: &str, categories: &[CategoryId], conjunction: &str) -> Phrase {
        let declared = &self.names.labels()[label.index()];
        let is_unique =
            |&category: &CategoryId| self.names.is_only_meaning(declared.category(category), label, category);
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

    /// A node, given the phrases of all nodes before it.
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
