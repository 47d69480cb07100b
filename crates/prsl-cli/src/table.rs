//! Answers as the columns of a table.

use prsl::{BeliefMatrix, Engine, Enumeration, JunctionTree, Limits, MaxProductTree, Model, MostProbable};
use prsl_data::{Column, ColumnKind, ColumnSpec};

const OK: &str = "ok";
const IMPOSSIBLE: &str = "impossible";

/// A compiled model that answers rows of beliefs with rows of a table.
pub trait Query: Sync {
    /// What the table will have.
    fn columns(&self) -> Vec<ColumnSpec>;

    /// The rows of the table for some rows of beliefs.
    fn answer(&self, rows: &BeliefMatrix) -> Answers;

    /// About how many multiplications a row takes.
    fn work(&self) -> f64;
}

/// Some rows of the table.
pub struct Answers {
    /// The values, column by column.
    pub columns: Vec<Column>,
    /// Which of the rows are impossible, from 0.
    pub impossible: Vec<usize>,
}

/// Asks for the marginals of all labels.
pub enum Marginals {
    /// By the junction tree.
    Exact(Box<JunctionTree>),
    /// By summing over all assignments.
    Enumeration(Model, Enumeration),
}

/// Asks for the most probable joint explanation.
pub enum Mpe {
    /// By the junction tree; with the one for the sum, where that is affordable.
    Exact(Box<MaxProductTree>, Option<Box<JunctionTree>>),
    /// By going through all assignments.
    Enumeration(Model, Enumeration),
}

impl Marginals {
    /// Compiles a junction tree.
    pub fn exact(model: &Model, limits: Limits) -> prsl::Result<Marginals> {
        Ok(Marginals::Exact(Box::new(JunctionTree::compile_within(model, limits)?)))
    }

    /// Lists all assignments.
    pub fn enumeration(model: &Model) -> prsl::Result<Marginals> {
        Ok(Marginals::Enumeration(model.clone(), Enumeration::compile(model)?))
    }

    fn model(&self) -> &Model {
        match self {
            Marginals::Exact(engine) => engine.model(),
            Marginals::Enumeration(model, _) => model,
        }
    }
}

impl Query for Marginals {
    fn columns(&self) -> Vec<ColumnSpec> {
        let mut names = Names::default();
        for label in self.model().labels() {
            for category in label.categories() {
                names.add(format!("{}={category}", label.name()), ColumnKind::Number);
            }
        }
        names.add_ours("log_evidence", ColumnKind::Number);
        names.add_ours("engine", ColumnKind::Text);
        names.add_ours("status", ColumnKind::Text);
        names.columns
    }

    fn answer(&self, rows: &BeliefMatrix) -> Answers {
        let posteriors = match self {
            Marginals::Exact(engine) => engine.infer_batch(rows),
            Marginals::Enumeration(_, engine) => engine.infer_batch(rows),
        };
        let n_rows = posteriors.n_rows();
        let possible: Vec<bool> = (0..n_rows).map(|row| posteriors.is_possible(row)).collect();
        let marginal = |column| {
            let value = |row| posteriors.marginals(row).map(|marginals| marginals[column]);
            Column::Number((0..n_rows).map(value).collect())
        };
        let mut columns: Vec<Column> = (0..self.model().n_categories()).map(marginal).collect();
        let log_evidence = |row: usize| possible[row].then(|| posteriors.log_evidence(row));
        columns.push(Column::Number((0..n_rows).map(log_evidence).collect()));
        columns.extend(closing(posteriors.engine(), &possible));
        Answers { columns, impossible: impossible(&possible) }
    }

    fn work(&self) -> f64 {
        match self {
            Marginals::Exact(engine) => engine.cost().multiply_adds,
            Marginals::Enumeration(model, _) => enumeration_work(model),
        }
    }
}

impl Mpe {
    /// Compiles junction trees.
    pub fn exact(model: &Model, limits: Limits) -> prsl::Result<Mpe> {
        let maximum = MaxProductTree::compile_within(model, limits)?;
        let sum = match JunctionTree::compile_within(model, limits) {
            Ok(engine) => Some(Box::new(engine)),
            Err(prsl::Error::TooCostly { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(Mpe::Exact(Box::new(maximum), sum))
    }

    /// Lists all assignments.
    pub fn enumeration(model: &Model) -> prsl::Result<Mpe> {
        Ok(Mpe::Enumeration(model.clone(), Enumeration::compile(model)?))
    }

    fn model(&self) -> &Model {
        match self {
            Mpe::Exact(engine, _) => engine.model(),
            Mpe::Enumeration(model, _) => model,
        }
    }

    fn engine(&self) -> Engine {
        match self {
            Mpe::Exact(..) => Engine::JunctionTree,
            Mpe::Enumeration(..) => Engine::Enumeration,
        }
    }

    /// The best explanation of every row, and ln Z where it is affordable.
    fn best(&self, rows: &BeliefMatrix) -> (Vec<Option<MostProbable>>, Option<Vec<f64>>) {
        let (best, posteriors) = match self {
            Mpe::Exact(maximum, sum) => {
                (maximum.best_batch(rows), sum.as_ref().map(|engine| engine.infer_batch(rows)))
            }
            Mpe::Enumeration(_, engine) => {
                let best = (0..rows.n_rows()).map(|row| engine.top(rows.row(row), 1).into_iter().next());
                (best.collect(), Some(engine.infer_batch(rows)))
            }
        };
        let log_evidence = posteriors.map(|p| (0..p.n_rows()).map(|row| p.log_evidence(row)).collect());
        (best, log_evidence)
    }
}

impl Query for Mpe {
    fn columns(&self) -> Vec<ColumnSpec> {
        let mut names = Names::default();
        for label in self.model().labels() {
            names.add(label.name().to_owned(), ColumnKind::Text);
        }
        names.add_ours("log_weight", ColumnKind::Number);
        names.add_ours("log_probability", ColumnKind::Number);
        names.add_ours("optimal", ColumnKind::Boolean);
        names.add_ours("engine", ColumnKind::Text);
        names.add_ours("status", ColumnKind::Text);
        names.columns
    }

    fn answer(&self, rows: &BeliefMatrix) -> Answers {
        let (best, log_evidence) = self.best(rows);
        let possible: Vec<bool> = best.iter().map(Option::is_some).collect();
        let category = |(index, label): (usize, &prsl::Label)| {
            let name = |best: &MostProbable| label.categories()[best.assignment[index]].clone();
            Column::Text(best.iter().map(|best| best.as_ref().map(name)).collect())
        };
        let mut columns: Vec<Column> = self.model().labels().iter().enumerate().map(category).collect();
        let log_weight = |best: &Option<MostProbable>| best.as_ref().map(|best| best.log_weight);
        columns.push(Column::Number(best.iter().map(log_weight).collect()));
        // No probability is above 1, whatever rounding says.
        let log_probability =
            |row: usize| Some((log_weight(&best[row])? - log_evidence.as_ref()?[row]).min(0.0));
        columns.push(Column::Number((0..best.len()).map(log_probability).collect()));
        columns.push(Column::Boolean(possible.iter().map(|possible| possible.then_some(true)).collect()));
        columns.extend(closing(self.engine(), &possible));
        Answers { columns, impossible: impossible(&possible) }
    }

    fn work(&self) -> f64 {
        match self {
            Mpe::Exact(maximum, sum) => {
                let sum = sum.as_ref().map_or(0.0, |engine| engine.cost().multiply_adds);
                maximum.cost().multiply_adds + sum
            }
            Mpe::Enumeration(model, _) => 2.0 * enumeration_work(model),
        }
    }
}

fn enumeration_work(model: &Model) -> f64 {
    let assignments: f64 = model.labels().iter().map(|label| label.n_categories() as f64).product();
    assignments * (model.labels().len() + model.rules().len()) as f64
}

/// The columns `engine` and `status`.
fn closing(engine: Engine, possible: &[bool]) -> [Column; 2] {
    let status = |possible: &bool| Some(if *possible { OK } else { IMPOSSIBLE }.to_owned());
    [
        Column::Text(vec![Some(engine.name().to_owned()); possible.len()]),
        Column::Text(possible.iter().map(status).collect()),
    ]
}

fn impossible(possible: &[bool]) -> Vec<usize> {
    (0..possible.len()).filter(|&row| !possible[row]).collect()
}

/// The columns so far. Those that are not about a label give way to one that has their name.
#[derive(Default)]
struct Names {
    columns: Vec<ColumnSpec>,
}

impl Names {
    fn add(&mut self, name: String, kind: ColumnKind) {
        self.columns.push(ColumnSpec::new(name, kind));
    }

    fn add_ours(&mut self, name: &str, kind: ColumnKind) {
        let mut name = name.to_owned();
        while self.columns.iter().any(|column| column.name == name) {
            name.insert_str(0, "prsl_");
        }
        self.add(name, kind);
    }
}
