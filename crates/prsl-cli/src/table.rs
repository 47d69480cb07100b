//! Predictions as columns of a table.

use std::collections::HashSet;

use prsl::infer::{AssignmentEngine, LogEvidence, MarginalEngine};
use prsl::infer::{RankedAssignments, Sampler, Samples, Sampling, SearchEnd, Stopped};
use prsl::{Assignment, BeliefMatrix, Engine, Label, LabelId, Model, MostProbable, Posteriors, Status};
use prsl_data::{Column, ColumnKind, ColumnSpec};

/// Some rows of the table.
pub struct Answers {
    /// The values, column by column.
    pub columns: Vec<Column>,
    /// The row of beliefs of each line, from 0.
    pub rows: Vec<usize>,
    /// The status of each row of beliefs.
    pub status: Vec<Status>,
    /// The marginals behind the table, if requested.
    pub posteriors: Option<Posteriors>,
    /// The assignments behind the table, if requested.
    pub best: Option<Vec<RankedAssignments>>,
}

/// A query with its compiled engines.
pub enum Query {
    /// Marginals, most probable assignments, or both.
    Beliefs(Box<Beliefs>),
    /// Joint samples.
    Samples(Box<Sampler>, Sampling),
}

/// Queries for marginals, most probable assignments, or both.
pub struct Beliefs {
    /// The model.
    pub model: Model,
    /// For marginals.
    pub marginals: Option<MarginalEngine>,
    /// For assignments.
    pub best: Option<AssignmentEngine>,
    /// For ln Z, if assignments need it and the marginals do not provide it.
    pub log_evidence: Option<LogEvidence>,
    /// The number of assignments per row, each in its own line.
    pub top: Option<usize>,
}

impl Query {
    /// The columns of the table, after columns that identify the rows. With `marks`, the last one says what is wrong with a
    /// row.
    pub fn columns(&self, ids: &[ColumnSpec], marks: bool) -> Vec<ColumnSpec> {
        let mut names = match self {
            Query::Beliefs(beliefs) => beliefs.columns(ids),
            Query::Samples(sampler, _) => sample_columns(sampler.model(), ids),
        };
        if marks {
            names.add_ours("problem", ColumnKind::Text);
        }
        names.columns
    }

    /// Whether its lines begin with the number of their row.
    pub fn has_row_numbers(&self) -> bool {
        match self {
            Query::Beliefs(beliefs) => beliefs.top.is_some(),
            Query::Samples(..) => true,
        }
    }

    /// The first columns of the marginals and of the assignments, among those of the query itself.
    pub fn starts(&self) -> [Option<usize>; 2] {
        match self {
            Query::Beliefs(beliefs) => {
                let start = if beliefs.top.is_some() { 2 } else { 0 };
                let n_marginals = beliefs.marginals.as_ref().map_or(0, |_| beliefs.model.n_categories());
                [
                    beliefs.marginals.as_ref().map(|_| start),
                    beliefs.best.as_ref().map(|_| start + n_marginals),
                ]
            }
            Query::Samples(..) => [None, Some(2)],
        }
    }

    /// The lines of the table for some rows of beliefs. `first_row` is the position of the first one among all valid rows,
    /// from 0, and `numbers` has their numbers in the table, from 1.
    pub fn answer(&self, rows: &BeliefMatrix, first_row: u64, numbers: &[u64]) -> anyhow::Result<Answers> {
        match self {
            Query::Beliefs(beliefs) => Ok(beliefs.answer(rows, numbers)?),
            Query::Samples(sampler, sampling) => {
                draw(sampler, Sampling { first_row, ..*sampling }, rows, numbers)
            }
        }
    }

    /// Approximate number of multiplications per row.
    pub fn work(&self) -> f64 {
        match self {
            Query::Beliefs(beliefs) => beliefs.work(),
            Query::Samples(sampler, sampling) => {
                1e5 + (sampling.n_samples * sampler.model().labels().len() * 100) as f64
            }
        }
    }

    /// The engines and the reasons, one line each.
    pub fn reasons(&self) -> Vec<(&'static str, String)> {
        match self {
            Query::Beliefs(beliefs) => {
                let marginals = beliefs.marginals.iter().map(|it| ("marginals", it.reason().to_owned()));
                let best = beliefs.best.iter().map(|it| ("mpe", it.reason().to_owned()));
                let log_evidence =
                    beliefs.log_evidence.iter().map(|it| ("log_probability", it.reason().to_owned()));
                marginals.chain(best).chain(log_evidence).collect()
            }
            Query::Samples(sampler, _) => {
                let reason = match sampler.engine() {
                    Engine::Gibbs => "gibbs: exact samples take more than the memory limit",
                    _ => "junction tree: fits the memory limit",
                };
                vec![("samples", reason.to_owned())]
            }
        }
    }
}

/// A line of the table: a row of beliefs, and one of its assignments.
struct Line<'a> {
    row: usize,
    rank: usize,
    best: Option<&'a MostProbable>,
    /// The status of the assignment.
    status: Status,
}

impl Beliefs {
    fn is_loopy(&self) -> bool {
        self.marginals.as_ref().is_some_and(|engine| engine.engine() == Engine::Loopy)
    }

    fn work(&self) -> f64 {
        let marginals = self.marginals.as_ref().map_or(0.0, MarginalEngine::work);
        let log_evidence = self.log_evidence.as_ref().map_or(0.0, LogEvidence::work);
        let best = self.best.as_ref().map_or(0.0, AssignmentEngine::work);
        marginals + log_evidence + best * self.top.unwrap_or(1) as f64
    }

    /// The names of the columns of a label's marginals and most probable assignment.
    fn label_columns(&self) -> (Vec<String>, Vec<String>) {
        let labels = self.model.labels();
        let category = |label: &Label| -> Vec<String> {
            label.categories().iter().map(|category| format!("{}={category}", label.name())).collect()
        };
        let marginals: Vec<String> = match &self.marginals {
            Some(_) => labels.iter().flat_map(category).collect(),
            None => Vec::new(),
        };
        let prefix = if self.marginals.is_some() { "mpe:" } else { "" };
        let best = match &self.best {
            Some(_) => labels.iter().map(|label| format!("{prefix}{}", label.name())).collect(),
            None => Vec::new(),
        };
        (marginals, best)
    }

    fn columns(&self, ids: &[ColumnSpec]) -> Names {
        use ColumnKind::{Boolean, Integer, Number, Text};
        let (marginals, best) = self.label_columns();
        // Columns of labels keep their names.
        let mut names = Names::new(if marginals.is_empty() { &best } else { &marginals }, ids);
        if self.top.is_some() {
            ["row", "rank"].into_iter().for_each(|name| names.add_ours(name, Integer));
        }
        let both = !marginals.is_empty();
        marginals.into_iter().for_each(|name| names.add(name, Number));
        for name in best {
            if both { names.add_ours(&name, Text) } else { names.add(name, Text) }
        }
        let is_loopy = self.is_loopy();
        let log_evidence = if is_loopy { "log_evidence_bethe" } else { "log_evidence" };
        let closing = [
            (self.marginals.is_some(), log_evidence, Number),
            (is_loopy, "sweeps", Integer),
            (is_loopy, "residual", Number),
            (self.best.is_some(), "log_weight", Number),
            (self.best.is_some(), "log_probability", Number),
            (self.best.is_some(), "optimal", Boolean),
            (self.best.is_some(), "gap", Number),
            (true, "engine", Text),
            (self.marginals.is_some() && self.best.is_some(), "mpe_engine", Text),
            (true, "status", Text),
        ];
        for (_, name, kind) in closing.into_iter().filter(|(wanted, ..)| *wanted) {
            names.add_ours(name, kind);
        }
        names
    }

    fn answer(&self, rows: &BeliefMatrix, numbers: &[u64]) -> prsl::Result<Answers> {
        let posteriors = self.marginals.as_ref().map(|engine| engine.infer_batch(rows)).transpose()?;
        let best = self.best.as_ref().map(|engine| engine.top_batch(rows, self.top.unwrap_or(1)));
        let best = best.transpose()?;
        let log_evidence = match &self.log_evidence {
            Some(engine) => engine.infer_batch(rows)?,
            None => None,
        };
        let row_status = |row: usize| {
            let marginals = posteriors.as_ref().map_or(Status::Ok, |it| it.status(row));
            let best = best.as_ref().map_or(Status::Ok, |it| it[row].status(0));
            marginals.max(best)
        };
        let status: Vec<Status> = (0..rows.n_rows()).map(row_status).collect();
        let lines = lines(rows.n_rows(), best.as_deref(), self.top.unwrap_or(1));
        let mut columns = Vec::new();
        if self.top.is_some() {
            columns.push(integers(&lines, |line| Some(numbers[line.row] as i64)));
            columns.push(integers(&lines, |line| line.best.map(|_| line.rank as i64)));
        }
        if let Some(posteriors) = &posteriors {
            columns.extend(self.marginal_columns(posteriors, &lines));
        }
        if best.is_some() {
            columns.extend(self.category_columns(&lines));
        }
        if let Some(posteriors) = &posteriors {
            columns.extend(self.evidence_columns(posteriors, &lines));
        }
        if best.is_some() {
            let exact = log_evidence.as_ref().or(posteriors.as_ref().filter(|_| !self.is_loopy()));
            columns.extend(weight_columns(&lines, exact));
        }
        columns.extend(self.engine_columns(&lines));
        columns.push(texts(&lines, |line| {
            // The marginals of a row are repeated in all its lines, each with its own assignment.
            let marginals = posteriors.as_ref().map_or(Status::Ok, |it| it.status(line.row));
            Some(marginals.max(line.status).name().to_owned())
        }));
        let rows = lines.iter().map(|line| line.row).collect();
        Ok(Answers { columns, rows, status, posteriors, best })
    }

    fn marginal_columns(&self, posteriors: &Posteriors, lines: &[Line<'_>]) -> Vec<Column> {
        let marginal = |index: usize| {
            numbers(lines, |line| posteriors.marginals(line.row).map(|marginals| marginals[index]))
        };
        (0..self.model.n_categories()).map(marginal).collect()
    }

    fn category_columns(&self, lines: &[Line<'_>]) -> Vec<Column> {
        let category = |(id, label): (LabelId, &Label)| {
            let name = |best: &MostProbable| label.category(best.assignment.category(id)).to_owned();
            texts(lines, |line| line.best.map(name))
        };
        self.model.label_ids().zip(self.model.labels()).map(category).collect()
    }

    fn evidence_columns(&self, posteriors: &Posteriors, lines: &[Line<'_>]) -> Vec<Column> {
        let possible = |line: &Line<'_>| posteriors.is_possible(line.row);
        let mut columns =
            vec![numbers(lines, |line| possible(line).then(|| posteriors.log_evidence(line.row)))];
        if self.is_loopy() {
            let stopped = |line: &Line<'_>| possible(line).then(|| posteriors.stopped(line.row));
            columns.push(integers(lines, |line| stopped(line).map(|stopped| stopped.sweeps() as i64)));
            columns.push(numbers(lines, |line| stopped(line).map(Stopped::residual)));
        }
        columns
    }

    fn engine_columns(&self, lines: &[Line<'_>]) -> Vec<Column> {
        let marginals = self.marginals.iter().map(|engine| {
            let name = engine.engine().name();
            texts(lines, |_| Some(name.to_owned()))
        });
        let best = self.best.iter().map(|engine| {
            let name = |line: &Line<'_>| line.best.map_or(engine.engine(), |best| best.engine).name();
            texts(lines, |line| Some(name(line).to_owned()))
        });
        marginals.chain(best).collect()
    }
}

/// One line for each assignment, one for each row without any, and one if the search ended before it had found
/// as many as requested.
fn lines(n_rows: usize, best: Option<&[RankedAssignments]>, n: usize) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for row in 0..n_rows {
        let Some(found) = best.map(|best| &best[row]) else {
            lines.push(Line { row, rank: 1, best: None, status: Status::Ok });
            continue;
        };
        let line =
            |rank: usize| Line { row, rank: rank + 1, best: found.get(rank), status: found.status(rank) };
        lines.extend((0..found.len()).map(line));
        let has_more = found.len() < n && matches!(found.end(), SearchEnd::WorkLimit | SearchEnd::TimeLimit);
        if found.is_empty() || has_more {
            lines.push(line(found.len()));
        }
    }
    lines
}

/// `log_weight`, `log_probability`, `optimal` and `gap`.
fn weight_columns(lines: &[Line<'_>], exact: Option<&Posteriors>) -> [Column; 4] {
    let log_weight = |line: &Line<'_>| finite(line.best?.log_weight);
    let log_probability = |line: &Line<'_>| {
        let exact = exact.filter(|it| !matches!(it.stopped(line.row), Stopped::Imprecise { .. }))?;
        // Rounding may give a probability slightly above 1.
        Some((log_weight(line)? - finite(exact.log_evidence(line.row))?).min(0.0))
    };
    let optimal = |line: &Line<'_>| line.best.map(MostProbable::is_optimal);
    [
        numbers(lines, log_weight),
        numbers(lines, log_probability),
        Column::Boolean(lines.iter().map(optimal).collect()),
        numbers(lines, |line| finite(line.best?.gap?)),
    ]
}

fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

fn numbers(lines: &[Line<'_>], value: impl Fn(&Line<'_>) -> Option<f64>) -> Column {
    Column::Number(lines.iter().map(value).collect())
}

fn integers(lines: &[Line<'_>], value: impl Fn(&Line<'_>) -> Option<i64>) -> Column {
    Column::Integer(lines.iter().map(value).collect())
}

fn texts(lines: &[Line<'_>], value: impl Fn(&Line<'_>) -> Option<String>) -> Column {
    Column::Text(lines.iter().map(value).collect())
}

fn sample_columns(model: &Model, ids: &[ColumnSpec]) -> Names {
    let labels: Vec<String> = model.labels().iter().map(|label| label.name().to_owned()).collect();
    let mut names = Names::new(&labels, ids);
    ["row", "sample"].into_iter().for_each(|name| names.add_ours(name, ColumnKind::Integer));
    labels.into_iter().for_each(|name| names.add(name, ColumnKind::Text));
    ["engine", "status"].into_iter().for_each(|name| names.add_ours(name, ColumnKind::Text));
    names
}

/// A row from 0, and one of its samples with its number, if it has any.
type Drawn = (usize, Option<(usize, Assignment)>);

/// Draws the samples of some rows; each has its own line, an impossible row has one line without a sample.
fn draw(
    sampler: &Sampler,
    sampling: Sampling,
    rows: &BeliefMatrix,
    numbers: &[u64],
) -> anyhow::Result<Answers> {
    let mut lines: Vec<Drawn> = Vec::new();
    let mut status = Vec::new();
    for (row, samples) in sampler.sample_batch(rows, &sampling)?.into_iter().enumerate() {
        let samples: Option<Samples> =
            samples.map_err(|error| anyhow::Error::new(error).context(format!("row {}", numbers[row])))?;
        status.push(if samples.is_some() { Status::Ok } else { Status::Impossible });
        match samples {
            Some(samples) => {
                lines.extend((1..).zip(samples).map(|numbered| (row, Some(numbered))));
            }
            None => lines.push((row, None)),
        }
    }
    let number = |line: &Drawn| line.1.as_ref().map(|(sample, _)| *sample as i64);
    let mut columns = vec![
        Column::Integer(lines.iter().map(|line| Some(numbers[line.0] as i64)).collect()),
        Column::Integer(lines.iter().map(number).collect()),
    ];
    for (id, label) in sampler.model().label_ids().zip(sampler.model().labels()) {
        let category = |sample: &(usize, Assignment)| label.category(sample.1.category(id)).to_owned();
        columns.push(Column::Text(lines.iter().map(|line| line.1.as_ref().map(category)).collect()));
    }
    columns.push(Column::Text(vec![Some(sampler.engine().name().to_owned()); lines.len()]));
    let name = |possible: bool| if possible { Status::Ok } else { Status::Impossible }.name().to_owned();
    columns.push(Column::Text(lines.iter().map(|line| Some(name(line.1.is_some()))).collect()));
    let rows = lines.iter().map(|line| line.0).collect();
    Ok(Answers { columns, rows, status, posteriors: None, best: None })
}

/// The columns so far. Columns that are not about a label are renamed if a label has their name.
struct Names {
    columns: Vec<ColumnSpec>,
    taken: HashSet<String>,
}

impl Names {
    /// The columns that identify rows; these names and those of labels are kept.
    fn new(labels: &[String], ids: &[ColumnSpec]) -> Names {
        let taken = labels.iter().cloned().chain(ids.iter().map(|id| id.name.clone())).collect();
        Names { columns: ids.to_vec(), taken }
    }

    fn add(&mut self, name: String, kind: ColumnKind) {
        self.columns.push(ColumnSpec::new(name, kind));
    }

    fn add_ours(&mut self, name: &str, kind: ColumnKind) {
        let mut name = name.to_owned();
        while !self.taken.insert(name.clone()) {
            name.insert_str(0, "prsl_");
        }
        self.add(name, kind);
    }
}
