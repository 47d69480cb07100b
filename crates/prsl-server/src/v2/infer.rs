//! `POST /v2/models/{model}/infer`.

use std::collections::HashSet;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use prsl::{BeliefMatrix, Error, LabelId, Normalize};

use super::marginal_name;
use super::tensor::{InferRequest, InferResponse, OutputData, OutputParameters, OutputTensor};
use crate::api::predict::check_size;
use crate::api::{json, written};
use crate::batch::{Answers, Wanted, answer_rows};
use crate::input::Input;
use crate::problem::Problem;
use crate::served::Served;
use crate::service::Service;
use crate::work::{Lane, Watch};

/// The length of the JSON before binary tensors.
const JSON_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// Infer rows
///
/// One FP64 tensor `[rows, categories]` for each label, flat and row by row. A label without a tensor takes its prior;
/// null (in binary NaN) is a missing number.
#[utoipa::path(
    post, path = "/v2/models/{model}/infer", tag = "open inference protocol", request_body = InferRequest,
    params(
        ("model" = String, Path, description = "The name of the model"),
        ("Inference-Header-Content-Length" = Option<usize>, Header, description = "Bytes of the JSON, if binary tensors follow"),
    ),
    responses(
        (status = 200, description = "The outputs", body = InferResponse),
        (status = "4XX", description = "The request cannot be answered", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Too many requests; `Retry-After` says when to try again", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn infer(
    State(service): State<Service>,
    Path(model): Path<String>,
    input: Input,
) -> Result<Response, Problem> {
    let served = service.catalog().find(&model)?;
    let shared = service.clone();
    let job = move |watch: &Watch| {
        let (json, mut binary) = split(&input)?;
        let mut request: InferRequest = serde_json::from_slice(json)?;
        let rows = beliefs(&shared, &served, &mut request, &mut binary)?;
        let outputs = Outputs::of(&served, &request)?;
        let answers = answer_rows(&shared, &served, &rows, outputs.wanted(), watch)?;
        outputs.write(&served, request.id, &answers, rows.n_rows())
    };
    let (body, length) = service.workers().run(Lane::Served, job).await?;
    let mut response = json(body);
    if let Some(length) = length {
        let headers: &mut HeaderMap = response.headers_mut();
        headers.insert(JSON_LENGTH, HeaderValue::from(length));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    }
    Ok(response)
}

/// The JSON of a body, and the binary tensors after it.
fn split(input: &Input) -> Result<(&[u8], &[u8]), Problem> {
    let Some(given) = input.headers.get(JSON_LENGTH) else { return Ok((&input.body, &[])) };
    let length = given.to_str().ok().and_then(|given| given.parse::<usize>().ok());
    length.and_then(|length| input.body.split_at_checked(length)).ok_or_else(|| {
        let detail = format!(
            "`Inference-Header-Content-Length` must be a number up to {}, the size of the body",
            input.body.len()
        );
        Problem::new(StatusCode::BAD_REQUEST, "Tensor", detail)
    })
}

/// The beliefs of all inputs.
fn beliefs(
    service: &Service,
    served: &Served,
    request: &mut InferRequest,
    binary: &mut &[u8],
) -> Result<BeliefMatrix, Problem> {
    let model = served.model();
    let mut tensors: Vec<(LabelId, Vec<f64>)> = Vec::new();
    let mut n_rows = None;
    for input in &mut request.inputs {
        let label = model.find_label(&input.name)?;
        if model.label(label).classifier().is_none() {
            return Err(Error::Latent { label: input.name.clone() }.into());
        }
        if tensors.iter().any(|(other, _)| *other == label) {
            return Err(Error::GivenTwice { label: input.name.clone() }.into());
        }
        let n_categories = model.label(label).n_categories();
        if !matches!(input.datatype.as_str(), "FP64" | "FP32") {
            return Err(input.wrong("is neither FP64 nor FP32"));
        }
        let rows = match input.shape[..] {
            [rows, columns] if columns == n_categories as u64 => rows,
            _ => {
                return Err(
                    input.wrong(&format!("has shape {:?}, expected [rows, {n_categories}]", input.shape))
                );
            }
        };
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        check_size(service, served, rows, 1)?;
        if *n_rows.get_or_insert(rows) != rows {
            return Err(
                input.wrong(&format!("has {rows} rows, and the ones before have {}", n_rows.unwrap_or(0)))
            );
        }
        let numbers = input.take_numbers(binary)?;
        if numbers.len() != rows * n_categories {
            return Err(input.wrong(&format!(
                "has {} numbers, expected {}",
                numbers.len(),
                rows * n_categories
            )));
        }
        tensors.push((label, numbers));
    }
    let mut cells = vec![None; model.n_categories()];
    let mut matrix = BeliefMatrix::new(model);
    // Without any input, the answer is one row of priors.
    for row in 0..n_rows.unwrap_or(1) {
        for (label, numbers) in &tensors {
            let n = model.label(*label).n_categories();
            let given = numbers[row * n..][..n].iter().map(|&x| (!x.is_nan()).then_some(x));
            cells[model.block(*label)].iter_mut().zip(given).for_each(|(cell, given)| *cell = given);
        }
        matrix.push(&cells, Normalize::Never).map_err(|error| Problem::from(error).in_row(row + 1))?;
    }
    Ok(matrix)
}

/// An output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Marginal(LabelId),
    Mpe,
    LogEvidence,
    Status,
    Engine,
}

/// The outputs that a request wants, with their names, and whether they are binary.
struct Outputs {
    list: Vec<(Kind, String, bool)>,
}

impl Outputs {
    fn of(served: &Served, request: &InferRequest) -> Result<Self, Problem> {
        let model = served.model();
        let marginals = model.label_ids().zip(model.labels());
        let marginals = marginals.map(|(id, label)| (Kind::Marginal(id), marginal_name(label.name())));
        let others = [
            (Kind::Mpe, "mpe"),
            (Kind::LogEvidence, "log_evidence"),
            (Kind::Status, "status"),
            (Kind::Engine, "engine"),
        ];
        let all = marginals.chain(others.map(|(kind, name)| (kind, name.to_owned())));
        let by_default = request.parameters.binary_data_output.unwrap_or(false);
        let Some(wanted) = &request.outputs else {
            return Ok(Self { list: all.map(|(kind, name)| (kind, name, by_default)).collect() });
        };
        let all: Vec<(Kind, String)> = all.collect();
        let mut seen = HashSet::new();
        let mut list = Vec::new();
        for output in wanted {
            let known = all.iter().find(|(_, name)| *name == output.name);
            let Some((kind, name)) = known.filter(|_| seen.insert(&output.name)) else {
                let name: String = output.name.chars().take(100).collect();
                let detail = format!(
                    "output `{name}` is unknown, or wanted twice; there are `marginal.LABEL`, `mpe`, `log_evidence`, `status` and `engine`"
                );
                return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "Tensor", detail));
            };
            list.push((*kind, name.clone(), output.parameters.binary_data.unwrap_or(by_default)));
        }
        Ok(Self { list })
    }

    fn wanted(&self) -> Wanted {
        let mpe = self.list.iter().any(|(kind, ..)| *kind == Kind::Mpe);
        Wanted { marginals: true, best: mpe.then_some(1) }
    }

    /// The body of the answer, and the length of its JSON if binary tensors follow.
    fn write(
        &self,
        served: &Served,
        id: Option<String>,
        answers: &[Answers],
        n_rows: usize,
    ) -> Result<(Vec<u8>, Option<usize>), Problem> {
        let mut binary = Vec::new();
        let mut outputs = Vec::new();
        for (kind, name, is_binary) in &self.list {
            let (columns, data) = data(served, *kind, answers);
            let datatype = data.datatype();
            let start = binary.len();
            if *is_binary {
                data.write_binary(&mut binary);
            }
            let binary_data_size = binary.len() - start;
            outputs.push(OutputTensor {
                name: name.clone(),
                shape: std::iter::once(n_rows).chain(columns).collect(),
                datatype,
                parameters: is_binary.then_some(OutputParameters { binary_data_size }),
                data: (!is_binary).then_some(data),
            });
        }
        let any_binary = self.list.iter().any(|(.., is_binary)| *is_binary);
        let (model_name, model_version) = (served.name.clone(), served.version.clone());
        let mut body = written(&InferResponse { model_name, model_version, id, outputs })?;
        let length = any_binary.then_some(body.len());
        body.append(&mut binary);
        Ok((body, length))
    }
}

/// The data of an output, and its number of columns if it has any.
fn data(served: &Served, kind: Kind, answers: &[Answers]) -> (Option<usize>, OutputData) {
    let model = served.model();
    let rows = || answers.iter().flat_map(|chunk| (0..chunk.n_rows).map(move |row| (chunk, row)));
    let texts = |text: &dyn Fn(&Answers, usize) -> String| {
        OutputData::Texts(rows().map(|(chunk, row)| text(chunk, row)).collect())
    };
    match kind {
        Kind::Marginal(label) => {
            let (block, n) = (model.block(label), model.label(label).n_categories());
            let mut numbers = Vec::new();
            for (chunk, row) in rows() {
                match chunk.posteriors.as_ref().and_then(|posteriors| posteriors.marginals(row)) {
                    Some(marginals) => numbers.extend_from_slice(&marginals[block.clone()]),
                    None => numbers.extend(std::iter::repeat_n(f64::NAN, n)),
                }
            }
            (Some(n), OutputData::Numbers(numbers))
        }
        Kind::LogEvidence => {
            let log_evidence = |(chunk, row): (&Answers, usize)| {
                chunk.posteriors.as_ref().map_or(f64::NAN, |posteriors| posteriors.log_evidence(row))
            };
            (None, OutputData::Numbers(rows().map(log_evidence).collect()))
        }
        Kind::Mpe => {
            let mut names = Vec::new();
            for (chunk, row) in rows() {
                let best = chunk.best.as_ref().and_then(|best| best[row].first());
                match best {
                    Some(best) => {
                        let labels = model.labels().iter().zip(best.assignment.categories());
                        names.extend(labels.map(|(label, category)| label.category(category).to_owned()));
                    }
                    None => names.extend(std::iter::repeat_n(String::new(), model.labels().len())),
                }
            }
            (Some(model.labels().len()), OutputData::Texts(names))
        }
        Kind::Status => (None, texts(&|chunk, row| chunk.status(row).name().to_owned())),
        Kind::Engine => (None, texts(&|_, _| served.marginals.engine().name().to_owned())),
    }
}
