//! `POST /api/v1/whatif`: the answer of a model with changed rules. Nothing is stored.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use prsl::{BeliefMatrix, Document, Error, Model, RuleId};

use super::explain::explanation;
use super::predict::row_answers;
use super::types::{RuleEdit, WhatIfRequest, WhatIfResponse};
use crate::batch::{Wanted, answer_rows};
use crate::input::Input;
use crate::problem::Problem;
use crate::served::{Purpose, Served};
use crate::service::Service;
use crate::work::{Lane, Watch};

/// Ask a changed model
///
/// The posterior, the two most probable assignments, and the explanation of a label, with rules that are off or have
/// another probability, or with a whole edited text.
#[utoipa::path(
    post, path = "/api/v1/whatif", tag = "answers", request_body = WhatIfRequest,
    responses(
        (status = 200, description = "The answer of the changed model", body = WhatIfResponse),
        (status = "4XX", description = "The request cannot be answered", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Too many requests; `Retry-After` says when to try again", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn whatif(State(service): State<Service>, input: Input) -> Result<Response, Problem> {
    super::answer(service, Lane::Posted, input, run).await
}

fn run(service: &Service, request: WhatIfRequest, watch: &Watch) -> Result<WhatIfResponse, Problem> {
    let model = model(service, &request)?;
    let (edited, numbers) = edited(&model, &request.rules)?;
    let purpose = if request.label.is_some() { Purpose::Explain } else { Purpose::Predict };
    let limits = service.settings().limits.posted;
    let served = Served::compile_posted(Document::of_model(&edited)?, limits, purpose)?;
    watch.check()?;
    let mut rows = BeliefMatrix::new(served.model());
    rows.push_evidence(&request.beliefs.0)?;
    let best_refused = match served.assignments() {
        Ok(_) => None,
        Err(refused @ Error::TooCostly { .. }) => Some(refused.to_string()),
        Err(error) => return Err(error.into()),
    };
    let wanted = Wanted { marginals: true, best: best_refused.is_none().then_some(2) };
    let answers = answer_rows(service, &served, &rows, wanted, watch)?;
    watch.check()?;
    let answer = answers.iter().flat_map(|answers| row_answers(&served, answers)).next();
    let answer = answer.ok_or_else(Problem::internal)?;
    let conflict = match answer.status {
        "impossible" => served.marginals.infer(&rows.row(0)).err().map(|error| error.to_string()),
        _ => None,
    };
    let label = request.label.as_deref();
    let explained = label.map(|label| explanation(&served, &request.beliefs.0, Some(label))).transpose()?;
    let explanation = explained.map(|mut explanation| {
        for (rule, number) in explanation.rules.iter_mut().zip(numbers) {
            rule.number = number;
        }
        explanation
    });
    let engine = served.marginals.engine().name();
    Ok(WhatIfResponse { engine, answer, conflict, best_refused, explanation })
}

/// The model of a request: one that is served, or its text.
fn model(service: &Service, request: &WhatIfRequest) -> Result<Model, Problem> {
    match (&request.model, &request.text) {
        (Some(name), None) => Ok(service.catalog().find(name)?.model().clone()),
        (None, Some(text)) => Ok(posted(service, text)?.into_model()),
        _ => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Model",
            "give either `model`, a name, or `text`",
        )),
    }
}

/// The model of a text in a request.
pub(crate) fn posted(service: &Service, text: &str) -> Result<Document, Problem> {
    let limit = service.settings().limits.posted.bytes;
    if text.len() > limit {
        return Err(Error::TooLarge { bytes: text.len(), limit }.into());
    }
    Ok(Document::read(text)?)
}

/// The model with changed rules, and the numbers that its rules had before.
fn edited(model: &Model, rules: &BTreeMap<usize, RuleEdit>) -> Result<(Model, Vec<usize>), Error> {
    let mut editing = model.edit();
    for (&number, edit) in rules {
        if number == 0 || number > model.rules().len() {
            return Err(Error::UnknownRule { rule: format!("number {number}"), suggestion: None });
        }
        if let RuleEdit::Probability(probability) = *edit {
            editing = editing.probability_at(RuleId::new(number - 1), probability);
        }
    }
    let is_kept = |number: &usize| !matches!(rules.get(number), Some(RuleEdit::Off(_)));
    let numbers: Vec<usize> = (1..=model.rules().len()).filter(is_kept).collect();
    let edited = editing.retain_rules(|rule| is_kept(&(rule.index() + 1))).build()?;
    Ok((edited, numbers))
}
