//! The summary of a run of learning.

use std::fmt::Write as _;
use std::time::Duration;

use prsl::Model;
use prsl::calibrate::Calibrator;
use prsl::learn::{Calibrating, Examples, Learned};

use super::Arguments;
use crate::progress::counted;
use crate::style::{self, styled};
use crate::{output, report};

impl Arguments {
    /// The sizes of data and model, the log-likelihoods, and the rules with the largest gain.
    pub(super) fn summary(
        &self,
        base: &Model,
        learned: &Learned,
        [train, valid]: [&Examples; 2],
        time: Duration,
    ) -> String {
        let mut text = String::new();
        let n_rules = learned.gains.len();
        let needs_none = self.learner().calibrate == Calibrating::Joint && !learned.calibrated;
        let _ = writeln!(
            text,
            "{} from {}, validated on {}, in {:.1} s: {}, {}; size before pruning: {}{}",
            styled(style::NOTE, "learned"),
            counted(train.n_rows() as u64, "row"),
            valid.n_rows(),
            time.as_secs_f64(),
            counted(n_rules as u64, "rule"),
            counted(learned.model.typical().len() as u64, "typical combination"),
            learned.size,
            if needs_none { "; validation was better without calibrators" } else { "" },
        );
        if learned.is_stopped {
            let stopped = styled(style::WARNING, "stopped");
            let _ = writeln!(
                text,
                "{stopped} before all candidates were tried, as requested: this is the best model so far"
            );
        }
        let _ = writeln!(text, "\n  mean joint log-likelihood of the validation rows");
        let mut line = |what: &str, value: f64| {
            let _ = writeln!(text, "    {what:<34} {value:>9.4}");
        };
        line("beliefs alone", learned.beliefs_alone);
        let is_raw = self.learner().calibrate == Calibrating::Given
            && base.labels().iter().all(|label| *label.calibrator() == Calibrator::Identity);
        match (is_raw, base.rules().is_empty()) {
            (true, true) => {}
            (true, false) => line("with your rules", learned.base_alone),
            (false, true) => line("calibrated beliefs", learned.base_alone),
            (false, false) => line("calibrated beliefs, your rules", learned.base_alone),
        }
        line("learned", learned.validation_before_rounding);
        line("learned, rounded as written", learned.validation);
        if n_rules > 0 {
            let _ = writeln!(text, "\n  rules with the largest gain there");
            let first = learned.model.rules().len() - n_rules;
            for (rule, gain) in learned.model.rule_ids().skip(first).zip(&learned.gains).take(10) {
                let _ = writeln!(text, "    {gain:>+8.4}  {}", learned.model.rule_sentence(rule));
                let _ =
                    writeln!(text, "              {}", styled(style::FAINT, learned.model.rule_text(rule)));
            }
        }
        let _ = write!(text, "\nwritten to {}", output::name(&self.output));
        if let Some(folder) = &self.report {
            let _ = write!(text, ", with a report in {}", folder.join(report::PAGE).display());
        }
        text.push('\n');
        text
    }
}
