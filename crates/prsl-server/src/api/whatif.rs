//! `POST /api/v1/whatif`: the answer of a model with changed rules. Nothing is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use prsl::{BeliefMatrix, Document, Error, Model, RuleId};

use super::beliefs::Beliefs;
use super::explain::explanation;
use super::predict::{check_size, row_answers};
use super::types::{RowAnswer, RuleEdit, WhatIfRequest, WhatIfResponse};
use crate::batch::{Wanted, answer_rows};
use crate::input::Input;
use crate::posted::Question;
use crate::problem::Problem;
use crate::served::{Purpose, Served, Trust, check_work};
use crate::service::Service;
use crate::work::{Lane, Watch};

/// Ask a changed model
///
/// The posterior, the two most probable assignments, and the explanation of a label, with rules that are off or have
/// another probability, or with a whole edited text. On request also what would change the answer, what should be asked
/// next, and the posterior of further rows.
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
    let (served, numbers) = changed(service, &request)?;
    watch.check()?;
    let best_refused = match served.assignments() {
        Ok(_) => None,
        Err(refused @ Error::TooCostly { .. }) => Some(refused.to_string()),
        Err(error) => return Err(error.into()),
    };
    let wanted = Wanted { marginals: true, best: best_refused.is_none().then_some(2) };
    let asked = std::slice::from_ref(&request.beliefs);
    let answer = answered(service, &served, asked, wanted, watch)?.pop().ok_or_else(Problem::internal)?;
    let evidence = &request.beliefs.0;
    let conflict = match answer.status {
        "impossible" => served.marginals.infer(evidence).err().map(|error| error.to_string()),
        _ => None,
    };
    watch.check()?;
    let label = request.label.as_deref();
    let is_explained = request.explain || label.is_some();
    let shown = label.filter(|_| !request.explain);
    let mut explanation = is_explained.then(|| explanation(&served, evidence, shown)).transpose()?;
    let rules = explanation.iter_mut().flat_map(|explanation| &mut explanation.rules);
    rules.zip(numbers).for_each(|(rule, number)| rule.number = number);
    watch.check()?;
    let about = label.map(|label| served.model().find_label(label)).transpose()?;
    let flip = match (about, &request.flip) {
        (_, None) => None,
        (Some(label), Some(category)) => {
            let category = served.model().find_category(label, category)?;
            Some(served.marginals.counterfactuals(evidence, label, category)?)
        }
        (None, Some(_)) => {
            let detail = "`flip` is a category of `label`, which is not given";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "Flip", detail));
        }
    };
    let next = request.next.then(|| served.marginals.information_gains(evidence, about)).transpose()?;
    watch.check()?;
    let wanted = Wanted { marginals: true, best: None };
    let rows = answered(service, &served, &request.rows, wanted, watch)?;
    service.posted().trim();
    let engine = served.marginals.engine().name();
    Ok(WhatIfResponse { engine, answer, conflict, best_refused, explanation, flip, next, rows })
}

/// The model of a request with its changed rules, compiled, and the numbers that its rules had before.
fn changed(service: &Service, request: &WhatIfRequest) -> Result<(Arc<Served>, Vec<usize>), Problem> {
    let n_rows = request.rows.len();
    if let (Some(name), None, true) = (&request.model, &request.text, request.rules.is_empty()) {
        // It is compiled already.
        let served = service.catalog().find(name)?;
        check_size(service, &served, n_rows, 1)?;
        let n_rules = served.model().rules().len();
        return Ok((served, (1..=n_rules).collect()));
    }
    let limits = service.settings().limits.posted;
    let question = Question { text: text(service, request)?, rules: request.rules.clone() };
    let (served, is_kept) = service.posted().find(question, |question| {
        let model = Document::read(&question.text)?.into_model();
        let document = Document::of_model(&edited(&model, &question.rules)?)?;
        Served::compile("posted", document, Trust::Request(limits))
    })?;
    service.metrics().count_posted(is_kept);
    // The numbers of the rules that are not off.
    let numbers = (1..).filter(|number| is_kept_rule(&request.rules, *number));
    let numbers = numbers.take(served.model().rules().len()).collect();
    let is_explained = request.label.is_some() || request.explain || request.next;
    served.check_purpose(limits, if is_explained { Purpose::Explain } else { Purpose::Predict })?;
    check_work(served.marginals.work() * n_rows as f64, limits)?;
    check_size(service, &served, n_rows, 1)?;
    Ok((served, numbers))
}

/// The answers to rows of beliefs.
fn answered(
    service: &Service,
    served: &Served,
    rows: &[Beliefs],
    wanted: Wanted,
    watch: &Watch,
) -> Result<Vec<RowAnswer>, Problem> {
    let mut matrix = BeliefMatrix::new(served.model());
    for Beliefs(evidence) in rows {
        matrix.push_evidence(evidence)?;
    }
    let answers = answer_rows(service, served, &matrix, wanted, watch)?;
    Ok(answers.iter().flat_map(|answers| row_answers(served, answers)).collect())
}

/// The text of the model of a request: of one that is served, or its own.
fn text(service: &Service, request: &WhatIfRequest) -> Result<String, Problem> {
    match (&request.model, &request.text) {
        (Some(name), None) => Ok(service.catalog().find(name)?.document.source().to_owned()),
        (None, Some(text)) => check_bytes(service, text).map(|()| text.clone()),
        _ => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Model",
            "give either `model`, a name, or `text`",
        )),
    }
}

/// The model of a text in a request.
pub(crate) fn posted(service: &Service, text: &str) -> Result<Document, Problem> {
    check_bytes(service, text)?;
    Ok(Document::read(text)?)
}

/// Returns an error if a text is larger than that of a model in a request may be.
fn check_bytes(service: &Service, text: &str) -> Result<(), Problem> {
    let limit = service.settings().limits.posted.bytes;
    if text.len() > limit {
        return Err(Error::TooLarge { bytes: text.len(), limit }.into());
    }
    Ok(())
}

/// Whether the rule of this number is not off.
fn is_kept_rule(rules: &BTreeMap<usize, RuleEdit>, number: usize) -> bool {
    !matches!(rules.get(&number), Some(RuleEdit::Off(_)))
}

/// The model with changed rules.
fn edited(model: &Model, rules: &BTreeMap<usize, RuleEdit>) -> Result<Model, Error> {
    let mut editing = model.edit();
    for (&number, edit) in rules {
        if number == 0 || number > model.rules().len() {
            return Err(Error::UnknownRule { rule: format!("number {number}"), suggestion: None });
        }
        if let RuleEdit::Probability(probability) = *edit {
            editing = editing.probability_at(RuleId::new(number - 1), probability);
        }
    }
    editing.retain_rules(|rule| is_kept_rule(rules, rule.index() + 1)).build()
}
