//! The third act: a label without any trained classifier.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use prsl::{Assignment, JunctionTree, Model, Posteriors, Truth};

use crate::calibrate;
use crate::style::{self, styled};

use super::files::Files;
use super::picture::{gauge, most_probable, percent};
use super::second_act::{SecondAct, named, read};

/// The label and its rule.
const LABEL: &str = "strain";
const RULE: &str = "strain <-> overhead & high | normal & low";
const PROBABILITY: f64 = 0.95;
/// Position of `yes` among the categories of a yes/no label.
const STRAINED: usize = 0;
/// Number of rows shown.
const SHOWN: usize = 5;

/// The learned model with the label, and its answers.
pub struct Strain {
    /// With the label and its rule.
    model: Model,
    truths: Vec<Truth>,
    /// With the label, before it has a rule.
    before: Posteriors,
    after: Posteriors,
}

impl Strain {
    /// Adds the label, writes the model, and predicts the test rows.
    pub fn set_up(files: &Files, second: &SecondAct<'_>) -> Result<Self> {
        let labeled = second.learned.model.edit().binary_label(LABEL).build()?;
        let model = labeled.edit().rule(RULE, PROBABILITY).build()?;
        files.write(&[(&files.strain, calibrate::text(&model, &files.strain).as_bytes())])?;
        let (rows, truths) = read(&model, &files.tomorrow[0], &files.tomorrow[1])?;
        let before = JunctionTree::compile(&labeled)?.infer_batch(&rows)?;
        let after = JunctionTree::compile(&model)?.infer_batch(&rows)?;
        Ok(Strain { model, truths, before, after })
    }

    /// The text of this act.
    pub fn show(&self) -> Result<String> {
        let mut text = String::new();
        writeln!(text, "{}\n", styled(style::STRONG, "A label without a trained classifier"))?;
        writeln!(
            text,
            "The works council asks what strains the back. No sensor measures it, and no truth is known."
        )?;
        writeln!(text, "Two lines define it, in the file or at run time:\n")?;
        let call = |call: &str| styled(style::NOTE, call);
        writeln!(text, "  model.edit()")?;
        writeln!(text, "      {}", call(&format!(".binary_label(\"{LABEL}\")")))?;
        writeln!(text, "      {}", call(&format!(".rule(\"{RULE}\", {PROBABILITY})")))?;
        writeln!(text, "      .build()?\n")?;
        writeln!(
            text,
            "For each of the most frequent answers, the row in which the strain is most certain:\n"
        )?;
        self.show_rows(&mut text)?;
        self.show_accuracy(&mut text)?;
        Ok(text)
    }

    fn show_rows(&self, text: &mut String) -> Result<()> {
        let heading = "row  most probable                 strain, no rule yet   with its rule";
        writeln!(text, "  {}", styled(style::FAINT, heading))?;
        for row in self.shown() {
            let [before, after] = [&self.before, &self.after].map(|answers| self.strain(answers, row));
            let is_strained = after > 0.5;
            let color = if is_strained { style::WARNING } else { style::GOOD };
            writeln!(
                text,
                "  {:>3}  {:28}  {} {before:.2}       {} {after:.2}",
                row + 1,
                named(&self.model, &self.answer(row)),
                gauge(before, style::FAINT),
                gauge(after, color),
            )?;
        }
        writeln!(text)?;
        Ok(())
    }

    fn show_accuracy(&self, text: &mut String) -> Result<()> {
        let share = |answer: &dyn Fn(usize) -> bool| {
            let is_right = |&row: &usize| self.is_strained(row) == Some(answer(row));
            percent((0..self.truths.len()).filter(is_right).count() as f64 / self.truths.len() as f64)
        };
        let (right, never) = (share(&|row| self.strain(&self.after, row) > 0.5), share(&|_| false));
        writeln!(
            text,
            "The prediction agrees with the rule's definition of strain in {} of the next day's rows;",
            styled(style::GOOD, right)
        )?;
        writeln!(text, "always answering `no` agrees in {never}.\n")?;
        Ok(())
    }

    /// For each of the most frequent answers, the row in which the strain is most certain; by decreasing strain.
    pub fn shown(&self) -> Vec<usize> {
        let mut rows_of: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for row in 0..self.truths.len() {
            rows_of.entry(self.answer(row)).or_default().push(row);
        }
        let mut kinds: Vec<Vec<usize>> = rows_of.into_values().collect();
        kinds.sort_by_key(|rows| Reverse(rows.len()));
        let sureness = |row: usize| (self.strain(&self.after, row) - 0.5).abs();
        let surest = |rows: Vec<usize>| rows.into_iter().max_by(|&a, &b| sureness(a).total_cmp(&sureness(b)));
        let mut shown: Vec<usize> = kinds.into_iter().take(SHOWN).filter_map(surest).collect();
        shown.sort_by(|&a, &b| self.strain(&self.after, b).total_cmp(&self.strain(&self.after, a)));
        shown
    }

    /// The probability of strain.
    fn strain(&self, answers: &Posteriors, row: usize) -> f64 {
        let label = self.model.find_label(LABEL).expect("it was added");
        answers
            .marginals(row)
            .map_or(f64::NAN, |marginals| marginals[self.model.block(label).start + STRAINED])
    }

    /// The most probable category of each of the other labels.
    fn answer(&self, row: usize) -> Vec<usize> {
        let best = |marginals: &[f64]| {
            self.model
                .label_ids()
                .take(3)
                .map(|label| most_probable(&marginals[self.model.block(label)]))
                .collect()
        };
        self.after.marginals(row).map_or(Vec::new(), best)
    }

    /// Whether the conditions of the strain rule are true in a row.
    fn is_strained(&self, row: usize) -> Option<bool> {
        let rule = self.model.rules().last().and_then(|rule| rule.formula()).expect("it was added");
        let truth: Option<Vec<usize>> = self.truths[row].indices()[..3].iter().copied().collect();
        truth.map(|truth| rule.holds(&Assignment::from_indices([&truth[..], &[STRAINED]].concat())))
    }
}
