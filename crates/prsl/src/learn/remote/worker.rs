//! Answers questions about chunks of rows.

use std::collections::{HashMap, VecDeque};

use super::super::data::Data;
use super::super::problem::{Compiled, Problem};
use super::super::question::Question;
use super::super::scores::ScoreSum;
use super::super::sums::ChunkSums;
use super::{Ask, Request, Setup, rows, survey};
use crate::error::Result;
use crate::infer::Limits;
use crate::model::Model;

/// Number of compiled engines that are kept. A refit uses one; the base and the one before may follow.
const KEPT_ENGINES: usize = 3;

/// Answers questions about chunks of rows: one worker for each process of a cluster.
///
/// It keeps compiled engines, and prepared rows up to a limit, so that the next question about the same rows is faster.
pub struct ChunkWorker {
    max_cells: usize,
    run: Option<Run>,
}

/// What is kept of the last run.
struct Run {
    model: Model,
    setup: Setup,
    /// The last one that was used comes first.
    engines: VecDeque<Compiled>,
    /// By number and checksum of a chunk.
    problems: HashMap<(u32, u64), Problem>,
    /// Number of beliefs of these problems.
    n_cells: usize,
}

impl ChunkWorker {
    /// A worker that keeps prepared rows of at most about this many bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_cells: max_bytes / 16, run: None }
    }

    /// The answer of a chunk to a question of [`RemoteRows`](super::RemoteRows). `rows` are those of
    /// [`Examples::to_bytes`](crate::learn::Examples::to_bytes).
    pub fn answer(&mut self, question: &[u8], rows: &[u8]) -> Result<Vec<u8>> {
        let Request { setup, ask } = Request::from_bytes(question)?;
        let (chunk, checksum) = rows::identity(rows)?;
        match ask {
            Ask::Survey => {
                let (_, examples) = rows::decode(rows, &Model::parse(&setup.model)?)?;
                Ok(survey::of_chunk(&examples, chunk, checksum).to_bytes())
            }
            Ask::Scores => {
                let model = Model::parse(&setup.model)?;
                let (_, examples) = rows::decode(rows, &model)?;
                Ok(ScoreSum::of(&model, &examples, Limits { memory: setup.memory })?.to_bytes())
            }
            Ask::Sample { limit, seed } => {
                let max_cells = self.max_cells;
                let run = self.run(setup)?;
                let (_, examples) = rows::decode(rows, &run.model)?;
                run.prepare(rows, (chunk, checksum), max_cells)?;
                let problem = &run.problems[&(chunk, checksum)];
                let sampled = problem.rows_within(limit, seed).into_iter();
                let sampled: Vec<usize> = sampled.map(|row| problem.data.place(row)).collect();
                Ok(rows::encode(&examples.select(&sampled), chunk))
            }
            Ask::Sums(question) => {
                let max_cells = self.max_cells;
                let run = self.run(setup)?;
                run.prepare(rows, (chunk, checksum), max_cells)?;
                Ok(ChunkSums::of(chunk, run.answer(&question, (chunk, checksum))?).to_bytes())
            }
        }
    }

    /// What is kept of the run with this setup. Other runs are dropped.
    fn run(&mut self, setup: Setup) -> Result<&mut Run> {
        if self.run.as_ref().is_none_or(|run| run.setup != setup) {
            let model = Model::parse(&setup.model)?;
            let (engines, problems) = (VecDeque::new(), HashMap::new());
            self.run = Some(Run { model, setup, engines, problems, n_cells: 0 });
        }
        Ok(self.run.as_mut().expect("it was just set"))
    }
}

impl Run {
    /// Prepares the rows of a chunk, unless they are kept.
    fn prepare(&mut self, bytes: &[u8], of: (u32, u64), max_cells: usize) -> Result<()> {
        if self.problems.contains_key(&of) {
            return Ok(());
        }
        let (_, examples) = rows::decode(bytes, &self.model)?;
        let data = Data::new(&self.model, &examples, &self.setup.fitted)?;
        let (free_rules, limits) = (self.setup.free_rules.clone(), Limits { memory: self.setup.memory });
        let unprepared = Problem::of(&self.model, data, free_rules, limits);
        if !self.engines.iter().any(Compiled::is_base) {
            let base = unprepared.compile(&[], &[])?;
            keep(&mut self.engines, base);
        }
        let n_cells = examples.n_rows() * self.model.n_categories();
        if self.n_cells + n_cells > max_cells {
            self.problems.clear();
            self.n_cells = 0;
        }
        let base = self.engines.iter_mut().find(|compiled| compiled.is_base()).expect("it was just kept");
        self.problems.insert(of, unprepared.prepared(base));
        self.n_cells += n_cells;
        Ok(())
    }

    /// The sums of a prepared chunk.
    fn answer(&mut self, question: &Question, of: (u32, u64)) -> Result<Vec<f64>> {
        let problem = &self.problems[&of];
        let Some((rules, parameters)) = question.engine() else {
            return Ok(problem.answer(question, None, 0));
        };
        let found = self.engines.iter().position(|compiled| compiled.has(rules));
        let compiled = match found.and_then(|place| self.engines.remove(place)) {
            Some(compiled) => compiled,
            None => problem.compile_rules(rules)?,
        };
        keep(&mut self.engines, compiled);
        let compiled = self.engines.front_mut().expect("it was just kept");
        problem.reweigh(&mut compiled.engine, parameters);
        Ok(problem.answer(question, Some(&compiled.engine), 0))
    }
}

fn keep(engines: &mut VecDeque<Compiled>, compiled: Compiled) {
    engines.push_front(compiled);
    engines.truncate(KEPT_ENGINES);
}
