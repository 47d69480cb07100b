//! Messages on standard error about a run: its summary, and rows whose answer may be wrong.

use std::process::ExitCode;

use prsl::Status;

use super::bad_rows::INVALID;
use super::{Arguments, EngineKind, FailOn, Summary};
use crate::failure::FAILED_ROWS;
use crate::progress::{counted, grouped};
use crate::style::{self, shell, styled};
use crate::table::Query;
use crate::{labeled, output};

impl Arguments {
    /// The reason for approximate marginals, empty if loopy propagation was asked for; `None` if they are exact.
    pub(super) fn approximation(&self, query: &Query) -> Option<String> {
        let Query::Beliefs(beliefs) = query else { return None };
        let marginals = beliefs.marginals.as_ref().filter(|it| it.engine() == prsl::Engine::Loopy)?;
        let reason = marginals.reason().trim_start_matches("loopy: ");
        Some(if self.engine == EngineKind::Auto { format!(", because {reason}") } else { String::new() })
    }

    /// Notes once how many rows were approximated.
    pub(super) fn tell_approximation(&self, summary: &Summary, reason: Option<&str>) {
        let Some(reason) = reason.filter(|_| summary.rows > 0) else { return };
        let note = styled(style::NOTE, "note");
        let (rows, are) = (counted(summary.rows, "row"), if summary.rows == 1 { "was" } else { "were" });
        let advice = if self.verify.is_none() { "; `--verify 20` estimates the error" } else { "" };
        output::complain(&format!(
            "{note}: {rows} {are} approximated by loopy propagation{reason}{advice}\n"
        ));
    }

    /// Prints what is to be known about the rows, and last a summary in one line.
    pub(super) fn tell(&self, summary: &Summary) {
        let rows = counted(summary.rows, "row");
        if !self.marks() {
            let n_read = summary.rows + summary.bad_rows;
            labeled::tell_skipped(summary.bad_rows, n_read, summary.first_problem.as_deref());
        }
        self.tell_doubts(summary, &rows);
        if let Some(first) = summary.first_impossible {
            let n = summary.not_ok.get(&Status::Impossible).copied().unwrap_or(0);
            let (impossible, are) = (grouped(n), if n == 1 { "is" } else { "are" });
            let (model, beliefs) = (shell(&self.question.model), shell(self.question.beliefs()));
            let options = self.question.tables.as_typed();
            let why = format!("prsl explain {model} {beliefs} --row {first}{options}");
            let heading = styled(style::WARNING, format_args!("{impossible} of {rows} {are} impossible"));
            output::complain(&format!(
                "{heading} under the hard rules; `{}` says why\n",
                styled(style::STRONG, why)
            ));
        }
        if let Some(note) = &summary.note {
            output::complain(&format!("{}: {note}\n", styled(style::NOTE, "note")));
        }
        output::complain(&(styled(style::FAINT, self.summary(summary)) + "\n"));
    }

    /// `4 rows written to answers.csv: 3 ok, 1 impossible`, or only `4 rows answered` if all are ok.
    fn summary(&self, summary: &Summary) -> String {
        let n_invalid = if self.marks() { summary.bad_rows } else { 0 };
        let rows = counted(summary.rows + n_invalid, "row");
        let done = match self.output.as_deref().filter(|path| path.as_os_str() != "-") {
            Some(path) => format!("{rows} written to {}", path.display()),
            None => format!("{rows} answered"),
        };
        if summary.not_ok.is_empty() && n_invalid == 0 {
            return done;
        }
        let n_ok = summary.rows - summary.not_ok.values().sum::<u64>();
        let ok = [(Status::Ok, n_ok)];
        let all = ok.iter().filter(|(_, n)| *n > 0).map(|(status, n)| (status, n)).chain(&summary.not_ok);
        let all = all.map(|(status, n)| (status.name(), *n)).chain([(INVALID, n_invalid)]);
        let counts: Vec<String> =
            all.filter(|(_, n)| *n > 0).map(|(status, n)| format!("{} {status}", grouped(n))).collect();
        format!("{done}: {}", counts.join(", "))
    }

    /// The exit code: that of `--fail-on`, if a row has one of its statuses.
    pub(super) fn exit_code(&self, summary: &Summary) -> ExitCode {
        let is_named = |status: &Status| self.fail_on.iter().any(|it| it.status() == Some(*status));
        let failed = summary.not_ok.iter().filter(|(status, _)| is_named(status));
        let n_invalid = if self.fail_on.contains(&FailOn::Invalid) { summary.bad_rows } else { 0 };
        let failed = failed.map(|(status, n)| (status.name(), *n)).chain([(INVALID, n_invalid)]);
        let failed = failed.filter(|(_, n)| *n > 0);
        let failed: Vec<String> = failed.map(|(status, n)| format!("{} `{status}`", grouped(n))).collect();
        if failed.is_empty() {
            return ExitCode::SUCCESS;
        }
        let (error, failed) = (styled(style::ERROR, "error"), failed.join(", "));
        output::complain(&format!("{error}: rows with a status that `--fail-on` names: {failed}\n"));
        ExitCode::from(FAILED_ROWS)
    }

    /// Notes about rows whose answer may not be the best.
    fn tell_doubts(&self, summary: &Summary, rows: &str) {
        let not_proven = if self.engine == EngineKind::Loopy {
            "got an assignment that is not proven to be the best; `--engine exact` looks for a proof"
        } else {
            "got an assignment that is not proven to be the best; `--time-limit 60`, for example, lets the search go on"
        };
        let doubts = [
            (Status::NotConverged, "did not converge; more `--max-sweeps` or `--damping 0.5` may help"),
            (Status::Imprecise, "lost digits to rounding; a larger `--memory` avoids that"),
            (Status::NotProven, not_proven),
            (
                Status::TimeLimit,
                "got an assignment that is not proven to be the best, since the time limit ended the search: another run may \
                 find another",
            ),
            (
                Status::NotFound,
                "got no assignment: neither a possible one nor a proof that there is none was found",
            ),
        ];
        for (status, what) in doubts {
            if let Some(&n) = summary.not_ok.get(&status) {
                let heading = styled(style::WARNING, format_args!("{} of {rows}", grouped(n)));
                output::complain(&format!("{heading} {what}\n"));
            }
        }
    }
}
