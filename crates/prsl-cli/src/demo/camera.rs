//! The last act: the camera breaks.

use std::fmt::Write as _;
use std::path::Path;

use anstyle::Style;
use anyhow::Result;
use prsl::{JunctionTree, LabelId, Model, Truth};

use crate::style::{self, styled};

use super::files::Files;
use super::picture::{activity, gauge, legend, most_probable, percent};
use super::second_act::{SecondAct, accuracy_of_activity, named, read};

/// Predictions of the activity, with the camera and without.
pub struct Camera<'a> {
    model: &'a Model,
    truths: Vec<Truth>,
    /// With the camera, without camera and rules, and without the camera by the rules.
    ways: [Way; 4],
}

impl<'a> Camera<'a> {
    /// Removes the camera, and predicts the test rows without it.
    pub fn set_up(files: &Files, second: &'a SecondAct<'_>) -> Result<Self> {
        let model = &second.learned.model;
        let unplugged =
            |model: &Model| model.edit().unplug("activity").prior("activity", &second.activities[..]).build();
        let ([seen, truth], unseen) = (&files.tomorrow, &files.without_camera);
        let ways = [
            Way::new("camera, learned rules", model, seen, truth)?,
            Way::new("no camera, no rules", &unplugged(&model.without_rules()?)?, unseen, truth)?,
            Way::new("no camera, three rules", &unplugged(&second.base)?, unseen, truth)?,
            // The learned model has a prior of its own, which goes with its rules.
            Way::new("no camera, learned rules", &model.edit().unplug("activity").build()?, unseen, truth)?,
        ];
        let (_, truths) = read(model, seen, truth)?;
        Ok(Camera { model, truths, ways })
    }

    /// The text of this act.
    pub fn show(&self) -> Result<String> {
        let mut text = String::new();
        writeln!(text, "{}\n", styled(style::STRONG, "The camera breaks"))?;
        writeln!(
            text,
            "Nothing is trained again. The camera is removed. The rules infer the activity from the beliefs"
        )?;
        writeln!(
            text,
            "about feet and hands. The learned model has a prior for the activity, which replaces the camera's"
        )?;
        writeln!(text, "belief. The other models take the frequency of each activity:\n")?;
        let unplug = styled(style::NOTE, ".unplug(\"activity\")");
        let prior = styled(style::NOTE, ".prior(\"activity\", frequencies)");
        writeln!(text, "  learned.edit(){unplug}.build()?")?;
        writeln!(text, "  warehouse.edit(){unplug}{prior}.build()?\n")?;
        self.show_ways(&mut text)?;
        Ok(text)
    }

    fn show_ways(&self, text: &mut String) -> Result<()> {
        let row = self.telling_row();
        let truth: Vec<usize> = self.truths[row].indices().iter().copied().flatten().collect();
        let row_heading = format!("row {}, in truth {}", row + 1, named(self.model, &truth));
        let heading = format!("{:26}{:23}{row_heading}", "", "activity right");
        writeln!(text, "  {}", styled(style::FAINT, heading))?;
        let names = self.model.labels()[0].categories();
        for way in &self.ways {
            let share = format!("{} {:>6}", gauge(way.accuracy, way.style()), percent(way.accuracy));
            writeln!(text, "  {:26}{share}      {}", way.name, activity(names, &way.answers[row]))?;
        }
        writeln!(text, "  {:49}{}\n", "", legend(names.iter().map(String::as_str)))?;
        Ok(())
    }

    /// The first row with overhead work that only the prediction without camera and rules gets wrong.
    fn telling_row(&self) -> usize {
        let overhead = self.model.labels()[0].find_category("overhead").map(|category| category.index());
        let is_right =
            |way: &Way, row: usize| self.truths[row].indices()[0] == Some(most_probable(&way.answers[row]));
        let is_telling = |&row: &usize| {
            let [seen, guess, by_experts, by_learned] = &self.ways;
            let rules_tell = [seen, by_experts, by_learned].iter().all(|way| is_right(way, row));
            self.truths[row].indices()[0] == overhead && rules_tell && !is_right(guess, row)
        };
        (0..self.truths.len()).find(is_telling).unwrap_or(0)
    }
}

/// One way of predicting.
struct Way {
    name: &'static str,
    /// The share of rows with the right activity.
    accuracy: f64,
    /// The activity of each row.
    answers: Vec<Vec<f64>>,
}

impl Way {
    fn new(name: &'static str, model: &Model, beliefs: &Path, truth: &Path) -> Result<Way> {
        let (rows, truths) = read(model, beliefs, truth)?;
        let posteriors = JunctionTree::compile(model)?.infer_batch(&rows)?;
        let activity = model.block(LabelId::new(0));
        let answer = |row| posteriors.marginals(row).map_or(Vec::new(), |all| all[activity.clone()].to_vec());
        let accuracy = accuracy_of_activity(model, &rows, &truths)?;
        Ok(Way { name, accuracy, answers: (0..truths.len()).map(answer).collect() })
    }

    /// Highlights good and bad accuracies.
    fn style(&self) -> Style {
        if self.accuracy > 0.6 { style::GOOD } else { style::ERROR }
    }
}
