//! Labels with calibrators, and calibrators that reverse a classifier.

use super::Severity;
use super::report::{Report, decimal};
use crate::calibrator::Calibrator;
use crate::diagnostic::quoted;
use crate::notation::name;

/// Maximum number of labels listed by name. More are only counted.
const MAX_LISTED: usize = 20;

pub(super) fn check(report: &mut Report<'_>) {
    let model = report.model();
    let calibrated: Vec<_> =
        model.label_ids().filter(|&id| *model.calibrator(id) != Calibrator::Identity).collect();
    if calibrated.is_empty() {
        return;
    }
    let named = |&id| format!("{} {}", name(model.label(id).name()), model.calibrator(id).kind());
    let mut listed: Vec<String> = calibrated.iter().take(MAX_LISTED).map(named).collect();
    if calibrated.len() > MAX_LISTED {
        listed.push(format!("and {} more", calibrated.len() - MAX_LISTED));
    }
    report.add(Severity::Note, "calibrators", 0..0, format!("calibrators: {}", listed.join(", ")));
    for id in calibrated {
        if let &Calibrator::Platt { slope, .. } = model.calibrator(id)
            && slope <= 0.0
        {
            let (label, slope) = (model.label(id).name(), decimal(slope));
            let message = format!(
                "label {label} is calibrated with slope {slope}, against its classifier",
                label = quoted(label)
            );
            report
                .add(Severity::Note, "falling-calibrator", report.document().label_span(id), message)
                .help =
                Some("if that is not meant, check the order of the categories in the data".to_owned());
        }
    }
}
