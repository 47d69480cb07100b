//! Noisy-or rules as sentences.

use std::collections::HashMap;

use super::Writer;
use super::phrase::{Form, Phrase, joined, listed, rounded};
use crate::label::{CategoryId, LabelId};
use crate::noisy_or::NoisyOr;
use crate::notation::number;
use crate::rule::Rule;

/// Labels are equally good consequences if their strengths differ by no more than this.
const TIE_TOLERANCE: f64 = 0.05;
/// Categories with less than this share of the largest strength are left out.
const MIN_RELATIVE_STRENGTH: f64 = 0.1;
/// Maximum number of conditions of an implication. Longer ones are hard to read, so causes are listed instead.
const MAX_CONDITIONS: usize = 5;
/// Maximum number of causes listed.
const MAX_LISTED: usize = 5;

/// The effect of a noisy-or on one label.
struct Effect {
    label: LabelId,
    /// q of every category.
    inhibitions: Vec<f64>,
}

impl Effect {
    /// The strength of a category with inhibition q: 1 − q / largest q of the label, from 0 to 1.
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

    /// The categories whose q fulfils a condition.
    fn categories(&self, is_wanted: impl Fn(f64) -> bool) -> Vec<CategoryId> {
        let wanted = self.inhibitions.iter().enumerate().filter(|(_, q)| is_wanted(**q));
        wanted.map(|(category, _)| CategoryId::new(category)).collect()
    }
}

impl Writer<'_> {
    /// A noisy-or as an implication, or as a list of its causes, and its probability if it has one.
    pub(super) fn noisy_or(&self, rule: &Rule, noisy_or: &NoisyOr) -> (String, Option<String>) {
        let effects = self.effects(noisy_or);
        if effects.is_empty() {
            return ("says nothing".to_owned(), None);
        }
        let strongest = effects.iter().map(Effect::strongest).fold(0.0, f64::max);
        if strongest == 0.0 {
            let causes = listed(self.causes(&effects), "or");
            return (format!("one of {causes} makes it true"), Some(number(rule.probability())));
        }
        let chosen = self.consequence(&effects, strongest);
        let is_stated = |effect: &Effect, q: f64| effect.strength(q) >= MIN_RELATIVE_STRENGTH * strongest;
        let consequence = &effects[chosen];
        let consequence =
            self.one_of(consequence.label, &consequence.categories(|q| is_stated(consequence, q)));
        let others =
            effects.iter().enumerate().filter(|(place, _)| *place != chosen).map(|(_, effect)| effect);
        let conditions: Vec<Phrase> = others
            .filter(|effect| is_stated(effect, effect.smallest()))
            .map(|effect| self.one_of(effect.label, &effect.categories(|q| !is_stated(effect, q))))
            .collect();
        if conditions.len() > MAX_CONDITIONS {
            let causes = self.strongest_causes(&effects, MIN_RELATIVE_STRENGTH * strongest);
            return (format!("one of {causes}"), Some(number(rule.probability())));
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
        (sentence, sureness(rule.probability(), &effects, chosen))
    }

    /// The labels with a category that may make the rule true, in order of appearance.
    fn effects(&self, noisy_or: &NoisyOr) -> Vec<Effect> {
        let silent = |label: LabelId| Effect {
            label,
            inhibitions: vec![1.0; self.names.labels()[label.index()].n_categories()],
        };
        let mut effects: Vec<Effect> = noisy_or.scope().into_iter().map(silent).collect();
        let places: HashMap<LabelId, usize> =
            effects.iter().enumerate().map(|(place, effect)| (effect.label, place)).collect();
        for i in noisy_or.inhibitions() {
            effects[places[&i.label]].inhibitions[i.category.index()] = i.probability;
        }
        effects.retain(|effect| effect.smallest() < 1.0);
        effects
    }

    /// All categories that may make the rule true.
    fn causes(&self, effects: &[Effect]) -> impl Iterator<Item = String> {
        effects.iter().flat_map(|effect| {
            let categories = effect.categories(|q| q < 1.0).into_iter();
            categories.map(|category| self.one_of(effect.label, &[category]).text)
        })
    }

    /// The categories of at least this strength, the strongest first. Those beyond [`MAX_LISTED`] are counted.
    fn strongest_causes(&self, effects: &[Effect], least: f64) -> String {
        let of_effect = |effect: &Effect| {
            let strengths = effect.inhibitions.iter().map(|&q| effect.strength(q)).enumerate();
            let named = |(category, strength): (usize, f64)| {
                (strength, self.one_of(effect.label, &[CategoryId::new(category)]).text)
            };
            strengths.filter(|(_, strength)| *strength >= least).map(named).collect::<Vec<_>>()
        };
        let mut causes: Vec<(f64, String)> = effects.iter().flat_map(of_effect).collect();
        causes.sort_by(|a, b| b.0.total_cmp(&a.0));
        let n_more = causes.len().saturating_sub(MAX_LISTED);
        let more = (n_more > 0).then(|| format!("{n_more} more"));
        listed(causes.into_iter().take(MAX_LISTED).map(|(_, text)| text).chain(more), "or")
    }

    /// The position of the label that is the consequence: the strongest one.
    ///
    /// Among equally strong labels, positive statements come before negative ones, and later labels before earlier
    /// ones.
    fn consequence(&self, effects: &[Effect], strongest: f64) -> usize {
        let is_negative = |effect: &Effect| {
            let is_binary = self.names.labels()[effect.label.index()].is_binary();
            is_binary && effect.inhibitions[1] < effect.inhibitions[0]
        };
        let least = (strongest - TIE_TOLERANCE).max(MIN_RELATIVE_STRENGTH * strongest);
        (0..effects.len())
            .filter(|&place| effects[place].strongest() >= least)
            .max_by_key(|&place| (!is_negative(&effects[place]), place))
            .expect("the strongest is among them")
    }
}

/// The probability of the consequence if the conditions hold, with beliefs that are uniform over its strongest and
/// weakest category. `None` if the rule makes both impossible.
fn sureness(probability: f64, effects: &[Effect], consequence: usize) -> Option<String> {
    let others = effects.iter().enumerate().filter(|(place, _)| *place != consequence);
    let silent: f64 = others.map(|(_, effect)| effect.largest()).product();
    let chosen = &effects[consequence];
    let weight = |silent: f64| probability * (1.0 - silent) + (1.0 - probability) * silent;
    let (so, otherwise) = (weight(silent * chosen.smallest()), weight(silent * chosen.largest()));
    (so + otherwise > 0.0).then(|| rounded(so / (so + otherwise)))
}
