//! Counterfactuals as text for a terminal.

use std::fmt;

use super::{BeliefChange, Counterfactuals, LabelCounterfactual, ObservationChange, exceeds};
use crate::belief::BeliefOrigin;
use crate::explain::layout::{atom, column, counted, listed, pad, paragraph, probability};
use crate::syntax::print;

/// Maximum number of labels shown.
const MAX_SHOWN: usize = 12;

impl fmt::Display for Counterfactuals {
    /// Shows the smallest changes, and counts the other labels. The alternate form (`{:#}`) shows all labels.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.approximate {
            writeln!(f, "approximate: not all probabilities are exact\n")?;
        }
        self.now(f)?;
        if self.already {
            return Ok(());
        }
        let target = atom(&self.label, &self.target);
        if self.changes.is_empty() {
            paragraph(f, "\n", 0, &format!("no other label alone makes {target} the most probable"))?;
        } else {
            let heading = format!("each of these changes alone makes {target} the most probable");
            paragraph(f, "\n", 0, &heading)?;
            writeln!(f, "distance (total variation of the belief), the smallest first")?;
        }
        let n_shown = if f.alternate() { self.changes.len() } else { self.changes.len().min(MAX_SHOWN) };
        let (shown, more) = self.changes.split_at(n_shown);
        let names = column(shown.iter().chain(&self.own).map(|change| print::name(&change.label)));
        for change in shown {
            self.lines(f, change, names)?;
        }
        if !more.is_empty() {
            writeln!(f, "  {} with larger changes", counted(more.len(), "more label"))?;
        }
        let unable: Vec<String> = self.unable.iter().map(|label| print::name(label)).collect();
        listed(f, "cannot change it alone", &unable)?;
        if let Some(own) = &self.own {
            writeln!(f, "\nits own belief")?;
            self.lines(f, own, names)?;
        }
        Ok(())
    }
}

impl Counterfactuals {
    /// The posterior of the target and of its rival.
    fn now(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = atom(&self.label, &self.target);
        let (Some(p), Some(rival), Some(q)) = (self.probability, &self.rival, self.rival_probability) else {
            let text = format!("nothing is possible now, so {target} has no probability");
            return paragraph(f, "", 0, &text);
        };
        let rival = print::name(rival);
        let text = match (self.already, exceeds(q, p)) {
            (true, _) => format!(
                "{target} is the most probable category already: {}, then {rival} {}; there is nothing to change",
                probability(p),
                probability(q)
            ),
            (false, true) => format!(
                "{target} has probability {}; {rival} is the most probable category with {}",
                probability(p),
                probability(q)
            ),
            (false, false) => format!("{target} and {rival} are equally probable now: {}", probability(p)),
        };
        paragraph(f, "", 0, &text)
    }

    /// The lines of one label: the change of its belief, then observations.
    fn lines(&self, f: &mut fmt::Formatter<'_>, change: &LabelCounterfactual, names: usize) -> fmt::Result {
        let mut texts = Vec::new();
        texts.extend(change.belief.iter().map(|belief| belief_text(belief, change.origin)));
        if let Some(unobserved) = &change.unobserved {
            texts.push(format!(
                "not observed: {} {}",
                print::name(&self.target),
                probability(unobserved.probability)
            ));
        }
        let observed: Vec<String> =
            change.observations.iter().map(|observation| self.observation(observation)).collect();
        if !observed.is_empty() {
            let instead = change
                .observed
                .as_ref()
                .map_or_else(String::new, |now| format!(" instead of {}", print::name(now)));
            texts.push(format!("observed{instead}: {}", observed.join(", ")));
        }
        let mut name = pad(&print::name(&change.label), names);
        let mut distance = format!("{:>8}", probability(change.distance));
        for text in texts {
            paragraph(f, &format!("  {distance}  {name}  "), 14 + names, &text)?;
            (name, distance) = (pad("", names), pad("", 8));
        }
        Ok(())
    }

    /// `standing (chance 0.993, then overhead 0.704)`
    fn observation(&self, observation: &ObservationChange) -> String {
        let chance =
            observation.chance.map_or_else(String::new, |it| format!("chance {}, ", probability(it)));
        let then = probability(observation.probability);
        format!("{} ({chance}then {} {then})", print::name(&observation.category), print::name(&self.target))
    }
}

/// `belief in high below 0.377 instead of 0.500`
fn belief_text(change: &BeliefChange, origin: BeliefOrigin) -> String {
    let is_prior = origin == BeliefOrigin::Prior;
    let source = if is_prior { "the prior " } else { "" };
    let category = print::name(&change.category);
    let calibrated = format!("{} instead of {source}{}", side(change), probability(change.before));
    match (change.calibrated, change.needed_given) {
        (false, _) => format!("belief in {category} {calibrated}"),
        (true, None) => format!("calibrated belief in {category} {calibrated}"),
        (true, Some(needed)) => {
            let raw = match change.given {
                Some(given) if needed >= given => {
                    format!("above {} instead of {}", probability(needed), probability(given))
                }
                Some(given) => format!("below {} instead of {}", probability(needed), probability(given)),
                None => format!("beyond {}", probability(needed)),
            };
            format!("belief in {category} {raw} (calibrated {calibrated})")
        }
    }
}

/// `above 0.712`, `between 0.712 and 0.9` if more is too much, or `of 1` if only certainty suffices.
fn side(change: &BeliefChange) -> String {
    let [low, high] = change.range;
    match change.needed > change.before || change.needed <= low {
        _ if low == high => format!("of {}", probability(low)),
        _ if low > 0.0 && high < 1.0 => format!("between {} and {}", probability(low), probability(high)),
        true => format!("above {}", probability(change.needed)),
        false => format!("below {}", probability(change.needed)),
    }
}
